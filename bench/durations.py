"""How long something took or will take, as a person reads it. Knows nothing about what; standard library only."""

from __future__ import annotations


def clock_text(seconds: float) -> str:
    """`12 s`, `3 min 05 s`, `1 h 02 min`; rounded to the smallest unit that is shown."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"
