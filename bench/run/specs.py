"""What an arm asks of the engine: its context, and its method's settings.

It knows no arm by name and holds no context.
"""

from __future__ import annotations

from bench.plan.settings import Config
from pti_loop.engine import ContextSpec
from pti_loop.parameters import resolve
from pti_loop.settings import Settings


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
