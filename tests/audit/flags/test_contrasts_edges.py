"""Where each flag about a comparison begins: a step to either side of its threshold."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from bench.audit.compare import comparisons
from bench.audit.emits import Emits
from bench.audit.flags.contrasts import contrast_flags, other_statistics
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Trial


def record(*trials: Trial, form: str = "a table") -> Record:
    return Record(Path("r"), form, trials)


def row(arm: str, rate: float, **more: object) -> Trial:
    return Trial("line 2", arm or "x", arm=arm, printed={"tok_s": rate}, **more)  # type: ignore[arg-type]


def said(code: str, *trials: Trial, **options: object) -> list[Flag]:
    whole, asked = record(*trials), AuditOptions(**options)  # type: ignore[arg-type]
    found = contrast_flags(whole, asked, comparisons(whole, asked, None))
    return [flag for flag in found if flag.code == code]


PAIRS = [row("none", 10.0), row("mtp", 12.0), row("mtp", 12.1), row("none", 10.1)]


def test_what_a_speed_up_lacks_is_listed() -> None:
    bare = Trial("line 2", "x", printed={"tok_s": 9.0})
    assert said("NO_BASELINE", bare) == [], "a plain rate is no claim of a speed-up"
    found = said("NO_BASELINE", bare, speedup=2.0)[0].sentence
    assert all(word in found for word in ("plain rate", "build and settings", "; the temperature"))
    full = replace(bare, settings={"build": "1"}, temperature=0.0)
    assert said("NO_BASELINE", full, speedup=2.0)[0].sentence.endswith("--against FILE)")
    for speculates in ({"drafted": 4}, {"emits": Emits(False), "rounds": 4, "counted": 5}, {"streams": 2}):
        assert said("NO_BASELINE", replace(bare, **speculates))
    for plain in (
        {"emits": Emits(False), "rounds": 5, "counted": 5},
        {"rounds": 4, "counted": 5},
        {"streams": 2, "test": "serving"},
        {"streams": 2, "test": "throughput"},
    ):
        assert said("NO_BASELINE", replace(bare, **plain)) == []
    assert said("NO_BASELINE", bare, acceptance=0.7) and said("NO_BASELINE", Trial("l", "x"), acceptance=0.7) == []
    assert said("NO_BASELINE", bare, speedup=2.0, baseline=5.0) == [] == said("NO_BASELINE", *PAIRS, speedup=1.2)


def test_one_stream_of_the_wide_context_is_no_baseline() -> None:
    solo = row("solo", 8.0)
    found = said("DEGRADED_DENOMINATOR", solo, row("mtp", 12.0))
    assert [flag.numbers for flag in found] == [{"same_context": pytest.approx(1.5)}]
    both = said("DEGRADED_DENOMINATOR", solo, row("mtp", 12.0), row("none", 10.0))
    assert [flag.numbers for flag in both] == [{"speedup": pytest.approx(1.2), "same_context": pytest.approx(1.5)}]
    assert "1.20x over the baseline; the 1.50x over one stream" in both[0].sentence
    assert said("DEGRADED_DENOMINATOR", solo, row("mtp", 12.0), row("none", 8.39)) == []
    assert said("DEGRADED_DENOMINATOR", solo, row("mtp", 12.0), row("none", 8.41))
    assert said("DEGRADED_DENOMINATOR", row("mtp", 12.0), row("none", 10.0)) == []


def test_a_drift_in_blocks_of_one_arm_is_taken_out() -> None:
    # Each run is 2 % slower than the one before it, and nothing else.
    rates = [10 * 0.98**k for k in range(4)]
    runs = [row(arm, rate) for arm, rate in zip(("none", "none", "mtp", "mtp"), rates, strict=True)]
    found = said("ORDER", *runs)
    assert [flag.numbers for flag in found] == [
        {"naive": pytest.approx(0.98**2), "level": pytest.approx(1.0), "slope": pytest.approx(math.log(0.98))}
    ]
    assert "0.96x as it stands, 1.000x once the -2.0 % a run" in found[0].sentence
    assert said("ORDER", *[runs[k] for k in (0, 2, 3, 1)]) == [] == said("ORDER", *[runs[k] for k in (0, 2, 1, 3)])
    assert said("ORDER", *runs[:3]) == [], "one run of an arm has no place before or after"
    assert said("ORDER", *(replace(run, depth=k) for k, run in enumerate(runs))) == []
    assert said("ORDER", *runs[:3], replace(runs[3], printed={})) == []
    assert len(said("ORDER", *runs, *(replace(run, prompt="q") for run in runs))) == 1, "said once an arm"
    assert said("ORDER", *(replace(runs[k], prompt="q") for k in (0, 2, 3, 1)), *runs), "a later prompt"


def test_a_single_pair_and_an_interval_that_spans_one() -> None:
    one = said("NOISE", row("none", 10.0), row("mtp", 12.0))
    assert [flag.numbers for flag in one] == [{"ratio": pytest.approx(1.2)}] and "INCONCLUSIVE" in one[0].sentence
    assert said("NOISE", *PAIRS) == []
    spans = said("NOISE", row("none", 10.0), row("mtp", 12.0), row("mtp", 9.0), row("none", 10.0))
    assert spans[0].numbers["low"] < 1 < spans[0].numbers["high"] and "over 2 pairs of runs" in spans[0].sentence
    equal = [row(arm, rate) for rate in (10.0, 10.001, 10.0005) for arm in ("none", "mtp")]
    equal[-1] = replace(equal[-1], printed={"tok_s": 10.0})
    assert said("NOISE", *equal) == [], "it could have shown so small an effect"
    assert [flag.numbers for flag in said("NO_GAIN", *equal)] == [{"speedup": pytest.approx(1.0, abs=1e-4)}]
    assert said("NO_GAIN", *equal, speedup=1.0001) == []


def test_a_side_that_is_slower() -> None:
    slower = [row("none", 10.0), row("mtp", 8.0, drafted=10, tested=8, accepted=4), row("mtp", 8.1), row("none", 10.1)]
    found = said("NO_GAIN", *slower)
    assert found[0].numbers == {"speedup": pytest.approx((0.8 * 8.1 / 10.1) ** 0.5)}
    assert "8.0 against 10.0 tok/s is 0.80x for one answer although 50 % of guesses were accepted" in found[0].sentence
    by_drafted = said("NO_GAIN", slower[0], replace(slower[1], tested=None), *slower[2:])
    assert "40 % of guesses" in by_drafted[0].sentence
    assert "although" not in said("NO_GAIN", slower[0], row("mtp", 8.0), *slower[2:])[0].sentence
    summed = said("NO_GAIN", *slower, per="aggregate")
    assert "0.80x in sum" in summed[0].sentence
    for rate, flagged in ((9.94, True), (9.96, False), (10.5, False)):
        assert bool(said("NO_GAIN", row("none", 10.0), row("mtp", rate))) == flagged


def test_a_run_below_another_is_no_claim() -> None:
    runs = [row("", 10.0, block=1), row("", 8.0, block=2)]
    assert said("NO_GAIN", *runs) == [] == said("NOISE", *runs)
    assert said("NO_GAIN", *runs, speedup=2.0) and said("NO_GAIN", runs[0], replace(runs[1], drafted=4))
    assert said("NO_GAIN", row("", 8.0), baseline=10.0) == []
    assert said("NO_GAIN", row("", 8.0, drafted=4), baseline=10.0) and said(
        "NO_GAIN", row("", 8.0), baseline=10.0, speedup=2.0
    )


def test_a_published_speed_up_may_be_a_twentieth_off() -> None:
    for claim, flagged in ((1.258, False), (1.261, True)):
        found = said("LESS_THAN_CLAIMED", *PAIRS, speedup=claim)
        assert bool(found) == flagged
    assert found[0].numbers["published"] == 1.261 and found[0].numbers["speedup"] == pytest.approx(1.199, abs=1e-3)


def test_an_answer_that_is_faster_while_all_are_slower() -> None:
    base = [row("none", 10.0, streams=2, streams_known=True)]
    for answer, total, flagged in ((5.1, 9.9, True), (5.02, 9.9, False), (5.1, 9.96, False)):
        treated = Trial("l", "m", arm="mtp", streams=2, printed={"tok_s": total, "answer_tok_s": answer})
        found = said("SLOWER_IN_SUM", *base, treated)
        assert bool(found) == flagged
        if flagged:
            assert found[0].numbers == {"answer": pytest.approx(1.02), "sum": pytest.approx(0.99)}
    alone = Trial("l", "m", arm="mtp", printed={"tok_s": 9.0, "answer_tok_s": 11.0})
    assert said("SLOWER_IN_SUM", row("none", 10.0), alone) == []


def test_no_wider_step_is_cheaper_than_a_plain_one() -> None:
    plain = Trial("l", "n", arm="none", counted=100, distinct=100, seconds=10.0)
    guess = Trial("l", "m", arm="mtp", counted=100, distinct=100, seconds=6.0, rounds=50, drafted=60, draft_seconds=2.1)
    found = said("NOT_COMPARABLE", plain, guess)
    assert [flag.numbers for flag in found] == [{"verify_ms": pytest.approx(78.0), "plain_ms": pytest.approx(100.0)}]
    for more in (
        {"draft_seconds": 1.9},
        {"draft_seconds": 0.0},
        {"draft_seconds": 6.0},
        {"draft_seconds": 6.5},
        {"rounds": None},
        {"rounds": 0},
        {"draft_seconds": math.nan},
    ):
        assert said("NOT_COMPARABLE", plain, replace(guess, **more)) == []


def test_statistics_of_the_same_runs() -> None:
    def timed(seconds: float, prompt: str) -> Trial:
        return Trial("l", "x", counted=60, distinct=60, seconds=seconds, prompt=prompt)

    treated = [timed(3.0, "p"), timed(2.0, "p"), timed(6.0, "q")]  # 20, 30 and 10 tokens a second
    base = [timed(4.0, "p"), timed(10.0, "q")]  # 15 and 6
    assert other_statistics(treated, base) == pytest.approx(
        {
            "ratio of means": 20 / 10.5,
            "ratio of medians": 20 / 10.5,
            "all tokens over all seconds": (180 / 11) / (120 / 14),
            "geometric mean of medians by prompt": math.sqrt((25 / 15) * (10 / 6)),
        }
    )
    assert set(other_statistics(treated[:2], base[:1])) == {
        "ratio of means",
        "ratio of medians",
        "all tokens over all seconds",
    }
    wide = [replace(treated[0], streams=2), *treated[1:]]
    assert "all tokens over all seconds" not in other_statistics(wide, base)
    assert "all tokens over all seconds" not in other_statistics(
        [replace(treated[0], seconds=math.nan), treated[1]], base
    )
    assert other_statistics([], base) == {} == other_statistics(treated, [replace(base[0], seconds=math.nan)])
    arms = [replace(t, arm="mtp") for t in treated] + [replace(t, arm="none") for t in base]
    found = said("STATISTIC", *arms)
    level = math.sqrt(math.sqrt(20 * 30) / 15 * 10 / 6)
    assert found[0].numbers["estimator"] == pytest.approx(level) and f"gives {level:.2f}" in found[0].sentence
    near = [replace(t, arm="none") for t in (timed(4.0, "p"), timed(8.0, "q"))]
    near += [replace(t, arm="mtp") for t in (timed(2.0, "p"), timed(4.1, "q"))]
    assert said("STATISTIC", *near) == []


def test_a_sum_sold_as_the_speed_of_one_answer() -> None:
    rows = [row("none", 10.0), row("mtp", 19.0, streams=2, streams_known=True)]
    found = said("AGGREGATE_AS_PER_ANSWER", *rows, speedup=1.9)
    assert [flag.numbers for flag in found] == [{"aggregate": pytest.approx(1.9), "answer": pytest.approx(0.95)}]
    assert said("AGGREGATE_AS_PER_ANSWER", *rows, speedup=1.9, per="aggregate") == []
    assert said("AGGREGATE_AS_PER_ANSWER", *rows, speedup=0.95) == [] == said("AGGREGATE_AS_PER_ANSWER", *rows)
    assert (
        said("AGGREGATE_AS_PER_ANSWER", *rows, speedup=1.925)
        == []
        != said("AGGREGATE_AS_PER_ANSWER", *rows, speedup=1.915)
    )


def test_prompts_that_the_baseline_never_ran() -> None:
    rows = [row("none", 10.0, prompt="p"), row("mtp", 12.0, prompt="p"), row("mtp", 13.0, prompt="q")]
    found = said("NO_BASELINE", *rows)
    assert [flag.numbers for flag in found] == [{"rows": 1}] and "mtp: q (line 2) has no row" in found[0].sentence
    assert said("NO_BASELINE", *rows[:2]) == []
