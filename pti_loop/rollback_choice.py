"""Which rollback a method takes on a model: the cheapest that was seen to restore its state. It knows no method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pti_loop.engine import ContextSpec, Model
from pti_loop.method import Method
from pti_loop.settings import Settings
from pti_loop.state_probe import cheapest, probe


def find_rollback(model: Model, spec: ContextSpec, method: Method, settings: Settings,
                  sample: Sequence[int]) -> tuple[Settings, dict[str, Any]]:  # fmt: skip
    """Settings with a strategy that was seen to restore the state, and what was seen. Raises `Unsupported` for none.

    Methods that roll nothing back get the strategy that needs nothing.
    """
    plain = replace(settings, rollback="rewind")
    if not method.rolls_back(settings):
        return plain, {}
    guesses = method.width(plain) // method.answers(plain) - 1
    wanted = method.strategies(plain) if settings.rollback == "auto" else (settings.rollback,)
    findings = probe(model, spec, sample, max(guesses, 1), wanted)
    chosen = cheapest(findings)
    facts = {"strategy": chosen.strategy, "lazy_ns": chosen.lazy_ns, "tried": [found.as_dict() for found in findings]}
    return replace(settings, rollback=chosen.strategy), facts
