"""Where each flag about times and bounds begins, with its figures: one step to either side of every threshold."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from bench.audit.flags.physics import physics_flags, physics_notes, tokens_per_step
from bench.audit.flags.times import claim_flags, drift, timing_flags
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Step, Trial

PLAIN = Trial("line 2", "x", counted=100, distinct=100, seconds=5.0)


def record(*trials: Trial) -> Record:
    return Record(Path("r"), "a table", trials)


def said(code: str, *trials: Trial) -> list[Flag]:
    return [flag for flag in timing_flags(record(*trials), AuditOptions()) if flag.code == code]


def test_no_time_is_told_of_tokens_alone() -> None:
    assert said("NO_TIME", replace(PLAIN, seconds=0.0))[0].sentence.startswith("x (line 2): 100 tokens in 0 s")
    assert said("NO_TIME", PLAIN) == said("NO_TIME", replace(PLAIN, seconds=0.0, counted=0, distinct=0)) == []
    assert said("NO_TIME", replace(PLAIN, seconds=math.nan)) == []


@pytest.mark.parametrize(
    ("printed", "right"), [(20.0, True), (20.11, False), (20.09, True), (19.89, False), (19.91, True), (21.0, False)]
)
def test_a_printed_rate_may_be_rounded(printed: float, right: bool) -> None:
    found = said("INCONSISTENT", replace(PLAIN, printed={"tok_s": printed}))
    assert [flag.numbers for flag in found] == ([] if right else [{"printed": printed, "right": 20.0}])
    whole = said("INCONSISTENT", replace(PLAIN, seconds=4.89, printed={"tok_s": 20.0}))
    assert whole == [], "20.45, printed without digits"
    assert said("INCONSISTENT", replace(PLAIN, seconds=4.87, printed={"tok_s": 20.0}))


def test_a_printed_rate_is_that_of_the_sum_or_of_one_answer_or_the_mean_of_repetitions() -> None:
    four = replace(PLAIN, streams=4, counted=400, distinct=400)
    assert not said("INCONSISTENT", replace(four, printed={"tok_s": 80.01}))
    assert not said("INCONSISTENT", replace(four, printed={"tok_s": 20.01}))
    assert said("INCONSISTENT", replace(four, printed={"tok_s": 40.01}))[0].numbers["right"] == 20.0
    # Rates of 4 s and 6 s have a mean of (25 + 16.67)/2 = 20.83, above 100 tokens over their mean time.
    uneven = replace(PLAIN, samples=(4.0, 6.0))
    assert not said("INCONSISTENT", replace(uneven, printed={"tok_s": 20.83}))
    assert not said("INCONSISTENT", replace(uneven, printed={"tok_s": 20.01}))
    assert said("INCONSISTENT", replace(uneven, printed={"tok_s": 25.01}))


def test_a_printed_rate_is_called_by_what_it_counts() -> None:
    twice = replace(PLAIN, counted=160, printed={"tok_s": 32.01})
    found = said("DUPLICATE", twice)
    assert found[0].numbers == {"printed": 32.01, "right": 20.0} and "tokens emitted twice" in found[0].sentence
    whole = replace(PLAIN, prefill_seconds=1.0, first=1, printed={"tok_s": 16.83})
    assert said("WINDOW", whole)[0].numbers["right"] == 20.0, "101 tokens over 6 s"
    assert "no reading" in said("INCONSISTENT", replace(PLAIN, printed={"tok_s": 55.01}))[0].sentence


BATCH = replace(PLAIN, prompt_tokens=50, prefill_seconds=0.5)


@pytest.mark.parametrize(("name", "right"), [("S_PP", 100.0), ("S_TG", 20.0), ("S", 150 / 5.5)])
def test_columns_follow_from_tokens_and_times_as_far_as_they_are_printed(name: str, right: float) -> None:
    seconds = {"S_PP": 0.5, "S_TG": 5.0, "S": 5.5}[name]
    slack = 0.005 + 0.0005 / seconds
    for factor, wrong in ((1 + slack - 1e-4, False), (1 + slack + 1e-4, True), (1 - slack + 1e-4, False),
                          (1 - slack - 1e-4, True)):  # fmt: skip
        found = said("INCONSISTENT", replace(BATCH, printed={name: right * factor}))
        assert bool(found) == wrong
        if wrong:
            assert found[0].numbers == {"printed": pytest.approx(right * factor), "right": pytest.approx(right)}
            assert f"prints {name}" in found[0].sentence


def test_columns_without_times_say_nothing() -> None:
    for lacking in ({"seconds": 0.0}, {"seconds": math.nan}):
        assert not said("INCONSISTENT", replace(BATCH, printed={"S_TG": 99.0}, **lacking))
    assert not said("INCONSISTENT", replace(BATCH, printed={"S": 99.0}, seconds=math.nan))
    assert not said("INCONSISTENT", replace(BATCH, printed={"S_PP": 999.0}, prefill_seconds=math.nan))


def test_a_prompts_rate_is_the_mean_of_its_repetitions() -> None:
    prompt = Trial("line 2", "pp512", prompt_tokens=512, samples=(1.0, 2.0), printed={"pp": 384.0})
    assert not said("INCONSISTENT", prompt)
    assert said("INCONSISTENT", replace(prompt, printed={"pp": 341.3}))[0].numbers["right"] == pytest.approx(384)
    assert not said("INCONSISTENT", replace(prompt, printed={"pp": 341.3}, mixed_tokens=9))
    assert not said("INCONSISTENT", replace(prompt, printed={"pp": 341.3}, prompt_tokens=0))


def test_a_mixed_rate_cannot_be_split() -> None:
    found = said("PREFILL_IN_RATE", Trial("line 2", "x", mixed_tokens=640, printed={"pg": 55.0}))
    assert found[0].numbers == {"printed": 55.0} and said("PREFILL_IN_RATE", PLAIN) == []


def test_a_peak_is_not_below_the_mean() -> None:
    assert not said("INCONSISTENT", replace(PLAIN, printed={"peak": 19.91}))
    found = said("INCONSISTENT", replace(PLAIN, printed={"peak": 19.89}))
    assert found[0].numbers == {"peak": 19.89, "mean": 20.0}


def test_two_rates_of_one_answer_are_two_windows() -> None:
    one = Trial("line 2", "x", streams_known=True, printed={"tok_s": 20.0, "answer_tok_s": 22.0})
    assert [flag.numbers for flag in said("WINDOW", one)] == [{"whole": 20.0, "decode": 22.0}]
    assert said("WINDOW", replace(one, printed={"tok_s": 22.0, "answer_tok_s": 20.0}))[0].numbers["whole"] == 20.0
    for other in ({"streams_known": False}, {"streams": 2}):
        assert said("WINDOW", replace(one, **other)) == []
    for printed in ({"tok_s": 20.0}, {"tok_s": 20.0, "answer_tok_s": 20.19}, {"answer_tok_s": 22.0}):
        assert said("WINDOW", replace(one, printed=printed)) == []
    assert said("WINDOW", replace(one, printed={"tok_s": 20.21, "answer_tok_s": 20.0}))


def test_the_first_of_three_is_warm_up_from_half_as_much_again_on() -> None:
    warm = replace(PLAIN, seconds=5.0, samples=(7.6, 5.0, 5.1))
    found = said("WARMUP", warm)
    assert found[0].numbers == pytest.approx({"first": 7.6, "rest": 5.05, "mean": 5.05})
    assert "without it the mean is 5.05 s (19.80 tok/s), not 5.9 s" in found[0].sentence
    assert "tok/s" not in said("WARMUP", replace(warm, distinct=0, counted=0))[0].sentence
    for samples in ((7.5, 5.0, 5.0), (7.6, 5.0)):
        assert not said("WARMUP", replace(warm, samples=samples))
    assert said("WARMUP", replace(warm, samples=(9.0, 5.0, 5.0, 99.0))), "the median of the rest, not their mean"
    alone = Trial("line 2", "x", steps=tuple(Step(k, seconds=s) for k, s in enumerate((0.4, math.nan, 0.2, 0.2))))
    assert "the first step took 0.4 s" in said("WARMUP", alone)[0].sentence


@pytest.mark.parametrize("samples", [(1.0, 1.2, 0.9), (1.0,), (1.0, 1.0), (1.0, 1.1), (1.0, 1.11), (1.0, 1.2, 1.1)])
def test_the_error_of_repetitions_is_that_of_their_mean_rate(samples: tuple[float, ...]) -> None:
    rates = 1 / np.array(samples)
    error = float(np.std(rates, ddof=1) / np.mean(rates) / np.sqrt(len(rates))) if len(samples) > 1 else 0.0
    found = said("NOISE", replace(PLAIN, samples=samples))
    assert bool(found) == (error > 0.05)
    if found:
        assert found[0].numbers == {"relative_error": pytest.approx(error), "repetitions": len(samples)}


def test_the_spread_that_a_table_prints_is_over_its_repetitions() -> None:
    row = Trial("line 2", "x", printed={"tok_s": 20.0}, spread=2.0)
    assert not said("NOISE", row), "a tenth over two, where nobody says of how many"
    unknown = said("NOISE", replace(row, spread=2.02))
    assert unknown[0].numbers == {"relative_error": pytest.approx(0.0505), "repetitions": 0}
    assert not said("NOISE", replace(row, spread=2.02, settings={"model_type": "llama"})), "llama-bench runs five"
    found = said("NOISE", replace(row, spread=2.3, settings={"model_type": "llama"}))
    assert found[0].numbers == {"relative_error": pytest.approx(0.115 / 5**0.5), "repetitions": 5}
    assert "tok" not in found[0].sentence and ": repetitions spread by 12 %" in found[0].sentence
    three = said("NOISE", replace(row, spread=2.0, repetitions=3))
    assert three[0].numbers["relative_error"] == pytest.approx(0.1 / 3**0.5)
    assert "3 repetitions spread" in three[0].sentence
    assert not said("NOISE", replace(row, spread=math.nan)) and not said("NOISE", replace(row, spread=9.0, printed={}))


def test_a_drift_is_a_line_through_the_logarithms() -> None:
    draw = np.random.default_rng(3)
    told = 0
    for slope in (0.0, 0.004, 0.0055, 0.0062, 0.007, 0.01, -0.01):
        for count in (4, 5, 6, 9):
            rates = 20 * np.exp(slope * np.arange(count) + 0.003 * draw.standard_normal(count))
            line = linregress(np.arange(count), np.log(rates))
            change = math.expm1(line.slope * (count - 1))
            wanted = count >= 5 and abs(change) > 0.03 and line.pvalue < 0.01
            found = list(drift("x", rates.tolist()))
            assert bool(found) == wanted
            if wanted:
                assert found[0].numbers == {"change": pytest.approx(change), "p": pytest.approx(line.pvalue, rel=1e-6)}
                assert f"{100 * change:+.1f} % over its {count} repetitions" in found[0].sentence
            told += wanted
    assert 5 < told < 20
    straight = list(drift("x", [20 * 1.01**k for k in range(6)]))
    assert [flag.numbers["p"] for flag in straight] == [0.0], "nothing beside the line"
    assert not list(drift("x", [20.0] * 6)) and not list(drift("x", [20.0, 19, 18, 17, 16, 0.0]))


def test_prompts_evaluated_in_part() -> None:
    first = Trial("run 1", "a", prompt="p", evaluated=37, prompt_tokens=37)
    assert not said("CACHED", first)
    found = said("CACHED", first, replace(first, evaluated=36))
    assert [flag.numbers for flag in found] == [{"evaluated": 36, "prompt": 37}]
    unknown = replace(first, prompt_tokens=0)
    assert [flag.numbers["prompt"] for flag in said("CACHED", unknown, replace(unknown, evaluated=9))] == [37]
    assert len(said("CACHED", unknown, replace(unknown, evaluated=9), replace(unknown, evaluated=12))) == 2
    assert not said("CACHED", unknown, replace(unknown, evaluated=9, prompt="q"))
    nameless = replace(unknown, prompt="")
    assert not said("CACHED", nameless, replace(nameless, evaluated=1))
    assert len(said("CACHED", nameless, replace(nameless, evaluated=0))) == 1
    assert not said("CACHED", replace(nameless, evaluated=0)) and not said("CACHED", replace(first, evaluated=None))


def test_a_clock_may_move_by_a_twentieth() -> None:
    high = replace(PLAIN, clock_mhz=2000.0)
    assert not said("DRIFT", high, replace(high, clock_mhz=1900.0))
    assert not said("DRIFT", replace(high, clock_mhz=100.0))
    found = said("DRIFT", high, replace(high, clock_mhz=1899.0), replace(high, clock_mhz=0.0))
    assert [flag.numbers for flag in found] == [{"low": 1899.0, "high": 2000.0}]


def test_a_published_rate_that_nothing_gives_has_the_nearest_one_beside_it() -> None:
    slow = replace(PLAIN, seconds=10.0)
    found = claim_flags(record(PLAIN, slow), AuditOptions(claim=14.0))
    assert [flag.code for flag in found] == ["UNEXPLAINED"] and found[0].numbers == {"claim": 14.0, "nearest": 10.0}
    assert claim_flags(record(PLAIN, slow), AuditOptions(claim=16.0))[0].numbers["nearest"] == 20.0
    empty = claim_flags(record(Trial("l", "x")), AuditOptions(claim=14.0))[0]
    assert empty.sentence.endswith("the record has no rate") and math.isnan(empty.numbers["nearest"])
    four = replace(PLAIN, streams=4)
    assert claim_flags(record(four), AuditOptions(claim=17.0, per="aggregate"))[0].numbers["nearest"] == 20.0
    assert claim_flags(record(four), AuditOptions(claim=17.0))[0].numbers["nearest"] == 5.0


BOUND = AuditOptions(bandwidth=1000.0, bytes_per_step=50e9)


def above(trial: Trial, options: AuditOptions) -> list[Flag]:
    return physics_flags(record(trial), options)


def test_a_rate_above_what_its_bytes_allow_is_impossible() -> None:
    assert above(PLAIN, BOUND) == [], "20 tokens a second of 50 GB at 1000 GB/s"
    fast = replace(PLAIN, seconds=4.99)
    found = above(fast, BOUND)
    assert [flag.numbers for flag in found] == [{"rate": pytest.approx(100 / 4.99), "bound": pytest.approx(20.0)}]
    assert "1000 GB/s over 50.00 GB a step at 1.00 tokens a step" in found[0].sentence
    assert above(replace(fast, rounds=50), BOUND) == [], "two tokens a step"
    assert above(fast, AuditOptions(bytes_per_step=50e9)) == [] == above(fast, AuditOptions(bandwidth=1000.0))
    assert above(replace(fast, step_bytes=50e9), AuditOptions(bandwidth=1000.0))


@pytest.mark.parametrize(
    ("name", "unread"),
    [("llama 7B Q4_0", 0.1), ("llama 3B", 0.1), ("llama 2.9B", 0.4), ("smollm2 135M", 0.4), ("", 0.1),
     ("gemma3n E2B", None), ("gemma E4B it", None)],
)  # fmt: skip
def test_a_step_may_leave_a_part_of_the_file_unread(name: str, unread: float | None) -> None:
    for key in ("model_type", "model"):
        trial = replace(PLAIN, model_bytes=50e9, settings={key: name} if name else {})
        options = AuditOptions(bandwidth=1000.0)
        if unread is None:
            assert above(replace(trial, seconds=1e-6), options) == []
            continue
        edge = 100 / (20 / (1 - unread))
        assert above(replace(trial, seconds=edge * 1.001), options) == []
        found = above(replace(trial, seconds=edge * 0.999), options)
        assert found[0].numbers["bound"] == pytest.approx(20.0) and "all tensors of the file" in found[0].sentence
        noted = physics_notes(record(replace(trial, seconds=edge * 1.001)), options)
        assert len(noted) == 1 and "above the 20.0 that reading the whole file of 50.00 GB a step at 1000" in noted[0]
        assert physics_notes(record(trial), options) == [], "20.0 is not above 20.0"
        assert physics_notes(record(replace(trial, seconds=edge * 0.999)), options) == [], "that is a flag"
        assert physics_notes(record(replace(trial, seconds=edge * 1.001)), BOUND) == []


def test_tokens_that_one_pass_gives() -> None:
    assert tokens_per_step(replace(PLAIN, rounds=40), AuditOptions()) == 2.5
    wide = Trial("l", "x", streams=3, printed={"mean_length": 1.5})
    assert tokens_per_step(wide, AuditOptions()) == 4.5 and tokens_per_step(wide, AuditOptions(streams=2)) == 3.0
    assert tokens_per_step(Trial("l", "x", rounds=40), AuditOptions()) == 1.0


def test_a_published_rate_is_impossible_when_every_trial_says_so() -> None:
    wide = replace(PLAIN, streams=2, rounds=50, distinct=100)
    for claim, impossible in ((20.1, True), (19.9, False)):
        found = physics_flags(record(replace(PLAIN, seconds=9.0)), replace(BOUND, claim=claim))
        assert bool(found) == impossible
    assert found == []
    told = physics_flags(record(replace(PLAIN, seconds=9.0)), replace(BOUND, claim=20.1))
    assert told[0].numbers == {"rate": 20.1, "bound": 20.0} and "x (line 2), published" in told[0].sentence
    # Two answers of a step: 40 tokens in sum, 20 for one.
    assert physics_flags(record(wide), replace(BOUND, claim=20.1))[0].numbers["bound"] == pytest.approx(20.0)
    assert physics_flags(record(wide), replace(BOUND, claim=39.9, per="aggregate")) == []
    assert physics_flags(record(wide), replace(BOUND, claim=40.1, per="aggregate"))[0].numbers["bound"] == 40.0
    fast = replace(PLAIN, rounds=50)
    assert physics_flags(record(PLAIN, fast), replace(BOUND, claim=30.0)) == []
    assert physics_flags(record(PLAIN, fast), replace(BOUND, claim=41.0))[0].numbers["bound"] == 40.0, "the highest"
    assert physics_flags(record(Trial("l", "x")), replace(BOUND, claim=99.0)) == [], "no rate at all"
    assert physics_flags(record(PLAIN), AuditOptions(claim=99.0, bandwidth=1000.0)) == []
