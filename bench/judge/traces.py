"""What a reader can look at of one cell's own records, as data. How it is chosen, `bench.judge.measure.chosen` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = NEW, AGAIN, LOOSE = range(3)
"""An emit that counts as a token: the first of a position that the model stands behind; one of a position that was said
before; one of a position that nothing ever confirms."""

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Trace:
    """One run, as columns of its tables in the order of the files. Times in nanoseconds of the cell's clock."""

    run: int
    rounds: Columns
    emits: Columns
    """`kind` beside the file's columns: what a row counts as, one of `KINDS` by its place."""
    draws: Columns
    left_out: int = 0
    """Rounds behind the last one that is kept."""


@dataclass(frozen=True)
class Traces:
    """One cell. `pairs` are places in `shown`: a run of the treatment, and plain decoding beside it or None."""

    machine: str
    cell: str
    config: Mapping[str, Any]
    files: Sequence[str]
    """The record's tables that have rows, by their names."""
    weights: str = ""
    """SHA-256 of the model's file, empty where the record does not tell."""
    said: Mapping[int, bytes] = field(default_factory=dict)
    """What the tokens that are shown say, where somebody knows it: a token may be a part of a character."""
    runs: Columns = field(default_factory=dict)
    """The runs table, with `counted` and `distinct`: emit calls and different tokens after the first."""
    all_runs: int = 0
    shown: Sequence[Trace] = ()
    pairs: Sequence[tuple[int, int | None]] = ()

    @property
    def tokens(self) -> set[int]:
        """Ids of all tokens that are shown."""
        found = {int(token) for one in self.shown for token in one.emits["token"]}
        return found | {int(token) for one in self.shown for name in ("guess", "drawn") for token in one.draws[name]}
