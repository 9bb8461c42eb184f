"""Where a claim is judged: what counting and construction decide anywhere, all else under its own conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from bench.judge.claims.claim import Claim
from bench.judge.claims.columns import UNITS
from bench.judge.claims.conditions import differing
from bench.judge.claims.facts import load_facts
from bench.judge.claims.mechanism import mechanism
from bench.judge.claims.names import Names, load_names
from bench.judge.claims.rows import column_of
from bench.judge.claims.sheet import CONDITION_KEYS
from tests.judge.claims.claim_findings import FACTS, PTI, ROOT, accepted, claim_of, speed, step, verdict

NAMES = load_names(ROOT / "configs" / "facts")
WHOLE: dict[str, Any] = {
    "machine": "mi50", "model": "qwen3.6-27b", "quantization": "q5_k_m", "n_predict": 80, "build": "b1",
    "baseline_tok_s": 50.0, "prompt": "The key", "n_ctx": 4096, "n_seq_max": 4, "type_k": "f16", "flash_attn": "on",
    "temperature": 0.0, "window": 4, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.1,
    "frequency_penalty": 0.5, "presence_penalty": 0.25, "repeat_last_n": 32, "ignore_eos": False,
    "prompt_template": "model",
}  # fmt: skip


def flow(values: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


def test_every_condition_is_compared(tmp_path: Path) -> None:
    """All of them: a condition that is not looked at is one that any row shares."""
    assert set(WHOLE) == set(CONDITION_KEYS) and len(CONDITION_KEYS) == 22
    claim = claim_of(tmp_path, conditions=flow(WHOLE), scope="{method: mtp}")
    row = speed(method="mtp", **WHOLE)
    assert differing(claim, row, NAMES) == []
    other = {"n_predict": 24, "baseline_tok_s": 60.0, "n_ctx": 512, "n_seq_max": 64, "type_k": "q8_0",
             "flash_attn": "off", "temperature": 0.7, "window": 5, "top_k": 0, "top_p": 1.0, "min_p": 0.0,
             "repeat_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0, "repeat_last_n": 64,
             "ignore_eos": True, "prompt_template": "none"}  # fmt: skip
    for key in CONDITION_KEYS:
        (phrase,) = differing(claim, {**row, key: other.get(key, "another")}, NAMES)
        assert phrase.startswith(f"{key} (claim: ")
        (phrase,) = differing(claim, {name: value for name, value in row.items() if name != key}, NAMES)
        assert phrase.startswith(key) and "here: not recorded" in phrase


def test_settings_that_differ_are_not_the_same_conditions(tmp_path: Path) -> None:
    named = "{machine: laptop, model: smollm2-135m, quantization: q8_0, n_ctx: 131072, type_k: q8_0, flash_attn: 'off'}"
    claim = claim_of(tmp_path, published="25", unit="tok/s", metric="rate", conditions=named,
                     rule="{kind: records, test: absolute}")  # fmt: skip
    row = speed(method="mtp", streams=1, n_ctx=512, type_k="f16", flash_attn="auto")
    found = verdict(claim, speedup=[row])
    assert found["verdict"] == "not_comparable"
    for key in ("n_ctx (claim: 131072, here: 512)", "type_k (claim: q8_0", "flash_attn (claim: off, here: auto)"):
        assert key in found["reason"]
    same = {**row, "n_ctx": 131072, "type_k": "q8_0", "flash_attn": "off"}
    assert verdict(claim, speedup=[same])["verdict"] == "reproduced"


@pytest.mark.parametrize("name", ["m", "0", "mi500-box", "not-an-mi50", "dual-mi50-row-split", "mi", "MI5", ""])
def test_a_part_of_a_name_is_another_machine(name: str) -> None:
    assert not NAMES.same("machine", "mi50", name)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [("通义千问", "文心一言", False), ("通义千问", "通义-千问", True), ("--", "??", False), ("--", "--", True),
     ("Größe-7B", "groesse-7b", False), ("GRÖSSE 7B", "größe-7b", True)],
)  # fmt: skip
def test_names_in_other_scripts_are_told_apart(one: str, other: str, alike: bool) -> None:
    assert NAMES.same("model", one, other) is NAMES.same("model", other, one) is alike


@pytest.mark.parametrize("name", ["mi50", "MI50", "AMD Instinct MI50", "gfx906", "AMD Instinct MI50 (32 GiB)"])
def test_names_in_one_list_are_one_machine(name: str) -> None:
    assert NAMES.same("machine", "mi50", name) and NAMES.same("machine", name, "mi50")
    assert not NAMES.same("model", "mi50", name) or name.lower() == "mi50"


def test_a_file_s_name_says_model_and_quantisation() -> None:
    row = {"model": "Qwen3.6-27B-UD-Q6_K_XL", "quantization": "Q6_K"}
    assert NAMES.of_row("model", row) == "qwen3.6-27b" and NAMES.of_row("quantization", row) == "ud-q6_k_xl"
    assert not NAMES.same("quantization", "ud-q6_k_xl", "Q6_K")
    assert NAMES.of_row("model", {"model": "a"}) == "a" and NAMES.of_row("quantization", {"model": "a"}) == ""


@given(st.text(max_size=12), st.text(max_size=12))
def test_names_are_the_same_both_ways_and_only_as_a_whole(one: str, other: str) -> None:
    names = Names({("machine", "mi50"): "mi50", ("machine", "gfx906"): "mi50"})
    assert names.same("machine", one, other) == names.same("machine", other, one)
    if names.same("machine", one, other):
        assert names.first("machine", one) == names.first("machine", other)
        assert not names.same("machine", one + "x", other) or (one + "x").casefold() != one.casefold()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("machines: {a: [b]}", "unknown key 'machines'; did you mean 'machine'"),
        ("machine: {a: b}", "is no list of names"),
        ("machine: [a]", "write a mapping"),
        ("machine: {a: [b], c: [B]}", "'b' stands in two lists"),
        ("files: {a: {model: b}}", "needs model and quantization"),
        ("- a", "each a mapping"),
    ],
)
def test_a_mistake_in_the_names_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "names.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        load_names(tmp_path)


def test_facts_carry_the_names() -> None:
    assert load_facts(ROOT / "configs" / "facts").names == NAMES
    assert FACTS.names.same("machine", "gfx906", "MI50")


WITHOUT = [
    ({"published": "38.1", "unit": "tok/s", "metric": "rate", "rule": "{kind: records, test: absolute}"},
     "machine, model"),
    ({}, "machine, model, quantization"),
    ({"metric": "acceptance", "published": "0.9", "unit": "share", "rule": "{kind: records, test: value}"}, "model"),
    ({"metric": "step_cost", "scope": "{width: 4}", "rule": "{kind: records, test: absolute}"}, "machine, model"),
    ({"metric": "step_cost", "scope": "{width: 4}", "published": "4",
      "rule": "{kind: records, test: direction, expect: less_than, edge: 4}"}, "machine"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "absent"), WITHOUT)
def test_nothing_stated_is_not_nothing_differs(tmp_path: Path, changes: dict[str, str], absent: str) -> None:
    rows = {"speedup": [speed(method="mtp", streams=1)], "step_cost": [step(4, 2.04, 2.03, 2.05)],
            "acceptance": [accepted(method="mtp", streams=1, temperature=0.0)]}  # fmt: skip
    row = verdict(claim_of(tmp_path, **changes, conditions="{}"), **rows)
    assert row["verdict"] == "not_comparable"
    assert f"published without {absent}" in row["reason"]


OTHER = "{machine: mi50, model: qwen3.6-27b, quantization: q8_0}"
BOUND = [
    ({"scope": "{method: lookup}"}, "speedup"),
    ({"scope": "{method: lookup}", "rule": "{kind: records, test: direction, expect: greater_than_one}"}, "speedup"),
    ({"scope": "{method: packed, drafter: mtp}"}, "speedup"),
    ({"metric": "step_cost", "scope": "{width: 4}"}, "step_cost"),
    ({"metric": "acceptance", "published": "0.72", "unit": "share", "scope": "{method: lookup}"}, "acceptance"),
    ({"metric": "tokens_per_round", "unit": "tokens", "scope": "{method: jacobi}"}, "speedup"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "table"), BOUND)
@pytest.mark.parametrize("middle", [0.2, 0.72, 1.0, 2.0, 9.0])
def test_what_machine_and_model_decide_is_not_judged_elsewhere_whatever_the_interval(
    tmp_path: Path, changes: dict[str, str], table: str, middle: float
) -> None:
    tests = {"speedup": "ratio", "step_cost": "absolute", "acceptance": "value", "tokens_per_round": "value"}
    rule = f"{{kind: records, test: {tests[changes.get('metric', 'speedup')]}}}"
    claim = claim_of(tmp_path, **{"rule": rule, **changes}, conditions=OTHER)
    ends = {"ci_low": middle * 0.99, "ci_high": middle * 1.01}
    name = claim.scope.get("method", "")
    rows = {
        "speedup": [speed(method=name, drafter="mtp", speedup=middle, tokens_per_round=middle, **ends)],
        "step_cost": [step(4, middle, *ends.values())],
        "acceptance": [accepted(method=name, rate=min(middle, 1), **ends)],
    }
    row = verdict(claim, **{table: rows[table]})
    assert row["verdict"] == "not_comparable"
    assert "machine (claim: mi50, here: laptop)" in row["reason"]


@pytest.mark.parametrize(
    ("name", "word"),
    [("pti.four_streams.speedup", "counting"), ("pti.four_streams.rate", "counting"),
     ("pti.honest.every_n", "construction"), ("pti.packed.four.one_answer", "construction"),
     ("pti.acceptance.greedy_two", "construction"), ("pti.acceptance.collision", "construction"),
     ("pti.described_loop.tokens_per_round", "counting"), ("pti.ssq.free_draft.counted", "counting"),
     ("pti.step_cost.two.sublinear", "universal"), ("pti.packed.four.direction", "universal"),
     ("pti.packed.four.speedup", "conditions"), ("pti.lookup.repetition_ungated", "conditions"),
     ("pti.mtp.no_bonus", "conditions"), ("pti.step_cost.four", "conditions"),
     ("pti.kernel.streams_cost_one.q8_0", "conditions"), ("pti.traffic.ratio.counted", "conditions")],
)  # fmt: skip
def test_what_decides_a_claim(name: str, word: str) -> None:
    assert mechanism(PTI[name]).word == word


@pytest.mark.parametrize("method", ["any", "autoregressive", "lookup", "[packed, stagger]"])
def test_methods_of_one_answer_and_several_methods_are_bound_by_nothing(tmp_path: Path, method: str) -> None:
    claim = claim_of(tmp_path, scope=f"{{method: {method}}}",
                     rule="{kind: records, test: direction, expect: greater_than_one}")  # fmt: skip
    assert mechanism(claim).word == "conditions"


def test_a_batch_whose_answers_may_be_guessed_for_is_not_bound_by_construction(tmp_path: Path) -> None:
    words = {scope: mechanism(claim_of(tmp_path, scope=f"{{method: packed{scope}}}")).word
             for scope in ("", ", drafter: none", ", drafter: any", ", drafter: mtp")}  # fmt: skip
    assert words == {"": "conditions", ", drafter: none": "construction", ", drafter: any": "conditions",
                     ", drafter: mtp": "conditions"}  # fmt: skip


@pytest.mark.parametrize("name", sorted(name for name, claim in PTI.items() if "machine" in claim.conditions))
def test_on_a_relabelled_machine_every_conditioned_claim_of_the_sheet_is_judged_by_its_own_column(name: str) -> None:
    """On the very card: none is compared with a figure of another kind, and none passes elsewhere."""
    claim = PTI[name]
    if claim.rule.kind != "records" or mechanism(claim).anywhere:
        return
    row = own_row(claim)
    there = verdict(claim, **{claim.table: [row]})
    assert there["verdict"] == "reproduced", there["reason"]
    away = verdict(claim, **{claim.table: [{**row, "machine": "mi500-box"}]})
    assert away["verdict"] == ("not_run" if "machine" in claim.scope else "not_comparable")


def own_row(claim: Claim) -> dict[str, Any]:
    """A row of the claim's table that has the claim's conditions and its figure, to a thousandth."""
    column, middle = column_of(claim), sum(map(float, claim.published)) / len(claim.published)
    found = middle * UNITS[column.kind][claim.unit]
    row: dict[str, Any] = {"build": "b", "cells": ["c"], "void": False, "lossless": "identical", "scope": claim.per}
    row["scope"] = "aggregate" if claim.per == "aggregate" else "answer"
    for key, value in claim.scope.items():
        row[key] = value["from"] if isinstance(value, dict) else value[0] if isinstance(value, list) else value
    row |= {key: value for key, value in claim.conditions.items()}
    row[claim.column] = found
    row.setdefault("us", 1.0)
    if column.ends is not None:
        middle = 1.0 if column.ends.middle else found
        row |= {column.ends.low: middle * 0.999, column.ends.high: middle * 1.001}
        row |= {column.ends.middle: middle} if column.ends.middle else {}
    return row
