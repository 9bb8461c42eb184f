"""A cell's own record as the page's panel holds it: runs, rounds and tokens of a few of them, texts, configuration.

Knows nothing about tables of the report. Every text passes through `bench.plain_text`; times become microseconds.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any
from urllib.parse import quote

import yaml

from bench.judge.traces import Columns, Trace, Traces
from bench.machine_name import make_of
from bench.plain_text import plain_lines, plain_text
from bench.report.html.packed import as_json, packed

EMITS = ("stream", "position", "token", "round", "kind")
PLAIN_FILES = ("cell.yaml", "env.json", "facts.json", "status.json")
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml's where it is there: the other takes ten times as long for the same text."""
RUNS = ("run", "block", "order", "arm", "prompt", "counted", "distinct", "start_ns", "end_ns", "decode_window_ns",
        "prefill_ns", "clock_mhz", "temp_c", "load", "other_cpus", "steal", "energy_j")  # fmt: skip
"""Columns of the runs table that a panel shows; the file has all."""
CHUNK = 8
"""Panels that are asked for at once."""
TIMES = ("total", "decode", "draft", "sample", "rollback")


def hold(traces: Sequence[Traces]) -> None:
    """In a process of a pool: these are the cells whose panels it is asked for, which are too much to hand over."""
    _HELD[:] = traces


def packed_panels(traces: Sequence[Traces], pool: Executor | None = None) -> Callable[[], list[str]]:
    """Has the processes of a pool that began with `hold` pack all panels; what it returns waits for them."""
    if pool is None:
        return lambda: [packed(as_json(panel(one))) for one in traces]
    found = pool.map(_packed_here, range(len(traces)), chunksize=CHUNK)
    return lambda: list(found)


_HELD: list[Traces] = []


def _packed_here(place: int) -> str:
    return packed(as_json(panel(_HELD[place])))


def panel(traces: Traces) -> dict[str, Any]:
    """What the script needs of one cell."""
    starts = dict(zip(traces.runs.get("run", ()), traces.runs.get("start_ns", ()), strict=False))
    return {
        "machine": plain_text(traces.machine), "cell": plain_text(traces.cell),
        "config": plain_lines(yaml.dump(dict(traces.config), Dumper=DUMPER, sort_keys=True, allow_unicode=True)),
        "folder": "/".join(quote(part) for part in (make_of(traces.machine), traces.cell)),
        "files": [*PLAIN_FILES, *(f"{name}.csv.gz" for name in traces.files)],
        "runs": {name: _plain(traces.runs[name]) for name in RUNS if name in traces.runs}, "all_runs": traces.all_runs,
        "shown": [_run(one, int(starts.get(one.run, 0))) for one in traces.shown], "pairs": traces.pairs,
        "words": {str(token): _word(said) for token, said in sorted(traces.said.items())},
        "texts": [_texts(one, traces.said) for one in traces.shown],
    }  # fmt: skip


def _word(said: bytes) -> str:
    """A token by itself, on one line, so that one sees which blank it is."""
    return plain_text(said.decode("utf-8", "replace").replace("\n", "\u21b5").replace("\t", "\u21e5"))


def _plain(values: Sequence[Any]) -> list[Any]:
    """Numbers that JSON has no word for become None, texts lose what acts."""
    return [plain_text(value) if isinstance(value, str) else _finite(value) for value in values]


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    return value


def _run(trace: Trace, start: int) -> dict[str, Any]:
    rounds = {name: [round(value / 1000) for value in trace.rounds[f"{name}_ns"]] for name in TIMES}
    emits = {name: trace.emits[name] for name in EMITS}
    return {
        "run": trace.run, "left_out": trace.left_out,
        "rounds": {"round": trace.rounds["round"], "width": trace.rounds["width"], **rounds},
        "emits": {**emits, "t": [round((int(t) - start) / 1000) for t in trace.emits["t_ns"]]},
        "draws": trace.draws,
    }  # fmt: skip


def _texts(trace: Trace, said: Mapping[int, bytes]) -> list[list[str]]:
    """Of each answer the text of every position, up to the first gap: what its first emit adds to the text before."""
    first: dict[int, dict[int, int]] = {}
    for stream, position, token in _rows(trace.emits, "stream", "position", "token"):
        first.setdefault(int(stream), {}).setdefault(int(position), int(token))
    return [_answer(first.get(stream, {}), said) for stream in range(max(first, default=-1) + 1)]


def _rows(columns: Columns, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(columns[name] for name in names), strict=True))


def _answer(tokens: Mapping[int, int], said: Mapping[int, bytes]) -> list[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    found: list[str] = []
    while len(tokens) > len(found) and len(found) in tokens:
        token = tokens[len(found)]
        found.append(decoder.decode(said[token]) if token in said else f" #{token}")
    if found and said:
        found[-1] += decoder.decode(b"", final=True)
    return [plain_lines(text) for text in found]
