"""Predictions of cells whose truth is known: chosen durations, and the toy engine with its simulated clock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.judge import judge
from bench.judge.findings import Findings
from bench.judge.predict.predictions import median_errors
from bench.plan.cells import cells
from bench.plan.settings import Config, EngineConfig, MethodConfig
from bench.records.cells import load_cell, write_cell
from bench.run.arms import Prompt
from bench.run.contrast import Contrast
from bench.run.step_times import step_costs
from pti_loop.fake import FakeModel
from pti_loop.parameters import declared, resolve
from tests.judge.judge_cells import Arm, guess_cell, profile_cell

MS = 1_000_000
STEP = 10 * MS
PROMPTS = [Prompt(f"{kind}{i}", kind, tuple(range(3 + i, 9 + i))) for kind in ("code", "prose") for i in range(3)]
ENVIRONMENT = {
    "machine": {"name": "toy", "cpu": "toy", "gpus": []},
    "engine": {"build": "toy"},
    "time_utc": "2026-01-01T00:00:00Z",
}
MODEL = {"name": "toy", "step_bytes": 1_000_000, "kv_bytes_per_token": 8, "state_bytes_per_sequence": 0,
         "quantization": "F32", "synthetic": False, "sha256": "w"}  # fmt: skip


@pytest.fixture(autouse=True)
def no_collections(monkeypatch):
    """A run collects garbage first, to keep its timing clean; the toy's clock does not tick for it."""
    monkeypatch.setattr("gc.collect", lambda *_: 0)


class Steps:
    """Step time by width; a decode of another width than the one before takes `change` longer, and so does the next."""

    def __init__(self, cost: float = 0.2, change: int = 0) -> None:
        self.cost, self.change = cost, change
        self.width, self.same = 0, 0

    def __call__(self, width: int) -> int:
        self.same = self.same + 1 if width == self.width else 0
        self.width = width
        return int(STEP * (1 + self.cost * (width - 1))) + (self.change if self.same < 2 else 0)


def settings_of(method: str, streams: int, temperature: float, **parameters) -> Config:
    streams = streams if declared()[method].answers != "one" else 1
    made = Config(method=MethodConfig(method, dict(resolve(method, parameters))), streams=streams,
                  temperature=temperature, n_predict=32, engine=EngineConfig(threads=1))  # fmt: skip
    measure = made.measure
    measure.per_class, measure.control_tokens, measure.step_widths, measure.step_passes = 2, 0, 8, 2
    measure.again_blocks = 1
    made.model.path = "/toy.gguf"
    made.prompts.items = [{"id": p.id, "class": p.kind, "text": p.id} for p in PROMPTS]
    return made


def toy_findings(folder: Path, steps: Steps, method: str, streams: int = 1, temperature: float = 0.0,
                 spread: float = 3.0, host_ns: int = 0, **parameters) -> Findings:
    """A profile and a contrast of the toy engine, stored, read back and judged."""
    settings = settings_of(method, streams, temperature, **parameters)
    model = FakeModel(step_ns=steps, spread=spread, host_ns=host_ns)
    contrast = Contrast(model, settings, PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None).run()
    timed = step_costs(model, settings, "order", lambda *_: None)
    bandwidth = {"read_gb_s": 20.0, "repeats": [20.0], "threads": 1, "bytes": 1}
    facts = {"model": MODEL, "bandwidth": bandwidth, "memory": {}}
    tables = {"profile": {"steps": timed}, "contrast": contrast.tables}
    stored = []
    for cell in cells([settings], folder, "toy", "toy", {Path("/toy.gguf"): "w"}):
        write_cell(cell.folder, config=cell.config | {"kind": cell.kind}, env=ENVIRONMENT,
                   status={"state": "done", "reason": "", "seconds": 1.0},
                   facts=(contrast.facts if cell.kind == "contrast" else {}) | facts,
                   tables=tables[cell.kind])  # fmt: skip
        stored.append(load_cell(cell.folder))
    return judge(stored)


def row_of(findings: Findings, arm: str = "treatment", prompt_class: str = "all") -> dict:
    (row,) = [row for row in findings.predictions if (row["arm"], row["prompt_class"]) == (arm, prompt_class)]
    return row


def quiet(arm: str, block: int, order: int) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("method", "streams", "parameters"),
    [
        ("lookup", 1, {"draft": 3}),
        ("lookup", 1, {"draft": 3, "gate": True}),
        ("jacobi", 1, {"window": 4}),
        ("packed", 2, {}),
        ("stagger", 3, {"emission": "distinct", "rebuild": "exact"}),
        ("stagger", 3, {}),
    ],
)
def test_the_toy_engine_is_predicted_exactly_where_nothing_but_the_width_costs(
    tmp_path: Path, method: str, streams: int, parameters: dict
) -> None:
    row = row_of(toy_findings(tmp_path, Steps(), method, streams, temperature=0.7, spread=1.5, **parameters))
    assert row["ratio"] == pytest.approx(1.0, rel=1e-6)
    assert row["predicted"] == pytest.approx(row["measured"], rel=1e-6)
    assert row["alternation"] == pytest.approx(1.0, rel=1e-6)
    assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]


