"""Counts of what went through the contexts of a run, inside its timed window and outside. Knows no engine, no method.

A method says what it did; a tally is kept by the contexts themselves, so that the two can be compared.
"""

from __future__ import annotations


class Decodes:
    """What some contexts decoded. A decode costs them one tuple; sums are made when they are asked for."""

    __slots__ = ("_each", "note")

    def __init__(self) -> None:
        self._each: list[tuple[int, int]] = []
        self.note = self._each.append
        """Takes (tokens, rows of logits that were asked for) of one decode."""

    @property
    def decodes(self) -> int:
        """How many."""
        return len(self._each)

    @property
    def tokens(self) -> int:
        """Tokens in them."""
        return sum(tokens for tokens, _ in self._each)

    @property
    def outputs(self) -> int:
        """Rows of logits that they were asked for."""
        return sum(outputs for _, outputs in self._each)


class Tally:
    """Decodes of one run: of the context that the method verifies in, and of every other that it decodes in."""

    __slots__ = ("beside", "beside_inside", "beside_outside", "inside", "outside", "target")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """A run begins, outside its window."""
        self.inside, self.outside = Decodes(), Decodes()
        self.beside_inside, self.beside_outside = Decodes(), Decodes()
        self.close()

    def open(self) -> None:
        """What follows is inside the timed window."""
        self.target, self.beside = self.inside, self.beside_inside

    def close(self) -> None:
        """What follows is outside."""
        self.target, self.beside = self.outside, self.beside_outside
