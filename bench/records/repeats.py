"""When a run counts as disturbed: other processes took CPU time that it could have used. The one rule of it.

It looks at the machine beside the run and never at the run's own time. It reads no file.
"""

from __future__ import annotations

TAKEN = 0.2
"""CPUs' worth of time that a run can lose to others; a quiet machine's own services take up to a tenth."""
TICKS_NS = 30_000_000
"""Three ticks of the system's counters: what is less may be the way they count."""


def is_disturbed(taken: float, length_ns: float) -> bool:
    """Whether a run of so many nanoseconds lost so many CPUs' worth of time; nan, where nobody knows, is none."""
    return taken > TAKEN and taken * length_ns > TICKS_NS
