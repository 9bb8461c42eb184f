"""Which rows are compared and what a row's spread is, by hand and against scipy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from bench.audit import estimate
from bench.audit.compare import comparisons, decoded, level, rates, spread_of, warmed
from bench.audit.estimate import Estimate, detectable_shift, paired, t_probability, t_quantile, welch
from bench.audit.options import AuditOptions
from bench.audit.trials import Record, Trial, baseline_arm, treatments

ONE = Trial("line 2", "x", counted=100, distinct=100, seconds=5.0)


def record(*trials: Trial) -> Record:
    return Record(Path("r"), "a table", trials)


def rated(rate: float, **more: object) -> Trial:
    return Trial("line 2", "x", printed={"tok_s": rate}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("df", [1, 2.5, 7, 30, 1000])
def test_tails_of_students_distribution(df: float) -> None:
    for t in (0.0, 0.01, 0.7, 1.0, 3.3, 12.0, 300.0):
        wanted = pytest.approx(2 * stats.t.sf(t, df), rel=1e-9, abs=1e-300)
        assert t_probability(t, df) == t_probability(-t, df) == wanted
    for confidence in (0.5, 0.9, 0.999):
        assert t_quantile(df, confidence) == pytest.approx(stats.t.ppf(0.5 + confidence / 2, df), rel=1e-8)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (3.0, 0.5), (40.0, 2.0), (2.0, 40.0)])
def test_the_incomplete_beta_function(a: float, b: float) -> None:
    for x in (-0.1, 0.0, 1e-6, 0.03, 0.5, 0.9, 0.999, 1.0, 1.5):
        wanted = special.betainc(a, b, min(max(x, 0.0), 1.0))
        assert estimate._incomplete_beta(a, b, x) == pytest.approx(wanted, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("df", [1, 2, 5, 20])
def test_what_is_seen_in_four_of_five_runs(df: int) -> None:
    shift = detectable_shift(float(df))
    critical = stats.t.ppf(0.975, df)
    assert stats.nct.sf(critical, df, shift) + stats.nct.cdf(-critical, df, shift) == pytest.approx(0.8, abs=2e-3)


def test_an_estimate_of_one_unit_knows_no_interval() -> None:
    for one in (paired([0.1], "prompts"), Estimate(0.1, math.inf, 3, ""), Estimate(0.1, 0.1, 0, "")):
        assert not one.known and one.interval() == (0.0, math.inf) and one.min_visible_effect == math.inf
        assert not one.excludes(5.0)
    assert paired([0.1, 0.1], "x").log_se == 1e-6, "finer than any clock"
    known = paired([0.1, 0.3], "x")
    low, high = known.interval()
    assert known.df == 1 and known.log_se == pytest.approx(0.1) and known.ratio == pytest.approx(math.exp(0.2))
    assert math.log(low) == pytest.approx(0.2 - 12.7062 * 0.1, abs=1e-4)
    assert not known.excludes(low) and known.excludes(low * 0.999) and known.excludes(high * 1.001)
    huge = Estimate(900.0, 900.0, 1, "")
    assert huge.ratio == math.exp(700) and huge.interval() == (math.exp(-700), math.exp(700))
    assert Estimate(-900.0, 0.1, 1, "").ratio == math.exp(-700) and huge.min_visible_effect == math.exp(700)


def test_two_sides_without_a_spread_have_none_together() -> None:
    good = (0.5, 0.1, 4.0)
    for bad in ((0.1, math.inf, 0.0), (0.1, 0.1, 0.0), (0.1, math.inf, 3.0)):
        assert not welch(good, bad, "").known and not welch(bad, good, "").known
        assert welch(good, bad, "").log_mean == pytest.approx(0.4)
    still = welch((0.5, 1e-7, 4.0), (0.1, 1e-7, 3.0), "")
    assert (still.log_se, still.df) == (1e-6, 7.0)
    assert welch((0.5, 0.1, 0.5), (0.1, 1e-6, 9.0), "").df == 1.0, "never below one degree"


def test_what_a_trial_is_worth() -> None:
    assert ONE.aggregate == ONE.per_answer == 20.0
    four = replace(ONE, streams=4)
    assert (four.aggregate, four.per_answer) == (20.0, 5.0)
    assert replace(four, printed={"answer_tok_s": 6.0}).per_answer == 6.0
    assert replace(ONE, printed={"answer_tok_s": 6.0}).per_answer == 20.0, "its own tokens and seconds go before"
    assert replace(ONE, seconds=0.0, printed={"tok_s": 7.0}).aggregate == 7.0
    assert replace(ONE, distinct=0, counted=0, printed={"tok_s": 7.0}).aggregate == 7.0
    twice = replace(ONE, counted=160, seconds=math.nan, printed={"tok_s": 7.0})
    assert twice.repeats and math.isnan(twice.aggregate), "a rate of tokens that were counted twice"
    assert replace(twice, streams=3, printed={"tok_s": 7.0, "answer_tok_s": 2.0}).aggregate == 6.0
    unshared = rated(90.0, unshared=True)
    assert math.isnan(unshared.per_answer) and unshared.compared == 90.0
    assert replace(unshared, printed={"tok_s": 90.0, "answer_tok_s": 9.0}).compared == 9.0
    assert not Trial("l", "x").emits_known and ONE.emits_known and not Trial("l", "x").repeats


def test_a_prompts_rate_and_the_wait_for_an_answer() -> None:
    prompt = replace(ONE, prompt_tokens=50, prefill_seconds=0.5)
    assert prompt.prefill_rate == 100.0 and prompt.answer_time == 5.5
    assert replace(prompt, total_seconds=6.0).answer_time == 6.0
    assert replace(prompt, prompt_tokens=0, printed={"pp": 9.0}).prefill_rate == 9.0
    assert replace(prompt, prefill_seconds=0.0, printed={"pp": 9.0}).prefill_rate == 9.0
    assert math.isnan(ONE.prefill_rate) and math.isnan(ONE.answer_time)
    assert ONE.where == "x (line 2)" and replace(ONE, label="x at line 2").where == "x at line 2"


def test_who_guesses() -> None:
    assert not ONE.guesses and not replace(ONE, drafted=0, accepted=0).guesses
    for more in ({"drafted": 1}, {"accepted": 1}, {"printed": {"acceptance": 0.1}}):
        assert replace(ONE, **more).guesses
    assert not replace(ONE, printed={"acceptance": 0.0}).guesses


def arms(*names: str, guessing: str = "") -> Record:
    return record(*(Trial("l", name, arm=name, drafted=9 if name == guessing else None) for name in names))


def test_the_plain_arm_is_found_by_its_name_or_by_what_it_does() -> None:
    assert baseline_arm(arms("mtp", "Baseline")) == "Baseline" and treatments(arms("mtp", "Baseline")) == ["mtp"]
    assert baseline_arm(arms("mtp", "none", "base")) == "base", "in order of preference"
    assert baseline_arm(arms("one", "two", guessing="one")) == "two" and baseline_arm(arms("one", "two")) == "one"
    assert baseline_arm(arms("one")) is None and treatments(arms("one")) == []
    assert baseline_arm(arms("again", "one", "two", "solo")) == "one"
    assert treatments(arms("plain", "solo", "oracle", "sabotage", "carry", "again", "x")) == ["x"]
    both = record(Trial("l", "a", arm="one", drafted=9), Trial("l", "b", arm="two", drafted=9))
    assert baseline_arm(both) == "one"


def test_rates_and_their_level() -> None:
    trials = [rated(10.0), rated(40.0), rated(math.nan), rated(0.0), replace(rated(60.0), streams=3)]
    assert rates(trials) == [10.0, 40.0, 20.0] and rates(trials, "aggregate") == [10.0, 40.0, 60.0]
    assert level(trials[:2]) == pytest.approx(20.0) and math.isnan(level([])) and math.isnan(level([rated(0.0)]))
    kept = decoded(record(*trials, rated(5.0, arm="oracle"), rated(5.0, arm="solo"), rated(5.0, arm="x")))
    assert [trial.aggregate for trial in kept] == [10.0, 40.0, 60.0, 5.0]


def test_the_spread_of_one_row_or_of_several() -> None:
    several = spread_of([rated(10.0), rated(12.0), rated(11.0)])
    logs = np.log([10.0, 12.0, 11.0])
    assert several == pytest.approx((logs.mean(), stats.sem(logs), 2, 3))
    samples = replace(ONE, samples=(4.0, 5.0, 6.0))
    logs = np.log(100 / np.array(samples.samples))
    assert spread_of([samples]) == pytest.approx((logs.mean(), stats.sem(logs), 2, 3))
    assert spread_of([replace(samples, streams=2)])[0] == pytest.approx(logs.mean() - math.log(2))
    assert spread_of([replace(samples, samples=(4.0,))]) == (pytest.approx(math.log(20)), math.inf, 0.0, 1)
    assert spread_of([ONE]) == (pytest.approx(math.log(20)), math.inf, 0.0, 1)
    assert spread_of([replace(ONE, spread=-1.0)])[1] == math.inf
    table = rated(20.0, spread=2.0)
    assert spread_of([table]) == pytest.approx((math.log(20), 0.1, 30.0, 1)), "nobody says of how many"
    assert spread_of([replace(table, repetitions=4)]) == pytest.approx((math.log(20), 0.05, 3, 4))
    assert spread_of([replace(table, repetitions=1)]) == pytest.approx((math.log(20), 0.1, 30.0, 1))
    assert spread_of([replace(table, repetitions=2)]) == pytest.approx((math.log(20), 0.1 / 2**0.5, 1, 2))
    usual = replace(table, settings={"model_type": "llama"})
    assert spread_of([usual]) == pytest.approx((math.log(20), 0.1 / 5**0.5, 4, 5))
    assert spread_of([replace(table, spread=0.0)])[1] == 1e-6 == spread_of([replace(usual, spread=0.0)])[1]
    shared = replace(table, streams=4)
    assert spread_of([shared])[1] == pytest.approx(0.1), "the spread is that of the sum"


def of(*trials: Trial, **options: object) -> list[tuple[str, float, float, str]]:
    found = comparisons(record(*trials), AuditOptions(**options), None)  # type: ignore[arg-type]
    return [(one.name, round(one.estimate.ratio, 6), round(one.total, 6), one.estimate.units) for one in found]


def test_arms_pair_one_by_one_by_prompt_and_then_prompts_weigh_the_same() -> None:
    def run(arm: str, rate: float, prompt: str, **more: object) -> Trial:
        return rated(rate, arm=arm, prompt=prompt, **more)

    pairs = [("none", 10.0), ("mtp", 12.0), ("none", 11.0), ("mtp", 14.3)]
    one = [run(arm, rate, "p") for arm, rate in pairs]
    assert of(*one) == [("mtp over none", round((1.2 * 1.3) ** 0.5, 6), round((1.2 * 1.3) ** 0.5, 6), "pairs of runs")]
    two = [*one, run("none", 10.0, "q"), run("mtp", 20.0, "q")]
    assert of(*two) == [
        ("mtp over none", round((2 * 1.56**0.5) ** 0.5, 6), round((2 * 1.56**0.5) ** 0.5, 6), "prompts")
    ]
    odd = of(*one, run("mtp", 15.0, "p"))
    assert odd[0][3] == "3 and 2 repetitions"
    blocks = of(*(replace(trial, block=k % 2) for k, trial in enumerate(one)))
    assert blocks[0][3] == "2 and 2 repetitions", "two texts are no pairs"


def test_conditions_are_named_where_there_are_several() -> None:
    def row(arm: str, rate: float, **more: object) -> Trial:
        return rated(rate, arm=arm, **more)

    depth = [
        row("none", 10.0, depth=0),
        row("mtp", 15.0, depth=0),
        row("none", 8.0, depth=512),
        row("mtp", 9.0, depth=512),
    ]
    assert [name for name, *_ in of(*depth)] == ["mtp over none, depth 0", "mtp over none, depth 512"]
    assert [name for name, *_ in of(*depth[:2])] == ["mtp over none"]
    assert [name for name, *_ in of(*depth[2:])] == ["mtp over none, depth 512"]
    tests = [
        row("none", 10.0, test="tg64"),
        row("mtp", 15.0, test="tg64"),
        row("none", 8.0, test="tg128"),
        row("mtp", 9.0, test="tg128"),
    ]
    assert [name for name, *_ in of(*tests)] == ["mtp over none, tg64", "mtp over none, tg128"]
    wide = [row("none", 10.0), row("mtp", 15.0), row("mtp", 36.0, streams=4)]
    assert of(*wide) == [
        ("mtp over none, one answer at a time", 1.5, 1.5, "1 and 1 repetitions"),
        ("mtp over none, 4 answers at once", 0.9, 3.6, "1 and 1 repetitions"),
    ], "several answers that have no row of their own are over one"
    found = comparisons(record(*wide), AuditOptions(), None)
    assert [one.wide for one in found] == [False, True] and [one.streams for one in found] == [1, 4]
    assert of(*wide, row("none", 30.0, streams=4))[1][1:3] == (1.2, 1.2)
    overall = [row("none", 10.0), row("mtp", 15.0), row("none", 1.0, test="overall"), row("mtp", 9.0, test="overall")]
    assert [name for name, *_ in of(*overall)] == ["mtp over none"]


def test_settings_that_a_text_varies_keep_rows_apart() -> None:
    rows = [rated(10.0 + k, settings={"fa": str(k % 2), "ngl": "9", "seen*": str(k)}, test="tg") for k in range(2)]
    base = record(*rows)
    found = comparisons(
        record(*(replace(row, printed={"tok_s": 2 * row.aggregate}) for row in rows)), AuditOptions(), base
    )
    assert [(one.condition, one.estimate.ratio) for one in found] == [
        ("fa 0", pytest.approx(2.0)),
        ("fa 1", pytest.approx(2.0)),
    ]
    once = comparisons(record(rated(30.0, test="tg", settings={"ngl": "9"})), AuditOptions(), base)
    assert [(one.condition, one.label, one.kind) for one in once] == [
        ("", "this record over the baseline's", "against")
    ]


def test_a_rate_given_by_hand_is_the_baseline_of_what_has_none() -> None:
    assert of(rated(15.0), baseline=10.0) == [("x", 1.5, 1.5, "1 repetitions over a given rate")]
    assert of(rated(15.0), rated(60.0, streams=4), baseline=10.0)[1][1:3] == (1.5, 6.0)
    arms = [rated(15.0, arm="a"), rated(18.0, arm="b")]
    assert [name for name, *_ in of(*arms, baseline=10.0)] == ["b over a"], "it has a baseline of its own"
    only = comparisons(record(rated(15.0, arm="b")), AuditOptions(baseline=10.0), None)[0]
    assert (only.label, only.kind, only.pairs[0].base[0].place) == ("b", "baseline", "--baseline")


def test_texts_below_each_other_are_runs_over_the_plain_one() -> None:
    runs = [rated(10.0, block=3, drafted=9), rated(8.0, block=5), rated(12.0, block=7)]
    assert [(name, ratio) for name, ratio, *_ in of(*runs)] == [("run 1 over run 2", 1.25), ("run 3 over run 2", 1.5)]
    guessing = [replace(run, drafted=9) for run in runs]
    assert [name for name, *_ in of(*guessing)] == ["run 2 over run 1", "run 3 over run 1"]
    assert of(runs[0]) == []


def test_several_answers_are_over_one_of_the_same_run() -> None:
    rows = [rated(10.0, test="t"), rated(36.0, test="t", streams=4), rated(30.0, test="u", streams=4)]
    assert of(*rows) == [("x", 0.9, 3.6, "repetitions")]
    assert of(*(replace(row, arm="a") for row in rows)) == []
    two = [replace(row, block=block) for block in (0, 1) for row in rows[:2]]
    assert [name for name, *_ in of(*two)][-2:] == ["run 1, x", "run 2, x"]


def test_without_the_first_repetitions() -> None:
    treated = replace(ONE, arm="mtp", samples=(9.0, 4.0, 4.4))
    base = replace(ONE, arm="none", samples=(12.0, 5.0, 5.5))
    found = comparisons(record(treated, base), AuditOptions(), None)[0]
    kept = warmed(found)
    assert kept is not None and kept.ratio == pytest.approx(1.25) and kept.units == "2 and 2 repetitions"
    short = comparisons(record(treated, replace(base, samples=(12.0, 5.0))), AuditOptions(), None)[0]
    assert warmed(short) is None
    three = comparisons(record(treated, treated, base), AuditOptions(), None)[0]
    assert warmed(three) is None


def test_classes_and_the_worst_prompt() -> None:
    trials = []
    for prompt, category, ratio in (("a", "code", 2.0), ("b", "code", 8.0), ("c", "prose", 0.5)):
        trials += [
            rated(10.0, arm="none", prompt=prompt, category=category),
            rated(10.0 * ratio, arm="mtp", prompt=prompt, category=category),
        ]
    one = comparisons(record(*trials), AuditOptions(), None)[0]
    assert one.by_class == pytest.approx({"code": 4.0, "prose": 0.5}) and one.worst.prompt == "c"
    assert one.where == "mtp over none (line 2 against line 2 and 2 more rows)"
    assert comparisons(record(*trials[:4]), AuditOptions(), None)[0].by_class == {}
    single = comparisons(record(*trials[:2]), AuditOptions(), None)[0]
    assert single.where == "mtp over none (line 2 against line 2)"
    beside = comparisons(record(trials[1]), AuditOptions(), record(trials[0]))[0]
    assert beside.where.endswith("(line 2 against the baseline's line 2)")
