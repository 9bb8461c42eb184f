"""A plain CSV of decode steps or of runs, with flexible column names, read into trials.

One row is one decode step. It is a whole run where the file names arms, prompts, an order, a rate or prompt evaluations
and has no step, tokens, width or phase. Steps with the same arm, run and prompt are one trial.
Column names (other spellings in `ALIASES`; case and spaces do not matter):

- `step`, `rounds` (decode steps that a row sums up), `arm`, `run`, `prompt`, `order`, `temperature`, `clock_mhz`,
  `phase` (prefill, warmup, startup or steady)
- `tokens`: ids of the emitted tokens between spaces, `positions`: their positions in the answer,
  `stream`: one id for the row, or one a token. Where the file has counts and no ids: `emitted`.
  Where the values of `streams` or `tokens` can only be numbers of them, they are read as such (`bench.audit.meanings`)
- time of a step: `seconds`, `ms`, `us` or `ns`; or a clock at its end: `t_s`, `t_ms`, `t_us` or `t_ns`
- `width`, `drafted`, `skipped`, `verified`, `accepted`; printed by the author: `tok_s`, `acceptance`
- `n_prompt`, `n_prompt_evaluated`; settings that must agree between arms: `SETTINGS`

Without a prefill row, a file of durations counts every token; a file of clock times cannot time its first step.
It does not know what is wrong with a record; it refuses only what it cannot read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bench.audit.formats.own_ledger import concurrent_streams, decode_seconds, token_counts, with_first
from bench.audit.meanings import resolved
from bench.audit.text import Row, csv_rows
from bench.audit.trials import NAN, Record, Trial
from bench.errors import UserError, nearest

ALIASES: dict[str, tuple[str, ...]] = {
    "step": ("step", "round", "iteration", "iter"),
    "rounds": ("rounds", "steps", "n_steps", "n_rounds"),
    "arm": ("arm", "method", "variant", "system"),
    "run": ("run", "repeat", "rep", "trial"),
    "prompt": ("prompt", "prompt_id", "prompt_name"),
    "order": ("order",),
    "phase": ("phase",),
    "temperature": ("temperature",),
    "clock_mhz": ("clock_mhz", "mhz"),
    "tokens": ("tokens", "token", "token_ids", "ids"),
    "positions": ("positions", "position", "pos"),
    "stream": ("stream", "streams", "seq", "sequence", "seq_id", "slot", "lane"),
    "emitted": ("emitted", "n_emitted", "n_tokens", "count", "generated"),
    "seconds": ("seconds", "time", "s", "sec", "time_s", "duration", "duration_s"),
    "ms": ("ms", "time_ms", "duration_ms", "milliseconds"),
    "us": ("us", "time_us", "duration_us", "microseconds"),
    "ns": ("ns", "time_ns", "duration_ns", "nanoseconds"),
    "t_s": ("t_s", "t", "timestamp", "timestamp_s"),
    "t_ms": ("t_ms", "timestamp_ms"),
    "t_us": ("t_us", "timestamp_us"),
    "t_ns": ("t_ns", "timestamp_ns"),
    "width": ("width", "batch", "batch_size", "b"),
    "drafted": ("drafted", "n_drafted", "n_draft", "proposed"),
    "skipped": ("skipped", "n_skipped"),
    "verified": ("verified", "n_verified", "tested", "n_tested"),
    "accepted": ("accepted", "n_accepted", "n_accept"),
    "tok_s": ("tok_s", "tokens_per_second", "tokens_per_s", "tps", "t/s", "tok/s", "rate"),
    "acceptance": ("acceptance", "acceptance_rate", "accept_rate"),
    "n_prompt": ("n_prompt", "prompt_tokens", "pp"),
    "n_prompt_evaluated": ("n_prompt_evaluated", "evaluated", "evals", "prompt_evals", "n_p_eval"),
}
SETTINGS = (
    "build",
    "build_commit",
    "model",
    "n_gpu_layers",
    "ngl",
    "n_ctx",
    "n_seq_max",
    "n_batch",
    "n_ubatch",
    "type_k",
    "type_v",
    "flash_attn",
    "fa",
    "sampler",
    "threads",
    "n_threads",
    "depth",
    "n_depth",
    "kv_unified",
)
DURATIONS = {"seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
CLOCKS = {"t_s": 10**9, "t_ms": 10**6, "t_us": 10**3, "t_ns": 1}
COUNTERS = ("rounds", "width", "drafted", "verified", "accepted", "emitted")
STEP_COLUMNS = {"step", "tokens", "width", "phase", "positions"}
RUN_COLUMNS = {"arm", "prompt", "order", "tok_s", "n_prompt_evaluated", "rounds"}
PHASES = ("prefill", "warmup", "startup", "steady")
_CANONICAL = {alias: name for name, aliases in ALIASES.items() for alias in aliases}


@dataclass(frozen=True)
class _Step:
    """One parsed row; None where the file does not say."""

    row: Row
    phase: str
    seconds: float | None
    clock_ns: int | None
    emits: list[tuple[int, int, int]]
    """(stream, position, token); position -1 where the file has none."""
    counters: dict[str, int]


def read_steps(path: Path, text: str, streams: int | None = None) -> Record:
    """A record from the text of the file. `streams` applies where it has no stream column."""
    header, raw = csv_rows(path, text)
    names = _names(path, header)
    rows = [Row(row.path, row.line, {names[key]: value for key, value in row.cells.items()}) for row in raw]
    if not set(names.values()) & {"tokens", "emitted", "tok_s", *DURATIONS, *CLOCKS, "drafted", "n_prompt_evaluated"}:
        raise UserError(
            f"{path}, line 1: no column to judge; expected tokens, emitted or tok_s, and a time such as seconds or ms"
        )
    names, rows, read = resolved(names, rows)
    if rows and "order" in rows[0].cells:
        rows.sort(key=lambda row: row.integer("order"))
    groups: dict[tuple[str, ...], list[Row]] = {}
    for number, row in enumerate(rows):
        key = tuple(row.cells.get(name, "").strip() for name in ("arm", "run", "prompt"))
        if not set(row.cells) & STEP_COLUMNS and set(row.cells) & RUN_COLUMNS:
            key = (*key, str(number))
        groups.setdefault(key, []).append(row)
    known = set(names.values())
    if not (streams or known & {"stream", "answers"}) and known & {"tokens", "emitted"}:
        read.append("no stream column: taken as one answer (--streams N)")
    return Record(path, "steps", tuple(_trial(group, streams) for group in groups.values()), tuple(read))


def _names(path: Path, header: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for column in header:
        plain = column.strip().lower().replace(" ", "_")
        name = plain if plain in SETTINGS else _CANONICAL.get(plain)
        if name is None:
            raise UserError(f"{path}, line 1: column '{column}' is unknown; {nearest(plain, [*_CANONICAL, *SETTINGS])}")
        if name in names.values():
            raise UserError(f"{path}, line 1: two columns mean '{name}'; keep one")
        names[column] = name
    times = [name for name in names.values() if name in DURATIONS or name in CLOCKS]
    if len(times) > 1:
        raise UserError(f"{path}, line 1: {' and '.join(times)} both give the time; keep one")
    return names


def _parse(row: Row) -> _Step:
    cells = row.cells
    phase = cells.get("phase", "").strip() or "steady"
    if phase not in PHASES:
        raise row.error(f"phase is '{phase}', expected one of {', '.join(PHASES)}")
    duration = next((row.number(name, 0) * unit for name, unit in DURATIONS.items() if name in cells), None)
    clock = next((round(row.number(name) * unit) for name, unit in CLOCKS.items() if name in cells), None)
    counters = {name: row.integer(name, 0) for name in COUNTERS if cells.get(name, "").strip()}
    if "skipped" in cells and "drafted" in counters and "verified" not in counters:
        counters["verified"] = counters["drafted"] - row.integer("skipped", 0)
    return _Step(row, phase, duration, clock, _emits(row), counters)


def _emits(row: Row) -> list[tuple[int, int, int]]:
    if "tokens" not in row.cells:
        return []
    tokens = row.integers("tokens")
    positions = row.integers("positions") if "positions" in row.cells else [-1] * len(tokens)
    if len(positions) != len(tokens):
        raise row.error(f"{len(tokens)} tokens and {len(positions)} positions; expected one position a token")
    owners = row.integers("stream") if "stream" in row.cells else _owners(row, positions)
    if len(owners) == 1:
        owners = owners * len(tokens)
    if len(owners) != len(tokens):
        raise row.error(f"{len(tokens)} tokens and {len(owners)} streams; expected one stream, or one a token")
    if any(position < -1 for position in positions) or any(owner < 0 for owner in owners):
        raise row.error("a position or a stream is below 0")
    return list(zip(owners, positions, tokens, strict=True))


def _owners(row: Row, positions: list[int]) -> list[int]:
    """Streams of a row's tokens where the file says only how many there are: one after the other.

    Tokens of one row at different positions are taken as one answer's: sequences that are copies of it are no answers.
    """
    if not row.cells.get("answers", "").strip() or len(set(positions)) > 1:
        return [0]
    return [place % row.integer("answers", 1) for place in range(len(positions))]


def _trial(rows: list[Row], streams: int | None) -> Trial:
    steps = [_parse(row) for row in rows]
    first = rows[0]
    label = " ".join(part for part in (first.cells.get(name, "").strip() for name in ("arm", "run", "prompt")) if part)
    timed = [step for step in steps if step.phase in ("startup", "steady")]
    values: dict[str, Any] = {
        "place": f"line {first.line}" if len(rows) == 1 else f"lines {first.line}-{rows[-1].line}",
        "label": label or "whole file",
        "arm": first.cells.get("arm", "").strip(),
        "prompt": first.cells.get("prompt", "").strip(),
        "rounds": _rounds(timed),
        "settings": {key: first.cells[key].strip() for key in SETTINGS if key in first.cells},
        "printed": {key: first.number(key, 0) for key in ("tok_s", "acceptance") if first.cells.get(key, "").strip()},
        "temperature": first.number("temperature", 0) if first.cells.get("temperature", "").strip() else None,
        "clock_mhz": first.number("clock_mhz", 0) if first.cells.get("clock_mhz", "").strip() else None,
    }
    values |= _prompt_values(steps) | _token_values(steps, timed, streams)
    for name, target in (("drafted", "drafted"), ("verified", "tested"), ("accepted", "accepted")):
        found = [step.counters[name] for step in timed if name in step.counters]
        values[target] = sum(found) if found else None
    values["steps"] = pd.DataFrame(
        [
            {
                "line": step.row.line,
                "seconds": NAN if step.seconds is None else step.seconds,
                "emitted": step.counters.get("emitted", len(step.emits) if "tokens" in step.row.cells else NAN),
                "rounds": step.counters.get("rounds", len({owner for owner, _, _ in step.emits}) or 1),
                "width": step.counters.get("width", NAN),
                "drafted": step.counters.get("drafted", NAN),
                "tested": step.counters.get("verified", NAN),
                "accepted": step.counters.get("accepted", NAN),
            }
            for step in timed
        ]
    )
    return Trial(**values)


def _rounds(timed: list[_Step]) -> int | None:
    """Decode steps of a trial; None where its rows are whole runs that do not say."""
    if timed and "rounds" in timed[0].row.cells:
        return sum(step.counters.get("rounds", 0) for step in timed) or None
    cells = set(timed[0].row.cells) if timed else set()
    return None if not cells & STEP_COLUMNS and cells & RUN_COLUMNS else len(timed)


def _prompt_values(steps: list[_Step]) -> dict[str, Any]:
    prefill = [step for step in steps if step.phase == "prefill"]
    told = [step.row for step in steps if step.row.cells.get("n_prompt", "").strip()]
    evals = [step.row for step in steps if step.row.cells.get("n_prompt_evaluated", "").strip()]
    seconds = [step.seconds for step in prefill if step.seconds is not None]
    return {
        "prompt_tokens": told[0].integer("n_prompt", 0) if told else 0,
        "evaluated": evals[0].integer("n_prompt_evaluated", 0) if evals else None,
        "prefill_seconds": sum(seconds) if seconds else NAN,
    }


def _token_values(steps: list[_Step], timed: list[_Step], streams: int | None) -> dict[str, Any]:
    kept = [step for step in steps if step.phase != "warmup"]
    emits = _emit_frame(kept)
    clocked = bool(timed) and timed[0].clock_ns is not None
    durations = [step.seconds for step in timed if step.seconds is not None]
    values: dict[str, Any] = {"seconds": sum(durations) if durations else NAN}
    said = [step.counters["emitted"] for step in timed if "emitted" in step.counters]
    values["emitted"] = sum(said) if said else None
    startup = [step for step in timed if step.phase == "startup"]
    values["startup_seconds"] = sum(step.seconds or 0.0 for step in startup)
    known = bool({"stream", "answers"} & set(steps[0].row.cells))
    values |= {"streams_known": known, "streams": _answers(steps) if known else streams or 1}
    if emits is None:
        values["startup_counted"] = values["startup_distinct"] = sum(s.counters.get("emitted", 0) for s in startup)
        return values | {"counted": sum(said), "distinct": sum(said)}
    emits = with_first(emits, clocked)
    if clocked:
        values["seconds"] = decode_seconds(emits)
    values |= token_counts(emits, {number for number, step in enumerate(kept) if step.phase == "startup"})
    if known:
        # Without a clock, streams of one step are decoded together: that is all the file says about time.
        together = emits.groupby("round")["stream"].nunique().max()
        values["streams"] = concurrent_streams(emits) if clocked else int(together)
    return values | {"emits": emits}


def _answers(steps: list[_Step]) -> int:
    """Most answers that one row says are decoded together: a number, or the ids that its cell lists."""
    counts = [step.row.integer("answers", 1) for step in steps if step.row.cells.get("answers", "").strip()]
    listed = [len(set(step.row.integers("stream"))) for step in steps if "stream" in step.row.cells]
    return max([*counts, *listed, 1])


def _emit_frame(steps: list[_Step]) -> pd.DataFrame | None:
    """Emitted tokens. Where the file has no positions each token counts as the next one."""
    if not steps or "tokens" not in steps[0].row.cells:
        return None
    following: dict[int, int] = {}
    rows = []
    for number, step in enumerate(steps):
        for owner, position, token in step.emits:
            place = following.get(owner, 0) if position < 0 else position
            following[owner] = place + 1
            rows.append(
                (
                    owner,
                    place,
                    token,
                    number,
                    "prefill" if step.phase == "prefill" else "verified",
                    step.clock_ns if step.clock_ns is not None else 0,
                    position >= 0,
                )
            )
    names = ["stream", "position", "token", "round", "source", "t_ns", "placed"]
    return pd.DataFrame(rows, columns=names)
