"""What a cell costs in time and disk, told before it runs: from stored cells of this machine, else from a model.

Work is counted in plain decodes (`bench.plan.work`). What one takes is what like cells took here; where there is none,
the model says that every decode reads the weights once. It runs nothing and knows no device.
"""

from __future__ import annotations

import heapq
import os
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan.work import beside_s, work
from bench.records.cells import read_part, read_status

MOST_READ = 200
"""Stored cells that are looked at, the newest: more tell nothing more."""
LEAST_DECODING = 0.1
"""Share of a stored cell's time that is taken to be decodes, however much the rest is guessed to be."""
FEWEST = 3
"""Like cells that say how far they spread."""
SPREAD, MODEL_SPREAD = 1.6, 3.0
"""How far off a guess may be where too few like cells say it; of the model, how far it was on the reference."""
CALL_S = 1e-3
"""What a decode takes beside its reading, by the model."""
SERVED_S, SERVED_SPREAD = 0.02, 10.0
"""What a decode of a server is taken to take whose weights nobody can see here, and how far off that may be."""
USUAL_GB_S = {"cpu": 10.0, "gpu": 200.0}
"""Reading of weights, by the model, where no stored cell has measured the bandwidth."""
BASE_BYTES, BYTES_A_UNIT = 14_000.0, 13.0
"""Size of a record without rows, and what it grows by with the work: the median of the reference."""


@dataclass(frozen=True, slots=True)
class Past:
    """A stored cell of this machine: what it was, and what it took."""

    cell: str
    kind: str
    method: str
    weights: str
    engine: str
    on_cpu: bool
    """Whether no layer was on a GPU."""
    work: float
    rows: float
    """Its work without the tokens before prompts."""
    seconds: float
    bytes: int
    file_bytes: float
    beside_s: float
    """Of the seconds, those that are no decodes."""

    @property
    def a_decode_s(self) -> float:
        """What a unit of its work took; some of any cell is decoding."""
        return max(self.seconds - self.beside_s, self.seconds * LEAST_DECODING) / self.work


@dataclass(frozen=True, slots=True)
class Guess:
    """Seconds that a cell will take, between which two, its bytes on disk, and what says so in a few words."""

    seconds: float
    low: float
    high: float
    bytes: float
    source: str


ITSELF, LIKE, SAME_MODEL, OTHER_MODEL, MODEL, UNSEEN = (
    "itself", "alike", "same model", "other model", "model", "unseen")  # fmt: skip
SOURCES = {
    ITSELF: "the same cell took as long when it was measured here before",
    LIKE: "stored cells of this machine with the same weights and method, by their work",
    SAME_MODEL: "stored cells of this machine with the same weights and other methods, by their work",
    OTHER_MODEL: "stored cells of this machine with other weights, by their work and the weights' bytes",
    MODEL: "no stored cell of this machine is like it: a decode is taken to read the weights once at {gb_s:g} GB/s "
           "({known}) and 1 ms more",
    UNSEEN: "a server has the weights, and nothing like it is stored: a decode is taken to take 20 ms, a bare "
            "assumption",
}  # fmt: skip


class Costs:
    """What is known of a machine's cells, for guesses about others. `gb_s` is the bandwidth, None where unknown."""

    def __init__(self, past: Sequence[Past], gb_s: float | None) -> None:
        self.gb_s = gb_s
        self._past, self._itself = past, {one.cell: one for one in past}
        self._groups: dict[tuple[Any, ...], tuple[str, list[Past]]] = {}

    def guess(self, cell: str, kind: str, config: Mapping[str, Any], on_cpu: bool, file_bytes: float,
              held: float = 0.0) -> Guess:  # fmt: skip
        """For a cell of a plan. `file_bytes` are those of its weights, 0 where they are not here; `held` is what a held
        token adds to a decode, as a share of it."""
        if known := self._itself.get(cell):
            return Guess(known.seconds, known.seconds / 1.2, known.seconds * 1.2, known.bytes, ITSELF)
        units, one_decode = work(kind, config, on_cpu, held), _decode(file_bytes, self.reading(on_cpu))
        rows = _rows(kind, config, on_cpu)
        rest = beside_s(kind, config, file_bytes, on_cpu)
        method = str((config.get("method") or {}).get("name", ""))
        source, found = self._group(kind, method, str(config.get("weights", "")), _engine(config), on_cpu)
        if not file_bytes and source in (OTHER_MODEL, MODEL):
            seconds = rest + units * SERVED_S
            return Guess(seconds, seconds / SERVED_SPREAD, seconds * SERVED_SPREAD, _bytes(rows, ()), UNSEEN)
        if not found:
            seconds = rest + units * one_decode
            return Guess(seconds, seconds / MODEL_SPREAD, seconds * MODEL_SPREAD, _bytes(rows, ()), MODEL)
        rates = [one.a_decode_s for one in found]
        if source == OTHER_MODEL:
            rates = [rate * one_decode / _decode(one.file_bytes, self.reading(on_cpu))
                     for rate, one in zip(rates, found, strict=True)]  # fmt: skip
        return _of(source, (units, rows), rest, found, rates)

    def _group(self, kind: str, method: str, weights: str, engine: str, on_cpu: bool) -> tuple[str, list[Past]]:
        """The stored cells that are most like one, and how like they are."""
        key = (kind, method, weights, engine, on_cpu)
        if key not in self._groups:
            there = [one for one in self._past if (one.engine, one.on_cpu) == (engine, on_cpu)]
            near = [one for one in there if _family(one.kind) == _family(kind)]
            same = [one for one in near if one.weights == weights]
            alike = [one for one in same if one.method == method]
            of_kind = [one for one in alike if one.kind == kind]
            ranked = ((LIKE, of_kind), (LIKE, alike), (SAME_MODEL, same), (OTHER_MODEL, near))
            self._groups[key] = next(((source, found) for source, found in ranked if found), (MODEL, []))
        return self._groups[key]

    def reading(self, on_cpu: bool) -> float:
        """GB/s at which weights are read."""
        return self.gb_s or USUAL_GB_S["cpu" if on_cpu else "gpu"]

    def told(self, source: str, on_cpu: bool) -> str:
        """In words where a guess comes from."""
        known = "measured in a stored cell" if self.gb_s else "assumed"
        return SOURCES[source].format(gb_s=round(self.reading(on_cpu), 1), known=known)


