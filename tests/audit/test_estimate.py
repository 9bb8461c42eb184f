"""The audit's light arithmetic against the judge's: intervals, what could have been seen, and counts of tokens."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.audit.emits import Emits, count, together, window_seconds
from bench.audit.estimate import detectable_shift, paired, t_probability, t_quantile, welch
from bench.judge.measure import intervals
from bench.judge.measure.tokens import count_tokens


@pytest.mark.parametrize("df", [1, 2, 3, 4, 8, 17.3, 60, 400])
def test_quantiles_and_what_is_visible(df: float) -> None:
    assert t_quantile(df) == pytest.approx(stats.t.ppf(0.975, df), rel=1e-8)
    assert t_probability(2.2, df) == pytest.approx(2 * stats.t.sf(2.2, df), rel=1e-8)
    if df == int(df):
        assert detectable_shift(df) == pytest.approx(intervals.detectable_shift(int(df)), rel=1e-3)


def test_pairs_are_the_judges_estimate() -> None:
    logs = [0.11, 0.14, 0.09, 0.13, 0.10]
    mine, theirs = paired(logs, "prompts"), intervals.mean_estimate(np.array(logs), "prompts")
    assert mine.ratio == pytest.approx(theirs.ratio) and mine.interval() == pytest.approx(theirs.interval())
    # Of a few pasted rows the spread is taken as it is, without the judge's upper bound of it.
    shift = intervals.detectable_shift(4) * stats.sem(logs)
    assert mine.min_visible_effect == pytest.approx(np.exp(shift), rel=1e-3)
    assert not paired([0.1], "prompts").known and paired([0.1], "prompts").interval() == (0.0, float("inf"))


def test_two_sides_that_are_not_paired() -> None:
    left, right = [1.0, 1.2, 1.1, 1.15], [0.9, 1.0, 0.95]
    sides = [(float(np.mean(s)), float(stats.sem(s)), len(s) - 1.0) for s in (left, right)]
    low, high = welch(*sides, "repetitions").interval()
    test = stats.ttest_ind(left, right, equal_var=False).confidence_interval(0.95)
    assert np.log([low, high]) == pytest.approx([test.low, test.high])


def rows(seed: int) -> list[tuple[int, int, int, int]]:
    """(stream, position, token, round): some twice, some with another token, some left out, in time order."""
    draw = random.Random(seed)
    found = [(s, 0, 5, -1) for s in range(2)]
    for number in range(30):
        found += [(draw.randrange(2), number + draw.randrange(4), draw.randrange(9), number) for _ in range(3)]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_the_judges(seed: int) -> None:
    emits = Emits(True)
    for k, (stream, position, token, number) in enumerate(rows(seed)):
        emits.add(stream, position, token, number, k, number < 0, True)
    frame = pd.DataFrame(rows(seed), columns=["stream", "position", "token", "round"])
    mine, theirs = count(emits), count_tokens(frame)
    assert len(emits) == theirs.counted and mine.distinct + mine.first == theirs.distinct
    assert (mine.first, mine.duplicates, mine.conflicts, mine.gaps) == (
        theirs.first,
        theirs.duplicates,
        theirs.conflicts,
        theirs.gaps,
    )
    assert mine.rounds == frame["round"][frame["round"] >= 0].nunique()
    assert mine.most == frame.groupby(["stream", "position"]).size().max()


def test_positions_far_ahead_cost_no_memory() -> None:
    emits = Emits(True)
    for k, position in enumerate((0, 10**9, 5)):
        emits.add(0, position, 1, k, k, False, True)
    counts = count(emits)
    assert counts.answers[0].get(10**9) == 1 and counts.gaps == 10**9 - 2 and len(counts.answers[0].tokens) < 10**5
    assert counts.late == 1


def test_windows_and_answers_at_a_time() -> None:
    emits = Emits(True)
    for k, (stream, prefill, moment) in enumerate([(0, True, 0), (0, False, 100), (1, True, 900), (1, False, 1000)]):
        emits.add(stream, k % 2, 1, -1 if prefill else k, moment * 10**6, prefill, True)
    assert window_seconds(emits) == pytest.approx(0.2)
    assert together(list(count(emits).answers.values())) == 1
    late = Emits(True)
    for moment in (30, 10, 20):
        late.add(0, moment // 10, 1, moment, moment, False, True)
    assert not late.rising and count(late).late == 0, "rows are taken by their times"
