"""What every decode loop shares: the draws of a round, the source of guesses, and the trace that it writes to.

It knows nothing about which method is running, and nothing about benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import nan
from typing import Any

from pti_loop.beginning import Beginning
from pti_loop.drafter import Drafter, Source
from pti_loop.engine import Context, EngineError, Unsupported, prefill
from pti_loop.ledger import Trace
from pti_loop.sampling import Choice, Sampler
from pti_loop.settings import Settings

AT_ONCE = 1 << 18
"""Logits whose argmax, of all rows together, costs no more than a second call for a second row would."""
NO_TEXT: Sequence[int] = ()
Key = tuple[int, int, int]
"""Of a draw: (answer, twin, position in the answer)."""


Reader = Callable[[int, Key, Sequence[int]], Choice]
"""Draws at an output row with a key, behind a text."""


class Guesses:
    """Where guesses come from: the method itself, the answer known before (oracle), or its opposite (sabotage).

    Every run has one, and a method passes what it proposes through it. Nothing of it tells a method whether it is being
    controlled, but for guesses that come back other than they were proposed, without which there is no such control.
    """

    __slots__ = ("_answers", "_banned", "_n_vocab", "_oracle", "_plants")

    def __init__(self, control: str = "none", answers: Sequence[Sequence[int]] = ((),), n_vocab: int = 0,
                 banned: Sequence[int] = ()) -> None:
        self._plants, self._oracle = control != "none", control == "oracle"
        self._answers, self._n_vocab, self._banned = answers, n_vocab, set(banned)

    def replace(self, position: int, proposed: int, answer: int = 0) -> int:
        """Guess to use at `position` of an answer, where the method proposes `proposed`."""
        if not self._plants:
            return proposed
        known = self._answers[answer] if answer < len(self._answers) else ()
        if position >= len(known):
            return proposed
        right = known[position]
        return right if self._oracle else self._wrong(right)

    def fill(self, position: int, proposed: list[int], limit: int, answer: int = 0) -> list[int]:
        """Guesses to use from `position` on; a control guesses as often as it may, which is `limit` tokens."""
        if not self._plants:
            return proposed
        filled = (proposed + [0] * limit)[:limit]
        return [self.replace(position + place, token, answer) for place, token in enumerate(filled)]

    def twin(self, twin: int) -> int:
        """Key of a draw that is a guess. An oracle's guesses are right for the model's own draws, those of twin 0."""
        return 0 if self._oracle else twin

    def _wrong(self, right: int) -> int:
        wrong = (right + 1) % self._n_vocab
        while wrong in self._banned:
            wrong = (wrong + 1) % self._n_vocab
        return wrong


class Decoder:
    """One run of a loop on one context: decodes, draws and times, and writes to the trace."""

    def __init__(self, ctx: Context, sampler: Sampler, trace: Trace, settings: Settings,
                 guesses: Guesses | None = None, source: Source | None = None, lazy_ns: float = 0.0,
                 beginning: Beginning | None = None) -> None:
        self.ctx, self.sampler, self.trace, self.settings = ctx, sampler, trace, settings
        self.guesses = guesses or Guesses()
        self.source = source
        self.lazy_ns = lazy_ns
        """What the engine pays inside a decode for a copy that was made before it, as `state_probe` measured it."""
        self._beginning = beginning
        self.clock = ctx.clock
        self._on_backend = ctx.spec.sampler == "backend" and sampler.is_argmax
        self._logits: Any = None
        self._rows: Sequence[Any] = ()
        self.ends = frozenset(settings.ends)
        """Tokens that end an answer; none where they are not drawn at all."""

    def prefill(self, prompt: Sequence[int], sequence: int, answer: int = 0,
                watch: Callable[[int, int], None] | None = None) -> int:  # fmt: skip
        """Evaluate a prompt and emit the first token of the answer. Outside every timed window.

        What the prompts have in common may be restored instead, which is no part of the prefill's time. `watch` hears
        (first position, length) of each piece that was evaluated; what it takes is a drafter's time.
        """
        check_reset(self.ctx, sequence)
        watched = 0

        def timed(start: int, length: int) -> None:
            nonlocal watched
            assert watch, "only asked for where somebody watches"
            before = self.clock()
            watch(start, length)
            watched += self.clock() - before

        began = self.clock()
        held = self._beginning.take_up(self.ctx, prompt, sequence) if self._beginning else 0
        if held:
            began, before = self.clock(), began
            self.trace.restore_ns += began - before
            self.trace.n_prompt_restored += held
        self.trace.n_prompt_evaluated += prefill(self.ctx, prompt, sequence, timed if watch else None, held)
        token = self._first(answer, prompt)
        self.trace.prefill_ns += self.clock() - began - watched
        self.trace.draft_prefill_ns += watched
        self.trace.emit(answer, 0, token, "prefill")
        return token

    def drafter(self, answer: int) -> Drafter:
        """A drafter for an answer, before the window opens: an engine's own may take time to make."""
        assert self.source, "a method that guesses has a source"
        began = self.clock()
        made = self.source.drafter(answer, self.sampler)
        self.trace.draft_prefill_ns += self.clock() - began
        return made

    def begin(self, drafter: Drafter, text: Sequence[int], n_prompt: int) -> None:
        """Let a drafter take in prompt and first token, before the window opens: it may have a prompt to evaluate."""
        began = self.clock()
        drafter.begin(text, n_prompt)
        self.trace.draft_prefill_ns += self.clock() - began

    def _first(self, answer: int, prompt: Sequence[int]) -> int:
        """The token of the prefill, which ends no answer."""
        if not self.ends:
            return self.draws([(answer, 0, 0)], [prompt])[0].token
        return self.sampler.draw(self.ctx.logits()[0], answer, 0, 0, prompt).token

    def draws(self, keys: Sequence[Key], texts: Sequence[Sequence[int]] | None = None) -> list[Choice]:
        """One draw for each output row of the last decode, behind its text: prompt and answer before it.

        Raises `Unsupported` where the sampler reads texts, and the method tells none.
        """
        if self.sampler.is_argmax:
            return [Choice(token, nan) for token in self.ctx.greedy()]
        if texts is None:
            if self.sampler.reads_text:
                raise Unsupported("this method does not tell the text before its draws, and a penalty for repetition "
                                  "reads it; leave the penalty out")  # fmt: skip
            texts = [NO_TEXT] * len(keys)
        draw = self.sampler.draw
        return [draw(row, *key, text) for row, key, text in zip(self._each(), keys, texts, strict=True)]

    def _each(self) -> Sequence[Any]:
        """The output rows of the last decode. An engine that hands out the same array again is asked for them once."""
        logits = self.ctx.logits()
        if logits is not self._logits:
            self._logits, self._rows = logits, list(logits)
        return self._rows

    def reader(self) -> Reader:
        """A function that draws at one output row of the last decode: until the next, and only what is asked for."""
        if self._on_backend:
            tokens = self.ctx.greedy()
        else:
            rows, draw = self._each(), self.sampler.draw
            if not self.sampler.is_argmax or self._logits.size > AT_ONCE:
                return lambda row, key, text: draw(rows[row], *key, text)
            tokens = self._logits.argmax(axis=1).tolist()
        return lambda row, key, text: Choice(tokens[row], nan)

    def behind(self, text: Sequence[int], guesses: Sequence[int]) -> Callable[[int], Sequence[int]]:
        """The text before a lane's draw by its place, confirmed tokens and the guesses before it; none if unread."""
        return (lambda place: [*text, *guesses[:place]]) if self.sampler.reads_text else lambda place: NO_TEXT


