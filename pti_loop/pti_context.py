"""N streams of one model in one context: prefill, then rounds of one `llama_decode` each, and what they say.

    with PtiContext(model, n_streams=4) as pti:
        pti.prefill([model.tokenize("The key to faster LLM inference is")], n_predict=80)
        while not pti.done:
            for said in pti.step():
                ...
        print(pti.rates().distinct)

It is a loop of `pti_loop.methods` that stops behind every round. It knows nothing about what is done with the tokens.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any, NamedTuple

from pti_loop.counted import CountedContext, CountedModel
from pti_loop.drafter import Source, Target
from pti_loop.engine import Context, ContextSpec, Model, Unsupported
from pti_loop.ledger import Trace
from pti_loop.loop import Decoder
from pti_loop.method import Method, fit
from pti_loop.methods import METHODS
from pti_loop.parameters import Value, resolve
from pti_loop.rollback_choice import find_rollback
from pti_loop.sampling import Sampler
from pti_loop.settings import Settings
from pti_loop.tally import Tally

USUAL = "stagger"
"""The method that is meant where only a number of streams is said."""
MOST_STREAMS = 256
"""Sequences of one context, as llama.cpp has it (LLAMA_MAX_SEQ)."""
GUESSES = ("drafted", "verified", "accepted")
"""Columns of a round that count guesses."""
SAMPLE = "The key to faster LLM inference is that one reading of the weights serves more than one token. " * 2
"""Text by which a rollback, and a nextn head's pairing, are tried before the first prompt is known."""


class RequestError(ValueError):
    """What was asked for cannot be decoded; the text is one sentence."""


class Said(NamedTuple):
    """One emit call of a loop."""

    answer: int
    position: int
    """0 is the first token behind the prompt."""
    token: int
    again: bool
    """Whether this position was said before: no further token of the answer."""
    confirmed: bool
    """Whether the model's own draw behind a prefix known to be right says it; else it is a guess so far."""


@dataclass(frozen=True)
class Rates:
    """Tokens behind the first one of each answer, and the seconds of the timed window that they took."""

    seconds: float
    rounds: int
    counted: int
    """Emit calls, with each token that is said again."""
    distinct: int
    """Different (answer, position): only they are tokens of an answer."""
    drafted: int
    verified: int
    accepted: int
    each: tuple[float, ...]
    """tok/s of each answer, up to its own last token: what one reader waits for."""

    @property
    def counted_tok_s(self) -> float:
        """What a counter of emit calls prints. Not a speed."""
        return self.counted / self.seconds if self.seconds else nan

    @property
    def aggregate_tok_s(self) -> float:
        """Distinct tokens of all answers in sum."""
        return self.distinct / self.seconds if self.seconds else nan

    @property
    def answer_tok_s(self) -> float:
        """The mean of what the answers' readers get."""
        return sum(self.each) / len(self.each) if self.each else nan


def check_streams(method: Method, n_streams: int) -> None:
    """Raises `RequestError` for a number of streams that the method does not have."""
    spec = method.spec
    most = 1 if spec.answers == "one" else spec.most_streams or MOST_STREAMS
    if not 1 <= n_streams <= most:
        takes = "decodes one stream" if most == 1 else f"takes 1 to {most} streams"
        raise RequestError(f"{n_streams} streams: method {spec.name} {takes}; give another number or another method")


def room(method: Method, settings: Settings, n_prompt: int) -> int:
    """Tokens that one stream has to hold for a prompt and its answer of `settings.n_predict`."""
    most = settings.n_predict * (settings.streams if method.declaration(settings).by_rounds else 1)
    return n_prompt + most + method.width(settings)


