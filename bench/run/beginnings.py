"""What all prompts of a cell begin with (`depth`), and what a record says of it. It evaluates nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.host.card_memory import free_memory
from bench.plan.settings import Config
from pti_loop.beginning import Beginning
from pti_loop.engine import Context


def beginning_of(config: Config, sample: Sequence[int]) -> Beginning | None:
    """The tokens before every prompt, of which `sample` is one; None where there are none."""
    return Beginning(sample[: config.depth], lambda: free_memory(on_card=False)) if config.depth else None


def told(beginning: Beginning | None, contexts: Mapping[str, Context]) -> dict[str, Any]:
    """For a record: how many tokens, whether runs restore them, what each arm's took once, or why runs do not.

    Empty where there are no such tokens.
    """
    if beginning is None:
        return {}
    return {"tokens": len(beginning.tokens), "restored": not beginning.reason, "reason": beginning.reason,
            "arms": {arm: beginning.told(ctx) for arm, ctx in contexts.items()}}  # fmt: skip


def together(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What two sides of a contrast say, as one."""
    arms = {arm: about for one in told for arm, about in (one.get("arms") or {}).items()}
    reasons = [one["reason"] for one in told if one.get("reason")]
    first = next((dict(one) for one in told if one), {})
    return first | {"restored": not reasons, "reason": reasons[0] if reasons else "", "arms": arms} if first else {}