class Draws:
    """A lane's draws, each made when it is first looked at: what lies behind a miss need not be drawn.

    `twin` gives the key's twin by place; without it all are of twin 0, the model's own. `text` is what comes before.
    """

    __slots__ = ("_answer", "_first", "_made", "_position", "_read", "_text", "_twin")

    def __init__(self, read: Reader, first_row: int, answer: int, first_position: int,
                 twin: Callable[[int], int] = lambda place: 0,
                 text: Callable[[int], Sequence[int]] = lambda place: NO_TEXT) -> None:
        self._read, self._first, self._twin, self._text = read, first_row, twin, text
        self._answer, self._position = answer, first_position
        self._made: dict[int, Choice] = {}

    def __getitem__(self, place: int) -> Choice:
        if place not in self._made:
            key = self._answer, self._twin(place), self._position + place
            self._made[place] = self._read(self._first + place, key, self._text(place))
        return self._made[place]

    def upto(self, accepted: int) -> list[int]:
        """Tokens of the draws that confirmed so many guesses, and of the one behind them."""
        return [self[place].token for place in range(accepted + 1)]

    def behind(self, start: int, stop: int, twin: int) -> list[int]:
        """Tokens drawn at places from `start` up to `stop` with the key of a twin."""
        return [self._read(self._first + place, (self._answer, twin, self._position + place), self._text(place)).token
                for place in range(start, stop)]  # fmt: skip


def verify(guesses: Sequence[int], choices: Sequence[Choice] | Draws, trace: Trace,
           first_position: int, ends: Collection[int] = ()) -> tuple[int, int]:  # fmt: skip
    """Compare guess i+1 with draw i until the first miss. Returns (verified, accepted) and notes each comparison.

    `guesses[0]` is the confirmed token; `first_position` is where draw 0 belongs in the answer. A draw of `ends` is the
    last of its answer: nothing is drawn behind it, so that no guess at it is of any use, and none is compared.
    """
    accepted = 0
    for depth in range(1, len(guesses)):
        choice = choices[depth - 1]
        if choice.token in ends:
            break
        trace.draw(depth, first_position + depth - 1, guesses[depth], choice.token, choice.collision)
        if guesses[depth] != choice.token:
            return depth, accepted
        accepted = depth
    return accepted, accepted


def check_reset(ctx: Context, sequence: int) -> None:
    """A run starts from nothing: a sequence that still holds tokens would fake a prefill."""
    if ctx.length(sequence) != 0:
        raise EngineError(f"sequence {sequence} still holds {ctx.length(sequence)} tokens before the prefill")
