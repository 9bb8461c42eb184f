"""A rule that would say yes to another question is an error when the sheet is read."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from bench.judge.claims.arithmetic import half_last_digit
from bench.judge.claims.checks import WIDEST
from bench.judge.claims.columns import COLUMNS, TABLE_OF, UNITS
from bench.judge.claims.rule import TESTS
from tests.judge.claims.claim_findings import claim_of, speed, verdict


def rule(**keys: object) -> str:
    return "{kind: records, " + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"


STAGGER = "{method: stagger, emission: published, streams: 4, temperature: 0}"
STEPS = "{width: 4}"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rule": rule(test="value", column="counted_speedup")}, "cannot rest on the column 'counted_speedup' that "
         "counts emit calls, which are no speed of an answer"),
        ({"scope": "{method: stagger, temperature: 0, per: counted}"}, "counts emit calls"),
        ({"metric": "rate", "unit": "tok/s", "rule": rule(test="absolute", column="counted_tok_s")},
         "scope.per is 'answer', and the column 'counted_tok_s' is per counted"),
        ({"metric": "step_cost", "scope": STEPS}, "test 'ratio' says nothing about metric 'step_cost'"),
        ({"metric": "speedup", "rule": rule(test="value")}, "test 'value' says nothing about metric 'speedup'"),
        ({"metric": "lossless", "published": "1.00", "unit": "share",
          "rule": rule(test="lossless", column="tokens_per_round")}, "metric 'lossless' cannot rest on"),
        ({"rule": rule(test="ratio", column="aggregate_tok_s")}, "metric 'speedup' cannot rest on"),
        ({"rule": rule(test="ratio", column="speed_up")}, "no column 'speed_up' to judge; did you mean 'speedup'"),
        ({"rule": rule(test="ratio", table="speedups")}, "unknown table 'speedups'; did you mean 'speedup'"),
        ({"metric": "arithmetic"}, "no record measures the metric 'arithmetic'"),
        ({"metric": "bandwidth", "scope": "{machine: mi50}", "unit": "tok/s", "rule": rule(test="absolute")},
         "the unit 'tok/s' does not fit the column 'read_gb_s'"),
        ({"unit": "'%'"}, "the unit '%' does not fit the column 'speedup'"),
        ({"metric": "acceptance", "published": "40", "unit": "share", "rule": rule(test="value")},
         "a share in share lies between 0 and 1, not at 40"),
        ({"metric": "acceptance", "published": "140", "unit": "'%'", "rule": rule(test="value")}, "0 and 100"),
        ({"published": "[2.0, 1.5]"}, "has no low and high end"),
        ({"rule": rule(test="direction", expect="less_than_one")}, "'less_than_one' does not fit the published 2"),
        ({"published": "0.8", "rule": rule(test="direction", expect="greater_than_one")}, "which lies below 1"),
        ({"published": "4", "metric": "step_cost", "scope": STEPS,
          "rule": rule(test="direction", expect="less_than", edge=2)}, "does not fit the published 4"),
        ({"rule": rule(test="direction", expect="greater_than_one", edge=0.5)}, "has the edge 1"),
        ({"rule": rule(test="ratio", tolerance=0.5)}, "test 'ratio' has no tolerance"),
        ({"metric": "rate", "rule": rule(test="absolute", tolerance=2)}, "test 'absolute' has no tolerance"),
        ({"metric": "tokens_per_round", "unit": "tokens", "rule": rule(test="value", tolerance=2)},
         r"rule.tolerance 2 is more than 10% of the published 2.0; write at most 0.2"),
        ({"metric": "tokens_per_round", "unit": "tokens", "rule": rule(test="value", tolerance=-1)}, "below 0"),
        ({"metric": "acceptance", "published": "0.4", "unit": "share", "rule": rule(test="value", max_half_width=0.3)},
         "above 0 and up to 0.1"),
        ({"metric": "lossless", "published": "1.00", "unit": "share", "rule": rule(test="lossless", grade="divergent")},
         "grade 'divergent' is no sameness"),
        ({"metric": "aggregate", "scope": STAGGER, "rule": rule(test="ratio")},
         "method=stagger decodes one answer, so no sum over answers is its speed"),
        ({"metric": "aggregate", "scope": "{method: lookup}", "rule": rule(test="ratio")}, "decodes one answer"),
        ({"metric": "aggregate", "scope": "{method: [packed, stagger]}", "rule": rule(test="ratio")}, "=stagger d"),
        ({"metric": "aggregate", "scope": "{streams: 4}", "rule": rule(test="ratio")}, "method=any decodes"),
        ({"metric": "aggregate", "scope": "{method: packed, per: answer}"}, "'aggregate' is no figure per answer"),
        ({"scope": "{method: packed, per: aggregate}"}, "metric 'speedup' is no figure per aggregate; use metric: agg"),
        ({"scope": "{method: mtp, machine: mi50}"}, "scope.machine is 'mi50' and conditions.machine is 'laptop'"),
        ({"scope": "{method: mtp, n_predict: 24}", "conditions": "{machine: a, n_predict: 80}"}, "scope.n_predict is"),
        ({"metric": "rate", "unit": "tok/s", "conditions": "{machine: mi50, baseline_tok_s: 19.4}",
          "rule": rule(test="absolute", column="baseline_tok_s")}, "the claim's own figure and no condition of it"),
        ({"rule": rule(test="direction", expect="greater_than_one", universal="true")}, "universal and names machine"),
        ({"conditions": "{}", "rule": rule(test="direction", expect="greater_than_one", universal="true")},
         "what a drafter gains depends on machine, model and text"),
        ({"conditions": "{}", "rule": rule(test="ratio", universal="true")}, "test 'ratio' has no universal"),
        ({"metric": "acceptance", "published": "1.00", "unit": "share",
          "rule": rule(test="value", by_construction="true")}, "copies of one answer"),
        ({"metric": "acceptance", "published": "1.00", "unit": "share", "scope": "{method: stagger, temperature: 0.7}",
          "rule": rule(test="value", by_construction="true")}, "that draw alike"),
        ({"rule": rule(test="one_answer", formula="distinct_rate", inputs="{counted_rate: 30, rounds: 79, streams: 4}"),
          "unit": "tok/s", "published": "38.1"}, "with counted_rate: 38.1"),
        ({"rule": rule(test="one_answer", inputs="{counted_rate: 38.1}"), "unit": "tok/s"}, "inputs and no formula"),
        ({"rule": rule(test="ratio", needs="[a, b]")}, "rule.needs is .* write it as text"),
        ({"rule": rule(test="ratio", column="[speedup]")}, "rule.column is .* write it as text"),
        ({"rule": rule(test="one_answer", formula="product", inputs="{a: 38.1, b: 0.5}"), "unit": "tok/s",
          "published": "38.1"}, "is distinct_rate"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error_on_load(tmp_path: Path, changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        claim_of(tmp_path, **changes)


@pytest.mark.parametrize(
    ("published", "text", "sentence"),
    [
        ("38.1", "{kind: arithmetic, formula: product, inputs: {x: 38.1}}", "input 'x' is the published 38.1 itself"),
        ("38.1", "{kind: arithmetic, formula: product, inputs: {x: 38.1, one: 1}}", "proves nothing"),
        ("38.1", "{kind: arithmetic, formula: ratio, inputs: {numerator: 38.1, denominator: 1}}", "proves nothing"),
        ("38.1", "{kind: arithmetic, formula: difference, inputs: {larger: 38.1, smaller: 0}}", "proves nothing"),
        ("38.1", "{kind: arithmetic, formula: ratio, inputs: {numerator: 90, denominator: {value: 3, within: 1000}}}",
         "which rounding moves by 0.5 at most"),
        ("38.1", "{kind: arithmetic, formula: ratio, inputs: {numerator: 80, denominator: 3}, tolerance: 20}",
         "more than 10% of the published"),
        ("38.1", "{kind: arithmetic, formula: ratio, inputs: {numerator: 80, denominator: 3}, expect: greater_than}",
         "an arithmetic rule has no expect 'greater_than'"),
        ("38.1", "{kind: arithmetic, formula: kv_bytes, inputs: {attention_layers: 1, kv_heads: 1, head_size: 1, "
         "value_bytes: 1, tokens: 1}}", "gives bytes, and the unit is 'x'"),
        ("38.1", "{kind: arithmetic, formula: percent, inputs: {part: 1, whole: 2}}", "gives per cent, and the unit"),
        ("4", "{kind: fact, fact: mi50.l2_cache, tolerance: 12}", "more than 10% of the published"),
    ],
)
def test_arithmetic_that_can_only_agree_is_an_error_on_load(
    tmp_path: Path, published: str, text: str, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        claim_of(tmp_path, metric="arithmetic", published=published, rule=text)


def test_a_ratio_is_no_per_cent(tmp_path: Path) -> None:
    text = "{kind: arithmetic, formula: ratio, inputs: {numerator: 9, denominator: 19}}"
    with pytest.raises(UserError, match="use formula: percent"):
        claim_of(tmp_path, metric="arithmetic", published="47", unit="'%'", rule=text)


def test_a_share_of_few_answers_has_an_interval(tmp_path: Path) -> None:
    claim = claim_of(tmp_path, metric="lossless", published="0.75", unit="share", rule=rule(test="absolute"))
    row = speed(method="mtp", streams=1, identical_share=0.875)
    assert verdict(claim, speedup=[{**row, "answers_graded": 8}])["verdict"] == "inconclusive"
    assert verdict(claim, speedup=[{**row, "answers_graded": 800}])["verdict"] == "refuted"


def test_a_coincidence_is_no_circle(tmp_path: Path) -> None:
    same = "{kind: arithmetic, formula: expected_tokens, inputs: {p: 1.00, streams: 4}}"
    assert claim_of(tmp_path, metric="arithmetic", published="4.00", rule=same)
    square = "{kind: arithmetic, formula: product, inputs: {a: 2, b: 2}}"
    assert claim_of(tmp_path, metric="arithmetic", published="4", rule=square)


def test_every_column_allows_a_test_and_every_test_has_a_column() -> None:
    allowed = {(metric, test) for columns in COLUMNS.values() for column in columns.values()
               for metric, tests in column.tests.items() for test in tests}  # fmt: skip
    assert {test for _, test in allowed} == set(TESTS)
    assert {metric for metric, _ in allowed} == set(TABLE_OF)
    kinds = {column.kind for columns in COLUMNS.values() for column in columns.values()}
    assert kinds == set(UNITS)


@pytest.mark.parametrize(("table", "name"), [(table, name) for table in COLUMNS for name in COLUMNS[table]])
def test_each_combination_that_is_not_in_the_table_is_an_error(tmp_path: Path, table: str, name: str) -> None:
    """The whole product of metrics and tests, column by column: no combination passes that the table does not have."""
    column = COLUMNS[table][name]
    unit = next(iter(UNITS[column.kind]))
    passed = set()
    extras = {"direction": {"expect": "less_than", "edge": "0.9"}, "over": {"against": "{machine: a}"}}
    for metric, test, per in itertools.product(TABLE_OF, TESTS, column.per):
        scope = "{machine: [a, b]" + (f", method: packed, per: {per}" if table == "speedup" else "") + "}"
        keys = {"test": test, "table": table, "column": name, **extras.get(test, {})}
        published = {"ratio": "1.5", "lossless": "100" if unit == "%" else "1.00"}.get(test, "0.9")
        try:
            claim_of(tmp_path, metric=metric, unit=f"'{unit}'", published=published, rule=rule(**keys),
                     scope=scope, conditions="{}")  # fmt: skip
        except UserError:
            continue
        passed.add((metric, test))
    assert passed == {(metric, test) for metric, tests in column.tests.items() for test in tests}


@given(
    published=st.decimals(min_value="0.01", max_value="1000", places=2).map(str),
    share=st.floats(min_value=0, max_value=5, allow_nan=False),
)
def test_no_tolerance_lets_another_figure_pass(
    tmp_path_factory: pytest.TempPathFactory, published: str, share: float
) -> None:
    """A tolerance is an error, or leaves what is tested within a tenth of the published figure or its last digit."""
    folder = tmp_path_factory.mktemp("t")
    tolerance = share * float(published)
    text = f"{{kind: arithmetic, formula: product, inputs: {{a: 2, b: 2}}, tolerance: {tolerance:.6f}}}"
    most = max(half_last_digit(published), WIDEST * float(published))
    try:
        claim_of(folder, metric="arithmetic", published=published, rule=text)
    except UserError:
        assert tolerance > most - 1e-5
    else:
        assert tolerance <= most + 1e-5


@pytest.mark.parametrize(("published", "expected"), [("49.4", "reproduced"), ("40", "refuted"), ("0.494", "refuted")])
def test_per_cent_are_converted(tmp_path: Path, published: str, expected: str) -> None:
    rows = [{**speed(method="mtp", streams=1), "depth": 0, "rate": 0.4937, "ci_low": 0.4931, "ci_high": 0.4944}]
    claim = claim_of(tmp_path, metric="acceptance", unit="'%'", published=published, rule=rule(test="value"),
                     scope="{method: mtp, temperature: 0}")  # fmt: skip
    row = verdict(claim, acceptance=rows)
    assert row["verdict"] == expected
    assert (row["measured"], row["ci_low"], row["ci_high"]) == pytest.approx((49.37, 49.31, 49.44))
    absolute = claim_of(tmp_path, metric="acceptance", unit="'%'", published=published, rule=rule(test="absolute"),
                        scope="{method: mtp, temperature: 0}")  # fmt: skip
    assert verdict(absolute, acceptance=rows)["verdict"] == expected


def test_the_tolerance_is_told(tmp_path: Path) -> None:
    claim = claim_of(tmp_path, metric="tokens_per_round", unit="tokens", rule=rule(test="value", tolerance=0.2))
    row = verdict(claim, speedup=[speed(method="mtp", streams=1, tokens_per_round=1.9)])
    assert row["verdict"] == "reproduced"
    assert "published 2.0, to 0.2 as the rule allows" in row["reason"]


def test_a_share_printed_without_decimals_does_not_pass_half_of_it(tmp_path: Path) -> None:
    claim = claim_of(tmp_path, metric="acceptance", unit="share", published="1", rule=rule(test="value"),
                     scope="{method: mtp, temperature: 0}")  # fmt: skip
    half = {**speed(method="mtp", streams=1), "depth": 0, "rate": 0.55, "ci_low": 0.53, "ci_high": 0.57}
    assert verdict(claim, acceptance=[half])["verdict"] == "refuted"


def test_a_divergent_output_supports_no_figure_of_it(tmp_path: Path) -> None:
    row = speed(method="mtp", streams=1, tokens_per_round=2.0, tok_s=2.0, counted_tok_s=2.0, lossless="divergent")
    for changes in (
        {"metric": "tokens_per_round", "unit": "tokens", "rule": rule(test="value")},
        {"metric": "rate", "unit": "tok/s", "rule": rule(test="absolute")},
    ):
        found = verdict(claim_of(tmp_path, **changes), speedup=[{**row, "ci_low": 0.499, "ci_high": 0.501}])
        assert found["verdict"] == "inconclusive" and "diverges" in found["reason"]
