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


def _body(metric: str, published: str, unit: str, rule: str, scope: str = "{method: lookup, temperature: 0}",
          conditions: str = "{machine: mi50}") -> str:  # fmt: skip
    """The lines of an entry that say what is claimed and how it is judged."""
    return (f"  metric: {metric}\n  scope: {scope}\n  published: {published}\n  unit: {unit}\n"
            f"  conditions: {conditions}\n  evidence: measured\n  author_status: {{state: standing}}\n"
            f"  rule: {rule}\n")  # fmt: skip


_BODY = ENTRY[ENTRY.index("  metric") :]
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
    *(SheetFault(name, _BODY, body, says) for name, body, says in (
        ("a gain of half as much again that a fifth of plain speed would reproduce", _body(
            "speedup", "1.50", "x", "{kind: records, test: direction, expect: greater_than, edge: 0.2}"), "the edge"),
        ("a loss that nine times plain speed would reproduce", _body(
            "speedup", "0.90", "x", "{kind: records, test: direction, expect: less_than, edge: 9}"), "the edge"),
        ("a step cost whose edge is that of another width", _body(
            "step_cost", "1.27", "x", "{kind: records, test: direction, expect: less_than, edge: 4}", "{width: 2}"),
         "the edge"),
        ("one arm over another, with an edge that any ratio is above", _body(
            "speedup", "1.3", "x", "{kind: records, test: over, expect: greater_than, edge: 0.1, "
            "against: {drafter: none}}", "{method: packed, drafter: [none, lookup], streams: 4, temperature: 0}"),
         "the edge"),
        ("half of the answers identical, asked whether all are", _body(
            "lossless", "0.50", "share", "{kind: records, test: lossless}"), "test: absolute"),
        ("99 % of the answers identical, asked whether all are", _body(
            "lossless", "99", "'%'", "{kind: records, test: lossless}"), "test: absolute"),
        ("two draws that agree by chance at temperature 0", _body(
            "acceptance", "0.0", "difference", "{kind: records, test: collision}",
            "{method: stagger, streams: 2, temperature: 0}"), "temperature 0"),
        ("any share at all", _body("acceptance", "[0, 1]", "share", "{kind: records, test: value}"), "says yes to"),
        ("a rate between one and ninety", _body(
            "rate", "[1.0, 90.0]", "tok/s", "{kind: records, test: absolute}"), "says yes to"),
        ("a gain between a tenth and eightfold", _body(
            "speedup", "[1.1, 9.0]", "x", "{kind: records, test: absolute}"), "says yes to"),
        ("a rate that is promised to be faster and is below plain decoding's", _body(
            "speedup", "38.1", "tok/s", "{kind: records, test: one_answer}",
            conditions="{machine: mi50, baseline_tok_s: 1000}"), "baseline_tok_s"),
        ("plain decoding that takes for ever", _body(
            "speedup", "38.1", "tok/s", "{kind: records, test: one_answer}",
            conditions="{machine: mi50, baseline_tok_s: 0}"), "baseline_tok_s"),
        ("memory below nothing", _body(
            "memory", "-2", "GiB", "{kind: records, test: absolute}", "{streams: 4}"), "above 0"),
        ("a rate of nothing", _body("rate", "0", "tok/s", "{kind: records, test: absolute}"), "above 0"),
        ("the cost of width 1", _body(
            "step_cost", "1.00", "x", "{kind: records, test: absolute}", "{width: 1}"), "width 1"),
        ("half of all shares and more", _body(
            "lossless", "[0.2, 1.0]", "share", "{kind: records, test: absolute}"), "more than half"),
        ("a range that is widened by a tolerance", _body(
            "acceptance", "[0.5, 0.9]", "share", "{kind: records, test: value, tolerance: 0.05}"), "wide enough"),
        ("a share above nothing", _body(
            "acceptance", "0.0", "share", "{kind: records, test: direction, expect: greater_than, edge: 0}"),
         "every share"),
        ("a share below all", _body(
            "acceptance", "100", "'%'", "{kind: records, test: direction, expect: less_than, edge: 100}"),
         "every share"),
        ("a share below 1, whatever is published", _body(
            "acceptance", "0.5", "share", "{kind: records, test: direction, expect: less_than_one}"), "says nothing"),
        ("an area that tells apart, where less than 1 would do", _body(
            "acceptance", "0.5", "area under the curve",
            "{kind: records, test: direction, table: domain, column: auc, expect: less_than_one}",
            "{method: adapter}"), "says nothing"),
        ("a wider decode that costs more than one", _body(
            "step_cost", "1.27", "x", "{kind: records, test: direction, expect: greater_than_one}", "{width: 4}"),
         "says nothing"),
        ("one arm over itself", _body(
            "speedup", "1.0", "x", "{kind: records, test: over, expect: equal, against: {drafter: none}}",
            "{method: packed, drafter: [none, none], streams: 4, temperature: 0}"), "beside what is compared"),
        ("draws at 0.6 and 0.8 under the conditions of temperature 0", _body(
            "speedup", "1.5", "x", _RULE, "{method: lookup, temperature: [0.6, 0.8]}",
            "{machine: mi50, temperature: 0}"), "leave one of them out"),
        ("short contexts under the conditions of a long one", _body(
            "speedup", "1.5", "x", _RULE, "{method: lookup, temperature: 0, n_ctx: {from: 100, to: 200}}",
            "{machine: mi50, n_ctx: 4096}"), "leave one of them out"),
        ("ten thousand at most, where two come out", _body(
            "arithmetic", "9999", "x", "{kind: arithmetic, formula: ratio, expect: at_most, inputs: "
            "{numerator: 10, denominator: 5}}"), "a bound that is nearer"),
        ("hardly anything at least, where two come out", _body(
            "arithmetic", "0.0001", "x", "{kind: arithmetic, formula: ratio, expect: at_least, inputs: "
            "{numerator: 10, denominator: 5}}"), "a bound that is nearer"),
        ("four times, where more than once would do", _body(
            "arithmetic", "4", "x", "{kind: arithmetic, formula: ratio, expect: greater_than_one, inputs: "
            "{numerator: 10, denominator: 5}}"), "looks at 1 alone"),
        ("a context of no length", _body(
            "rate", "38.1", "tok/s", "{kind: records, test: absolute}",
            conditions="{machine: mi50, n_ctx: -5}"), "n_ctx"),
    )),
]  # fmt: skip
