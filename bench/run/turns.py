"""Runs of several arms that are open at once and take turns, so that what slows the machine slows all of them alike.

A turn is so many tokens of each answer, not rounds: arms stay at the same place of the text, however many tokens a
round of theirs gives. It knows neither blocks nor what the arms are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bench.records.rows import Piece
from pti_loop.ledger import Trace


class Open(Protocol):
    """A run that has begun, here or in another process."""

    over: bool

    def prefill(self) -> None:
        """Up to where its window opens."""

    def take_turn(self, turn: int, tokens: int) -> None:
        """Go on until `tokens` of each answer are out, and leave the machine to others."""


@dataclass
class Started:
    """A run that has begun. Its context and its drafters are its own until it is over."""

    trace: Trace
    steps: Iterator[None]
    answers: int
    by_rounds: bool = False
    """Whether a round says tokens again, so that rounds tell better than tokens how far it is."""
    over: bool = False
    turns: list[int] = field(default_factory=list[int])
    """Of each span of its window the turn that it was."""

    def to_the_end(self) -> Trace:
        """All that is left of it, without a break."""
        self._step_until(None)
        return self.trace

    def prefill(self) -> None:
        """Up to where its window opens."""
        next(self.steps)
        self.trace.pause()

    def take_turn(self, turn: int, tokens: int) -> None:
        """Go on until `tokens` of each answer are out, and leave the machine to others."""
        self.trace.resume()
        self._step_until(tokens * self.answers)
        if not self.over:
            self.trace.pause()
        self.turns += [turn] * (len(self.trace.spans) - len(self.turns))

    def _step_until(self, said: int | None) -> None:
        trace, steps, ended = self.trace, self.steps, object()
        while said is None or (trace.n_rounds if self.by_rounds else trace.n_said) < said:
            if next(steps, ended) is ended:
                self.over = True
                trace.finish()
                return

    def pieces(self) -> list[Piece]:
        """What its window consists of, by the machine's clock."""
        return [Piece(self.trace.run, turn, start, end, first)
                for turn, (start, end, first) in zip(self.turns, self.trace.spans, strict=True)]  # fmt: skip


def take_turns(runs: Sequence[Open], chunk: int) -> None:
    """Prefill all of the runs, then let each in its order go on by `chunk` tokens, until all are over."""
    for run in runs:
        run.prefill()
    turn = 0
    while left := [run for run in runs if not run.over]:
        for run in left:
            run.take_turn(turn, (turn + 1) * chunk)
        turn += 1
