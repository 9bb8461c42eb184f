"""Run a method on an engine and return its trace: what the loop tests share."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

from pti_loop.drafter import Target
from pti_loop.engine import ContextSpec
from pti_loop.fake import FakeModel, Faults
from pti_loop.ledger import Trace
from pti_loop.loop import Decoder, Guesses
from pti_loop.method import fit
from pti_loop.methods import METHODS
from pti_loop.sampling import Sampler
from pti_loop.settings import settings_of

MS = 1_000_000


def toy(cost: float = 0.3, host_ns: int = 0, **faults) -> FakeModel:
    """A toy model whose step of width w takes 10 ms x (1 + cost x (w - 1))."""
    return FakeModel(step_ns=lambda w: int(10 * MS * (1 + cost * (w - 1))), host_ns=host_ns, faults=Faults(**faults))


@contextmanager
def opened(name: str, model=None, *, n_ctx: int = 400, threads: int = 1, sampler: str = "host",
           kv_unified: bool = False, sample=(1, 2, 3, 4), answers: int = 1, chain=None, ends: bool = False,
           n_batch: int = 512, beginning=None, **settings):
    """A context for a method, with its drafters; yields a function that runs the method once."""
    model = model or toy()
    method = METHODS[name]
    chosen = replace(settings_of(name, **settings), ends=tuple(model.end_tokens) if ends else ())
    spec = ContextSpec(n_ctx=n_ctx, n_seq_max=1, n_batch=n_batch, n_ubatch=n_batch, threads=threads, sampler=sampler,
                       kv_unified=kv_unified, ends=ends)  # fmt: skip
    ctx = model.context(fit(method, spec, chosen))
    source = None
    if beginning:
        beginning.prepare(ctx)

    def once(prompts, temperature: float = 0.0, seed: int = 1, control: str = "none", answer=(),
             lazy_ns: float = 0.0) -> Trace:  # fmt: skip
        trace = Trace(0, ctx.clock)
        known = answer if answer and isinstance(answer[0], (list, tuple)) else [answer]
        guesses = Guesses(control, known, model.n_vocab, model.end_tokens)
        sampler = Sampler(model.n_vocab, temperature, seed, model.weigh, chain, chosen.ends)
        method.run(Decoder(ctx, sampler, trace, chosen, guesses, source, lazy_ns, beginning), prompts)
        return trace

    try:
        source = method.source(Target(model, ctx, chosen, sample, answers))
        yield once
    finally:
        if source:
            source.close()
        ctx.close()


def run(name: str, model=None, *, temperature: float = 0.0, seed: int = 1, control: str = "none", answer=(),
        prompts=((1, 2, 3, 4),), lazy_ns: float = 0.0, **settings) -> Trace:  # fmt: skip
    """One run of a method in a fresh context."""
    with opened(name, model, sample=prompts[0], answers=len(prompts), **settings) as once:
        return once(prompts, temperature, seed, control, answer, lazy_ns)


def rate(trace: Trace) -> float:
    """Distinct tokens after the first of each answer, per second of the window."""
    emits = trace.emits()
    distinct = {(emit.stream, emit.position) for emit in emits}
    return (len(distinct) - len({emit.stream for emit in emits})) / trace.window_ns * 1e9


def acceptance(trace: Trace) -> float:
    """Accepted over compared guesses."""
    rounds = trace.rounds()
    return sum(r.accepted for r in rounds) / sum(r.verified for r in rounds)
