"""Prompt lookup: what followed the last tokens when they stood in the text before (Saxena 2023).

The longest match counts, and of several the most recent. An index of every n-gram makes a round's cost independent of
the length of the text. It knows nothing about models.
"""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.drafter import Drafter, Plain, Source, Target
from pti_loop.parameters import LOOKUP, ROLLBACK, Spec
from pti_loop.settings import Settings

SPEC = Spec(
    "lookup", "prompt lookup, up to {draft} guesses copied from the text before",
    help="guesses copied from the text before",
    parameters=(*LOOKUP, ROLLBACK),
)

LENGTHS = (7, 15, 31)
"""Draft lengths of the adaptive mode, short to long."""
LONGEST_MATCH = 24
"""A match is followed back no further than this."""
RISE, FALL = 4.0, 2.0
"""What a miss adds to the gate's bar, and what a full accept takes off it, in tokens of match."""


class Gate:
    """The shortest match that is worth a guess: the shortest n-gram plus a bar that rises on a miss.

    With `open_always` every match passes. The bar never exceeds `LONGEST_MATCH`, so a copied passage always gets
    through in the end and brings it down again.
    """

    def __init__(self, least: int, open_always: bool) -> None:
        self.least, self.open_always = least, open_always
        self.bar = 0.0

    def passes(self, match: int) -> bool:
        """Whether a match of so many tokens may be guessed from."""
        return self.open_always or match >= min(self.least + self.bar, LONGEST_MATCH)

    def note(self, drafted: int, accepted: int) -> None:
        """A round that guessed is over."""
        if accepted == drafted:
            self.bar = max(self.bar - FALL, 0.0)
        elif accepted == 0:
            self.bar = min(self.bar + RISE, float(LONGEST_MATCH))


class Lookup(Drafter):
    """The drafter. `longest` and `shortest` are the n-grams that are looked for.

    With `gate`, weak matches are left alone after misses. With `adaptive`, the draft length climbs `LENGTHS` on full
    accepts and falls back on a miss; otherwise the loop's own limit holds.
    """

    def __init__(self, longest: int = 4, shortest: int = 2, gate: bool = False, adaptive: bool = False) -> None:
        if not 1 <= shortest <= longest:
            raise ValueError(f"n-grams from {shortest} to {longest} tokens: the shortest must be from 1 to the longest")
        self._sizes = range(longest, shortest - 1, -1)
        self.gate = Gate(shortest, open_always=not gate)
        self._adaptive = adaptive
        self._level = 0
        self._text: list[int] = []
        self._index: dict[tuple[int, ...], int] = {}

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        """Index the prompt. The last token's own n-grams wait, or it would be found as its own match."""
        self.gate.bar, self._level = 0.0, 0
        self._text, self._index = [], {}
        self._extend(tokens)

    def propose(self, limit: int) -> list[int]:
        """What followed the longest earlier match, carried on around its own end where it runs into it."""
        limit = min(limit, LENGTHS[self._level]) if self._adaptive else limit
        start = self._match()
        if start is None or limit < 1:
            return []
        text, period = self._text, len(self._text) - start
        return [text[start + place % period] for place in range(limit)]

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        """Take the confirmed tokens into the index, and let gate and draft length learn."""
        self._extend(confirmed)
        if not drafted:
            return
        accepted = len(confirmed) - 1
        self.gate.note(drafted, accepted)
        if accepted == drafted:
            self._level = min(self._level + 1, len(LENGTHS) - 1)
        elif accepted == 0:
            self._level = 0

    def _extend(self, tokens: Sequence[int]) -> None:
        text, index = self._text, self._index
        for token in tokens:
            end = len(text)
            for size in self._sizes:
                if size <= end:
                    index[tuple(text[end - size : end])] = end
            text.append(token)

    def _match(self) -> int | None:
        """Where the text behind the longest match begins; None without one, or when the gate is closed to it."""
        text = self._text
        for size in self._sizes:
            start = self._index.get(tuple(text[-size:])) if size <= len(text) else None
            if start is not None:
                return start if self.gate.passes(self._length(start)) else None
        return None

    def _length(self, start: int) -> int:
        """Tokens before `start` that equal the newest ones, at most `LONGEST_MATCH`."""
        text, length = self._text, 0
        while length < min(LONGEST_MATCH, start) and text[start - 1 - length] == text[-1 - length]:
            length += 1
        return length


def length(settings: Settings) -> int:
    """Most guesses of lookup, alone or beside a head."""
    return LENGTHS[-1] if settings.adaptive else int(settings.draft)


def lookup_of(settings: Settings) -> Lookup:
    """The drafter with these parameters."""
    return Lookup(longest=settings.ngram, shortest=min(settings.ngram, 2), gate=settings.gate,
                  adaptive=settings.adaptive)  # fmt: skip


def make(target: Target) -> Source:
    """Needs nothing but the text."""
    return Plain(lambda: lookup_of(target.settings))
