"""How far a sweep is and when it will end. On a terminal a bar, elsewhere a line a cell.

The estimate rests on the measured seconds per unit of work of the cells so far, and there is none until a tenth of the
first cell is done. It knows nothing about what cells measure.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from bench.durations import clock_text
from bench.plain_text import plain_text
from bench.run import watch

if TYPE_CHECKING:
    from bench.plan.cells import Cell


KNOWN_FROM = 0.1
"""Share of a cell that has to be done before its time tells anything."""
SLOW_BYTES_PER_S = 1e9
"""No machine that one would measure on reads its weights more slowly; decoding is bound by that."""
SLOW_CALL_S = 1e-3


class Estimate:
    """Seconds left, from work units done and the time that they took."""

    def __init__(self, total_work: float) -> None:
        self.total = total_work
        self.done = 0.0
        self.seconds = 0.0

    def add(self, work: float, seconds: float) -> None:
        """A cell of this much work took this long."""
        self.done += work
        self.seconds += seconds

    def left(self, current_work: float, current_share: float, current_seconds: float) -> float | None:
        """Seconds left now; None while nothing is known."""
        done = self.done + current_work * current_share
        seconds = self.seconds + current_seconds
        if done <= 0 or seconds <= 0 or (self.done == 0 and current_share < KNOWN_FROM):
            return None
        return seconds / done * max(self.total - done, 0.0)


class Progress:
    """Context manager that shows a sweep. `start`, `advance` and `finish` follow the cells.

    `limit` is how many seconds of silence are a hang; 0 leaves it to what a cell should take.
    """

    def __init__(self, todo: list[Cell], kept: int, limit: float = 0.0) -> None:
        self._limit, self._share = limit, 0.0
        self.count, self.kept, self.number = len(todo), kept, 0
        self.estimate = Estimate(sum(cell.work for cell in todo))
        self._cell: Cell | None = None
        self._began = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        words = f"{self.count} cells to run" + (f", {self.kept} done before" if self.kept else "")
        print(words, flush=True)
        if sys.stdout.isatty() and self.count:
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            what, left = TextColumn("{task.fields[what]}"), TextColumn("{task.fields[left]}")
            self._bar = Bar(what, BarColumn(bar_width=24), left, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self.estimate.total or 1, what="", left="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def start(self, cell: Cell) -> None:
        """A cell begins."""
        self.number += 1
        self._cell, self._began, self._share = cell, time.monotonic(), 0.0
        self.advance(0.0, "starting")

    def limit(self) -> float:
        """Seconds of silence that are a hang of the cell that runs."""
        return watch.limit(self.expected(), self._limit)

    def expected(self) -> float:
        """Seconds that the cell that runs should take, from it, from the cells before it, or from its weights."""
        if self._cell is None:
            return 0.0
        if self._share >= KNOWN_FROM:
            return (time.monotonic() - self._began) / self._share
        if self.estimate.done > 0:
            return self._cell.work * self.estimate.seconds / self.estimate.done
        return self._cell.work * (_weight_bytes(self._cell) / SLOW_BYTES_PER_S + SLOW_CALL_S)

    def advance(self, share: float, label: str) -> None:
        """The cell is this far."""
        self._share = share
        if not self._bar or self._cell is None:
            return
        left = self.estimate.left(self._cell.work, share, time.monotonic() - self._began)
        self._bar.update(
            self._task, completed=self.estimate.done + self._cell.work * share,
            what=_markup(f"[{self.number}/{self.count}] {self._cell.label}: {label}"),
            left=f"about {clock_text(left)} left" if left is not None else "estimating",
        )  # fmt: skip

    def finish(self, cell: Cell, status: dict[str, Any]) -> None:
        """The cell ended, well or not."""
        seconds = time.monotonic() - self._began
        self.estimate.add(cell.work, seconds)
        left = self.estimate.left(0.0, 0.0, 0.0)
        more = f", about {clock_text(left)} left" if left and self.number < self.count else ""
        reason = f": {plain_text(str(status['reason']))}" if status["reason"] else ""
        head = f"[{self.number}/{self.count}] {plain_text(cell.label)}"
        print(f"{head}: {status['state']} in {seconds:.0f} s{more}{reason}", flush=True)


def _markup(text: str) -> str:
    """Text of a bar, whose columns take square brackets for rich's own."""
    from rich.markup import escape

    return escape(plain_text(text))


def _weight_bytes(cell: Cell) -> int:
    try:
        return cell.model_path.stat().st_size
    except OSError:
        return 0