@pytest.mark.parametrize("arm", ["treatment", "oracle", "sabotage"])
def test_changes_of_width_are_a_named_residual_that_other_arms_tell(tmp_path: Path, arm: str) -> None:
    """A change of width costs 2.5 steps and is in no step-cost curve, as on a device that captures graphs."""
    steps = Steps(change=25 * MS)
    row = row_of(toy_findings(tmp_path, steps, "stagger", 3, emission="distinct", rebuild="exact"), arm)
    # One steady round: 1.4 and 2.5 steps for the decode of width 3; two rebuilding decodes are drafting, as measured.
    assert row["curve_only"] > 1.3 * row["measured"]
    assert row["ratio"] == pytest.approx(1.0, abs=0.03)
    assert row["alternation"] == pytest.approx(row["measured"] / row["curve_only"], rel=0.04)
    assert row["switched_share"] > 0.9
    # The first of two rebuilding decodes changes the width, the second is not settled either.
    assert row["redecode_cost"] == pytest.approx(3.5, rel=0.01)


def test_the_plain_step_leaves_out_the_first_decodes_of_every_answer(tmp_path: Path) -> None:
    """The baseline of two answers has a prefill between them: what it adds is no part of the unit."""
    row = row_of(toy_findings(tmp_path, Steps(change=25 * MS), "packed", 2))
    assert row["ratio"] == pytest.approx(1.0, abs=0.02)
    assert row["measured"] == pytest.approx(row["predicted"], rel=0.02)


def test_guesses_that_are_said_again_have_no_best_length(tmp_path: Path) -> None:
    again = row_of(toy_findings(tmp_path / "a", Steps(), "stagger", 3))
    assert again["kept"] < 0.1
    assert again["ratio_from_draws"] == pytest.approx(1.0, abs=0.05)
    assert np.isnan(again["best_draft"])
    once = row_of(toy_findings(tmp_path / "b", Steps(), "stagger", 3, emission="distinct", rebuild="exact"))
    assert once["kept"] > 0.9
    # Both guesses cost a plain step each, so right ones only pay for the decode that checks them.
    assert once["ceiling"] == pytest.approx(3 / (1.4 + 2), rel=0.1)


@pytest.mark.parametrize("change", [0, 25 * MS])
@pytest.mark.parametrize(
    ("method", "streams", "parameters"), [("lookup", 1, {"draft": 3}), ("jacobi", 1, {"window": 4})]
)
def test_the_ceiling_is_predicted_from_the_treatment_alone(
    tmp_path: Path, change: int, method: str, streams: int, parameters: dict
) -> None:
    findings = toy_findings(tmp_path, Steps(change=change), method, streams, **parameters)
    for arm in ("oracle", "sabotage"):
        assert row_of(findings, arm)["ratio_from_draws"] == pytest.approx(1.0, abs=0.1), arm
    # An answer without an end: 4 tokens a round of 1.6 steps, over a plain token that its first steps make dearer.
    assert row_of(findings)["ceiling"] == pytest.approx(4 / 1.6, rel=0.2 if change else 0.01)


def test_acceptance_alone_gives_the_speed_up_and_says_what_a_longer_draft_brings(tmp_path: Path) -> None:
    short = row_of(toy_findings(tmp_path / "a", Steps(0.1), "jacobi", window=4))
    assert short["ratio_from_draws"] == pytest.approx(1.0, abs=0.05)
    assert short["own_length"] == 3
    # At one draft length the two strengths see the same rounds.
    assert short["from_draws"] == pytest.approx(short["predicted"], rel=0.05)
    longer = row_of(toy_findings(tmp_path / "b", Steps(0.1), "jacobi", window=8))
    better = [name for name, row in (("short", short), ("long", longer)) if row["best_draft"] >= 1]
    assert better == ["short", "long"]
    assert longer["ratio_from_draws"] == pytest.approx(1.0, abs=0.05)


