"""Blocks until a ratio is known: the rule by itself, and cells that it ended, through the judge."""

from __future__ import annotations

import math
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.always_valid import boundary
from bench.judge.invariants import invariants
from bench.judge.measure.case import Case
from bench.judge.measure.intervals import t_quantile
from bench.plan.cells import cells
from bench.records.cells import load_cell
from bench.records.stopping import BUDGET, DECIDED, NARROW
from bench.run.contrast import Contrast
from bench.run.until import Until, log_rates
from pti_loop.fake import FakeModel
from tests.run.test_contrast import MS, PROMPTS, config, everything, judged, voids


def run(window_ms: float, rounds=(10.0,) * 10):
    return SimpleNamespace(window_ns=window_ms * 1e6, n_distinct=10, round_ns=lambda: [one * 1e6 for one in rounds])


class Clock:
    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def fed(rule: Until, ratio: float, spread: float, seed: int = 1, most: int = 40) -> str:
    """Passes of six blocks whose two pairs differ by a normal `spread`, until the rule ends them."""
    rng = random.Random(seed)
    rule.begin()
    for _ in range(most):
        for _ in range(6):
            mine = [run(100 / ratio * (1 + rng.gauss(0, spread))) for _ in range(2)]
            rule.block(mine, [run(100), run(100)])
        if why := rule.after_pass():
            return why
    return ""


def test_it_ends_where_the_interval_is_narrow_enough():
    rule = Until(0.02, 1e9, clock=Clock(1.0))
    assert fed(rule, 1.0, 0.05) == NARROW
    assert rule.passes[-1]["half_width"] <= 0.02 < rule.passes[-2]["half_width"]


def test_it_ends_where_the_ratio_is_on_one_side_and_for_one_answer_too():
    rule = Until(0.001, 1e9, clock=Clock(1.0))
    assert fed(rule, 0.5, 0.05) == DECIDED and len(rule.passes) == 1
    # Twice the tokens for two answers is 1.00 for each of them, which no block decides.
    assert fed(Until(0.001, 1e9, answers=2, clock=Clock(1.0)), 2.0, 0.05) == ""


def test_no_pass_begins_that_the_budget_would_not_hold():
    rule = Until(1e-4, 100.0, clock=Clock(30.0))
    assert fed(rule, 1.0, 0.05) == BUDGET
    assert [one["seconds"] for one in rule.passes] == [30.0, 60.0, 90.0]


def test_the_share_that_is_done_grows_and_ends_at_one():
    rule = Until(0.02, 1e9, clock=Clock(1.0))
    shares = []
    rng = random.Random(3)
    rule.begin()
    for _ in range(40):
        for _ in range(6):
            rule.block([run(100 * (1 + rng.gauss(0, 0.05))) for _ in range(2)], [run(100), run(100)])
            shares.append(rule.share(6))
        if rule.after_pass():
            break
    assert all(0 < one <= 1 for one in shares) and shares[0] < 0.2 and shares[-1] > 0.6


def test_a_round_that_one_run_alone_was_held_up_in_counts_as_the_other_runs():
    held, free = run(1090, (10.0,) * 9 + (1000.0,)), run(100)
    assert log_rates([held, free]) == pytest.approx([log_rates([free, free])[0]] * 2)
    slow = run(145, (10.0,) * 9 + (55.0,))
    assert log_rates([slow, slow])[0] < log_rates([free, free])[0], "what both runs do is the arm's own"


def noisy(spread: float, seed: int = 1) -> FakeModel:
    """The toy with every run's speed drawn: the noise that blocks average."""
    rng, state = random.Random(seed), {"left": 0, "factor": 1.0}

    def step(width: int) -> int:
        if state["left"] <= 0:
            state["left"], state["factor"] = 23, 1 + rng.uniform(-spread, spread)
        state["left"] -= 1
        return int(10 * MS * state["factor"] * (1 + 0.02 * (width - 1)))

    return FakeModel(step_ns=step)


def until(half_width: float, **parameters):
    settings = config("packed", 2, n_predict=24, **parameters)
    settings.measure.until, settings.measure.per_class, settings.measure.noise_prompts = half_width, 2, 1
    return settings


@pytest.mark.parametrize("half_width", [0.3, 0.01])
def test_a_cell_that_got_blocks_until_it_was_known_is_sound_and_says_so(tmp_path, half_width):
    findings = judged(tmp_path, noisy(0.03), until(half_width))
    row = everything(findings)
    assert not voids(findings), [one["sentence"] for one in findings.controls]
    assert row["stopped"] in (NARROW, DECIDED) and row["n_blocks"] % 4 == 0
    (cell,) = [load_cell(path.parent) for path in tmp_path.glob("*/*/status.json")]
    told = cell.facts["stopping"]
    assert told["why"] == row["stopped"] and len(told["passes"]) == row["n_blocks"] // 4


