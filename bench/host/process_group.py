"""Child processes that leave nothing behind: ended with all that they started, and gone when their parent is.

Knows nothing about what they do.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

PATIENCE_S = 5
_PR_SET_PDEATHSIG = 1


def end(child: subprocess.Popen[Any]) -> None:
    """Ask the child's group to end, kill what does not in time, and collect the child.

    The child has to have been started with `start_new_session=True`, or this ends the caller's own group.
    """
    _send(child, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(PATIENCE_S)
    _send(child, signal.SIGKILL)  # also what a child that ended well has left behind
    child.wait()


def clear_after(child: subprocess.Popen[Any]) -> threading.Thread:
    """A thread, started, that kills the child's group once the child has ended, however that came about.

    A group whose leader was killed goes on without it and holds the leader's pipes open. As for `end`, the child has
    to have a session of its own.
    """

    def wait() -> None:
        child.wait()
        _send(child, signal.SIGKILL)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def _send(child: subprocess.Popen[Any], kind: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, kind)


def dies_with_parent() -> Callable[[], None] | None:
    """The `preexec_fn` of a child that must not outlive this process, not even where it is killed. Linux only.

    A program that the child becomes keeps to it; what the child starts has to be told itself.
    """
    if sys.platform != "linux":
        return None
    # Before the fork: a child of a process with threads can rely on little.
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before it could be asked
            os._exit(1)

    return ask
