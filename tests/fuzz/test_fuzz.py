"""A short run of the fuzzer: the first inputs of every reader, and some that Hypothesis draws."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import __main__ as fuzz
from tests.fuzz import kills
from tests.fuzz.targets import TARGETS, once

SECONDS = 1.0
"""Of each reader; `make fuzz` is the long run."""


@pytest.mark.parametrize("name", TARGETS)
def test_the_first_inputs(tmp_path: Path, name: str) -> None:
    until, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < until or number < 5:
        once(name, number, tmp_path / "one")
        number += 1


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_that_are_drawn(tmp_path: Path, name: str) -> None:
    @settings(max_examples=15, deadline=5000, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(1_000, 2**40))
    def check(number: int) -> None:
        once(name, number, tmp_path / "one")

    check()


def test_a_reader_that_catches_everything_hides_no_slow_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def once(*_: object) -> None:
        try:
            while True:
                pass
        except Exception:
            pass

    monkeypatch.setattr(fuzz, "once", once)
    monkeypatch.setattr(fuzz, "SLOW_S", 0.2)
    before = [signal.getsignal(number) for number in (signal.SIGPROF, signal.SIGALRM)]
    try:
        found = fuzz.run("gguf", 60, 2, 7)
    finally:
        for number, was in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(number, was)
    assert found["inputs"] == 2 and [*found["first"].values()] == [7]
    assert [place.split()[0] for place in found["faults"]] == ["Slow"]


def test_every_reader_has_its_share() -> None:
    assert {*fuzz.SHARES} == {*TARGETS}
    assert sum(fuzz.SHARES.values()) == 100 and min(fuzz.SHARES.values()) >= 2


def test_kills_are_counted_by_kind_and_each_fault_by_name() -> None:
    killed, wrong = Counter(parent=2, writing=1), Counter({"orphans": 1})
    assert kills.summary(2, killed, wrong) == (
        "3 kills in 2 sweeps (2 parent, 0 worker, 0 peer, 1 writing), 2 resumes: 0 half cells, 1 orphans, "
        "0 foreign files touched, 0 locks held, 0 leftovers, 0 resumes wrong"
    )
