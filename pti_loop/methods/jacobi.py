"""Guessing from the step before: a window of the model's last opinions, verified in one decode of one sequence.

This is what a guess costs nothing looks like: the tokens that the model proposed behind its first miss become the next
window (Jacobi iteration of the greedy fixed point, Song et al. 2021, Santilli et al. 2023). `streams` is the window.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.engine import Unsupported
from pti_loop.loop import Decoder, verify

NAME = "jacobi"
GUESSES = True


def sequences(streams: int) -> int:
    """Sequences that the context must hold."""
    return 1


def width(streams: int) -> int:
    """Tokens in one decode."""
    return streams


def run(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
    """Decode one prompt. Raises `Unsupported` when the memory cannot forget the rejected tail."""
    prompt, trace, clock, ctx = prompts[0], decoder.trace, decoder.clock, decoder.ctx
    window, n_predict = decoder.settings.streams, decoder.settings.n_predict
    ctx.clear()
    confirmed, done = decoder.prefill(prompt, 0), 1
    opinions = [confirmed] * (window - 1)
    trace.open_window()
    while done < n_predict:
        began = clock()
        size = min(window, n_predict - done)
        tail = [decoder.guesses.replace(done + i, opinions[i]) for i in range(size - 1)]
        guesses, base = [confirmed, *tail], len(prompt) + done - 1
        drafted = clock()
        ctx.decode(guesses, range(base, base + size), [0] * size, None)
        decoded = clock()
        choices = decoder.draws([(0, 0, done + i) for i in range(size)])
        verified, accepted = verify(guesses, choices, trace, done)
        sampled = clock()
        if accepted + 1 < size and not ctx.rewind(0, base + accepted + 1):
            raise Unsupported("jacobi needs a memory that drops rejected tokens; this model's state cannot rewind")
        rolled = clock()
        for i in range(accepted + 1):
            trace.emit(0, done + i, choices[i].token, "verified")
        confirmed = choices[accepted].token
        opinions = [choice.token for choice in choices[accepted + 1 :]]
        opinions += [confirmed] * (window - 1 - len(opinions))
        done += accepted + 1
        times = (drafted - began, decoded - drafted, sampled - decoded, rolled - sampled, clock() - began)
        trace.round("steady", size, times, (size - 1, verified, accepted))
    trace.close_window()
