"""How many verdicts rest on what: on runs here, on arithmetic, on a source, or on nothing yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.judge.tables.claims import VERDICTS, Verdict

MEASURED, ARITHMETIC, SOURCES, NOT_RUN = KINDS = ("measured here", "arithmetic", "sources", "not run")
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
    return _OF_RULE.get(str(row.get("judged_by")), MEASURED if row.get("cells") else NOT_RUN)


def evidence(verdicts: Sequence[Verdict]) -> tuple[Evidence, ...]:
    """All kinds, those without a verdict too."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for row in verdicts:
        found[kind_of(row)][row.verdict] += 1
    return tuple(Evidence(kind, {word: counts[word] for word in VERDICTS if counts[word]})
                 for kind, counts in found.items())  # fmt: skip
