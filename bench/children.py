"""Child processes that share the work of a report. Knows nothing about the work.

An error of a child is raised in the parent, an interrupt is the parent's to answer, and no child outlives the work.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from bench.errors import UserError


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


def _begin(start: Callable[[], object] | None) -> None:
    _leave_signals_to_parent()
    if start is not None:
        start()


def _leave_signals_to_parent() -> None:
    """An interrupt reaches the whole process group; the parent alone answers it, and its pool ends the children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
