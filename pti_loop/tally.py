"""Counts of what went through the contexts of a run, inside its timed window and outside. Knows no engine, no method.

A method says what it did; a tally is kept by the contexts themselves, so that the two can be compared.
"""

from __future__ import annotations


class Counts:
    """Decodes, the tokens in them, and the rows of logits that they were asked for."""

    __slots__ = ("decodes", "outputs", "tokens")

    def __init__(self) -> None:
        self.decodes = self.tokens = self.outputs = 0

    def add(self, tokens: int, outputs: int) -> None:
        """One more decode."""
        self.decodes += 1
        self.tokens += tokens
        self.outputs += outputs


class Tally:
    """Counts of one run: of the context that the method verifies in, and of every other that it decodes in."""

    __slots__ = ("beside", "beside_inside", "beside_outside", "inside", "outside", "target")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """A run begins, outside its window."""
        self.inside, self.outside = Counts(), Counts()
        self.beside_inside, self.beside_outside = Counts(), Counts()
        self.close()

    def open(self) -> None:
        """What follows is inside the timed window."""
        self.target, self.beside = self.inside, self.beside_inside

    def close(self) -> None:
        """What follows is outside."""
        self.target, self.beside = self.outside, self.beside_outside
