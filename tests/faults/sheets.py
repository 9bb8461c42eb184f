"""Claim sheets that ask for a yes to the wrong thing: each is refused when it is read, and the sentence says why.

What a sheet may say is in docs/claims.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError
from bench.judge.claims.sheet import load_sheet
from tests.faults.stored import Outcome

ENTRY = """
- id: a.claim
  says: It is twice as fast.
  source: {document: A page, date: 2026-06-08}
  place: a table
  metric: speedup
  scope: {method: stagger, streams: 4, temperature: 0, per: answer}
  published: 1.50
  unit: x
  conditions: {machine: mi50}
  evidence: measured
  author_status: {state: standing}
  rule: {kind: records, test: ratio}
"""


@dataclass(frozen=True)
class SheetFault:
    """One entry that is wrong in one place."""

    name: str
    before: str
    after: str
    says: str

    def tried(self, folder: Path) -> Outcome:
        """Read it."""
        assert self.before in ENTRY
        path = folder / "sheet.yaml"
        path.write_text(ENTRY.replace(self.before, self.after))
        try:
            load_sheet(path)
        except UserError as error:
            return Outcome("refused", {"sheet": str(error)})
        return Outcome("read", {})


_RULE = "{kind: records, test: ratio}"
FAULTS = [
    SheetFault("a metric that there is not", "metric: speedup", "metric: speed_up", "speed_up"),
    SheetFault("a scope key that there is not", "streams: 4", "strems: 4", "strems"),
    SheetFault("a method that there is not", "method: stagger", "method: stager", "stager"),
    SheetFault("a test that there is not", _RULE, "{kind: records, test: rato}", "rato"),
    SheetFault("a kind of rule that there is not", _RULE, "{kind: recrods, test: ratio}", "recrods"),
    SheetFault("a published value that is no number", "published: 1.50", "published: .inf", "plain decimal"),
    SheetFault("a unit that does not fit", "unit: x", "unit: GiB", "unit"),
    SheetFault("a column that there is not", _RULE, "{kind: records, test: value, column: speed}", "speed"),
    SheetFault("a test that says nothing about its metric", _RULE, "{kind: records, test: value}", "says nothing"),
    SheetFault("a condition that there is not", "{machine: mi50}", "{machin: mi50}", "machin"),
    SheetFault("the same key twice", "  unit: x\n", "  unit: x\n  unit: x\n", "unit"),
    SheetFault("an entry without an id", "- id: a.claim\n  says", "- says", "id"),
    SheetFault("a counted figure as the speed of one answer", _RULE,
               "{kind: records, test: value, column: counted_speedup}", "counted_speedup"),
]  # fmt: skip
