"""The few claims that a reader is told first. Which they are, their sheets say; it knows no claim by its id."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.judge.summary.evidence import MEASURED, kind_of
from bench.judge.tables.claims import VERDICTS, Verdict

MOST = 10
DECIDED = ("refuted", "misstated", "reproduced", "inconclusive")
"""Verdicts that a machine's records gave."""


@dataclass(frozen=True, slots=True)
class Headline:
    """One claim with its verdicts on every machine and build."""

    lead: Verdict
    """The verdict that is told: the first of `VERDICTS` that any machine has, with the narrowest interval."""
    others: tuple[Verdict, ...]
    """The rest, in the same order."""

    @property
    def claim_id(self) -> str:
        """The claim's id in its sheet."""
        return self.lead.claim_id

    @property
    def says(self) -> str:
        """The claim in words."""
        return self.lead.says

    @property
    def verdict(self) -> str:
        """The word of the verdict that is told."""
        return self.lead.verdict

    @property
    def why(self) -> str:
        """Its reason in one sentence with two numbers."""
        return self.lead.why

    @property
    def would_change(self) -> str:
        """What would bring another verdict."""
        return self.lead.would_change

    @property
    def kind(self) -> str:
        """The kind of evidence, one of `bench.judge.summary.evidence.KINDS`."""
        return kind_of(self.lead)

    @property
    def places(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Verdicts with the machines that they were found on, that of `lead` first; empty where none could tell."""
        found: dict[str, list[str]] = {}
        for row in (self.lead, *self.others):
            if row.verdict in DECIDED and row.machine != "any" and row.machine not in found.setdefault(row.verdict, []):
                found[row.verdict].append(row.machine)
        return tuple((verdict, tuple(machines)) for verdict, machines in found.items())


def headlines(verdicts: Sequence[Verdict]) -> tuple[tuple[Headline, ...], bool]:
    """At most `MOST` claims, and whether their sheets chose them.

    Of sheets that mark none: all where they are few, else those that records decided and then the others, each in the
    order of the sheets.
    """
    rows: dict[str, list[Verdict]] = {}
    for row in verdicts:
        rows.setdefault(row.claim_id, []).append(row)
    made = [_headline(members) for members in rows.values()]
    marked = sorted((one for one in made if one.lead.headline), key=lambda one: one.lead.headline or 0)
    if marked or len(made) <= MOST:
        return tuple((marked or made)[:MOST]), bool(marked)
    first = sorted(made, key=lambda one: (one.kind != MEASURED, VERDICTS.index(one.verdict)))[:MOST]
    return tuple(one for one in made if any(one is other for other in first)), False


def _headline(rows: Sequence[Verdict]) -> Headline:
    lead, *others = sorted(rows, key=lambda row: (VERDICTS.index(row.verdict), _width(row)))
    return Headline(lead, tuple(others))


def _width(row: Verdict) -> float:
    low, high = (row.ci_low, row.ci_high) if row.ratio_low is None else (row.ratio_low, row.ratio_high)
    return math.inf if low is None or high is None else high - low
