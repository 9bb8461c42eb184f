"""Where each control begins to speak: one step to either side of its threshold, with the value that it tells."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from bench.judge.controls.arms import denominator, grades, noise, planted, right_guesses, wrong_guesses
from bench.judge.controls.conditions import balanced, different_settings, nothing_cached, same_engine, steady_clock
from bench.judge.controls.curve import Comparison, Costs, _batched_bench, _check
from bench.judge.measure.intervals import mean_estimate
from tests.judge.judge_cells import Arm, Builder, case_of, default_config, guess_cell

CELL = guess_cell()


@dataclass
class Facts:
    """A cell of which a control reads the facts alone."""

    facts: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    machine: str = "box"
    cell: str = "0123"


def speed(*ratios: float) -> Any:
    return mean_estimate(np.log(np.array(ratios)), "pairs")


FAST, SLOW, WIDE = speed(1.1, 1.11, 1.105, 1.1), speed(0.9, 0.91, 0.905, 0.9), speed(0.8, 1.6, 1.1)


@pytest.mark.parametrize(
    ("accepted", "verified", "tied", "ratio", "faults", "odd"),
    [
        (0, 20, False, SLOW, 0, False),
        (1, 20, False, SLOW, 1, True),
        (2, 20, True, SLOW, 0, True),
        (3, 20, True, SLOW, 1, True),
        (0, 20, False, FAST, 1, False),
        (0, 20, False, WIDE, 0, False),
        (1, 20, False, FAST, 2, True),
        (0, 20, False, None, 0, False),
    ],
)
def test_wrong_guesses(accepted, verified, tied, ratio, faults, odd):
    found = wrong_guesses(accepted, verified, tied, ratio)
    assert (len(found[0]), found[1]) == (faults, odd)
    told = "nan" if ratio is None else f"{ratio.ratio:.3f}"
    assert found[2] == f"{accepted} of {verified} wrong guesses accepted, same output, {told} of plain speed"


@pytest.mark.parametrize(
    ("accepted", "verified", "tied", "faults", "odd"),
    [
        (20, 20, False, [], False),
        (19, 20, False, ["only 19 of 20 right guesses were accepted"], True),
        (19, 20, True, [], True),
        (0, 0, False, ["no guess was tested"], False),
        (0, 0, True, ["no guess was tested"], False),
    ],
)
def test_right_guesses(accepted, verified, tied, faults, odd):
    found = right_guesses(accepted, verified, tied, FAST)
    assert found[:2] == (faults, odd) and found[2].endswith(f"the method's ceiling is {FAST.ratio:.3f}")


@pytest.mark.parametrize(
    ("gap", "disagreements", "severity"),
    [(0.5, 0, "ok"), (0.51, 0, "warning"), (0.01, 32, "ok"), (0.01, 33, "void"), (0.6, 33, "void")],
)
def test_noise_between_shapes(gap, disagreements, severity):
    told = noise(Facts({"noise": {"logit_gap": gap, "cdf": 1e-4, "positions": 64, "disagreements": disagreements}}))
    assert (told.severity, told.value) == (severity, gap)
    assert told.sentence.startswith(f"logit gap {gap:.4g}, cumulative distribution 0.0001, over 64 positions")
    if severity == "void":
        assert "at 52 % of them" in told.sentence


def test_noise_that_was_not_measured():
    for facts in ({}, {"noise": None}, {"noise": {"positions": 0}}):
        assert noise(Facts(facts)).severity == "warning"
    assert noise(Facts({"noise": {"positions": 4}})).value == 0.0


def test_grades_are_told_and_their_lack_voids():
    cell = copy.deepcopy(CELL)
    assert grades(cell).sentence == "8 identical, 0 near ties, 0 divergent of 8 answers" and grades(cell).value == 1.0
    cell.facts["lossless"] = [row for row in cell.facts["lossless"] if row["arm"] != "treatment"]
    assert grades(cell).severity == "void"


def test_one_stream_of_the_wide_context():
    def cell(ms: float) -> Any:
        arms = {"baseline": Arm(), "treatment": Arm(), "solo": Arm(round_ms=ms)}
        builder = Builder(default_config(), arms)
        for block in range(2):
            builder.block(block, ("baseline", "solo", "treatment", "treatment", "solo", "baseline"), f"p{block}")
        return case_of(builder.build()).settled

    fair, slow = denominator(cell(50 / 0.91)), denominator(cell(50 / 0.89))
    assert fair.severity == "ok" and fair.value == pytest.approx(0.91, rel=1e-4)
    assert slow.severity == "warning" and slow.value == pytest.approx(0.89, rel=1e-4)
    assert slow.sentence.endswith("is flattered by 1.12")
    none = denominator(case_of(CELL).settled)
    assert none.severity == "ok" and math.isnan(none.value)


def test_a_planted_arm_that_did_not_run_voids():
    case = case_of(guess_cell())
    found = planted(case.cell, case.settled, "sabotage", wrong_guesses)
    assert found.severity == "ok" and found.value == pytest.approx(50 / 62.5, rel=0.02)
    assert found.sentence.endswith(f"wrong guesses accepted, same output, {found.value:.3f} of plain speed")
    absent = planted(case.cell, case.settled, "solo", wrong_guesses)
    assert absent.severity == "void" and absent.sentence.startswith("no solo control was run")


def test_settings_that_only_one_side_has_differ():
    left = {"threads": 2, "n_ctx": 512, "odd": 1}
    assert different_settings(left, {"threads": 2, "n_ctx": 512, "odd": 2}) == []
    assert different_settings(left, {"threads": 3, "n_ctx": 1024}, ("n_ctx",)) == ["threads 2 against 3"]
    assert different_settings(left, {"threads": 2}) == ["n_ctx 512 against None"]
    assert different_settings({}, {"mmap": True}) == ["mmap None against True"]


def test_an_engine_that_was_not_recorded_is_a_warning():
    for engines in ({}, {"baseline": {"threads": 2}}, {"treatment": {"threads": 2}}):
        assert same_engine(Facts({"engine": engines})).severity == "warning"
    two = {"baseline": {"threads": 2, "mmap": True}, "treatment": {"threads": 3, "mmap": False}}
    assert (same_engine(Facts({"engine": two})).severity, same_engine(Facts({"engine": two})).value) == ("void", 2.0)
    two["treatment"] = {"threads": 2, "mmap": True, "n_ctx": 9}
    assert (same_engine(Facts({"engine": two})).severity, same_engine(Facts({"engine": two})).value) == ("ok", 0.0)


def test_what_was_not_evaluated_is_named_and_counted():
    cell = copy.deepcopy(CELL)
    cell.runs.loc[[3, 5], "n_prompt_evaluated"] = [4, 3]
    found = nothing_cached(cell, case_of(cell).runs)
    assert (found.severity, found.value) == ("void", 2.0)
    assert found.sentence.startswith("cached: run 3 (sabotage) evaluated 4 of 10 prompt tokens, 2 runs in all")
    assert nothing_cached(CELL, case_of(CELL).runs).value == 0.0


@pytest.mark.parametrize(
    ("order", "even"),
    [
        ("ABBA", True),
        ("BAAB", True),
        ("ABAB", False),
        ("AABB", False),
        ("ABCCBA", True),
        ("ABCABC", False),
        ("ABB", False),
    ],
)
def test_a_block_is_balanced_when_its_arms_have_one_mean_place(order, even):
    @dataclass
    class Table:
        block: np.ndarray
        order: np.ndarray
        arm: np.ndarray
        arm_code: np.ndarray

    arms = np.array(list(order) + list("ABBA"))
    names = {name: code for code, name in enumerate("ABC")}
    table = Table(
        np.array([7] * len(order) + [9] * 4),
        np.r_[np.arange(len(order)), np.arange(4)],
        arms,
        np.array([names[arm] for arm in arms]),
    )
    found = balanced(Facts(), table)  # type: ignore[arg-type]
    assert (found.severity, found.value) == (("ok", 0.0) if even else ("void", 1.0))
    told = (
        "2 balanced blocks"
        if even
        else f"block 7 is not balanced ({' '.join(order)}), so drift looks like a speed-up; 1 of 2"
    )
    assert found.sentence.startswith(told)


@pytest.mark.parametrize(
    ("clocks", "severity", "value"),
    [
        ([2000.0, 2010.0, 1990.0], "ok", 0.995),
        ([2000.0, 2010.0, 1901.0], "ok", 0.9505),
        ([2000.0, 2010.0, 1899.0], "warning", 0.9495),
        ([2000.0, 2000.0, 2000.0], "warning", math.nan),
        ([2000.0, math.nan, 0.0], "ok", 1.0),
        ([math.nan, 0.0], "warning", math.nan),
    ],
)
def test_a_clock_below_the_median(clocks, severity, value):
    cell = copy.deepcopy(CELL)
    cell.runs["clock_mhz"] = clocks + [0.0] * (len(cell.runs) - len(clocks))
    found = steady_clock(cell, case_of(cell).runs)
    assert found.severity == severity
    assert found.value == pytest.approx(value, nan_ok=True)


def costs(curve: dict[int, tuple[float, ...]], other: dict[int, tuple[float, ...]]) -> tuple[Costs, Costs]:
    about = {"machine": "box", "build": "b", "cells": ["profile"]}
    own = Costs(about, (1,), {width: speed(*values) for width, values in curve.items()}, {}, "again")
    packed = Costs({**about, "cells": ["packed"]}, (1,), {}, {w: np.log(v).tolist() for w, v in other.items()}, "")
    return own, packed


@pytest.mark.parametrize(
    ("elsewhere", "severity"),
    [
        ((1.5, 1.501, 1.499), "ok"),
        ((1.435, 1.436, 1.434), "ok"),
        ((1.42, 1.421, 1.419), "void"),
        ((1.58, 1.581, 1.579), "void"),
        ((1.57, 1.571, 1.569), "ok"),
        ((1.2, 1.7, 1.3), "warning"),
    ],
)
def test_a_curve_may_be_five_per_cent_off(elsewhere, severity):
    own, packed = costs({4: (1.5, 1.501, 1.499)}, {4: elsewhere})
    found = _check(own, [packed])
    assert found.severity == severity and found.ok == (severity != "void")
    assert found.value == pytest.approx(1.5 / math.exp(np.mean(np.log(elsewhere))), rel=1e-5)
    assert found.ci_low < found.value < found.ci_high and found.cells == ["profile", "packed"]


def test_a_curve_without_a_common_width_is_not_checked():
    own, packed = costs({4: (1.5, 1.501, 1.499)}, {2: (1.2, 1.2)})
    found = _check(own, [packed])
    assert found.severity == "warning" and found.ok and math.isnan(found.value)
    assert found.sentence.startswith("nothing checks this curve")


def test_the_worst_of_several_widths_is_told():
    own, packed = costs(
        {2: (1.2, 1.201, 1.199), 4: (1.5, 1.501, 1.499)}, {2: (1.19, 1.191, 1.189), 4: (1.4, 1.401, 1.399)}
    )
    found = _check(own, [packed])
    assert found.severity == "void" and found.value == pytest.approx(1.5 / 1.4, rel=1e-5)


def test_an_interval_of_a_ratio_has_both_spreads():
    one = Comparison(4, speed(1.5, 1.6, 1.55), speed(1.2, 1.3, 1.25), "x")
    ends = [math.log(e.interval(0.95)[1] / e.ratio) for e in (one.curve, one.other)]
    low, high = one.interval(0.95)
    half = math.sqrt(ends[0] ** 2 + ends[1] ** 2)
    assert (low, high) == (pytest.approx(one.ratio * math.exp(-half)), pytest.approx(one.ratio * math.exp(half)))
    assert one.ratio == pytest.approx(math.exp(one.curve.log_mean - one.other.log_mean)) and one.apart
    unknown = Comparison(4, speed(1.5), speed(1.5, 1.5), "x")
    assert unknown.interval(0.95) == (0.0, math.inf) and not unknown.apart


def test_batched_bench_costs_are_of_a_pair():
    def row(pair: int, width: int, rate: float, tool: str = "llama-batched-bench") -> dict[str, Any]:
        return {"tool": tool, "pair": pair, "width": width, "tok_s": rate}

    rows = [row(0, 1, 10.0), row(0, 4, 32.0), row(1, 1, 10.0), row(1, 4, 20.0), row(2, 4, 9.0), row(0, 2, 9.0, "other")]
    # A step of 4 at 32 tokens a second takes 0.125 s, one of 1 takes 0.1 s.
    assert _batched_bench(rows) == {4: [pytest.approx(math.log(1.25)), pytest.approx(math.log(2.0))]}
    assert _batched_bench(rows[:1]) == {}
