"""Some twenty ways to look quick, each plain decoding with one thing wrong. `how` says which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import Parameter, Spec
from pti_loop.settings import Settings
from tests.faults.methods.streams import decoder_step

SPEC = Spec(
    "variety", "one of many", guesses=False,
    parameters=(Parameter("how", "pads", "which", choices=(
        "pads", "stops_early", "says_more", "pauses", "half_prompt", "long_prompt", "greedy", "cooler", "burst_rounds",
        "no_rounds", "quick_rounds", "invents_draws", "says_twice", "hides_guesses", "knows_later", "first_inside",
        "counts_accepted", "two_windows", "swaps", "wide_rounds", "second_stream", "late_unverified", "late_streams",
        "slow_clock", "every_other",
    )),),
)  # fmt: skip


class Loop(Method):
    """One sequence; `known` outlives the runs."""

    known: ClassVar[dict[tuple[int, ...], list[int]]] = {}

    def sequences(self, settings: Settings) -> int:
        return 1

    def width(self, settings: Settings) -> int:
        return 4

    def run(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> None:
        how, prompt = decoder.settings.how, tuple(prompts[0])
        trace, n_predict = decoder.trace, decoder.settings.n_predict
        decoder.ctx.clear()
        if how == "half_prompt":
            prompt = prompt[len(prompt) // 2 :]
        if how == "long_prompt":
            prompt = (*prompt, *prompt[:3])
        token = decoder.prefill(prompt, 0)
        text = [token]
        trace.open_window()
        if how == "slow_clock":
            real, opened = trace.clock, trace.clock()
            decoder.clock = trace.clock = lambda: opened + (real() - opened) // 2
        if how == "first_inside":
            trace.emit(0, 0, token, "verified")
        known = self.known.get(prompt, []) if how == "knows_later" else []
        known = known if len(known) >= n_predict else []
        for position in range(1, n_predict + (6 if how == "says_more" else 0)):
            if how == "stops_early" and position == n_predict - 5:
                break
            began = decoder.clock()
            if known or (how == "pads" and position > n_predict // 2):
                token = known[position] if known else token
            else:
                token = self._decoded(decoder, how, token, len(prompt) + position - 1, position)
            if how == "late_unverified" and position >= n_predict - 4:
                token = 7
            text.append(token)
            self._say(decoder, how, position, token, began)
        if how == "no_rounds":
            trace.round("steady", 1, (0, 1, 0, 0, 2), (0, 0, 0))
        trace.close_window()
        self.known[prompt] = max(text, self.known.get(prompt, []), key=len)

    def _decoded(self, decoder: Decoder, how: str, token: int, place: int, position: int) -> int:
        trace = decoder.trace
        if how in ("pauses", "two_windows") and (how == "pauses" or position % 4):
            trace.close_window()
            token = decoder_step(decoder, token, place, position)
            trace.open_window()
            return token
        token = decoder_step(decoder, token, place, position)
        row = decoder.ctx.logits()[0]
        if how == "greedy":
            return int(row.argmax())
        if how == "cooler":
            weights = np.exp((row - row.max()) / 0.2)
            u = np.random.default_rng(position).random()
            return min(int(np.searchsorted(np.cumsum(weights / weights.sum()), u)), len(row) - 1)
        return token

    def _say(self, decoder: Decoder, how: str, position: int, token: int, began: int) -> None:
        trace = decoder.trace
        if how == "swaps" and position % 2 and position + 1 < decoder.settings.n_predict:
            trace.emit(0, position + 1, token, "verified")
        else:
            late = how == "late_unverified" and position >= decoder.settings.n_predict - 4
            trace.emit(0, position, token, "unverified" if late else "verified")
        if how == "late_streams" and position > decoder.settings.n_predict // 2:
            trace.emit(1, position, token, "verified")
        if how == "says_twice":
            trace.emit(0, position, token, "verified")
        if how == "second_stream" and position == 1:
            trace.emit(1, 1, token, "verified")
        if how in ("invents_draws", "hides_guesses"):
            trace.draw(1, position, token, token, float("nan"))
        spent = decoder.clock() - began
        if how == "quick_rounds":
            spent //= 3
        counts = (1, 1, 1) if how in ("hides_guesses", "counts_accepted") else (0, 0, 0)
        width = 8 if how == "wide_rounds" else 1 + counts[0]
        if how == "no_rounds" or (how == "burst_rounds" and position % 4) or (how == "every_other" and position % 2):
            return
        trace.round("steady", width, (0, spent, 0, 0, spent), counts)
