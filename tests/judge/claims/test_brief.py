"""A verdict in one sentence: both numbers are there, none of them is a rate of another machine."""

from __future__ import annotations

import re

import pytest

from bench.errors import UserError
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from tests.judge.claims.claim_findings import FACTS, PTI, accepted, claim_of, speed, step, verdict

ROW = speed()


def test_a_rate_is_told_as_a_ratio_with_its_interval_and_its_own_distinct_rate():
    row = verdict("pti.four_streams.rate", speedup=[ROW])
    assert row["verdict"] == "refuted"
    assert row["why"] == (
        "Published 1.96x plain decoding, measured 0.5x (0.48 to 0.52): each token is counted 3.8 times, so 38.1 tok/s "
        "are 10.0 distinct."
    )
    assert (row["published_ratio"], row["ratio"]) == (pytest.approx(38.1 / 19.4), 0.5)
    assert (row["ratio_low"], row["ratio_high"]) == (0.48, 0.52)
    assert row["would_change"] == "an interval that reaches plain decoding's speed, anywhere"


@pytest.mark.parametrize("name", sorted(PTI))
def test_no_reason_in_brief_holds_a_rate_of_the_machine_that_ran(name):
    """Rates of the rows here have digits that no claim has."""
    rate = {"tok_s": 251.37, "baseline_tok_s": 507.91, "counted_tok_s": 955.13, "steady_tok_s": 263.17,
            "aggregate_tok_s": 251.37, "solo_tok_s": 481.93}  # fmt: skip
    tables = {"speedup": [speed(**rate), speed(method="packed", drafter="none", scope="aggregate", **rate)],
              "acceptance": [accepted()], "step_cost": [step(4, 2.6, 2.5, 2.7)]}  # fmt: skip
    for row in judge_claims([PTI[name]], Findings(**tables), FACTS):
        assert row["why"].endswith(".") and row["would_change"]
        assert "\n" not in row["why"]
        assert not re.search(r"(?<![\d.])(251|508|955|263|482)(?!\d)", row["why"] + row["would_change"])


@pytest.mark.parametrize(("name", "tables", "told", "change"), [
    ("pti.acceptance.collision", {"acceptance": [accepted(temperature=t) for t in (0.3, 0.6)]},
     "It needs 4 temperatures above 0 and 2 are measured (0.3, 0.6).", "more blocks and prompts, or a quieter machine"),
    ("pti.step_cost.four", {"step_cost": [step(4, 2.6, 2.5, 2.7)]},
     "Published 2.04x a single step, here, under other conditions, 2.6x.",
     "a run under its own conditions"),
    ("pti.four_streams.speedup", {}, "Published 1.96x plain decoding, no cell here measures it.",
     "`python -m bench sweep method=stagger method.emission=published method.rebuild=none streams=4"),
    ("pti.packed.16.same_context", {}, "Published 3.54x, its own figures give 1.37x.",
     "arithmetic"),
    ("pti.honest.four_streams.direction", {"speedup": [speed(emission="distinct", rebuild="exact")]},
     "Published 0.77x plain decoding, measured 0.5x (0.48 to 0.52)", "an interval above plain decoding's speed"),
    ("pti.lossless.published_loop", {"speedup": [speed(lossless="divergent", identical_share=0.25,
                                                       answers_graded=4)]},
     "Published 100 % of answers identical, measured 25 % (", "answers that are all identical"),
])  # fmt: skip
def test_each_kind_of_verdict(name, tables, told, change):
    row = verdict(name, **tables)
    assert row["why"].startswith(told)
    assert change in row["would_change"]


def test_what_is_void_says_so_in_one_sentence():
    row = verdict("pti.four_streams.speedup", speedup=[speed(void=True, void_reason="oracle: 1 of 2 answers changed")])
    assert row["why"] == "Every cell that it could rest on is void: oracle: 1 of 2 answers changed."


def test_the_place_of_a_headline_is_a_whole_number(tmp_path):
    assert claim_of(tmp_path, headline="3").headline == 3
    assert claim_of(tmp_path).headline is None
    for wrong in ("true", "0", "-1", "first", "1.5", "[1]"):
        with pytest.raises(UserError, match=r"headline is '.*'; write its place among the claims"):
            claim_of(tmp_path, headline=wrong)
