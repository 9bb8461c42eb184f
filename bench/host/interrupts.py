"""How a program of this project answers SIGINT and SIGTERM: by a KeyboardInterrupt, which leaves whole files only.

Knows nothing about what is interrupted.
"""

from __future__ import annotations

import signal


def answer() -> None:
    """Take both signals, whatever the parent does with them: a shell starts a background job with SIGINT ignored.

    What this process starts then has the system's own answer, which is to end. Call it from the main thread.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
