"""What is advised from cells whose truth was chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.judge import judge
from bench.judge.columns import changed
from bench.judge.predict.advice import PERHAPS, PLAIN, USE, Advice, advise, sweep_words
from tests.judge.judge_cells import Arm, Builder, Cell, default_config, guess_cell, profile_cell, wobble

LOOKUP = {"method": {"name": "lookup", "draft": 2}}
METHODS = ("autoregressive", "jacobi", "lookup", "mtp")
CURVE = {1: 50, 2: 55, 3: 60, 4: 110}
FAST = Arm(round_ms=62.5, per_round=2, drafted=2, accepted=1, verified=2)
SLOW = Arm(round_ms=65.0, per_round=1, drafted=2, accepted=0, verified=1)


def advised(*found: Cell, model: str = "toy", machine: str = "box") -> Advice:
    made = advise(judge([*found, profile_cell(CURVE, warm_up=1.0)]), model, machine, METHODS)
    assert made is not None
    return made


def choice(advice: Advice, prompt_class: str, temperature: float = 0.0):
    (one,) = [one for one in advice.choices if (one.prompt_class, one.temperature) == (prompt_class, temperature)]
    return one


def test_a_faster_method_is_used_and_its_draft_length_told() -> None:
    one = choice(advised(guess_cell(FAST)), "all")
    assert (one.verdict, one.row["method"]) == (USE, "jacobi")
    assert one.row["speedup"] == pytest.approx(1.6, rel=0.02)
    assert one.prediction is not None and one.prediction["best_draft"] == 1


def test_an_interval_that_spans_1_is_perhaps_and_the_measurement_that_decides_is_told() -> None:
    def shaky(arm: str, block: int, order: int) -> float:
        return 1.0 + (0.6 if arm == "treatment" and block % 2 else 0.0)

    advice = advised(guess_cell(replace(FAST, round_ms=75.0), noise=shaky, cell="shaky0000000", **LOOKUP))
    assert choice(advice, "all").verdict == PERHAPS
    told = next(one for one in advice.missing if "spans 1" in one.what)
    assert told.overrides == (
        "method=lookup", "method.draft=2", "method.ngram=4", "method.gate=false", "method.adaptive=false",
        "method.rollback=auto", "temperature=0", "measure=thorough",
    )  # fmt: skip


def test_a_slower_method_is_not_worth_it_and_the_reason_is_the_factor() -> None:
    advice = advised(guess_cell(SLOW))
    assert choice(advice, "all").verdict == PLAIN
    (rejected,) = advice.rejected
    # Width 2 takes 1.1 steps, and the loop 0.1 of a step beyond its decode: one guess pays from about a fifth.
    assert rejected.reason.startswith("acceptance too low: 0.00, it pays from 0.")


@pytest.mark.parametrize(
    ("curve", "arm", "reason"),
    [
        ({1: 50, 2: 150, 3: 260}, replace(SLOW, round_ms=260.0), "step cost too steep"),
        ({1: 50, 2: 55, 3: 60}, replace(SLOW, round_ms=260.0), "guesses too dear: 4.00 plain steps a round"),
    ],
)
def test_the_factor_that_makes_it_slower(curve: dict[int, float], arm: Arm, reason: str) -> None:
    cell = guess_cell(arm, noise=lambda arm, block, order: 1.0)
    if "dear" in reason:
        mine = cell.rounds["run"].isin(cell.runs[cell.runs["arm"] == "treatment"]["run"])
        cell.rounds.loc[mine, ["draft_ns", "decode_ns"]] = [200_000_000, 60_000_000]
    advice = advise(judge([cell, profile_cell(curve, warm_up=1.0, pace=0.0)]), "toy", "box", METHODS)
    assert advice is not None
    assert advice.rejected[0].reason.startswith(reason)


def test_void_and_divergent_cells_advise_nothing() -> None:
    gap = guess_cell(replace(FAST, gap_ms=500.0))
    advice = advised(gap)
    assert (advice.choices, advice.void) == ([], 1)
    # What a void cell was about counts as not measured.
    assert "jacobi" in advice.unmeasured
    other = guess_cell(replace(FAST, token=lambda stream, place: 2 if place == 3 else place), cell="divergent000")
    for fact in other.facts["lossless"]:
        if fact["arm"] == "treatment":
            fact["first_difference"] = {"position": 3, "token_baseline": 3, "token_arm": 2, "gap_baseline": 4.0,
                                        "gap_arm": 4.0, "quantity": "logit_gap"}  # fmt: skip
            fact["teacher_forced"] = {"positions": 40, "disagreements": 9, "worst_gap": 4.0}
    advice = advised(other)
    assert advice.choices == []
    assert advice.rejected[0].reason.startswith("its output differs")


def test_without_a_record_the_curve_tells_what_a_drafter_must_reach() -> None:
    advice = advised()
    assert advice.unmeasured == ["jacobi", "lookup", "mtp"]
    by_length = {one.length: one for one in advice.drafters}
    # Widths 2, 3, 4 cost 1.1, 1.2, 2.2 steps: 1 + a = 1.1, 1 + a + a^2 = 1.2, 1 + a + a^2 + a^3 = 2.2.
    needed = [by_length[length].break_even for length in (1, 2, 3)]
    assert needed == pytest.approx([0.1, 0.1708, 0.6073], abs=1e-3)
    assert by_length[3].ceiling == pytest.approx(4 / 2.2, rel=1e-3)
    assert by_length[1].dearest == pytest.approx(1.8 - 1.1, rel=1e-2)
    assert advice.cliffs == [4]
    assert [one.overrides for one in advice.missing] == [("method=jacobi",), ("method=lookup",), ("method=mtp",)]


def test_no_cell_no_advice_and_other_models_and_machines_stay_out() -> None:
    found = judge([guess_cell(FAST)])
    assert advise(found, "another", "box", METHODS) is None
    assert advise(found, "toy", "elsewhere", METHODS) is None
    assert advise(found, "toy", "box", METHODS).drafters == []


def test_without_a_curve_the_first_thing_missing_is_the_curve() -> None:
    advice = advise(judge([guess_cell(SLOW)]), "toy", "box", METHODS)
    assert advice is not None
    assert advice.missing[0].what.startswith("the step-cost curve")
    # The reason is told from what was measured.
    assert advice.rejected[0].reason.startswith("1.00 new tokens a round at 1.3")


def test_a_void_curve_advises_nothing() -> None:
    found = judge([guess_cell(SLOW), profile_cell({1: 50, 2: 55, 3: 60, 4: 110})])
    for name in ("step_cost", "predictions"):
        rows = getattr(found, name)
        rows[:] = [changed(row, void=True, void_reason="another cost elsewhere") for row in rows]
    advice = advise(found, "toy", "box", METHODS)
    assert advice is not None
    assert advice.missing[0].what.startswith("the step-cost curve")
    assert (advice.drafters, advice.cliffs) == ([], [])
    assert advice.rejected[0].reason.startswith("1.00 new tokens a round at 1.3")


def test_several_answers_at_once_are_another_question() -> None:
    alone, together = Arm(streams=2), Arm(round_ms=60.0, streams=2, together=True)
    arms = {"baseline": alone, "again": alone, "treatment": together}
    builder = Builder(default_config(streams=2, method={"name": "packed"}), arms)
    for block in range(4):
        order = ("baseline", "again", "treatment", "treatment", "again", "baseline")
        builder.block(block, order, f"a{block}+b{block}", "mixed", wobble)
    advice = advised(builder.build())
    assert [(one.several, one.prompt_class, one.verdict) for one in advice.choices] == [(True, "all", USE)]
    assert advice.choices[0].row["speedup"] == pytest.approx(2 * 50 / 60, rel=0.02)
    assert advice.rejected == []


def test_the_words_of_a_sweep() -> None:
    stagger = {"method": "stagger", "parameters": {"emission": "distinct", "rebuild": "exact"}, "streams": 3,
               "temperature": 0.7}  # fmt: skip
    assert sweep_words(stagger) == ("method=stagger", "method.emission=distinct", "method.rebuild=exact", "streams=3",
                                    "temperature=0.7")  # fmt: skip
    lookup = {"method": "lookup", "parameters": {"draft": 7, "gate": True}, "streams": 1, "temperature": 0.0}
    assert sweep_words(lookup) == ("method=lookup", "method.draft=7", "method.gate=true", "temperature=0")
    assert sweep_words(lookup, {"draft": 2}) == ("method=lookup", "method.draft=2", "temperature=0")


def test_guesses_of_random_weights_advise_nothing() -> None:
    cell, profile = guess_cell(FAST), profile_cell(CURVE, warm_up=1.0)
    for one in (cell, profile):
        one.facts["model"]["synthetic"] = True
    advice = advise(judge([cell, profile]), "toy", "box", (*METHODS, "packed"))
    assert advice is not None
    assert (advice.model, advice.choices, advice.rejected) == ("toy (synthetic)", [], [])
    assert advice.drafters and advice.unmeasured == ["packed"]


def test_missing_predictions_are_no_numbers() -> None:
    advice = advised(guess_cell(FAST))
    one = choice(advice, "code")
    assert one.prediction is not None
    assert np.isfinite(one.prediction["predicted"])


def test_a_lucky_cell_does_not_speak_for_its_arm() -> None:
    """Two lucky blocks at 1.06 and sixteen sound ones at 0.93."""
    lucky = guess_cell(replace(FAST, round_ms=94.3), blocks=2, cell="lucky0000000")
    sound = guess_cell(replace(FAST, round_ms=107.5), blocks=16, cell="sound0000000")
    one = choice(advised(lucky, sound), "all")
    assert one.verdict == PLAIN and one.row["speedup"] < 1
    assert one.row["cells"] == ["lucky0000000", "sound0000000"] and one.row["n_blocks"] == 18


def test_an_arm_is_held_against_the_fastest_plain_decoding_and_its_settings_are_told() -> None:
    def threads(count: int, cell: str, arm: Arm, pace: float) -> Cell:
        made = guess_cell(arm, cell=cell, noise=lambda arm, block, order: pace * wobble(arm, block, order))
        made.config["engine"] = {**(made.config.get("engine") or {}), "threads": count}
        return made

    slow = threads(1, "thread100000", FAST, 2.0)
    fast = threads(2, "thread200000", replace(FAST, round_ms=105.0), 1.0)
    one = choice(advised(slow, fast), "all")
    # 1.6 over plain decoding that takes twice as long is 0.8 of plain decoding with two threads.
    assert one.verdict == PLAIN and "threads=2" in one.settings


def test_one_text_is_no_advice() -> None:
    one = choice(advised(guess_cell(FAST, blocks=1)), "all")
    assert one.verdict == PERHAPS


def test_what_is_used_holds_together_with_every_row_that_was_looked_at() -> None:
    alone = choice(advised(guess_cell(FAST)), "all").row
    others = [guess_cell(SLOW, cell=f"slow{place:08d}", method={"name": "lookup", "draft": place + 1})
              for place in range(6)]  # fmt: skip
    among = choice(advised(guess_cell(FAST), *others), "all").row
    assert among["speedup"] == pytest.approx(alone["speedup"])
    assert among["ci_low"] < alone["ci_low"]
