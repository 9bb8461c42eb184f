"""A small size of docs/calibration.md: coverage, false verdicts and advice, at three standard errors of so few."""

from __future__ import annotations

import numpy as np
import pytest

from bench.judge.measure.stalls import settled
from tests.calibration import patterns, stopping, write_page
from tests.calibration.advice import advised_machines
from tests.calibration.contexts import with_contexts_known
from tests.calibration.own_stalls import blamed
from tests.calibration.rates import measure, within
from tests.calibration.several import wrong
from tests.calibration.shares import UNLIKE, coverage
from tests.calibration.simulation import NOISES, STEP_S, TEXTS, Noise, contrast, normal

COUNT = 120


@pytest.mark.parametrize("name", NOISES)
def test_intervals_hold_the_truth_whatever_the_noise(name: str) -> None:
    found = measure(11, COUNT, NOISES[name], TEXTS["alike (sd 0.03)"], 6)
    # Under noise of every kind at once, what may have been noise is counted as such, which is wider than it has to be.
    assert within(found.these, 0.93, 1.0, COUNT) and within(found.like_these, 0.93, 0.985, COUNT)
    assert within(found.reproduced, 0.0, 0.025, COUNT) and within(found.refuted, 0.0, 0.025, COUNT)


@pytest.mark.parametrize("name", ["heavy tails", "two clocks", "bursts of load", "an arm three times as noisy"])
@pytest.mark.parametrize("design", [(1, 4), (2, 1), (30, 2)])
def test_few_blocks_and_many_hold_it_too(name: str, design: tuple[int, int]) -> None:
    """Stalls of a run that its twin is held for, and runs that are like the one before, made these too narrow."""
    found = measure(21, COUNT, NOISES[name], TEXTS["alike (sd 0.03)"], *design)
    assert within(found.these, 0.93, 0.985, COUNT)
    assert within(found.reproduced, 0.0, 0.025, COUNT) and within(found.refuted, 0.0, 0.025, COUNT)


def test_a_claim_of_several_rows_is_as_rarely_wrong_as_one_of_one() -> None:
    for rows in (1, 3):
        reproduced, refuted = wrong(22, COUNT, rows, Noise(), 6)
        assert within(reproduced, 0.0, 0.025, COUNT) and within(refuted, 0.0, 0.025, COUNT)


@pytest.mark.parametrize("unlike", [0.0, UNLIKE])
@pytest.mark.parametrize(("share", "sd"), [(0.5, 0.2), (0.7, 0.2), (0.95, 0.08), (0.98, 0.05)])
def test_shares_hold_what_texts_differ_in(share: float, sd: float, unlike: float) -> None:
    for texts in (3, 6, 12, 24):
        alone, over, _ = coverage(23, 600, texts, 60, share, sd, unlike)
        assert alone < 0.87 and within(over, 0.93, 1.0, 600)


@pytest.mark.parametrize("first", [-0.06, 0.06])
def test_one_arm_first_in_every_block_decides_nothing(first: float) -> None:
    """A first run that differs is a speed-up then: 3 % of the ratio, at a half width of 1."""
    decided, void, left = patterns.wrong(26, 30, Noise(first=first), (30, 2), True)
    assert decided > 0.6 and void > 0.9 and within(left, 0.0, 0.025, 30)
    decided, void, _ = patterns.wrong(27, 60, Noise(first=first), (6, 1), False)
    assert within(decided, 0.0, 0.025, 60) and void == 0, "half of the blocks begin with either arm"


def test_what_the_treatment_leaves_behind_decides_nothing() -> None:
    decided, void, left = patterns.wrong(28, 30, Noise(behind=0.08), (30, 2), False)
    assert decided > 0.5 and void > 0.9 and within(left, 0.0, 0.025, 30)


@pytest.mark.parametrize("noise", [Noise(), Noise(half=0.3), Noise(beat=0.2, every=2), Noise(beat=0.2, every=4)])
def test_sound_orders_are_not_voided_for_their_places(noise: Noise) -> None:
    decided, void, _ = patterns.wrong(29, 80, noise, (6, 1), False)
    assert within(decided, 0.0, 0.025, 80) and void <= 1 / 80