def test_the_rule_sees_the_ratio_that_the_judge_finds(tmp_path):
    row = everything(judged(tmp_path, noisy(0.03), until(0.02)))
    (cell,) = [load_cell(path.parent) for path in tmp_path.glob("*/*/status.json")]
    seen = cell.facts["stopping"]["passes"][-1]
    assert math.exp(seen["log_ratio"]) == pytest.approx(2 * row["speedup"], rel=0.01)
    half = math.log(row["noise_high"] / row["noise_low"]) / 2
    assert half == pytest.approx(seen["half_width"], rel=0.35), "the judge counts what may have been noise as such"


def test_the_interval_of_a_cell_that_was_stopped_is_wider_than_one_of_a_fixed_number(tmp_path):
    stopped = everything(judged(tmp_path / "a", noisy(0.03), until(0.2), name="order"))
    plain = until(0.0)
    plain.measure.blocks_per_prompt = stopped["n_blocks"] // 4
    fixed = everything(judged(tmp_path / "b", noisy(0.03), plain, name="order"))
    assert fixed["stopped"] == "fixed" and fixed["n_blocks"] == stopped["n_blocks"]
    wider = math.log(stopped["noise_high"] / stopped["noise_low"]) / math.log(fixed["noise_high"] / fixed["noise_low"])
    df = fixed["n_blocks"]
    assert wider == pytest.approx(boundary(df, 0.95) / t_quantile(df, 0.95), rel=0.25), "the noise is drawn anew"
    for row, least in ((fixed, 0.0), (stopped, math.log(stopped["noise_high"] / stopped["noise_low"]))):
        assert math.log(row["prompts_high"] / row["prompts_low"]) > least


def test_a_pass_is_a_block_of_each_task_half_of_which_begin_with_the_baseline():
    settings = until(1e-5)
    settings.measure.budget = 0.001
    result = Contrast(noisy(0.05), settings, PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None).run()
    runs = [run for run in result.tables["runs"] if run.arm in ("baseline", "treatment")]
    passes = {run.block // 4 for run in runs}
    prompts = {one: sorted({run.prompt for run in runs if run.block // 4 == one}) for one in passes}
    assert len({tuple(each) for each in prompts.values()}) == 1
    for one in passes:
        firsts = [min((run for run in runs if run.block == block), key=lambda run: run.order).arm
                  for block in range(4 * one, 4 * one + 4)]  # fmt: skip
        assert sorted(firsts) == ["baseline"] * 2 + ["treatment"] * 2
    carried = {run.block for run in result.tables["runs"] if run.arm == "carry"}
    assert carried == {4 * len(passes)}, "behind all others"


def edited(tmp_path, change):
    judged(tmp_path, noisy(0.03), until(0.02))
    (cell,) = [load_cell(path.parent) for path in tmp_path.glob("*/*/status.json")]
    change(cell)
    return {one.control for one in invariants(Case(cell)) if one.severity == "void"}


def last(cell):
    return cell.facts["stopping"]["passes"][-1]


@pytest.mark.parametrize("change", [
    lambda cell: cell.facts.pop("stopping"),
    lambda cell: cell.facts["stopping"].update(why="fixed"),
    lambda cell: cell.facts["stopping"].update(why=BUDGET),
    lambda cell: cell.facts["stopping"]["passes"].pop(),
    lambda cell: last(cell).update(half_width=0.5),
    lambda cell: cell.facts["stopping"]["passes"][0].update(half_width=0.001),
    lambda cell: last(cell).update(blocks=3),
    lambda cell: last(cell).update(seconds=-1.0),
])  # fmt: skip
def test_a_record_whose_end_is_not_as_its_rule_says_is_void(tmp_path, change):
    assert "stopping" in edited(tmp_path, change)


def test_blocks_that_nobody_asked_for_are_void(tmp_path):
    found = edited(tmp_path, lambda cell: cell.config["measure"].update(until=0))
    assert {"blocks", "stopping"} <= found


def test_a_sound_one_passes(tmp_path):
    assert edited(tmp_path, lambda cell: None) == set()


def test_one_without_the_rule_keeps_its_id(tmp_path):
    def planned(**measure):
        settings = config()
        for key, value in measure.items():
            setattr(settings.measure, key, value)
        settings.model.path, settings.profile = "/toy.gguf", False
        settings.prompts.items = [{"id": p.id, "class": p.kind, "text": p.id} for p in PROMPTS]
        (cell,) = cells([settings], tmp_path, "toy", "toy", {Path("/toy.gguf"): "w"})
        return cell

    assert planned(budget=9.0).id == planned().id != planned(until=0.1).id
    assert "until" not in planned().config["measure"] and planned(until=0.1).config["measure"]["budget"] == 5.0
