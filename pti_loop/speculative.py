"""Guess and verify: drafters propose, one decode checks the guesses of every answer, wrong tails are forgotten.

Every emitted token is the target's own draw after a prefix that it drew itself, so the text does not depend on the
drafter, nor on how many answers share the decode. It knows no drafter and no rollback strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pti_loop.drafter import Drafter
from pti_loop.loop import Decoder, Draws, verify
from pti_loop.rollback import STRATEGIES, Checkpoint, Rewind

AGAIN = 4
"""Tokens that may wait to be decoded again beside the next guesses; more of them get a decode of their own."""


@dataclass
class Lane:
    """One answer: `text` is its prompt and all confirmed tokens, of which its sequence holds the first `held`."""

    answer: int
    n_prompt: int
    text: list[int]
    held: int
    drafter: Drafter
    rollback: Rewind | Checkpoint
    guesses: Sequence[int] = ()
    told: tuple[list[int], list[int], int] | None = None
    """What the drafter has yet to hear of the last round."""
    copies: int = 0
    """Copies of the sequence that its next decode may have to pay for."""
    ended: bool = False
    """Whether its newest token ends the answer."""

    @property
    def done(self) -> int:
        """Tokens of the answer that are out."""
        return len(self.text) - self.n_prompt


class Verdict(NamedTuple):
    """What a round drew for one lane, and how many guesses were compared and right.

    `tokens` are confirmed; `rejected` lie behind a wrong guess.
    """

    tokens: list[int]
    rejected: list[int]
    verified: int
    accepted: int


def decode(decoder: Decoder, prompts: Sequence[Sequence[int]], draft: int) -> None:
    """All of `rounds` at once."""
    for _ in rounds(decoder, prompts, draft):
        pass


def rounds(decoder: Decoder, prompts: Sequence[Sequence[int]], draft: int) -> Iterator[None]:
    """Decode the prompts together with at most `draft` guesses a round and answer, stopping as `Method.rounds` says.

    Answers that are complete leave the batch. Raises `Unsupported` when the memory cannot forget a rejected tail.
    """
    decoder.ctx.clear()
    lanes = [_open(decoder, answer, prompt, len(prompts)) for answer, prompt in enumerate(prompts)]
    n_predict = decoder.settings.n_predict
    yield
    decoder.trace.open_window()
    while open_lanes := [lane for lane in lanes if lane.done < n_predict and not lane.ended]:
        _round(decoder, open_lanes, draft)
        yield
    decoder.trace.close_window()


def _open(decoder: Decoder, answer: int, prompt: Sequence[int], answers: int) -> Lane:
    """Prefill one prompt, and let its drafter see it. Outside every timed window."""
    drafter = decoder.drafter(answer)

    def seen(start: int, length: int) -> None:
        # Asked for late: not every engine has them.
        drafter.watch(start, prompt[start : start + length], lambda: decoder.ctx.hidden())

    first = decoder.prefill(prompt, answer, answer, seen)
    text = [*prompt, first]
    decoder.begin(drafter, text, len(prompt))
    rollback = STRATEGIES[decoder.settings.rollback].make(decoder.ctx, answer, answer + answers)
    return Lane(answer, len(prompt), text, len(prompt), drafter, rollback)


def _round(decoder: Decoder, lanes: Sequence[Lane], draft: int) -> None:
    """One decode for all lanes, with everything before and after it."""
    clock = decoder.clock
    began = clock()
    for lane in lanes:
        _propose(decoder, lane, draft)
    drafted = clock()
    for lane in lanes:
        _mark(lane)
    marked = clock()
    width = _decode(decoder, lanes)
    decoded = clock()
    verdicts = _verify(decoder, lanes)
    sampled = clock()
    _watch(decoder, lanes)
    watched = clock()
    copies, again = sum(lane.copies for lane in lanes), 0
    for lane, verdict in zip(lanes, verdicts, strict=True):
        again += _settle(decoder, lane, verdict)
    rolled = clock()
    for lane, verdict in zip(lanes, verdicts, strict=True):
        _emit(decoder, lane, verdict)
    lazy = min(int(copies * decoder.lazy_ns), decoded - marked)
    times = (drafted - began + watched - sampled, decoded - marked - lazy, sampled - decoded,
             marked - drafted + rolled - watched + lazy, clock() - began)  # fmt: skip
    counts = (sum(len(lane.guesses) for lane in lanes), sum(verdict.verified for verdict in verdicts),
              sum(verdict.accepted for verdict in verdicts))  # fmt: skip
    decoder.trace.round("steady", width, times, counts, again)


def _propose(decoder: Decoder, lane: Lane, draft: int) -> None:
    """The drafter's guesses, or those of a control, which guesses as often as it may."""
    if lane.told:
        lane.drafter.observe(*lane.told)  # here, since it is a part of making the next guesses
        lane.told = None
    limit = min(draft, decoder.settings.n_predict - lane.done - 1)
    lane.guesses = decoder.guesses.fill(lane.done, lane.drafter.propose(limit), limit, lane.answer)


