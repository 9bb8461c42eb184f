"""Ways in which a stored cell of counted decodes can be wrong. The reference has none: these are made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.judge.damage import judge_whole
from tests.faults.stored import Outcome, outcome
from tests.judge.measure.test_decode_counters import launches, stored, timed


@dataclass(frozen=True)
class CountedFault:
    """What differs from a sound cell, and the invariant that has to see it."""

    name: str
    check: str
    change: Callable[[], dict[str, Any]]

    def tried(self, folder: Path) -> Outcome:
        """The verdict on a cell that has it."""
        given: dict[str, Any] = {"rows": launches(1), "widths": [1]} | self.change()
        return outcome(judge_whole(stored(folder, given.pop("rows"), given.pop("widths"), **given), []).findings)


def _decodes(**over: Any) -> dict[str, Any]:
    return {"decodes": [row | over for row in timed(1)]}


FAULTS = [
    CountedFault("a width was configured, and nobody counted it", "launches", lambda: {"widths": [1, 8]}),
    CountedFault("a launch of a decode is left out", "launches", lambda: {"rows": launches(1)[1:]}),
    CountedFault("a launch is told twice", "launches", lambda: {"rows": [*launches(1), launches(1)[0]]}),
    CountedFault("a decode was queued after its end", "timed", partial(_decodes, ns=[10], queued_ns=[20])),
    CountedFault("a decode without a profiler took no time", "timed", partial(_decodes, ns=[0], queued_ns=[0])),
]