def _family(kind: str) -> str:
    """Kinds of cells whose times tell about each other."""
    return "contrast" if kind == "trial" else kind


def _engine(config: Mapping[str, Any]) -> str:
    return str((config.get("model") or {}).get("engine") or "llama")


def _decode(file_bytes: float, gb_s: float) -> float:
    return file_bytes / (gb_s * 1e9) + CALL_S


def _of(source: str, amount: tuple[float, float], rest: float, found: Sequence[Past],
        rates: Sequence[float]) -> Guess:  # fmt: skip
    """From what each unit of work took; `amount` is the work, and that without the tokens before prompts."""
    units, rows = amount
    middle = statistics.median(rates)
    low, high = middle / SPREAD, middle * SPREAD
    if len(rates) >= FEWEST:
        low, high = min(*rates, middle / 1.2), max(*rates, middle * 1.2)
    likely, least, most = (rest + units * rate for rate in (middle, low, high))
    return Guess(likely, least, most, _bytes(rows, found), source)


def _rows(kind: str, config: Mapping[str, Any], on_cpu: bool) -> float:
    """Work that leaves rows: tokens before prompts leave none, however long they take."""
    return max(work(kind, {**config, "depth": 0}, on_cpu), 1.0)


def _bytes(rows: float, found: Iterable[Past]) -> float:
    grown = [max(one.bytes - BASE_BYTES, 0) / one.rows for one in found]
    return BASE_BYTES + rows * (statistics.median(grown) if grown else BYTES_A_UNIT)


def past_cells(folders: Sequence[Path], wanted: Collection[str] = ()) -> Costs:
    """What some stored cells, all of one machine, say of its speed. Those that cannot be read say nothing.

    Of many the newest are read, those of the ids `wanted` before them.
    """
    found, gb_s = [], []
    newest = heapq.nlargest(MOST_READ, folders, key=lambda folder: (folder.name in wanted, _written(folder)))
    for folder in newest:
        status, config, facts = (read_status(folder), read_part(folder, "cell.yaml"), read_part(folder, "facts.json"))
        if not status or not config or not facts or status["state"] != "done" or not status.get("seconds"):
            continue
        with suppress(KeyError, TypeError, ValueError, AttributeError):  # an edited record
            found.append(_past(folder.name, float(status["seconds"]), config, facts["model"], _size(folder)))
            if measured := (facts.get("bandwidth") or {}).get("read_gb_s"):
                gb_s.append(float(measured))
    return Costs(found, statistics.median(gb_s) if gb_s else None)


def _past(cell: str, seconds: float, config: Mapping[str, Any], model: Mapping[str, Any], size: int) -> Past:
    kind, on_cpu, file_bytes = str(config["kind"]), not model.get("layers_offloaded"), float(model["file_bytes"])
    held = float(model.get("kv_bytes_per_token") or 0) / float(model.get("step_bytes") or file_bytes)
    return Past(cell, kind, str((config.get("method") or {}).get("name", "")),
                str(config.get("weights") or model.get("sha256") or ""), _engine(config), on_cpu,
                max(work(kind, config, on_cpu, held), 1.0), _rows(kind, config, on_cpu), seconds, size, file_bytes,
                beside_s(kind, config, file_bytes, on_cpu))  # fmt: skip


def _written(folder: Path) -> float:
    try:
        return (folder / "status.json").stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    with os.scandir(folder) as files:
        return sum(file.stat().st_size for file in files)
