"""Ends a child process that has gone silent for far longer than its work should take. Knows nothing about the work."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from bench.host import process_group

TICK_S = 1.0
LEAST_S = 600.0
"""A slow disk, or a driver that compiles its kernels, is no hang."""
TIMES = 10.0
"""So many times what the whole cell should take, all of it without a word."""


class Watch:
    """A thread that ends the child's group once `heard` was not called for `limit()` seconds; it ends with the child.

    Only time that passes here counts: a sweep that was itself stopped (Ctrl-Z) has not been listening. As for
    `process_group.end`, the child has to have a session of its own.
    """

    def __init__(self, child: subprocess.Popen[Any], limit: Callable[[], float]) -> None:
        self._child, self._limit = child, limit
        self._silent = 0.0
        self.ended_after: float | None = None
        """Seconds of silence after which the child was ended; None where it was not."""
        threading.Thread(target=self._watch, daemon=True).start()

    def heard(self) -> None:
        """The child said something."""
        self._silent = 0.0

    def _watch(self) -> None:
        last = time.monotonic()
        while True:
            time.sleep(TICK_S)  # one short look a tick: the child measures meanwhile
            if self._child.poll() is not None:
                return
            at = time.monotonic()
            self._silent += min(at - last, 2 * TICK_S)
            last = at
            if self._silent > self._limit():
                self.ended_after = self._silent
                process_group.end(self._child)
                return


def limit(expected: float, asked: float = 0.0) -> float:
    """Seconds of silence that are a hang, from those that the whole cell is expected to take; `asked` comes first."""
    return asked if asked > 0 else max(LEAST_S, TIMES * expected)
