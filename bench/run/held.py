"""What a process and the cards hold at a moment, and what it takes to open something. It knows no engine."""

from __future__ import annotations

from collections.abc import Callable

Look = Callable[[], dict[str, int]]
"""Tells what is held, in bytes by name."""


def held() -> dict[str, int]:
    """What this process holds (its share of what it shares, all that it maps), and what the cards hold."""
    from bench.host.card_memory import card_memory
    from bench.host.memory import give_back, process_memory

    give_back()
    process, card = process_memory(), card_memory()
    found = {"rss_bytes": process.rss, "process_bytes": process.pss or process.rss}
    return found | ({"card_bytes": card.used} if card else {})


def before(look: Look) -> dict[str, int]:
    """What is held now, under the names that a record has for it beside what is held later."""
    return {f"{name}_before": value for name, value in look().items()}
