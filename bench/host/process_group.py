"""Ending a child process that leads a group of its own, with all that it started. Knows nothing about what they do."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import Any

PATIENCE_S = 5


def end(child: subprocess.Popen[Any]) -> None:
    """Ask the child's group to end, kill it when it does not in time, and collect the child.

    The child has to have been started with `start_new_session=True`, or this ends the caller's own group.
    """
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, kind)
        with suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE_S)
            return
