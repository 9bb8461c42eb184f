"""Child processes that share the work of a report. Knows nothing about the work.

An error of a child is raised in the parent, an interrupt is the parent's to answer, and no child outlives the work.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from bench.errors import UserError

T = TypeVar("T")
AHEAD = 4
"""Things a process that are asked for before the first of them is taken."""


@contextmanager
def children(count: int, start: Callable[[], object] | None = None) -> Iterator[ProcessPoolExecutor]:
    """A pool of `count` processes, each of which calls `start` first.

    Raises `UserError` when one of them is ended from outside.
    """
    pool = ProcessPoolExecutor(count, initializer=_begin, initargs=(start,))
    try:
        yield pool
    except BrokenProcessPool as error:
        raise UserError(
            "a child process of the report was ended from outside, most likely for want of memory; free some and run "
            "`python -m bench report` again"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def in_turn(pool: Executor, what: Callable[..., T], asked: Sequence[tuple[Any, ...]], ahead: int) -> Iterator[T]:
    """What a function makes of each of some arguments, in their order; so many are asked for before the first is taken.

    All at once, results would pile up where whoever takes them is the slower one.
    """
    waiting = deque(pool.submit(what, *one) for one in asked[:ahead])
    for place in range(len(asked)):
        yield waiting.popleft().result()
        if place + ahead < len(asked):
            waiting.append(pool.submit(what, *asked[place + ahead]))


def _begin(start: Callable[[], object] | None) -> None:
    _leave_signals_to_parent()
    if start is not None:
        start()


def _leave_signals_to_parent() -> None:
    """An interrupt reaches the whole process group; the parent alone answers it, and its pool ends the children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
