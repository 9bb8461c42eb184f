"""What an arm asks of the engine: its context, its method's settings, and a rollback that was seen to restore a state.

It knows no arm by name and holds no context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.plan.settings import Config
from pti_loop.engine import ContextSpec, Model
from pti_loop.method import Method
from pti_loop.parameters import resolve
from pti_loop.settings import Settings
from pti_loop.state_probe import cheapest, probe


def context_spec(config: Config, n_seq_max: int, width: int) -> ContextSpec:
    """Spec of a context of `n_seq_max` sequences whose widest decode has `width` rows; all else equal for all arms."""
    engine = config.engine
    return ContextSpec(
        n_ctx=engine.n_ctx + config.depth, n_seq_max=n_seq_max, n_batch=engine.n_batch, n_ubatch=engine.n_ubatch,
        threads=engine.threads, kv_unified=engine.kv_unified, type_k=engine.type_k, type_v=engine.type_v,
        flash_attn=engine.flash_attn, n_outputs=max(width, 1), sampler=engine.sampler, offload_kqv=engine.offload_kqv,
    )  # fmt: skip


def method_settings(config: Config) -> Settings:
    """A method's parameters for one run. The rollback may still be `auto`, which no loop knows."""
    values = resolve(config.method.name, config.method.parameters)
    return Settings(config.streams, config.n_predict, str(values.get("rollback", "rewind")), values)


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
