"""How many verdicts rest on what: on runs here, on arithmetic, on a source, or on nothing yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.judge.claims import left_out
from bench.judge.tables.claims import VERDICTS, Verdict

MEASURED, ARITHMETIC, SOURCES, NOT_RUN, LEFT_OUT = KINDS = (
    "measured here", "arithmetic", "sources", "not run", "left out",
)  # fmt: skip
_OF_RULE = {"arithmetic": ARITHMETIC, "fact": SOURCES}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One kind of evidence."""

    kind: str
    """One of `KINDS`."""
    counts: Mapping[str, int]
    """Verdicts by their word, in the order of `VERDICTS`; those that there are."""

    @property
    def total(self) -> int:
        """Verdicts of the kind."""
        return sum(self.counts.values())


def kind_of(row: Mapping[str, Any]) -> str:
    """What a verdict rests on. One that rests on no cell, on no arithmetic and on no source has not been run."""
    if row.get("verdict") == left_out.LEFT_OUT:
        return LEFT_OUT
    return _OF_RULE.get(str(row.get("judged_by")), MEASURED if row.get("cells") else NOT_RUN)


def evidence(verdicts: Sequence[Verdict]) -> tuple[Evidence, ...]:
    """All kinds, those without a verdict too, but for what a choice of cells leaves out."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for row in verdicts:
        found[kind_of(row)][row.verdict] += 1
    return tuple(Evidence(kind, {word: counts[word] for word in VERDICTS if counts[word]})
                 for kind, counts in found.items() if counts or kind != LEFT_OUT)  # fmt: skip
