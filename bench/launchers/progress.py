"""How far a launch is and when it will end: a line for every shard that ends, and a bar on a terminal.

It counts points, which every host makes the same cells of. It knows nothing about who runs the shards.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from bench.durations import clock_text
from bench.plain_text import plain_text


class LaunchProgress:
    """Context manager that shows a launch of so many points in shards, whose sizes are given by their numbers."""

    def __init__(self, sizes: Mapping[int, int], runs: str) -> None:
        self._sizes, self._runs = sizes, runs
        self._total, self._began = sum(sizes.values()), time.monotonic()
        self._ended: set[int] = set()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> LaunchProgress:
        print(f"{self._total} points in {len(self._sizes)} shards, {self._runs}", flush=True)
        if sys.stdout.isatty():
            from rich.progress import BarColumn, Progress, TextColumn

            what, left = TextColumn("{task.fields[what]}"), TextColumn("{task.fields[left]}")
            self._bar = Progress(what, BarColumn(bar_width=24), left, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, what="waiting for a worker", left="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def ended(self, shard: int, words: str) -> None:
        """A shard has ended for good."""
        self._ended.add(shard)
        done = sum(self._sizes[one] for one in self._ended)
        print(f"[{len(self._ended)}/{len(self._sizes)}] {plain_text(words)}{self._left(done)}", flush=True)

    def say(self, words: str) -> None:
        """A sentence beside the progress."""
        print(plain_text(words), flush=True)

    def look(self, told: Mapping[int, tuple[int, str]]) -> None:
        """What the workers told of the shards that they measure."""
        if not self._bar:
            return
        done = float(sum(self._sizes[one] for one in self._ended))
        # A point may be more than one cell, so that a shard is never done before its worker says so.
        done += sum(min(ended, self._sizes[one] - 0.5) for one, (ended, _) in told.items() if one not in self._ended)
        newest = next((what for one, (_, what) in told.items() if one not in self._ended), "")
        self._bar.update(self._task, completed=done, left=self._left(done).removeprefix(", "),
                         what=f"{len(self._ended)}/{len(self._sizes)} shards{', ' if newest else ''}{_markup(newest)}")

    def _left(self, done: float) -> str:
        if not done or done >= self._total:
            return ""
        seconds = (time.monotonic() - self._began) * (self._total - done) / done
        return f", about {clock_text(seconds)} left"


def _markup(text: str) -> str:
    from rich.markup import escape

    return escape(plain_text(text))
