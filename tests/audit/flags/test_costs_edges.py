"""Where each flag about the cost of a step or a profiler's counters begins: a step to either side of its threshold."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from bench.audit.flags.costs import cost_flags, cost_notes, curves, speculation_rate, step_costs
from bench.audit.flags.counters import counter_flags, counter_notes
from bench.audit.launches import Launches
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Step, Trial


def record(*trials: Trial, form: str = "a table") -> Record:
    return Record(Path("r"), form, trials)


def row(arm: str, rate: float, **more: object) -> Trial:
    return Trial("line 2", arm or "x", arm=arm, printed={"tok_s": rate}, **more)  # type: ignore[arg-type]


def cost(*trials: Trial) -> list[Flag]:
    return cost_flags(record(*trials), AuditOptions())


def widths(*rows: tuple[int, float]) -> Trial:
    return Trial("l", "x", steps=tuple(Step(k + 2, seconds=s, width=w) for k, (w, s) in enumerate(rows)))


def test_what_a_step_costs_by_width() -> None:
    warm = widths((1, 0.9), (1, 0.1), (1, 0.3), (2, 0.5), (2, 0.7), (4, math.nan))
    assert step_costs([warm]) == pytest.approx({1: 0.2, 2: 0.6}), "the first of three is warm-up, of two it is not"
    table = Trial("l", "x", streams=4, rounds=50, seconds=10.0, printed={"S_TG": 1.0})
    assert step_costs([table, warm]) == pytest.approx({1: 0.2, 2: 0.6, 4: 0.2})
    for more in ({"printed": {}}, {"rounds": 0}, {"seconds": 0.0}):
        assert 4 not in step_costs([replace(table, **more)])
    assert step_costs([widths((1, 0.0))]) == {}


def test_a_cliff_is_five_per_cent_above_the_share_of_tokens() -> None:
    assert cost(widths((1, 0.1), (2, 0.2099))) == []
    found = cost(widths((1, 0.1), (2, 0.2101), (3, 0.3)))
    assert [flag.numbers for flag in found] == [{"low": 1, "high": 2, "ratio": pytest.approx(2.101)}]
    assert (
        "a step of width 2 (line 3) takes 210.1 ms against 100.0 ms at 1: 2.10x the time for 2.00x" in found[0].sentence
    )


def test_curves_are_told_apart_by_run_test_and_depth() -> None:
    one = Trial("l", "x", streams=2, rounds=10, seconds=1.0, printed={"S_TG": 1.0}, test="tg")
    assert list(curves(record(one, replace(one, streams=4)))) == [""]
    assert list(curves(record(one, replace(one, depth=512)))) == ["tg", "tg, depth 512"]
    assert list(curves(record(replace(one, block=3), replace(one, block=7)))) == ["run 1, tg", "run 2, tg"]


def test_what_guesses_are_worth_on_a_curve() -> None:
    curve = {1: 0.1, 2: 0.12, 4: 0.3}
    assert speculation_rate(curve, 0, 0.5) == pytest.approx(10.0)
    assert speculation_rate(curve, 1, 0.5) == pytest.approx(1.5 / 0.12)
    assert speculation_rate(curve, 3, 0.5, 0.1) == pytest.approx(1.875 / 0.4)
    with pytest.raises(KeyError):
        speculation_rate(curve, 2, 0.5)
    notes = cost_notes(record(widths((1, 0.1), (2, 0.12), (4, 0.3))), AuditOptions(acceptance=0.5))
    assert notes == [
        "step cost: width 1 100.0 ms, width 2 120.0 ms, width 4 300.0 ms",
        "at an acceptance of 0.5: 0 guesses 10.0 tok/s, 1 guesses 12.5 tok/s, 3 guesses 6.2 tok/s; best with 1, "
        "drafting not counted",
    ]
    assert cost_notes(record(widths((1, 0.1))), AuditOptions(acceptance=0.5)) == []


def test_a_rate_that_falls_along_the_context() -> None:
    rows = [row("", 9.0, depth=4096), row("", 10.0, depth=0), row("", 99.0, depth=8192, streams=2)]
    assert cost_notes(record(*rows), AuditOptions()) == [
        "one answer has 10.00 tok/s at depth 0 and 9.00 at 4096: -10 %; a ratio belongs to one depth"
    ]
    for rate, depth in ((9.71, 4096), (5.0, 0), (0.0, 4096)):
        assert cost_notes(record(row("", 10.0, depth=0), row("", rate, depth=depth)), AuditOptions()) == []


KERNEL = Launches("gemv", "line 2", calls=2, us=100.0, dram_bytes=50e6, counters={"hits": 3.0, "reads": 7.0})


def counted(code: str, one: Launches, **options: object) -> list[Flag]:
    whole = Record(Path("r"), "a profiler's counters", (), launches=(one,))
    return [flag for flag in counter_flags(whole, AuditOptions(**options)) if flag.code == code]  # type: ignore[arg-type]


def test_a_counter_that_reads_nothing_is_not_zero() -> None:
    zero = replace(KERNEL, counters={"L2_HIT": 0.0, "reads": 7.0, "VGPR_Count": 9.0}, zeros=("L2_HIT", "a[1]"))
    found = counted("ZERO_COUNTER", zero)
    assert [flag.numbers for flag in found] == [{"counters": 1}]
    assert "L2_HIT read 0 in every launch while reads does not" in found[0].sentence
    assert found[0].sentence.endswith("there is no hit rate")
    other = counted("ZERO_COUNTER", replace(zero, counters={"x": 0.0, "reads": 7.0}, zeros=("x",)))
    assert "hit rate" not in other[0].sentence
    none = counted("ZERO_COUNTER", replace(zero, counters={"x": 0.0, "VGPR_Count": 9.0}, zeros=("x",)))
    assert "every counter reads 0 (x)" in none[0].sentence
    assert counted("ZERO_COUNTER", replace(zero, zeros=("a[1]",))) == [] == counted("ZERO_COUNTER", KERNEL)
    absent = counted("ABSENT_COUNTER", replace(KERNEL, absent=("p", "q")))
    assert [flag.numbers for flag in absent] == [{"counters": 2}] and counted("ABSENT_COUNTER", KERNEL) == []


def test_shares_bytes_and_bandwidth_of_a_kernel() -> None:
    for name in ("share_of_peak", "hit_rate"):
        assert counted("VOID", replace(KERNEL, **{name: 1.02})) == []
        assert [flag.numbers for flag in counted("VOID", replace(KERNEL, **{name: 1.03}))] == [{"share": 1.03}]
    for share, flagged, half in (
        (0.981, False, False),
        (0.979, True, False),
        (0.52, True, True),
        (0.48, True, True),
        (0.53, True, False),
        (0.47, True, False),
    ):
        found = counted("VOID", KERNEL, bytes_per_step=50e6 / share)
        assert bool(found) == flagged
        if found:
            assert found[0].numbers == {"share": pytest.approx(share)} and found[0].sentence.endswith("half") == half
            assert "0.050 GB from memory" in found[0].sentence
    assert counted("VOID", replace(KERNEL, dram_bytes=0.0), bytes_per_step=1e9) == []
    assert counted("VOID", replace(KERNEL, dram_bytes=None), bytes_per_step=1e9) == []
    assert counted("IMPOSSIBLE", KERNEL, bandwidth=491.0) == []
    found = counted("IMPOSSIBLE", KERNEL, bandwidth=490.0)
    assert [flag.numbers for flag in found] == [{"rate": pytest.approx(500.0), "bound": 490.0}]
    assert "50.0 MB in 100.0 us are 500 GB/s" in found[0].sentence
    assert counted("IMPOSSIBLE", replace(KERNEL, us=None), bandwidth=1.0) == []
    whole = Record(Path("r"), "a profiler's counters", (), launches=(KERNEL,))
    assert (
        len(counter_notes(whole, AuditOptions())) == 1 and counter_notes(whole, AuditOptions(bytes_per_step=1.0)) == []
    )
    assert counter_notes(replace(whole, launches=(replace(KERNEL, dram_bytes=None),)), AuditOptions()) == []