def _mark(lane: Lane) -> None:
    if lane.guesses:
        lane.rollback.mark(lane.held)
        lane.copies += lane.rollback.copies


def _decode(decoder: Decoder, lanes: Sequence[Lane]) -> int:
    """The verifying decode. Returns its width. Only the newest token and the guesses behind it are outputs."""
    tokens: list[int] = []
    places: list[int] = []
    sequences: list[int] = []
    outputs: list[int] = []
    for lane in lanes:
        rows = [*lane.text[lane.held :], *lane.guesses]
        outputs += range(len(tokens) + len(rows) - len(lane.guesses) - 1, len(tokens) + len(rows))
        places += range(lane.held, lane.held + len(rows))
        sequences += [lane.answer] * len(rows)
        tokens += rows
    decoder.ctx.decode(tokens, places, sequences, outputs if len(outputs) < len(tokens) else None)
    return len(tokens)


def _verify(decoder: Decoder, lanes: Sequence[Lane]) -> list[Verdict]:
    """Draw as far as a guess was right, and compare each lane's guesses with its draws."""
    read, first, verdicts = decoder.reader(), 0, []
    for lane in lanes:
        size, twin = len(lane.guesses) + 1, lane.drafter.listens
        own = Draws(read, first, lane.answer, lane.done, text=decoder.behind(lane.text, lane.guesses))
        first += size
        verified, accepted = verify([lane.text[-1], *lane.guesses], own, decoder.trace, lane.done, decoder.ends)
        tokens = own.upto(accepted)
        lane.ended = tokens[-1] in decoder.ends
        rejected = [] if twin is None or lane.ended else own.behind(accepted + 1, size, twin)
        verdicts.append(Verdict(tokens, rejected, verified, accepted))
    return verdicts


def _watch(decoder: Decoder, lanes: Sequence[Lane]) -> None:
    """Show each drafter the hidden states of its lane's rows, before another decode writes over them."""
    first = 0
    for lane in lanes:
        tokens = [*lane.text[lane.held :], *lane.guesses]
        end = first + len(tokens)
        lane.drafter.watch(lane.held, tokens, partial(_rows, decoder, slice(first, end)))
        first = end


def _rows(decoder: Decoder, rows: slice) -> NDArray[np.float32]:
    """Hidden states (rows, n_embd) of some rows of the last decode."""
    return decoder.ctx.hidden()[rows]


def _settle(decoder: Decoder, lane: Lane, verdict: Verdict) -> int:
    """Forget the wrong tail and take the confirmed tokens. Returns how many decodes that took."""
    if lane.ended:  # nothing of its sequence is needed any more
        lane.text += verdict.tokens
        return 0
    right = len(lane.text) + verdict.accepted
    lane.copies = 0
    if verdict.accepted < len(lane.guesses):
        lane.held = lane.rollback.forget(right)
        lane.copies = lane.rollback.copies
    else:
        lane.held = right
    lane.told = verdict.tokens, verdict.rejected, len(lane.guesses)
    lane.text += lane.told[0]
    waiting = lane.text[lane.held : -1]
    if len(waiting) <= AGAIN:
        return 0
    places = range(lane.held, lane.held + len(waiting))
    decoder.ctx.decode(waiting, places, [lane.answer] * len(waiting), [])
    lane.held, lane.copies = len(lane.text) - 1, 0
    return 1


def _emit(decoder: Decoder, lane: Lane, verdict: Verdict) -> None:
    first = lane.done - verdict.accepted - 1
    for place in range(verdict.accepted + 1):
        decoder.trace.emit(lane.answer, first + place, verdict.tokens[place], "verified")
