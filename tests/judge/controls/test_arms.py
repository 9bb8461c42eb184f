"""Every control has a cell that fails it: a fault that is switched on must be found, by its own name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.judge import judge
from bench.judge.controls.conditions import different_settings
from bench.judge.engine_settings import FREE
from bench.judge.invariants import INVARIANTS
from tests.judge.judge_cells import CONTROL_ORDER, Arm, Builder, Cell, default_config, guess_cell, wobble

GUESS = {"round_ms": 62.5, "per_round": 2, "drafted": 2, "accepted": 1}


LACKING = {"again", "sabotage", "oracle"}
"""What is void of a method that guesses where plain decoding and the method alone were run."""
NAMES = {one.name for one in INVARIANTS}
"""Checks of the records themselves, which have tests of their own; what is planted here contradicts some of them."""


def controls(cell: Cell) -> dict[str, dict]:
    return {row["control"]: row for row in judge([cell]).controls if row["control"] not in NAMES}


def void(cell: Cell) -> set[str]:
    findings = judge([cell])
    failed = {row["control"] for row in findings.controls if not row["ok"]}
    assert all(row["void"] is bool(failed) for row in findings.speedup)
    assert findings.cells[0]["void"] is bool(failed)
    assert all(name in findings.cells[0]["void_reason"] for name in failed)
    return failed - NAMES


def test_a_sound_cell_passes_everything() -> None:
    assert void(guess_cell()) == set()
    assert {row["severity"] for row in controls(guess_cell()).values()} == {"ok"}


def biased(percent: float) -> Callable[[str, int, int], float]:
    return lambda arm, block, order: wobble("x", block, order) * (1 + percent / 100 if arm == "again" else 1)


def test_a_biased_second_baseline_voids_far_outside_the_band() -> None:
    cell = guess_cell(noise=biased(30))
    assert void(cell) == {"again"}
    again = controls(cell)["again"]
    assert again["value"] == pytest.approx(1 / 1.3, rel=0.02)
    assert again["ci_low"] < again["value"] < again["ci_high"] < 1


def test_a_precise_second_baseline_that_is_one_percent_off_is_no_fault() -> None:
    exact = guess_cell(noise=lambda arm, block, order: 1.01 if arm == "again" else 1.0 + 1e-4 * order)
    again = controls(exact)["again"]
    assert (again["severity"], again["ci_high"] < 1) == ("ok", True)


def test_the_band_of_the_second_baseline_depends_on_the_effect() -> None:
    def off(arm: str, block: int, order: int) -> float:
        return wobble("x", block, order) * (1.12 if arm == "again" else 1.0)

    assert void(guess_cell(noise=off)) == set()
    small = Arm(round_ms=95.0, per_round=2, drafted=2, accepted=1, verified=2)
    assert void(guess_cell(small, noise=off)) == {"again"}


def test_a_second_baseline_too_noisy_to_tell_is_a_warning_that_reaches_the_row() -> None:
    def shaky(arm: str, block: int, order: int) -> float:
        return 1.0 + 0.3 * ((block * 5 + order * 3) % 4)

    findings = judge([guess_cell(noise=shaky)])
    again = next(row for row in findings.controls if row["control"] == "again")
    assert again["severity"] == "warning" and "too wide to tell" in again["sentence"]
    assert {row["again"] for row in findings.speedup} == {"cannot tell"}


def test_a_clock_that_never_changes_was_not_measured() -> None:
    cell = guess_cell()
    cell.runs["clock_mhz"] = 2445.404
    clock = controls(cell)["clock"]
    assert clock["severity"] == "warning" and clock["sentence"].startswith("not measured: all ")


def change_arm(arm: str, how: Arm) -> Callable[[Builder], None]:
    """Build the two control blocks again with another way of decoding one arm."""

    def change(builder: Builder) -> None:
        builder.arms = {**builder.arms, arm: how}
        for rows in (builder.runs, builder.rounds, builder.emits, builder.draws, builder.facts["lossless"]):
            rows.clear()
        for block in range(4):
            builder.block(block, CONTROL_ORDER, f"p{block}", "prose", wobble)

    return change


def test_a_wrong_guess_that_is_accepted_is_found() -> None:
    bad = Arm(round_ms=62.5, drafted=2, accepted=1, verified=2)
    assert void(guess_cell(change=change_arm("sabotage", bad))) == {"sabotage"}


def test_wrong_guesses_that_make_it_faster_are_found() -> None:
    fast = Arm(round_ms=30.0, drafted=2, accepted=0, verified=1)
    assert void(guess_cell(change=change_arm("sabotage", fast))) == {"sabotage"}


def test_c37_a_sabotaged_guess_that_reaches_the_output_is_found() -> None:
    leaky = Arm(round_ms=62.5, drafted=2, verified=1, token=lambda stream, place: 1 if place == 5 else place)
    cell = guess_cell(change=change_arm("sabotage", leaky))
    assert any(row["control"] == "grades" and not row["ok"] for row in judge([cell]).controls)
    for row in cell.facts["lossless"]:
        if row["arm"] == "sabotage":
            row["first_difference"] = {"position": 5, "gap_baseline": 4.0, "gap_arm": 4.0, "quantity": "logit_gap"}
    assert "output of 8 of 8 answers changed" in controls(cell)["sabotage"]["sentence"]


def test_a_right_guess_that_is_refused_is_found() -> None:
    deaf = Arm(round_ms=62.5, per_round=3, drafted=2, accepted=1, verified=2)
    assert void(guess_cell(change=change_arm("oracle", deaf))) == {"oracle"}


def near_tie(cell: Cell, arm: str) -> Cell:
    for row in cell.facts["lossless"]:
        if row["arm"] == arm:
            row["first_difference"] = {"position": 5, "gap_baseline": 1e-3, "gap_arm": 1e-3, "quantity": "logit_gap"}
    return cell


def test_a_near_tie_excuses_a_refused_oracle_and_few_accidents() -> None:
    deaf = guess_cell(change=change_arm("oracle", Arm(round_ms=62.5, per_round=3, drafted=2, accepted=1, verified=2)))
    assert void(near_tie(deaf, "oracle")) == set()
    assert controls(deaf)["oracle"]["severity"] == "warning"
    taken = guess_cell(change=change_arm("sabotage", Arm(round_ms=62.5, drafted=2, accepted=1, verified=2)))
    assert void(near_tie(taken, "sabotage")) == {"sabotage"}
    few = guess_cell()
    row = few.rounds.index[few.rounds["run"].isin(few.runs[few.runs["arm"] == "sabotage"]["run"])][0]
    few.rounds.loc[row, "accepted"] = 1
    hit = few.draws.index[few.draws["run"] == few.rounds.loc[row, "run"]][0]
    few.draws.loc[hit, "drawn"] = few.draws.loc[hit, "guess"]
    assert void(few) == {"sabotage"}
    assert void(near_tie(few, "treatment")) == set()
    assert controls(few)["sabotage"]["severity"] == "warning"


def test_guesses_beyond_the_end_of_the_known_answer_are_nobody_s_fault() -> None:
    cell = guess_cell()
    oracle = cell.draws["run"].isin(cell.runs[cell.runs["arm"] == "oracle"]["run"])
    last = cell.draws.index[oracle][-1]
    run, turn = cell.draws.loc[last, ["run", "round"]]
    cell.draws.loc[last, "drawn"] = 99
    cell.rounds.loc[(cell.rounds["run"] == run) & (cell.rounds["round"] == turn), "accepted"] -= 1
    assert void(cell) == {"oracle"}
    cell.draws.loc[last, "position"] = 40
    assert void(cell) == set()


def test_without_single_draws_the_round_counters_decide() -> None:
    deaf = guess_cell(change=change_arm("oracle", Arm(round_ms=62.5, per_round=3, drafted=2, accepted=1, verified=2)))
    assert void(type(deaf)(**{**deaf.__dict__, "draws": deaf.draws.iloc[:0]})) == {"oracle"}


def test_a_cell_without_its_controls_is_void() -> None:
    arms = {"baseline": Arm(), "treatment": Arm(**GUESS)}
    builder = Builder(default_config(), arms)
    for block in range(3):
        builder.block(block, ("baseline", "treatment", "treatment", "baseline"), f"p{block}", noise=wobble)
    cell = builder.build()
    found = controls(cell)
    assert void(cell) == LACKING
    assert found["again"]["sentence"] == (
        "no A/A control was run, so nothing says what this cell sees where there is nothing; ask for "
        "measure.again_blocks and run `rm -r results/box/0123456789ab` and the same sweep again")  # fmt: skip
    for arm in ("sabotage", "oracle"):
        assert found[arm]["sentence"] == (
            f"no {arm} control was run, and a method that guesses is believed no speed without it; ask for "
            "measure.control_blocks and run `rm -r results/box/0123456789ab` and the same sweep again")  # fmt: skip


def test_a_method_without_guesses_needs_no_planted_ones() -> None:
    arms = {"baseline": Arm(streams=2), "again": Arm(streams=2), "treatment": Arm(streams=2, together=True)}
    builder = Builder(default_config(streams=2, method={"name": "packed"}), arms)
    for block in range(3):
        order = ("baseline", "again", "treatment", "treatment", "again", "baseline")
        builder.block(block, order, f"p{block}0+p{block}1", noise=wobble)
    assert void(builder.build()) == set()


def test_no_grade_means_no_speed() -> None:
    cell = guess_cell(change=lambda builder: builder.facts.pop("lossless"))
    findings = judge([cell])
    assert findings.speedup == []
    assert findings.cells[0]["void"] and "lossless" in findings.cells[0]["void_reason"]


def test_a_graded_difference_is_told_with_how_often_it_comes() -> None:
    lossy = Arm(**GUESS, token=lambda stream, place: 1 if place == 5 else 100 * stream + place)
    cell = guess_cell(lossy)
    for row in cell.facts["lossless"]:
        if row["arm"] == "treatment":
            row["first_difference"] = {"position": 5, "gap_baseline": 4.0, "gap_arm": 4.0, "quantity": "logit_gap"}
    assert void(cell) == set()
    told = controls(cell)["lossless"]
    assert told["severity"] == "warning" and "it leaves the baseline's text at 17 %" in told["sentence"]
    assert judge([cell]).speedup[0]["lossless"] == "divergent"


def test_unmeasured_noise_is_told() -> None:
    assert controls(guess_cell(change=lambda builder: builder.facts.pop("noise")))["noise"]["severity"] == "warning"


def test_draws_that_contradict_the_counters_void() -> None:
    assert void(guess_cell(change=lambda builder: builder.draws.pop())) == {"counters"}


@pytest.mark.parametrize("key", ["layers_offloaded", "type_k", "type_v", "flash_attn", "threads", "build"])
def test_c10_arms_with_unequal_settings_are_not_comparable(key: str) -> None:
    cell = guess_cell(blocks=2)
    cell.facts["engine"]["treatment"][key] = "other"
    assert void(cell) == {"engine"}
    assert f"{key} " in controls(cell)["engine"]["sentence"]


def test_c10_several_sequences_are_allowed_in_the_treatment_only() -> None:
    cell = guess_cell(blocks=2)
    cell.facts["engine"]["treatment"] |= {"n_seq_max": 8, "n_ctx": 4096, "kv_unified": False}
    assert void(cell) == set()
    left, right = cell.facts["engine"]["baseline"], {**cell.facts["engine"]["baseline"], "n_seq_max": 4}
    assert different_settings(left, right) == ["n_seq_max 1 against 4"]
    assert different_settings(left, right, FREE) == []
    assert different_settings({"threads": 2}, {}) == ["threads 2 against None"]


def test_c18_a_cached_prompt_voids() -> None:
    cell = guess_cell()
    cell.runs.loc[3, "n_prompt_evaluated"] = 0
    assert void(cell) == {"prefill"}
    assert "run 3" in controls(cell)["prefill"]["sentence"] and "0 of 10" in controls(cell)["prefill"]["sentence"]


def test_c15_all_of_one_arm_before_the_other_voids() -> None:
    arms = {"baseline": Arm(), "treatment": Arm(**GUESS)}
    builder = Builder(default_config(), arms)
    for block in range(3):
        builder.block(block, ("baseline", "baseline", "treatment", "treatment"), f"p{block}", noise=wobble)
    cell = builder.build()
    assert void(cell) == {"order", *LACKING}
    assert "baseline baseline treatment treatment" in controls(cell)["order"]["sentence"]


def test_an_arm_that_ran_once_in_a_block_voids() -> None:
    builder = Builder(default_config(), {"baseline": Arm(), "treatment": Arm(**GUESS)})
    for block in range(3):
        builder.block(block, ("baseline", "treatment", "baseline"), f"p{block}", noise=wobble)
    assert void(builder.build()) == {"order", *LACKING}


def test_c15_throttled_runs_are_told() -> None:
    cell = guess_cell()
    cell.runs.loc[2, "clock_mhz"] = 1365.0
    assert controls(cell)["clock"]["severity"] == "warning"
    cell.runs["clock_mhz"] = float("nan")
    assert "no clock" in controls(cell)["clock"]["sentence"]


def test_duplicates_void_under_distinct_and_are_told_under_published() -> None:
    repeating = Arm(**GUESS, repeat=1)
    assert "duplicates" in void(guess_cell(repeating))
    published = guess_cell(repeating, method={"name": "stagger", "emission": "published"})
    assert void(published) == set()
    assert controls(published)["duplicates"]["severity"] == "warning"


def test_a_baseline_that_repeats_is_not_excused_by_the_method() -> None:
    cell = guess_cell(method={"name": "stagger"}, change=lambda builder: builder.emits.append(builder.emits[5]))
    assert void(cell) == {"duplicates"}


def test_more_tokens_than_asked_for_void_unless_the_loop_counts_rounds() -> None:
    def ask_less(builder: Builder) -> None:
        builder.runs[:] = [type(run)(**{**{name: getattr(run, name) for name in run.__slots__}, "n_predict": 39})
                           for run in builder.runs]  # fmt: skip

    assert void(guess_cell(change=ask_less)) == {"requested"}
    published = guess_cell(change=ask_less, method={"name": "stagger", "stop": "rounds"})
    # The plain arms have no such excuse.
    everyone = controls(guess_cell(change=ask_less))["requested"]["value"]
    assert controls(published)["requested"]["value"] < everyone
    by_tokens = guess_cell(change=ask_less, method={"name": "stagger", "stop": "tokens"})
    assert controls(by_tokens)["requested"]["value"] == everyone


def test_a_skipped_position_and_a_changed_token_void() -> None:
    gone = guess_cell(change=lambda builder: builder.emits.pop(7))
    assert void(gone) == {"gaps"}

    def retract(builder: Builder) -> None:
        last = builder.emits[9]
        builder.emits.append(type(last)(last.run, last.stream, last.position, 999, last.round, last.source, last.t_ns))

    assert {"duplicates", "conflicts"} <= void(guess_cell(change=retract))


def test_unequal_lengths_are_told() -> None:
    cell = guess_cell()
    treated = cell.runs[cell.runs["arm"] == "treatment"]["run"]
    keep = ~(cell.ledger["run"].isin(treated) & (cell.ledger["position"] > 30))
    shorter = type(cell)(**{**cell.__dict__, "ledger": cell.ledger[keep]})
    assert controls(shorter)["length"]["severity"] == "warning"


def test_a_degraded_denominator_is_told() -> None:
    arms = {"baseline": Arm(), "solo": Arm(round_ms=125.0), "treatment": Arm(**GUESS)}
    builder = Builder(default_config(), arms)
    order = ("baseline", "solo", "treatment", "treatment", "solo", "baseline")
    for block in range(3):
        builder.block(block, order, f"p{block}", noise=wobble)
    solo = controls(builder.build())["solo"]
    assert solo["severity"] == "warning"
    assert solo["value"] == pytest.approx(0.4, rel=0.02)


def test_a_shape_that_changes_most_choices_computes_another_model() -> None:
    cell = guess_cell(change=lambda builder: builder.facts["noise"].update(disagreements=40))
    assert void(cell) == {"noise"}
    assert "no rounding" in controls(cell)["noise"]["sentence"]
