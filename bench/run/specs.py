"""What an arm asks of the engine: its context, and its method's settings.

It knows no arm by name and holds no context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.plan.settings import Config
from bench.records.drawing import CHAIN
from pti_loop.chain import Chain
from pti_loop.engine import ContextSpec, Model
from pti_loop.parameters import resolve
from pti_loop.sampling import Sampler
from pti_loop.settings import Settings


def context_spec(config: Config, n_seq_max: int, width: int) -> ContextSpec:
    """Spec of a context of `n_seq_max` sequences whose widest decode has `width` rows; all else equal for all arms."""
    engine = config.engine
    return ContextSpec(
        n_ctx=engine.n_ctx + config.depth, n_seq_max=n_seq_max, n_batch=engine.n_batch, n_ubatch=engine.n_ubatch,
        threads=engine.threads, kv_unified=engine.kv_unified, type_k=engine.type_k, type_v=engine.type_v,
        flash_attn=engine.flash_attn, n_outputs=max(width, 1), sampler=engine.sampler, offload_kqv=engine.offload_kqv,
        op_offload=engine.op_offload, ends=not config.ignore_eos,
    )  # fmt: skip


def method_settings(config: Config, ends: Sequence[int] = ()) -> Settings:
    """A method's parameters for one run, `ends` the tokens that may end an answer.

    The rollback may still be `auto`, which no loop knows.
    """
    values = resolve(config.method.name, config.method.parameters)
    return Settings(config.streams, config.n_predict, str(values.get("rollback", "rewind")), values, tuple(ends))


def ends_of(model: Model, config: Config) -> Sequence[int]:
    """The tokens that may end an answer; none where they are never drawn."""
    return () if config.ignore_eos else model.end_tokens


def sampler_of(model: Model, config: Config, seed: int, kind: Callable[..., Sampler] = Sampler) -> Sampler:
    """What draws with a seed, in every arm. `kind` takes what a sampler takes."""
    return kind(model.n_vocab, config.temperature, seed, model.weigh, chain_of(config), ends_of(model, config))


def rule_of(config: Config, seed: int, ends: Sequence[int]) -> Sampler:
    """The same where no model is at hand: it says what rows a draw would be from, and draws nothing."""
    return Sampler(1, config.temperature, seed, chain=chain_of(config), ends=ends)


def chain_of(config: Config) -> Chain:
    """What logits go through before a draw."""
    return Chain(**{name: getattr(config, name) for name in CHAIN})

