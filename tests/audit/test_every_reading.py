"""Every rate that can be read from one trial, and what a published one is when it is put right: by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench.audit.readings import explain, honest, readings
from bench.audit.trials import Record, Trial

ONE = Trial("line 2", "x", counted=100, distinct=100, seconds=5.0)


def record(*trials: Trial) -> Record:
    return Record(Path("r"), "a table", trials)


def rated(rate: float, **more: object) -> Trial:
    return Trial("line 2", "x", printed={"tok_s": rate}, **more)  # type: ignore[arg-type]


FULL = Trial(
    "line 2",
    "x",
    counted=120,
    distinct=80,
    first=2,
    seconds=10.0,
    streams=2,
    startup_counted=12,
    startup_distinct=8,
    startup_seconds=2.0,
    prompt_tokens=30,
    prefill_seconds=2.5,
)


def test_every_reading_by_hand() -> None:
    sums = {
        (): 80 / 10,
        ("WINDOW",): 82 / 10,
        ("STARTUP",): 72 / 8,
        ("STARTUP", "WINDOW"): 74 / 8,
        ("PREFILL_TIME",): 82 / 12.5,
        ("PREFILL_IN_RATE",): 112 / 12.5,
        ("DUPLICATE",): 120 / 10,
        ("DUPLICATE", "WINDOW"): 122 / 10,
        ("DUPLICATE", "STARTUP"): 108 / 8,
        ("DUPLICATE", "STARTUP", "WINDOW"): 110 / 8,
        ("DUPLICATE", "PREFILL_TIME"): 122 / 12.5,
        ("DUPLICATE", "PREFILL_IN_RATE"): 152 / 12.5,
        ("PROMPT_RATE",): 12.0,
    }
    found = {reading.faults: reading.tok_s for reading in readings(FULL)}
    wanted = {faults: rate / 2 for faults, rate in sums.items()}
    wanted |= {(*faults, "AGGREGATE_AS_PER_ANSWER"): rate for faults, rate in sums.items()}
    assert found == pytest.approx(wanted)
    counts = [len(reading.faults) for reading in readings(FULL)]
    assert all(a <= b for a, b in pairwise(counts)) and counts[0] == 0
    assert next(r for r in readings(FULL) if r.faults == ("STARTUP",)).tokens == 72


def test_printed_rates_are_readings_too() -> None:
    mixed = Trial(
        "l", "x", mixed_tokens=640, printed={"pg": 55.0, "total": 70.0, "S": 80.0, "peak": 90.0, "tok_s": 20.0}
    )
    assert {reading.tok_s: reading.faults for reading in readings(mixed)} == {
        55.0: ("PREFILL_IN_RATE",),
        70.0: ("PREFILL_IN_RATE",),
        80.0: ("PREFILL_IN_RATE",),
        90.0: ("PEAK",),
        20.0: (),
    }
    assert 55.0 not in [reading.tok_s for reading in readings(replace(mixed, mixed_tokens=0))]
    own = replace(ONE, printed={"tok_s": 33.0, "answer_tok_s": 6.0})
    assert {reading.tok_s for reading in readings(own)} == {20.0, 6.0}
    assert 33.0 in {reading.tok_s for reading in readings(replace(own, seconds=0.0))}


@pytest.mark.parametrize(
    ("value", "per", "faults", "right"),
    [
        (4.0, "answer", (), 4.0),
        (8.0, "answer", ("AGGREGATE_AS_PER_ANSWER",), 4.0),
        (8.0, "aggregate", (), 8.0),
        (12.2, "aggregate", ("DUPLICATE", "WINDOW"), 8.2),
        (13.5, "aggregate", ("DUPLICATE", "STARTUP"), 9.0),
        (13.75, "aggregate", ("DUPLICATE", "STARTUP", "WINDOW"), 9.25),
        (6.875, "answer", ("DUPLICATE", "STARTUP", "WINDOW"), 4.625),
        (12.16, "aggregate", ("DUPLICATE", "PREFILL_IN_RATE"), 8.0),
        (9.76, "aggregate", ("DUPLICATE", "PREFILL_TIME"), 8.0),
        (8.96, "aggregate", ("PREFILL_IN_RATE",), 8.0),
        (4.48, "answer", ("PREFILL_IN_RATE",), 4.0),
    ],
)
def test_a_published_rate_put_right(value: float, per: str, faults: tuple[str, ...], right: float) -> None:
    reading = explain(value, [FULL], per)
    assert reading is not None and reading.faults == faults and honest(reading, per) == pytest.approx(right)


def test_a_rate_is_explained_to_its_digit_before_it_is_to_one_per_cent() -> None:
    trials = [replace(ONE, seconds=100 / 20.1), replace(ONE, seconds=100 / 20.16)]
    exact = explain(20.16, trials)
    assert exact is not None and exact.tok_s == pytest.approx(20.16)
    loose = explain(20.25, trials)
    assert loose is not None and loose.tok_s == pytest.approx(20.1), "the first within a hundredth"
    assert explain(20.36, trials) is not None and explain(20.4, trials) is None
    assert explain(20.0, []) is None
