"""Acceptance on and off a domain on hand-made cells: a planted drop, no drop, a hard text, and what cannot be told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.judge import judge
from bench.judge.findings import Row
from bench.judge.measure.domain import WINDOWS
from bench.judge.tables import CONTRAST, CONTROLS
from bench.records.rows import Draw
from tests.judge.claims.claim_findings import claim_of, verdict
from tests.judge.judge_cells import PLAIN, Arm, Builder, Cell, default_config

PROMPTS = {"pydoc": 6, "prose": 5, "code": 5}
ROUNDS = 36


@pytest.fixture(autouse=True)
def draws_of_no_token(monkeypatch):
    """The draws of these cells are planted and belong to no token, and no control was run: conditions alone are asked.
    """
    monkeypatch.setitem(CONTROLS, CONTRAST, ("bench.judge.controls.conditions:conditions",))


def cell_of(name: str, rates: dict[str, float], temperature: float = 0.7, collision: dict[str, float] | None = None,
            tested: int = ROUNDS, seed: int = 0, **over: object) -> Cell:
    """A cell in which one guess a round is right with the probability that its class has."""
    rng = np.random.default_rng(seed)
    method = {"name": name, "draft": 1, "draws": "greedy"} | ({"twin": "q8_0"} if name == "twin" else {})
    config = default_config(temperature=temperature, n_predict=tested + 1, method=method,
                            prompts={"name": "set", "domain": "pydoc"}, **over)  # fmt: skip
    builder = Builder(config, {"baseline": PLAIN, "treatment": Arm(drafted=1, accepted=0)}, n_predict=tested + 1)
    order, number = ("baseline", "treatment", "treatment", "baseline"), 0
    for kind, count in PROMPTS.items():
        for _ in range(count):
            builder.block(number, order, f"{kind}{number}", kind)
            number += 1
    kinds = {run.run: run.prompt_class for run in builder.runs}
    hits = [rng.random() < rates[kinds[draw.run]] for draw in builder.draws]
    chance = [(collision or rates)[kinds[draw.run]] if temperature else math.nan for draw in builder.draws]
    builder.draws[:] = [Draw(old.run, old.round, 1, old.position, 7, 7 if hit else 8, p)
                        for old, hit, p in zip(builder.draws, hits, chance, strict=True)]  # fmt: skip
    right = {(draw.run, draw.round) for draw in builder.draws if draw.accepted}
    for place, turn in enumerate(builder.rounds):
        if (turn.run, turn.round) in right:
            builder.rounds[place] = type(turn)(**{**{key: getattr(turn, key) for key in turn.__slots__}, "accepted": 1})
    return builder.build(cell=name.ljust(12, "0"))


def rows_of(*cells: Cell, method: str = "adapter") -> dict[tuple[str, str, int], Row]:
    rows = [row for row in judge(list(cells)).domain if row["method"] == method]
    return {(row["signal"], row["against"], row["window"]): row for row in rows}


TWIN = "twin draft=1 twin=q8_0"
FALLS = {"pydoc": 0.9, "prose": 0.5, "code": 0.55}
LEVEL = {"pydoc": 0.7, "prose": 0.7, "code": 0.7}


def test_a_planted_drop_is_found_with_its_sign_and_its_rates() -> None:
    cell = cell_of("adapter", FALLS)
    row = rows_of(cell)["acceptance", "none", 0]
    draws = cell.draws.merge(cell.runs[cell.runs["arm"] == "treatment"][["run", "prompt_class"]])
    on = draws["prompt_class"] == "pydoc"
    hit = draws["guess"] == draws["drawn"]
    assert (row["on_tested"], row["on_accepted"]) == (on.sum(), hit[on].sum())
    assert (row["on_mean"], row["off_mean"]) == pytest.approx((hit[on].mean(), hit[~on].mean()))
    assert row["drop_low"] > 0 and row["auc_low"] > 0.5 and row["tells"] == "yes"
    assert row["on_mean"] > row["threshold"] > row["off_mean"]
    assert row["false_alarm"] < 0.1 and row["miss"] < 0.1 and 1 < row["needed"] <= ROUNDS
    assert row["by_class"].startswith("code 0.5")


def test_a_rise_off_the_domain_is_no_signal_of_it() -> None:
    row = rows_of(cell_of("adapter", {"pydoc": 0.5, "prose": 0.9, "code": 0.9}))["acceptance", "none", 0]
    assert row["drop_high"] < 0 and row["auc_high"] < 0.5 and row["tells"] == "reversed"
    assert row["false_alarm"] > 0.9 and row["needed"] is None


def test_no_drop_is_told_to_be_no_better_than_chance() -> None:
    row = rows_of(cell_of("adapter", LEVEL))["acceptance", "none", 0]
    assert row["auc_low"] <= 0.5 <= row["auc_high"] and row["needed"] is None
    assert row["tells"] == "no better than chance" and "no better than chance" in row["sentence"]


def test_windows_are_the_first_tested_guesses_and_more_of_them_tell_better() -> None:
    cell = cell_of("adapter", {"pydoc": 0.8, "prose": 0.5, "code": 0.5})
    rows = rows_of(cell)
    runs = cell.runs[(cell.runs["arm"] == "treatment") & (cell.runs["prompt_class"] == "pydoc")]["run"]
    for window in WINDOWS:
        first = cell.draws[cell.draws["run"].isin(runs)].sort_values(["run", "round"]).groupby("run").head(window)
        found = rows["acceptance", "none", window]
        assert found["on_mean"] == pytest.approx((first["guess"] == first["drawn"]).mean())
    assert rows["acceptance", "none", 32]["auc"] > rows["acceptance", "none", 8]["auc"]


def test_a_window_that_an_answer_does_not_reach_says_so() -> None:
    row = rows_of(cell_of("adapter", FALLS, tested=20))["acceptance", "none", 32]
    assert row["reach"] == 20 and math.isnan(row["auc"]) and "raise n_predict" in row["sentence"]


def test_a_text_that_is_hard_to_predict_is_not_taken_for_the_adapter_s_doing() -> None:
    """The adapter, a twin without it and the text's own predictability all fall alike: nothing is left in excess."""
    rows = rows_of(cell_of("adapter", FALLS), cell_of("twin", FALLS, seed=5))
    assert rows["acceptance", "none", 0]["tells"] == "yes"
    assert rows["collision", "none", 0]["tells"] == "yes"
    for against in ("collision", TWIN):
        assert rows["excess", against, 0]["tells"] == "no better than chance", against
    assert rows["excess", TWIN, 0]["cells"] == ["adapter00000", "twin00000000"]


