"""Guess and verify in one sequence: a drafter proposes, one decode checks, the wrong tail is forgotten.

Every emitted token is the target's own draw after a prefix that it drew itself, so the text does not depend on the
drafter. It knows no drafter.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.draft import Drafter
from pti_loop.engine import Unsupported
from pti_loop.loop import Decoder, verify


def decode(decoder: Decoder, prompt: Sequence[int], drafter: Drafter, draft: int) -> None:
    """Decode one prompt with at most `draft` guesses a round.

    Raises `Unsupported` when the memory cannot forget a rejected tail.
    """
    decoder.ctx.clear()
    confirmed, done = decoder.prefill(prompt, 0), 1
    drafter.begin([*prompt, confirmed])
    told: tuple[list[int], list[int], int] | None = None
    decoder.trace.open_window()
    while done < decoder.settings.n_predict:
        began = decoder.clock()
        if told:
            drafter.observe(*told)  # here, since it is a part of making the next guesses
        tail = _guesses(decoder, drafter, done, min(draft, decoder.settings.n_predict - done - 1))
        told = _round(decoder, [confirmed, *tail], len(prompt), done, began)
        confirmed = told[0][-1]
        done += len(told[0])
    decoder.trace.close_window()


def _guesses(decoder: Decoder, drafter: Drafter, done: int, limit: int) -> list[int]:
    """The drafter's guesses, or those of a control, which guesses as often as it may."""
    proposed = drafter.propose(limit)
    control = decoder.guesses
    if control.control != "none":
        proposed = (proposed + [0] * limit)[:limit]
    return [control.replace(done + place, token) for place, token in enumerate(proposed)]


def _round(
    decoder: Decoder, guesses: list[int], n_prompt: int, done: int, began: int
) -> tuple[list[int], list[int], int]:
    """Verify, forget, emit. Returns what the drafter is told: confirmed and rejected draws, number of guesses."""
    clock, ctx, trace, size = decoder.clock, decoder.ctx, decoder.trace, len(guesses)
    base = n_prompt + done - 1
    drafted = clock()
    ctx.decode(guesses, range(base, base + size), [0] * size, None)
    decoded = clock()
    choices = decoder.draws([(0, 0, done + i) for i in range(size)])
    verified, accepted = verify(guesses, choices, trace, done)
    sampled = clock()
    if accepted + 1 < size and not ctx.rewind(0, base + accepted + 1):
        raise Unsupported(
            "guess and verify needs a memory that drops rejected tokens; this model's state cannot rewind"
        )
    rolled = clock()
    tokens = [choice.token for choice in choices]
    for i in range(accepted + 1):
        trace.emit(0, done + i, tokens[i], "verified")
    times = (drafted - began, decoded - drafted, sampled - decoded, rolled - sampled, clock() - began)
    trace.round("steady", size, times, (size - 1, verified, accepted))
    return tokens[: accepted + 1], tokens[accepted + 1 :], size - 1