class PtiContext:
    """`n_streams` streams of a loaded model, as a method decodes them; its parameters are keywords (`draft=3`).

    One answer in staggered copies is what the usual method makes of them; with `method="packed"` they are independent
    answers. `n_ctx` is what one stream can hold, in tokens; `spec` says the rest of how the context is made.
    At temperature 0 the text is plain decoding's (up to near ties, which the shape of a decode may turn around); above
    it a draw depends on `seed`, answer and position alone. End-of-generation tokens are masked.

    Raises `RequestError` for a number of streams that the method does not have, `ParameterError` for an unknown method
    or parameter, `EngineError` where there is no room, and `Unsupported` where the method cannot run on this model.
    """

    def __init__(self, model: Model, n_streams: int = 4, method: str = USUAL, *, n_ctx: int = 2048,
                 temperature: float = 0.0, seed: int = 1, spec: ContextSpec | None = None,
                 **parameters: Value) -> None:  # fmt: skip
        values = resolve(method, parameters, where="")
        self.method, self.model = METHODS[method], model
        check_streams(self.method, n_streams)
        self._sampler = Sampler(model.n_vocab, temperature, seed, model.weigh)
        sample = model.tokenize(SAMPLE)
        narrow = replace(spec or ContextSpec(n_ctx, 1), n_ctx=n_ctx, n_seq_max=1, n_outputs=1)
        asked = Settings(n_streams, 1, str(values.get("rollback", "rewind")), values)
        self.settings, self.rollback = find_rollback(model, narrow, self.method, asked, sample)
        fitted = fit(self.method, narrow, self.settings)
        _check_batch(self.method, self.settings, fitted)
        self._tally = Tally()
        self.ctx: Context = CountedContext(model.context(fitted), self._tally)
        self._source: Source | None = None
        try:
            self._source = self.method.source(
                Target(CountedModel(model, self._tally), self.ctx, self.settings, sample, self.n_answers))
        except BaseException:
            self.ctx.close()
            raise
        self.trace = Trace(0, self.ctx.clock, self._tally)
        self._rounds: Generator[None, None, None] | None = None
        self._said: set[tuple[int, int]] = set()
        self.prompts: tuple[tuple[int, ...], ...] = ()
        self.done = True
        """Whether nothing is left to decode."""

    @property
    def n_answers(self) -> int:
        """Prompts that are decoded at once."""
        return self.method.answers(self.settings)

    @property
    def label(self) -> str:
        """The method and its parameters in words."""
        return self.method.declaration(self.settings).label

    def prefill(self, prompts: Sequence[Sequence[int]], n_predict: int) -> list[Said]:
        """Forget what was there, evaluate the prompts, and return the first token of each answer.

        `prompts` are token ids, one list an answer; a method that decodes one after the other takes any number, and
        has evaluated the first. `n_predict` counts the tokens of an answer, the first one included. Raises
        `RequestError` for another number of prompts, an empty one and one that does not fit, and `EngineError`.
        """
        self._check(prompts, n_predict)
        self.prompts = tuple(tuple(prompt) for prompt in prompts)
        self.settings = replace(self.settings, n_predict=n_predict)
        self._tally.reset()
        self.trace = Trace(0, self.ctx.clock, self._tally)
        self.trace.begin_ns = self.ctx.clock()
        lazy = self.rollback.get("lazy_ns", 0.0)
        decoder = Decoder(self.ctx, self._sampler, self.trace, self.settings, source=self._source, lazy_ns=lazy)
        self._rounds, self._said, self.done = _rounds(self.method, decoder, self.prompts), set(), False
        return self._go_on()

    def step(self) -> list[Said]:
        """One round: one `llama_decode` of all streams, and what a drafter or a rebuilt stagger needs beside it.

        Returns what was said, nothing once `done`. What the caller does between two steps is in no rate.
        Raises `EngineError`.
        """
        if self.done:
            return []
        self.trace.resume()
        return self._go_on()

    def stop(self) -> None:
        """End here; the rates are those so far."""
        if self.trace.is_open:
            self.trace.resume()
            self.trace.close_window()
        if self._rounds:
            self._rounds.close()
        self.done = True

    def tokens(self, answer: int = 0) -> list[int]:
        """The confirmed tokens of an answer, up to the first that is missing, and at most `n_predict`."""
        return self.trace.text(answer, verified_only=True)[: self.settings.n_predict]

    def rates(self) -> Rates:
        """Of the window so far. Call it when `done`, or after `stop`."""
        trace, rounds = self.trace, self.trace.rounds()
        drafted, verified, accepted = (sum(getattr(row, name) for row in rounds) for name in GUESSES)
        return Rates(trace.window_ns / 1e9, trace.n_rounds, trace.n_said, trace.n_distinct, drafted, verified, accepted,
                     self._each())  # fmt: skip

    def _each(self) -> tuple[float, ...]:
        """tok/s of each answer between its first token, or the window's beginning, and its last."""
        trace = self.trace
        if trace.start_ns is None or not trace.window_ns:
            return ()
        found = []
        for answer in range(len(self.prompts)):
            emits = [emit for emit in trace.emits() if emit.stream == answer]
            began = max([trace.start_ns, *(emit.t_ns for emit in emits if emit.round < 0)])
            distinct = len({emit.position for emit in emits if emit.round >= 0})
            if distinct:
                found.append(distinct * 1e9 / (emits[-1].t_ns - began))
        return (trace.n_distinct / (trace.window_ns / 1e9),) if len(self.prompts) == 1 else tuple(found)

    def facts(self) -> Mapping[str, Any]:
        """What the engine made of the context, and what a drafter says of itself."""
        return {**self.ctx.facts(), **({"drafter": self._source.facts()} if self._source else {})}

    def close(self) -> None:
        """Free the context and the drafters. Calling twice is allowed."""
        if self._source:
            self._source.close()
            self._source = None
        self.ctx.close()

    def __enter__(self) -> PtiContext:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _go_on(self) -> list[Said]:
        """The loop up to its next stop, and what it said on the way."""
        assert self._rounds, "prefill makes them"
        first = self.trace.n_emits
        try:
            next(self._rounds)
            self.trace.pause()
        except StopIteration:
            self.done = True
        said = []
        for emit in self.trace.emits(first):
            place = emit.stream, emit.position
            said.append(Said(*place, emit.token, place in self._said, emit.source != "unverified"))
            self._said.add(place)
        return said

    def _check(self, prompts: Sequence[Sequence[int]], n_predict: int) -> None:
        wanted = self.n_answers
        if len(prompts) != wanted and not (self.method.in_turn and prompts):
            raise RequestError(f"{len(prompts)} prompts, and method {self.method.name} decodes {wanted} at once")
        if n_predict < 2:
            raise RequestError(f"n_predict is {n_predict}; a rate needs 2 tokens or more")
        if not all(prompts):
            raise RequestError("a prompt is empty; give one token or more")
        longest = max(map(len, prompts))
        need = room(self.method, replace(self.settings, n_predict=n_predict), longest)
        n_ctx = self.ctx.spec.n_ctx
        if need > n_ctx:
            raise RequestError(
                f"a prompt of {longest} tokens and {n_predict} to predict need {need} tokens of context, and a stream "
                f"holds {n_ctx}; shorten the prompt, predict fewer, or make the context larger"
            )


def _rounds(method: Method, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Generator[None, None, None]:
    """The method's rounds; all of them at once where it gives nobody a turn."""
    if method.takes_turns:
        yield from method.rounds(decoder, prompts)
    else:
        method.run(decoder, prompts)


def _check_batch(method: Method, settings: Settings, spec: ContextSpec) -> None:
    """Raises `Unsupported` where the widest decode of a round is more than the engine takes in one call."""
    width = method.width(settings)
    if width > min(spec.n_batch, spec.n_ctx):
        raise Unsupported(
            f"a round of {method.declaration(settings).short} decodes {width} tokens, and n_batch={spec.n_batch} or "
            f"n_ctx={spec.n_ctx} holds fewer; take fewer streams or draft less"
        )
