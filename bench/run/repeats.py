"""Runs that other processes took CPU time from, done again once the machine is quiet, as far as a budget goes.

What decides is the CPU time that everything else took while they ran, and never what they took themselves: so what is
kept is not chosen by its own noise, and the estimator needs to know nothing of it. What was not kept is listed. It
knows no arm, and judges nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bench.host.neighbours import Neighbours
from bench.plan.settings import Config
from bench.records.repeats import is_disturbed
from bench.records.rows import Piece, Run, Step
from bench.run.engines import offloads
from pti_loop.ledger import Trace

Kept = Sequence[tuple[Run, Trace, Sequence[Piece]]]
"""Runs that were open at once, or one."""
T = TypeVar("T")
SPARE_S = 10.0
"""Seconds that a cell may spend on repeats whatever its share."""
LASTING = 4
"""Attempts in a row that were all disturbed: what runs beside lasts, and waiting for its end only takes time."""
LOOK_S, WAIT_S = 0.1, 4.0
"""How long a look at the machine takes that says whether it is quiet again, and the longest wait for it."""
QUIET = 0.25
"""CPUs' worth of time of others in such a look, which the system counts in hundredths of a second."""


def free_cpus(config: Config) -> float:
    """CPUs that a decode leaves to others: those take nothing from it. Weights on a card need one thread."""
    return max((os.cpu_count() or 1) - (1 if offloads(config) else config.engine.threads), 0)


class Repeats:
    """The budget of one cell: seconds of runs that are not kept and of waiting. `share` of them for each second of runs
    that are kept, beside the first `SPARE_S`.

    `look` tells the CPUs' worth of time that others took since it was asked before, nan where nobody knows.
    """

    def __init__(self, share: float, free: float, look: Callable[[], float] | None = None,
                 sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic) -> None:  # fmt: skip
        self.share, self.free, self._sleep, self._clock = share, free, sleep, clock
        self._look = look or _others(Neighbours())
        self.kept_s, self.spent_s, self.lasting = 0.0, 0.0, False
        self.rows: list[dict[str, Any]] = []
        self._in_a_row = 0

    def runs(self, measure: Callable[[], Kept]) -> Kept:
        """What `measure` gives, from the first of its attempts that nothing disturbed, or the last one there may be."""

        def taken(found: Kept) -> bool:
            longest = max(trace.finish_ns - trace.begin_ns for _, trace, _ in found)
            return is_disturbed(found[0][0].other_cpus + found[0][0].steal - self.free, longest)

        return self._quiet(measure, taken, lambda found: [_told(run, trace) for run, trace, _ in found])

    def series(self, measure: Callable[[], list[Step]]) -> list[Step]:
        """The same of a series of decodes, which has no row that tells what ran beside."""
        seen: list[float] = []

        def looked() -> list[Step]:
            self._look()
            found = measure()
            seen.append(self._look())
            return found

        def taken(found: list[Step]) -> bool:
            return is_disturbed(seen[-1] - self.free, sum(step.decode_ns for step in found))

        return self._quiet(looked, taken, lambda found: [
            {"layout": found[0].layout, "width": found[0].width, "taken": seen[-1],
             "decode_ns": [step.decode_ns for step in found]}])  # fmt: skip

    def _quiet(self, measure: Callable[[], T], disturbed: Callable[[T], bool],
               told: Callable[[T], list[dict[str, Any]]]) -> T:  # fmt: skip
        while True:
            began = self._clock()
            found = measure()
            rows = told(found) if disturbed(found) else []
            took = self._clock() - began
            self._in_a_row = self._in_a_row + 1 if rows else 0
            self.lasting = self.lasting or self._in_a_row >= LASTING
            if not rows or self.lasting or self.spent_s + took > SPARE_S + self.share * self.kept_s:
                self.kept_s += took
                return found
            self.rows += rows
            self._wait()
            self.spent_s += self._clock() - began

    def _wait(self) -> None:
        """Until the machine is quiet, or for as long as a burst of work may last."""
        self._look()
        for _ in range(round(WAIT_S / LOOK_S)):
            self._sleep(LOOK_S)
            if not self._look() - self.free > QUIET:
                return

    def facts(self) -> dict[str, Any]:
        """For the record: the budget, what was not kept, and whether the load lasted."""
        return {"share": self.share, "free_cpus": self.free, "lasting": self.lasting, "seconds": self.spent_s,
                "attempts": self.rows}  # fmt: skip


def _others(neighbours: Neighbours) -> Callable[[], float]:
    def look() -> float:
        seen = neighbours.look()
        return seen.other_cpus + seen.steal

    return look


def _told(run: Run, trace: Trace) -> dict[str, Any]:
    """What is kept of a run that was done again."""
    return {"block": run.block, "order": run.order, "arm": run.arm, "prompt": run.prompt,
            "window_ns": run.decode_window_ns, "tokens": trace.n_distinct, "other_cpus": run.other_cpus,
            "steal": run.steal, "rounds_ns": trace.round_ns()}  # fmt: skip
