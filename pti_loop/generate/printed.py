"""The text of answers as it comes, and the rates behind it. It decodes nothing."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable, Sequence
from typing import TextIO

from pti_loop.pti_context import PtiContext, Rates, Said

WIDTH = 96
"""Letters of a line where several answers come at once."""


class Printed:
    """Writes the confirmed tokens of answers: one as it comes, several by lines with the answer's number in front."""

    def __init__(self, piece: Callable[[int], bytes], answers: int, out: TextIO) -> None:
        self._piece, self._out, self._several = piece, out, answers > 1
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(answers)]
        self._waiting: list[dict[int, int]] = [{} for _ in range(answers)]
        self._next, self._lines = [0] * answers, [""] * answers

    def add(self, said: Sequence[Said], limit: int) -> None:
        """Take what a round said. Positions from `limit` on, and what was confirmed before, add nothing."""
        for one in said:
            if one.confirmed and self._next[one.answer] <= one.position < limit:
                self._waiting[one.answer][one.position] = one.token
        for answer, waiting in enumerate(self._waiting):
            while self._next[answer] in waiting:
                token = waiting.pop(self._next[answer])
                self._next[answer] += 1
                self._write(answer, self._decoders[answer].decode(self._piece(token)))
        self._out.flush()

    def end(self) -> None:
        """What is left of lines, and a line's end."""
        for answer, decoder in enumerate(self._decoders):
            self._write(answer, decoder.decode(b"", final=True))
            if self._several and self._lines[answer]:
                self._line(answer, len(self._lines[answer]))
        self._out.write("" if self._several else "\n")
        self._out.flush()

    def _write(self, answer: int, text: str) -> None:
        text = harmless(text)
        if not self._several:
            self._out.write(text)
            return
        self._lines[answer] += text
        while (end := _end_of_line(self._lines[answer])) is not None:
            self._line(answer, end)

    def _line(self, answer: int, end: int) -> None:
        line = self._lines[answer]
        self._out.write(f"{answer + 1}| {line[:end].rstrip(chr(10))}\n")
        self._lines[answer] = line[end:].removeprefix(" ")


def harmless(text: str) -> str:
    """The text without letters that command a terminal."""
    return "".join(
        letter if letter in "\n\t" or unicodedata.category(letter) != "Cc" else "\ufffd" for letter in text
    )


def _end_of_line(line: str) -> int | None:
    """Where a line of an answer ends: behind its newline, or at the last blank that fits."""
    newline = line.find("\n")
    if 0 <= newline < WIDTH:
        return newline + 1
    if len(line) < WIDTH:
        return None
    blank = line.rfind(" ", 1, WIDTH)
    return blank if blank > 0 else WIDTH


def rates_table(rates: Rates, answers: int) -> list[str]:
    """Counted, distinct, aggregate and per answer."""
    per_answer = rates.distinct / answers
    low, high = (min(rates.each), max(rates.each)) if rates.each else (float("nan"),) * 2
    own = f"{low:8.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
    sums = "of the one answer" if answers == 1 else f"of {answers} answers in sum"
    return [
        "             tokens    tok/s",
        f"counted    {rates.counted:8d} {rates.counted_tok_s:8.2f}   emit calls, no speed where a token is said again",
        f"distinct   {rates.distinct:8d} {rates.aggregate_tok_s:8.2f}   different tokens",
        f"aggregate  {rates.distinct:8d} {rates.aggregate_tok_s:8.2f}   {sums}",
        f"per answer {per_answer:8.4g} {own}   what one reader waits for",
    ]


def about_rounds(pti: PtiContext, rates: Rates) -> str:
    """Rounds, seconds and guesses, in a line."""
    text = f"{rates.rounds} rounds in {rates.seconds:.3f} s behind the first token of each answer"
    if rates.verified:
        text += f"; {rates.accepted} of {rates.verified} guesses that were compared were right"
    unconfirmed = sum(len(pti.trace.text(answer)) - len(pti.trace.text(answer, verified_only=True))
                      for answer in range(len(pti.prompts)))  # fmt: skip
    return text + (f"; {unconfirmed} tokens were said and never confirmed" if unconfirmed else "")