def test_durations_chosen_by_hand() -> None:
    """2 tokens a round of 62.5 ms, 12.5 of them the loop's; the curve says 1.2 steps for width 3."""
    arm = Arm(round_ms=62.5, per_round=2, drafted=2, accepted=1, verified=2, host_ms=12.5)
    cell = guess_cell(arm, noise=quiet)
    found = judge([cell, profile_cell({1: 50, 2: 55, 3: 60}, warm_up=1.0, pace=0.0)])
    row = row_of(found)
    assert row["measured"] == pytest.approx(2 * 50 / 62.5)
    # All decodes of a run have one width, so only the first two are unsettled, and no arm shows an extra for them.
    assert row["curve_only"] == pytest.approx(2 * 50 / 72.5)
    assert row["abs_error"] == pytest.approx(abs(row["measured"] / row["predicted"] - 1))
    assert row["host_cost"] == pytest.approx(0.25)
    assert row["draft_cost"] == row["rollback_cost"] == row["sample_cost"] == 0
    assert (row["fires"], row["kept"], row["acceptance"]) == (1.0, 1.0, 0.5)
    # Depth 1 always right, depth 2 never: one guess is best, at 2 tokens for 1.1 steps and 0.25 of host time.
    assert row["best_draft"] == 1
    assert row["best_speedup"] == pytest.approx(2 / (1.1 + 0.25 + row["switch_cost"]))
    assert row["best_kind"] == "measured"


def test_what_is_predicted_does_not_know_how_long_the_arm_itself_took() -> None:
    """A prediction that followed the arm's own decodes would be a fit: only tokens, widths and the rest may count."""
    profile = profile_cell({1: 50, 2: 55, 3: 60}, warm_up=1.0, pace=0.0)
    rows = []
    for decode_ms in (50.0, 200.0):
        arm = Arm(round_ms=decode_ms + 12.5, per_round=2, drafted=2, accepted=1, verified=2, host_ms=12.5)
        rows.append(row_of(judge([guess_cell(arm, noise=quiet), profile])))
    for name in ("predicted", "curve_only", "from_draws", "best_speedup", "alternation"):
        assert rows[0][name] == pytest.approx(rows[1][name], rel=1e-6), name
    assert rows[0]["measured"] > 3 * rows[1]["measured"]


def test_a_slower_arm_is_predicted_as_slower() -> None:
    # C20: 20.0 tok/s plain, 17.4 with guesses: 1.566 tokens in a round of 90 ms. The model says so without the result.
    slow = Arm(round_ms=90.0, per_round=1, drafted=1, accepted=0, verified=1)
    row = row_of(judge([guess_cell(slow, noise=quiet), profile_cell({1: 50, 2: 90}, warm_up=1.0, pace=0.0)]))
    assert row["measured"] == pytest.approx(50 / 90)
    assert row["predicted"] == pytest.approx(50 / 90, rel=0.05)
    assert row["best_speedup"] < 1


def test_a_width_without_a_price_is_named_and_predicts_nothing() -> None:
    cell = guess_cell(noise=quiet)
    beyond = row_of(judge([cell, profile_cell({1: 50, 2: 55}, warm_up=1.0)]))
    assert np.isnan(beyond["predicted"]) and np.isnan(beyond["ratio"])
    assert beyond["note"] == "width 3: outside the curve"
    between = row_of(judge([cell, profile_cell({1: 50, 2: 55, 4: 65}, warm_up=1.0)]))
    assert between["note"] == "width 3: between two timed widths"
    assert between["curve_only"] == pytest.approx(2 * 50 / 60, rel=0.01)
    cliff = row_of(judge([cell, profile_cell({1: 50, 2: 55, 4: 190}, warm_up=1.0)]))
    assert np.isnan(cliff["predicted"])
    assert cliff["note"] == "width 3: beside a cliff of the curve"


def test_no_curve_no_row() -> None:
    assert judge([guess_cell()]).predictions == []
    profile = replace(profile_cell({1: 50, 3: 60}), machine="other")
    assert judge([guess_cell(), profile]).predictions == []


def test_void_cells_and_widths_without_a_price_are_not_in_the_median() -> None:
    profile = profile_cell({1: 50, 3: 60}, warm_up=1.0, pace=0.0)
    good = guess_cell(noise=quiet)
    bad = guess_cell(Arm(round_ms=100.0, gap_ms=500.0, per_round=2, drafted=2, accepted=1), cell="void00000000")
    found = judge([good, bad, profile])
    assert {row["void"] for row in found.predictions} == {True, False}
    (median,) = median_errors(found.predictions)
    assert (median["arms"], median["machine"]) == (1, "box")
    assert median["abs_error"] == pytest.approx(row_of(judge([good, profile]))["abs_error"])
    assert median_errors(judge([good, profile_cell({1: 50, 2: 60})]).predictions) == []


def test_one_prompt_at_temperature_0_has_no_interval_of_its_best_draft() -> None:
    """Both runs of a prompt draw the same tokens, so they are no evidence of how prompts differ."""
    row = row_of(judge([guess_cell(noise=quiet, blocks=1), profile_cell({1: 50, 2: 55, 3: 60}, warm_up=1.0)]))
    assert np.isfinite(row["best_speedup"])
    assert np.isnan([row["best_low"], row["best_high"]]).all()