def test_what_the_adapter_alone_loses_is_in_excess() -> None:
    rows = rows_of(cell_of("adapter", FALLS, collision=LEVEL), cell_of("twin", LEVEL, collision=LEVEL, seed=5))
    assert rows["excess", TWIN, 0]["tells"] == "yes" and rows["excess", TWIN, 0]["drop_low"] > 0
    assert rows["excess", "collision", 0]["tells"] == "yes"
    assert rows["collision", "none", 0]["tells"] == "no better than chance"


@pytest.mark.parametrize("over", [{"temperature": 0.3}, {"seed_of_run": 2}, {"engine": {"n_ctx": 8}}])
def test_other_texts_are_no_reference(over: dict) -> None:
    other = cell_of("twin", FALLS, **{key: value for key, value in over.items() if key != "seed_of_run"})
    if "seed_of_run" in over:
        other.runs["seed"] += 10
    assert not [key for key in rows_of(cell_of("adapter", FALLS), other) if key[1].startswith("twin")]


def test_greedy_runs_of_a_prompt_are_one_answer_and_have_no_collision() -> None:
    rows = rows_of(cell_of("adapter", FALLS, temperature=0.0))
    assert {signal for signal, _, _ in rows} == {"acceptance"}
    assert rows["acceptance", "none", 0]["answers"] == sum(PROMPTS.values())


def test_prompts_without_a_domain_and_one_prompt_a_side_give_no_rows() -> None:
    cell = cell_of("adapter", FALLS)
    del cell.config["prompts"]["domain"]
    assert rows_of(cell) == {}
    lonely = cell_of("adapter", FALLS)
    lonely.config["prompts"]["domain"] = "nowhere"
    assert rows_of(lonely) == {}


def test_void_cells_are_marked() -> None:
    cell = cell_of("adapter", FALLS)
    cell.runs["n_prompt_evaluated"] = 0
    row = rows_of(cell)["acceptance", "none", 0]
    assert row["void"] and "cached" in row["void_reason"]


CLAIM = {"metric": "acceptance", "scope": "{method: adapter}", "conditions": "{}", "unit": "share"}


@pytest.mark.parametrize(("rates", "expected"), [
    (FALLS, "reproduced"), (LEVEL, "inconclusive"), ({"pydoc": 0.5, "prose": 0.9, "code": 0.9}, "refuted"),
])  # fmt: skip
def test_the_signal_is_judged_by_its_interval(rates: dict[str, float], expected: str) -> None:
    found = judge([cell_of("adapter", rates)])
    assert verdict("pti.task_twin.signal", domain=found.domain)["verdict"] == expected
    assert verdict("pti.task_twin.falls", domain=found.domain)["verdict"] == expected


def test_acceptance_on_the_domain_is_judged_by_the_interval_over_prompts(tmp_path) -> None:
    found = judge([cell_of("adapter", {**FALLS, "pydoc": 0.82})])
    row = verdict("pti.acceptance.task_twin", domain=found.domain)
    told = next(one for one in found.domain if one["signal"] == "acceptance" and one["window"] == 0)
    assert row["verdict"] == "reproduced"
    assert (row["measured"], row["ci_low"], row["ci_high"]) == (told["on_mean"], told["on_low"], told["on_high"])
    low = judge([cell_of("adapter", {**FALLS, "pydoc": 0.4})])
    assert verdict("pti.acceptance.task_twin", domain=low.domain)["verdict"] == "refuted"
    rule = "{kind: records, test: value, table: domain, column: on_mean, universal: true}"
    own = claim_of(tmp_path, **CLAIM, published="0.6", rule=rule)
    assert verdict(own, domain=low.domain)["verdict"] == "refuted"


def test_a_hard_text_reproduces_the_signal_and_not_that_it_is_the_tuning() -> None:
    found = judge([cell_of("adapter", FALLS), cell_of("twin", FALLS, seed=5)])
    assert verdict("pti.task_twin.signal", domain=found.domain)["verdict"] == "reproduced"
    assert verdict("pti.task_twin.signal.tuning", domain=found.domain)["verdict"] == "inconclusive"
