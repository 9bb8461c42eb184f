"""The three standard streams, where whoever started this process left one closed. Knows nothing about what is written.

A closed one is no stream for Python, and the next file that is opened takes its number: a lock, say, that every `print`
of a child would then write into.
"""

from __future__ import annotations

import os
import sys

_STANDARD = 3


def open_missing() -> None:
    """Give each of the three that is closed the null device. Call it before anything is opened."""
    while True:
        number = os.open(os.devnull, os.O_RDWR)
        if number >= _STANDARD:
            os.close(number)
            break
        os.set_inheritable(number, True)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
