"""Verdicts on hand-made findings: each logic once where it holds, once where it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.judge.claims import judge_claims
from bench.judge.facts import load_facts
from bench.judge.findings import Findings
from bench.judge.sheet import VERDICTS, Claim, load_sheet

ROOT = Path(__file__).parents[2]
FACTS = load_facts(ROOT / "configs" / "facts")
PTI = {claim.id: claim for claim in load_sheet(ROOT / "configs" / "claims" / "pti.yaml")}

Row = dict[str, Any]


def speed(**changes: Any) -> Row:
    """The published loop at four streams as it comes out: 0.5x, and a counter that reads 3.8 times as much."""
    row: Row = {
        "machine": "laptop", "build": "cpu-1", "cells": ["aaaaaaaaaaaa"], "model": "smollm2-135m",
        "quantization": "q8_0",
        "method": "stagger", "emission": "published", "rebuild": "none", "draws": "independent", "streams": 4,
        "temperature": 0.0, "prompt_class": "all", "scope": "answer", "n_predict": 80, "tok_s": 25.0,
        "steady_tok_s": 26.0,
        "baseline_tok_s": 50.0, "speedup": 0.50, "ci_low": 0.48, "ci_high": 0.52, "counted_tok_s": 95.5,
        "counted_speedup": 1.91, "aggregate_tok_s": 25.0, "solo_tok_s": 48.0, "lossless": "identical",
        "identical_share": 1.0, "tokens_per_round": 1.05, "void": False, "void_reason": "",
    }  # fmt: skip
    return {**row, **changes}


def accepted(**changes: Any) -> Row:
    row: Row = {
        "machine": "laptop", "build": "cpu-1", "cells": ["bbbbbbbbbbbb"], "model": "smollm2-135m", "method": "stagger",
        "emission": "published", "rebuild": "none", "draws": "independent", "streams": 4, "temperature": 0.6,
        "position": 0, "tested": 800, "accepted": 576, "rate": 0.72, "ci_low": 0.69, "ci_high": 0.75,
        "collision_mean": 0.714, "difference": 0.006, "difference_low": -0.02, "difference_high": 0.032,
    }  # fmt: skip
    return {**row, **changes}


def step(width: int, cost: float, low: float, high: float) -> Row:
    return {"machine": "laptop", "build": "cpu-1", "cells": ["cccccccccccc"], "model": "smollm2-135m",
    "layout": "sequences",
            "width": width, "relative_cost": cost, "ci_low": low, "ci_high": high}  # fmt: skip


def verdict(claim: Claim | str, **tables: list[Row]) -> dict[str, Any]:
    """The one row of one claim."""
    rows = judge_claims([PTI[claim] if isinstance(claim, str) else claim], Findings(**tables), FACTS)
    assert len(rows) == 1
    return rows[0]


def claim_of(tmp_path: Path, **changes: str) -> Claim:
    """A claim about mtp written as YAML, with some lines exchanged."""
    lines = {
        "id": "a.claim", "says": "It is twice as fast.", "source": "{document: A page, date: 2026-06-08}",
        "metric": "speedup", "scope": "{method: mtp, streams: 1, temperature: 0, per: answer}", "published": "2.0",
        "unit": "x", "conditions": "{machine: mi50}", "evidence": "measured", "author_status": "{state: standing}",
        "rule": "{kind: records, test: ratio}", **changes,
    }  # fmt: skip
    path = tmp_path / "sheet.yaml"
    path.write_text("- " + "\n  ".join(f"{key}: {value}" for key, value in lines.items()) + "\n", encoding="utf-8")
    return load_sheet(path)[0]


@pytest.mark.parametrize(("name", "streams"), [("two", 2), ("three", 3), ("four", 4)])
def test_per_answer_speed_up_is_refuted_with_the_counted_figure_beside(name: str, streams: int) -> None:
    row = verdict(f"pti.{name}_streams.speedup", speedup=[speed(streams=streams)])
    assert row["verdict"] == "refuted"
    assert row["measured"] == 0.50
    assert "Counted: 95.5 tok/s (1.91x); distinct: 25 tok/s; 26.2 % of the counted tokens" in row["reason"]
    assert (row["counted"], row["distinct"]) == (95.5, 25.0)


@pytest.mark.parametrize(
    ("name", "streams", "implied"), [("two", 2, "7.984"), ("three", 3, "8.874"), ("four", 4, "9.974")]
)
def test_the_rates_as_the_speed_of_one_answer_are_refuted(name: str, streams: int, implied: str) -> None:
    row = verdict(f"pti.{name}_streams.rate", speedup=[speed(streams=streams)])
    assert row["verdict"] == "refuted"
    assert f"is {implied} tok/s of new text" in row["reason"]
    assert "do not depend on the machine" in row["reason"]
    assert "machine (claim: mi50, here: laptop)" in row["reason"]


def test_a_rate_whose_tokens_are_all_distinct_is_not_refuted() -> None:
    honest = speed(counted_tok_s=25.0)
    assert verdict("pti.four_streams.rate", speedup=[honest])["verdict"] == "inconclusive"
    faster = speed(speedup=1.3, ci_low=1.2, ci_high=1.4)
    assert verdict("pti.four_streams.rate", speedup=[faster])["verdict"] == "not_comparable"


def test_the_same_figures_as_counted_rates_are_not_comparable() -> None:
    row = verdict("pti.four_streams.counted_rate", speedup=[speed()])
    assert row["verdict"] == "not_comparable"
    assert row["measured"] == 95.5
    for phrase in (
        "machine (claim: mi50",
        "model (claim: qwen3.6-27b, here: smollm2-135m)",
        "quantization (claim: ud-",
    ):
        assert phrase in row["reason"]
    assert "n_predict" not in row["reason"]
    assert (
        "n_predict (claim: 80, here: 32)"
        in verdict("pti.four_streams.counted_rate", speedup=[speed(n_predict=32)])["reason"]
    )


def test_an_absolute_figure_is_judged_under_its_own_conditions() -> None:
    same = {"machine": "AMD Instinct MI50", "model": "Qwen3.6-27B", "quantization": "UD-Q6_K_XL"}
    assert (
        verdict("pti.four_streams.counted_rate", speedup=[speed(**same, counted_tok_s=37.0)])["verdict"] == "reproduced"
    )
    assert verdict("pti.four_streams.counted_rate", speedup=[speed(**same, counted_tok_s=30.0)])["verdict"] == "refuted"
    assert verdict("pti.baseline.ud", speedup=[speed(**same, baseline_tok_s=19.0)])["verdict"] == "reproduced"


def test_greedy_acceptance_is_true_by_construction() -> None:
    certain = accepted(temperature=0.0, rate=1.0, ci_low=0.995, ci_high=1.0, accepted=800)
    row = verdict("pti.acceptance.greedy_four", acceptance=[certain])
    assert row["verdict"] == "reproduced"
    assert "tautology" in row["reason"]
    missed = accepted(temperature=0.0, rate=0.9, ci_low=0.88, ci_high=0.92)
    assert verdict("pti.acceptance.greedy_four", acceptance=[missed])["verdict"] == "refuted"
    few = accepted(temperature=0.0, rate=1.0, ci_low=0.6, ci_high=1.0)
    assert verdict("pti.acceptance.greedy_four", acceptance=[few])["verdict"] == "inconclusive"


def test_collision_needs_four_temperatures_above_zero() -> None:
    three = [accepted(temperature=one) for one in (0.0, 0.3, 0.6, 0.8)]
    row = verdict("pti.acceptance.collision", acceptance=three)
    assert row["verdict"] == "inconclusive"
    assert "0.3, 0.6, 0.8" in row["reason"]
    row = verdict("pti.acceptance.collision", acceptance=[*three, accepted(temperature=1.0)])
    assert row["verdict"] == "reproduced"
    assert verdict("pti.acceptance.collision_low", acceptance=three)["verdict"] == "reproduced"
    assert verdict("pti.acceptance.collision_high", acceptance=three)["verdict"] == "not_run"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.10, 0.16, "refuted"), (-0.2, 0.2, "inconclusive"), (-0.05, 0.05, "reproduced"), (0.001, 0.05, "reproduced"),
     (0.018, 0.132, "inconclusive")],
)
def test_one_temperature_decides_the_collision_claim(low: float, high: float, expected: str) -> None:
    """(0.001, 0.05) excludes 0 by itself, as one in twenty does; judged with three others it does not count.

    The last case was measured once: outside at 95 % of all four together, inside at 99.9 %.
    """
    odd = accepted(temperature=1.0, difference=(low + high) / 2, difference_low=low, difference_high=high)
    rows = [*(accepted(temperature=one) for one in (0.3, 0.6, 0.8)), odd]
    assert verdict("pti.acceptance.collision", acceptance=rows)["verdict"] == expected


def test_coupled_draws_say_nothing_about_the_collision_claim() -> None:
    rows = [accepted(temperature=one, draws="coupled") for one in (0.3, 0.6, 0.8, 1.0)]
    assert verdict("pti.acceptance.collision", acceptance=rows)["verdict"] == "not_run"


def test_aggregate_is_judged_apart_from_one_answer() -> None:
    total = speed(method="packed", emission="", rebuild="", scope="aggregate", speedup=1.6, ci_low=1.5, ci_high=1.7,
                  counted_tok_s=None)  # fmt: skip
    single = speed(method="packed", emission="", rebuild="", speedup=0.4, ci_low=0.38, ci_high=0.42, counted_tok_s=None)
    both = {"speedup": [total, single]}
    assert verdict("pti.packed.four.direction", **both)["verdict"] == "reproduced"
    size = verdict("pti.packed.four.speedup", **both)
    assert (size["verdict"], size["measured"]) == ("not_comparable", 1.6)
    assert verdict("pti.packed.four.one_answer", **both)["verdict"] == "refuted"
    slower = {**total, "speedup": 0.9, "ci_low": 0.85, "ci_high": 0.95}
    assert verdict("pti.packed.four.direction", speedup=[slower])["verdict"] == "refuted"
    spans = {**total, "ci_low": 0.95}
    assert verdict("pti.packed.four.direction", speedup=[spans])["verdict"] == "inconclusive"
    broken = {**total, "lossless": "divergent"}
    assert verdict("pti.packed.four.direction", speedup=[broken])["verdict"] == "inconclusive"


def test_step_cost_has_a_direction_anywhere_and_a_size_at_home() -> None:
    steps = [step(4, 1.6, 1.5, 1.7)]
    assert verdict("pti.step_cost.four", step_cost=steps)["verdict"] == "not_comparable"
    assert verdict("pti.step_cost.four", step_cost=steps)["measured"] == 1.6
    assert verdict("pti.step_cost.four.sublinear", step_cost=steps)["verdict"] == "reproduced"
    assert verdict("pti.step_cost.four.sublinear", step_cost=[step(4, 4.2, 4.1, 4.3)])["verdict"] == "refuted"
    assert verdict("pti.step_cost.four.identity")["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("interval", "expected"),
    [((0.85, 0.89), "refuted"), ((0.95, 1.2), "inconclusive"), ((1.1, 1.2), "not_comparable"),
     ((1.8, 2.2), "inconclusive"), ((1.95, 2.2), "reproduced"), ((2.5, 2.6), "reproduced")],
)  # fmt: skip
def test_a_gain_against_its_interval(tmp_path: Path, interval: tuple[float, float], expected: str) -> None:
    low, high = interval
    row = speed(method="mtp", streams=1, speedup=(low + high) / 2, ci_low=low, ci_high=high, counted_tok_s=None)
    assert verdict(claim_of(tmp_path), speedup=[row])["verdict"] == expected


def test_a_smaller_gain_is_refuted_under_the_claims_own_conditions(tmp_path: Path) -> None:
    row = speed(machine="mi50", method="mtp", streams=1, speedup=1.15, ci_low=1.1, ci_high=1.2)
    assert verdict(claim_of(tmp_path), speedup=[row])["verdict"] == "refuted"


def test_a_gain_with_another_output_supports_nothing(tmp_path: Path) -> None:
    row = speed(method="mtp", streams=1, speedup=2.1, ci_low=2.0, ci_high=2.2)
    assert verdict(claim_of(tmp_path), speedup=[row])["verdict"] == "reproduced"
    assert verdict(claim_of(tmp_path), speedup=[{**row, "lossless": "divergent"}])["verdict"] == "inconclusive"


def test_c20_slower_than_the_baseline(tmp_path: Path) -> None:
    row = speed(method="mtp", streams=1, tok_s=17.4, baseline_tok_s=20.0, speedup=0.87, ci_low=0.85, ci_high=0.89)
    assert verdict(claim_of(tmp_path), speedup=[row])["verdict"] == "refuted"


def test_c21_high_acceptance_is_no_gain(tmp_path: Path) -> None:
    taken = accepted(method="mtp", streams=1, temperature=0.0, rate=0.82, ci_low=0.80, ci_high=0.84)
    assert verdict(claim_of(tmp_path), acceptance=[taken])["verdict"] == "not_run"
    gain = 1.82 / (58 + 6.1) * 33.3
    row = speed(method="mtp", streams=1, tok_s=28.4, baseline_tok_s=30.0, speedup=gain, ci_low=0.93, ci_high=0.96)
    assert gain == pytest.approx(28.4 / 30.0, rel=0.01)
    assert verdict(claim_of(tmp_path), acceptance=[taken], speedup=[row])["verdict"] == "refuted"


def test_c24_any_temperature_is_not_supported_by_temperature_zero(tmp_path: Path) -> None:
    claim = claim_of(tmp_path, metric="acceptance", scope="{method: stagger, temperature: any}", published="1.00",
                     unit="share", rule="{kind: records, test: value}")  # fmt: skip
    zero = accepted(temperature=0.0, rate=1.0, ci_low=0.99, ci_high=1.0)
    row = verdict(claim, acceptance=[zero])
    assert row["verdict"] == "inconclusive"
    assert "Unsupported at any temperature: measured at 0 only" in row["reason"]
    everywhere = [{**zero, "temperature": one} for one in (0.0, 0.3, 0.7, 1.0)]
    assert verdict(claim, acceptance=everywhere)["verdict"] == "reproduced"
    assert verdict(claim, acceptance=[zero, accepted(temperature=0.7)])["verdict"] == "refuted"


def test_c29_a_gain_at_one_stream_does_not_transfer(tmp_path: Path) -> None:
    rates = ((1, 10, 20), (2, 19, 16), (4, 33, 26))
    rows = [
        speed(method="mtp", streams=n, speedup=mtp / none, ci_low=mtp / none - 0.02, ci_high=mtp / none + 0.02)
        for n, none, mtp in rates
    ]
    one = claim_of(tmp_path)
    found = {n: verdict(replace(one, scope={**one.scope, "streams": n}), speedup=rows)["verdict"] for n, _, _ in rates}
    assert found == {1: "reproduced", 2: "refuted", 4: "refuted"}
    assert verdict(replace(one, scope={**one.scope, "streams": "any"}), speedup=rows)["verdict"] == "refuted"
    assert verdict(replace(one, scope={**one.scope, "streams": [1, 2]}), speedup=rows)["verdict"] == "inconclusive"


def test_c32_a_rate_without_a_baseline_cannot_be_assessed(tmp_path: Path) -> None:
    claim = claim_of(tmp_path, published="28", unit="tok/s", conditions="{machine: mi50, model: 27b}",
                     scope="{method: mtp, per: answer}", rule="{kind: records, test: absolute}")  # fmt: skip
    row = verdict(claim, speedup=[speed(method="mtp", machine="mi50", tok_s=28.0)])
    assert row["verdict"] == "not_comparable"
    for word in ("baseline_tok_s", "quantization", "build", "n_predict", "streams", "temperature"):
        assert word in row["reason"]
    assert "machine" not in row["reason"]


def test_void_rows_support_nothing() -> None:
    void = speed(void=True, void_reason="the A/A control is off by 8 %")
    row = verdict("pti.four_streams.speedup", speedup=[void])
    assert row["verdict"] == "inconclusive"
    assert "A/A control is off by 8 %" in row["reason"]
    row = verdict("pti.four_streams.speedup", speedup=[void, speed(cells=["dddddddddddd"])])
    assert row["verdict"] == "refuted"
    assert row["cells"] == ["dddddddddddd"]
    assert "1 void rows were left out" in row["reason"]


def test_every_machine_and_build_gets_a_row() -> None:
    rows = [speed(), speed(machine="server", build="cuda-2", speedup=1.99, ci_low=1.97, ci_high=2.01)]
    found = judge_claims([PTI["pti.four_streams.speedup"]], Findings(speedup=rows), FACTS)
    assert [(row["machine"], row["build"], row["verdict"]) for row in found] == [
        ("laptop", "cpu-1", "refuted"),
        ("server", "cuda-2", "reproduced"),
    ]


def test_models_that_disagree_leave_it_open() -> None:
    rows = [speed(), speed(model="other", speedup=1.99, ci_low=1.97, ci_high=2.01)]
    row = verdict("pti.four_streams.speedup", speedup=rows)
    assert row["verdict"] == "inconclusive"
    assert "1 refuted, 1 reproduced" in row["reason"]
    assert "Against it" in row["reason"]


def test_scope_selects_rows() -> None:
    others = [speed(streams=3), speed(emission="distinct"), speed(temperature=0.7), speed(scope="aggregate"),
              speed(prompt_class="prose"), speed(method="packed"), speed(rebuild="exact")]  # fmt: skip
    assert verdict("pti.four_streams.speedup", speedup=others)["verdict"] == "not_run"


def test_lossless_grades() -> None:
    def grade(word: str) -> str:
        return verdict("pti.lossless.published_loop", speedup=[speed(lossless=word)])["verdict"]

    assert [grade(word) for word in ("identical", "near_tie", "divergent", "")] == [
        "reproduced", "reproduced", "refuted", "inconclusive",
    ]  # fmt: skip


def test_tokens_a_round() -> None:
    assert verdict("pti.described_loop.without_rebuild", speedup=[speed(method="jacobi")])["verdict"] == "refuted"
    whole = speed(method="jacobi", tokens_per_round=4.0)
    assert verdict("pti.described_loop.without_rebuild", speedup=[whole])["verdict"] == "reproduced"


@pytest.mark.parametrize(("extra", "expected"), [(0.0, "reproduced"), (0.05, "reproduced"), (0.5, "refuted")])
def test_memory_grows_by_cache_and_state(extra: float, expected: str) -> None:
    rows = [
        {"machine": "laptop", "build": "cpu-1", "cells": ["e"], "model": "m", "source": "profile", "streams": n,
         "kv_bytes": 8e6 * n, "state_bytes": 2e6 * n, "measured_bytes": 5e8 + 1e7 * n * (1 + extra)}
        for n in (1, 2, 4)
    ]  # fmt: skip
    row = verdict("pti.memory.weights_shared", memory=rows)
    assert row["verdict"] == expected
    assert row["measured"] == pytest.approx(1 + extra)
    assert verdict("pti.memory.weights_shared", memory=rows[:1])["verdict"] == "inconclusive"
    process = [{**one, "source": "contrast"} for one in rows]
    assert verdict("pti.memory.weights_shared", memory=process)["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("name", "expected", "measured"),
    [
        ("traffic.activations", "refuted", 1.42606336), ("traffic.ratio", "refuted", 16),
        ("traffic.tiles", "refuted", 4352),
        ("traffic.weights", "reproduced", 89.12896), ("traffic.vectors", "reproduced", 80),
        ("bandwidth.bound", "reproduced", 37.037),
        ("tokens_per_round.p100", "reproduced", 4), ("tokens_per_round.p075", "refuted", 2.734375),
        ("tokens_per_round.p060", "refuted", 2.176), ("tokens_per_round.p040", "refuted", 1.624),
        ("two_streams.ratio", "reproduced", 1.57216), ("two_streams_q5.ratio", "refuted", 1.36967),
        ("four_streams.counted_tokens", "reproduced", 317), ("four_streams.distinct_tokens", "reproduced", 83),
        ("four_streams.distinct_rate", "reproduced", 9.9757), ("memory.per_sequence", "refuted", 0.26667),
        ("memory.sequence_log", "reproduced", 277.625), ("memory.kv_token", "reproduced", 64),
        ("memory.state", "reproduced", 149.625),
        ("bandwidth.q5_effective", "reproduced", 392.46), ("bandwidth.ceiling_393", "refuted", 1.02611),
        ("bandwidth.ceiling_460", "refuted", 1.20104), ("projection.gb_per_token", "reproduced", 4.94681),
        ("projection.mtp_rate", "reproduced", 80.204), ("projection.gemv_70", "reproduced", 70.545),
        ("projection.mtp_tokens", "reproduced", 3.76), ("projection.limit", "reproduced", 1.96078),
        ("ssq.block", "reproduced", 68), ("ssq.same_bytes", "reproduced", 68),
        ("format.more_weights", "reproduced", 60),
        ("format.more_bandwidth", "refuted", 0), ("device.l2", "refuted", 4), ("device.process", "refuted", 7),
        ("device.peak", "reproduced", 1024), ("device.matrix", "refuted", None),
    ],
)  # fmt: skip
def test_what_needs_no_record(name: str, expected: str, measured: float | None) -> None:
    row = verdict(f"pti.{name}")
    assert row["verdict"] == expected
    assert row["measured"] == (None if measured is None else pytest.approx(measured, rel=1e-4, abs=1e-9))


def test_the_wrong_prefix_is_named() -> None:
    assert "1360 MiB over 1000" in verdict("pti.traffic.activations")["reason"]


def test_rounding_of_the_inputs_decides_between_refuted_and_inconclusive(tmp_path: Path) -> None:
    def judged(published: str, denominator: str) -> str:
        rule = f"{{kind: arithmetic, formula: ratio, inputs: {{numerator: 28.9, denominator: {denominator}}}}}"
        return verdict(claim_of(tmp_path, published=published, rule=rule, metric="arithmetic"))["verdict"]

    assert judged("1.38", "21.1") == "refuted"
    assert judged("1.38", "{value: 21.1, within: 0.15}") == "inconclusive"
    assert judged("1.38", "{value: 21.1, within: 0.5}") == "reproduced"
    assert judged("1.50", "{value: 21.1, within: 0.5}") == "refuted"


def test_units_and_zero_divisors_are_sentences(tmp_path: Path) -> None:
    fact = claim_of(tmp_path, metric="device", unit="MB", rule="{kind: fact, fact: mi50.l2_cache}")
    with pytest.raises(UserError, match=r"in 'MB', fact 'mi50.l2_cache' in 'MiB'"):
        verdict(fact)
    missing = claim_of(tmp_path, metric="device", unit="MiB", rule="{kind: fact, fact: mi50.l3_cache}")
    with pytest.raises(UserError, match=r"unknown fact 'mi50.l3_cache'"):
        verdict(missing)
    zero = claim_of(
        tmp_path, rule="{kind: arithmetic, formula: ratio, inputs: {numerator: 1, denominator: 0}}", metric="arithmetic"
    )
    with pytest.raises(UserError, match=r"divides by zero"):
        verdict(zero)


def test_an_expectation_that_fails_is_told(tmp_path: Path) -> None:
    claim = replace(claim_of(tmp_path), verdict="reproduced")
    assert "The sheet expected 'reproduced'" in verdict(claim)["reason"]
    assert "The sheet expected" not in verdict(replace(claim, verdict="not_run"))["reason"]


def test_nothing_is_blank_and_absent_methods_say_what_they_need() -> None:
    tables = {"speedup": [speed()], "acceptance": [accepted()], "step_cost": [step(4, 1.6, 1.5, 1.7)]}
    for findings in (Findings(), Findings(**tables)):
        rows = judge_claims(list(PTI.values()), findings, FACTS)
        assert {row["claim_id"] for row in rows} == set(PTI)
        for row in rows:
            assert row["verdict"] in VERDICTS
            for key in ("machine", "build", "scope", "unit", "evidence", "reason", "says", "author_status", "source"):
                assert str(row[key]).strip(), (row["claim_id"], key)
            assert row["published"] not in ("", None)
    for name in ("lookup.edit", "lookup_mtp.edit", "mtp.all", "kernel.raw_stream", "acceptance.task_twin"):
        row = verdict(f"pti.{name}")
        assert row["verdict"] == "not_run"
        assert "take" in row["reason"]


def test_not_run_names_the_command() -> None:
    row = verdict("pti.four_streams.speedup")
    command = (
        "python -m bench sweep method=stagger method.emission=published method.rebuild=none streams=4 temperature=0"
    )
    assert command in row["reason"]
    assert "temperature=0.3,0.6,0.8,1" in verdict("pti.acceptance.collision")["reason"]


def test_anybodys_sheet_is_judged() -> None:
    claims = load_sheet(Path(__file__).with_name("example_sheet.yaml"))
    total = speed(method="packed", scope="aggregate", speedup=2.0, ci_low=1.9, ci_high=2.1)
    rows = judge_claims(claims, Findings(speedup=[total]), FACTS)
    assert [row["verdict"] for row in rows] == ["not_run", "reproduced", "reproduced", "reproduced"]


def test_of_rows_at_one_temperature_the_best_tested_is_judged() -> None:
    rows = [accepted(temperature=one) for one in (0.3, 0.6, 0.8, 1.0)]
    odd = {"temperature": 1.0, "streams": 2, "difference": 0.2, "difference_low": 0.15, "difference_high": 0.25}
    assert (
        verdict("pti.acceptance.collision", acceptance=[*rows, accepted(**odd, tested=40)])["verdict"] == "reproduced"
    )
    assert verdict("pti.acceptance.collision", acceptance=[*rows, accepted(**odd, tested=4000)])["verdict"] == "refuted"
