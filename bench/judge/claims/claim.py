"""One claim: what somebody published, about what, and the rule that is to judge it. Knows no file and no verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.judge.claims.columns import TABLE_OF, usual_column, usual_per
from bench.judge.claims.rule import Rule


@dataclass(frozen=True, slots=True)
class Claim:
    """One entry. `published` keeps the text as printed, because its last digit is the tolerance."""

    id: str
    says: str
    source: Mapping[str, str]
    place: str
    metric: str
    scope: Mapping[str, Any]
    published: tuple[str, ...]
    unit: str
    conditions: Mapping[str, Any]
    evidence: str
    author_status: Mapping[str, str]
    rule: Rule
    verdict: str
    note: str
    headline: int | None = None
    """Its place among the few that a reader is told first; None for all others."""
    family: int = 1
    """Rows that it is judged on and that could still refute it."""

    @property
    def value(self) -> float | bool:
        """The published number (the lower end of a range), or true / false."""
        text = self.published[0]
        return text == "true" if text in ("true", "false") else float(text)

    @property
    def printed(self) -> str:
        """The published figure as it was printed."""
        return " to ".join(self.published)

    @property
    def per(self) -> str:
        """Whose speed it is: of one answer, in sum, or a counter's."""
        return str(self.scope.get("per", usual_per(self.metric)))

    @property
    def table(self) -> str:
        """The table of the findings that it is about; empty for a metric that no record measures."""
        return self.rule.table or TABLE_OF.get(self.metric, "")

    @property
    def column(self) -> str:
        """The column of that table that holds its figure."""
        return self.rule.column or usual_column(self.metric, self.rule.test, self.unit, self.per)
