"""Run a method on an engine and return its trace: what the loop tests share."""

from __future__ import annotations

from pti_loop.draft.sources import Target
from pti_loop.engine import ContextSpec
from pti_loop.fake import FakeModel, Faults
from pti_loop.ledger import Trace
from pti_loop.loop import Decoder, Guesses, Settings
from pti_loop.methods import METHODS, fit
from pti_loop.sampling import Sampler

MS = 1_000_000


def toy(cost: float = 0.3, host_ns: int = 0, **faults) -> FakeModel:
    """A toy model whose step of width w takes 10 ms x (1 + cost x (w - 1))."""
    return FakeModel(step_ns=lambda w: int(10 * MS * (1 + cost * (w - 1))), host_ns=host_ns, faults=Faults(**faults))


def run(name: str, model=None, *, temperature: float = 0.0, seed: int = 1, control: str = "none", answer=(),
        prompts=((1, 2, 3, 4),), n_ctx: int = 400, threads: int = 1, sampler: str = "host", kv_unified: bool = False,
        **settings) -> Trace:
    """One run of a method in a fresh context."""
    model = model or toy()
    method = METHODS[name]
    chosen = Settings(**settings)
    spec = ContextSpec(n_ctx=n_ctx, n_seq_max=1, threads=threads, sampler=sampler, kv_unified=kv_unified)
    ctx = model.context(fit(method, spec, chosen))
    source = None
    try:
        source = method.source(Target(model, ctx, chosen, prompts[0], len(prompts)))
        trace = Trace(0, ctx.clock)
        answers = answer if answer and isinstance(answer[0], (list, tuple)) else [answer]
        guesses = Guesses(control, answers, model.n_vocab, model.end_tokens)
        sampler = Sampler(model.n_vocab, temperature, seed, model.weigh)
        method.run(Decoder(ctx, sampler, trace, chosen, guesses, source), prompts)
        return trace
    finally:
        if source:
            source.close()
        ctx.close()


def rate(trace: Trace) -> float:
    """Distinct tokens after the first of each answer, per second of the window."""
    emits = trace.emits()
    distinct = {(emit.stream, emit.position) for emit in emits}
    return (len(distinct) - len({emit.stream for emit in emits})) / trace.window_ns * 1e9


def acceptance(trace: Trace) -> float:
    """Accepted over compared guesses."""
    rounds = trace.rounds()
    return sum(r.accepted for r in rounds) / sum(r.verified for r in rounds)
