"""The sheets that are shipped: read together, every entry judged, and the figures that arithmetic decides."""

from __future__ import annotations

import re

import pytest

from bench.errors import UserError
from bench.judge.claims.arithmetic import recompute
from bench.judge.claims.facts import load_facts
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.plan.compose import compose_points
from bench.plan.config import CONFIGS
from bench.stored import sheets

NAMES = sorted(path.stem for path in (CONFIGS / "claims").glob("*.yaml"))


def verdicts(name: str) -> dict[str, str]:
    """By entry, where no record is at hand."""
    rows = judge_claims(sheets(name), Findings(), load_facts(CONFIGS / "facts"))
    assert all(row["verdict"] and row["reason"] for row in rows)
    return {row["claim_id"]: row["verdict"] for row in rows}


def test_all_is_every_sheet_and_no_id_is_twice(tmp_path):
    every = [claim.id for claim in sheets("all")]
    assert every == [claim.id for name in NAMES for claim in sheets(name)]
    assert len(set(every)) == len(every)
    assert [claim.id for claim in sheets("qwen38_mtp,pti")][-1].startswith("pti.")
    copy = tmp_path / "copy.yaml"
    copy.write_text((CONFIGS / "claims" / "qwen38_mtp.yaml").read_text())
    with pytest.raises(UserError, match=r"have a claim 'qwen38.range.least'; rename one"):
        sheets(f"qwen38_mtp,{copy}")


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_has_a_verdict_and_a_reason_without_any_record(name):
    assert len(verdicts(name)) == len(sheets(name))


def test_the_range_of_a_collection_of_rows_against_its_own_table():
    found = verdicts("qwen38_mtp")
    assert found["qwen38.range.least"] == "refuted"
    assert found["qwen38.range.greatest"] == found["qwen38.range.own_card"] == "reproduced"
    assert found["qwen38.merged.month"] == "refuted"


def test_gains_are_those_of_the_rows():
    rows = {"plain_a": 10.0, "flag_a": 15.0, "plain_b": 4.0, "flag_b": 5.0, "plain_c_d": 2.0, "flag_c_d": 8.0}
    assert recompute("least_gain", rows) == pytest.approx(25)
    assert recompute("greatest_gain", rows) == pytest.approx(300)
    assert (recompute("least", {"a": 3, "b": 2}), recompute("greatest", {"a": 3, "b": 2})) == (2, 3)
    with pytest.raises(UserError, match="'plain_a' is no half of a pair"):
        recompute("least_gain", {"flag_a": 1.0})


def test_the_sweep_of_the_ngram_sheet_runs_what_its_directions_ask_for():
    """Every direction has a point whose method, parameters and classes are its scope's."""
    points = [(one.method.name, one.method.parameters, one.measure.classes) for one in
              compose_points(["experiment=ngram"])]  # fmt: skip
    asked = [claim for claim in sheets("llamacpp_ngram") if claim.rule.test in ("direction", "lossless", "value")
             and not claim.conditions]  # fmt: skip
    assert len(asked) >= 12
    for claim in asked:
        scope = {key: value for key, value in claim.scope.items() if key not in ("method", "prompt_class",
                                                                               "temperature", "per")}  # fmt: skip
        fits = [classes for name, own, classes in points if name == claim.scope["method"]
                and all(own[key] == value for key, value in scope.items())]  # fmt: skip
        wanted = claim.scope.get("prompt_class")
        assert any(wanted is None or not classes or wanted in classes for classes in fits), claim.id


def test_only_the_direction_of_a_drafters_gain_on_a_kind_of_text_is_said_of_any_machine(tmp_path):
    text = (CONFIGS / "claims" / "llamacpp_ngram.yaml").read_text()
    entry = re.split(r"\n(?=- id: )", text)[1]
    sheet = tmp_path / "sheet.yaml"
    for old, new, told in (
        ("prompt_class: repetition, ", "", "so it is not universal; name them in conditions, or claim a direction"),
        ("prompt_class: repetition, ", "prompt_class: any, ", "so it is not universal"),
        ("test: direction, expect: greater_than_one", "test: ratio", "test 'ratio' has no universal"),
    ):
        assert old in entry
        sheet.write_text(entry.replace(old, new))
        with pytest.raises(UserError, match=told):
            sheets(str(sheet))
