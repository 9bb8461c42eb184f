"""A rule on one line, and a scope's value against a row's: each kind of value on both sides."""

from __future__ import annotations

from typing import Any

import pytest

from bench.judge.claims.rows import equal
from bench.judge.claims.rule import Rule, rule_text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Rule("records", "ratio"), "records, ratio"),
        (Rule("records", "direction", expect="less_than_one"), "records, direction, expect less_than_one"),
        (Rule("records", "over", expect="greater_than", edge=1.3), "records, over, expect greater_than, edge 1.3"),
        (Rule("records", "over"), "records, over"),
        (Rule("arithmetic", formula="ratio", expect="at_most", inputs={"numerator": 3, "denominator": 2}),
         "arithmetic, expect at_most, ratio(numerator=3, denominator=2)"),
        (Rule("arithmetic", formula="ratio", inputs={"numerator": {"fact": "a.b"},
                                                     "denominator": {"value": 2, "within": 0.5}}),
         "arithmetic, ratio(numerator=a.b, denominator=2 within 0.5)"),
        (Rule("fact", fact="mi50.cus", tolerance=0.0), "fact, tolerance 0.0, fact mi50.cus"),
    ],
)  # fmt: skip
def test_a_rule_is_told_by_what_is_not_as_usual(rule: Rule, text: str) -> None:
    assert rule_text(rule) == text


@pytest.mark.parametrize(
    ("found", "wanted", "alike"),
    [
        ("4", 4, True), ("5", 4, False), ("any", "any", True), ("x", "any", True), (None, "any", False), ("", 4, False),
        (True, True, True), (True, 1, True), (False, True, False), (4, [3, 4.0], True), (4, [3, 5], False),
        (0.5, {"from": 0.1, "to": 0.5}, True), (0.51, {"from": 0.1, "to": 0.5}, False), (0.3, 0.1 + 0.2, True),
    ],
)  # fmt: skip
def test_a_value_of_a_scope_against_one_of_a_row(found: Any, wanted: Any, alike: bool) -> None:
    assert equal(found, wanted) is alike