def test_one_section_of_the_page_is_made_again_and_the_others_stay() -> None:
    page = "# Page\n\nhead\n\n## Contexts\n\nold\n\n| a |\n\n## Acceptance\n\nkept\n"
    made = write_page.with_section(page, "Contexts", 12)
    assert made.startswith("# Page\n\nhead\n\n## Contexts\n\nA machine") and made.endswith("\n## Acceptance\n\nkept\n")
    assert "old" not in made and made.count("\n## ") == 2


def test_stalls_of_one_arm_are_told_from_those_of_the_machine() -> None:
    assert blamed(24, 60, Noise(own_stalls=0.75), (6, 1))[0] > 0.9
    assert max(blamed(25, 100, Noise(stall_rate=0.15), (6, 1))) <= 0.05


@pytest.mark.parametrize("name", ["one text in six copies", "exponential, sd 0.2"])
def test_a_few_texts_of_a_skewed_gain_speak_of_themselves_alone(name: str) -> None:
    few = measure(12, COUNT, NOISES["independent"], TEXTS[name], 6, by_text=True)
    assert np.isnan(few.like_these) and within(few.these, 0.93, 0.97, COUNT)
    many = measure(13, COUNT, NOISES["independent"], TEXTS[name], 30, 1, by_text=True)
    assert within(many.like_these, 0.93, 1.0, COUNT)


def test_stalls_make_the_plain_interval_wide_and_the_settled_one_not() -> None:
    found = measure(14, COUNT, NOISES["stalls"], TEXTS["alike (sd 0.03)"], 6)
    assert found.half_these < found.half_plain / 2
    assert found.seen > found.seen_plain + 0.2


def test_a_spread_between_contexts_is_in_the_interval() -> None:
    without, known = with_contexts_known(15, 16, 0.01)
    assert without < 0.85 < 0.9 < known


def test_a_planted_stall_is_found_to_the_millisecond() -> None:
    table, _ = contrast(np.random.default_rng(16), 1.0, Noise(run=0.0, round=0.01), 3)
    turns = dict(table.turns)
    turns["total_ns"] = turns["total_ns"].copy()
    turns["total_ns"][24 * 4 + 7] += 0.5e9
    window = table.window.copy()
    window[4] += 0.5
    hit = type(table)(**{**vars(table), "turns": turns, "window": window,
                         "seconds": {**table.seconds, "total": table.seconds["total"] + 0.5 * (table.run == 4)}})
    (one,) = settled(hit).stalls
    assert (one.run, one.round) == (4, 7) and one.lost == pytest.approx(0.5, abs=0.05 * STEP_S)
    assert settled(hit).table.window == pytest.approx(table.window, rel=2e-3)


def test_twelve_slow_arms_are_not_advised_and_a_fast_one_is() -> None:
    assert advised_machines(17, 60, 0.98, 12, (6, 1)) <= 4
    assert advised_machines(18, 10, 1.2, 1, (30, 2)) == 10


@pytest.mark.parametrize("name", ["independent", "autocorrelated", "stalls"])
def test_cells_that_end_where_their_rule_says_hold_the_truth(name: str) -> None:
    found = stopping.measure(19, COUNT, NOISES[name], normal(0.0), 6, 1.0, 0.02)
    assert found.these >= 0.93 and found.like_these >= 0.93 and within(found.wrong, 0.0, 0.05, COUNT)
    assert found.students < found.these, "the blocks were chosen by their noise, or this tests nothing"
    assert found.half_width < 0.025 and found.passes > 2


def test_a_real_effect_ends_a_cell_soon() -> None:
    found = stopping.measure(20, COUNT // 2, NOISES["independent"], normal(0.0), 6, 1.1, 0.005)
    assert found.decided > 0.95 and found.wrong == 0 and found.passes <= 2
