"""A short run of the fuzzer: the first inputs of every reader, and some that Hypothesis draws."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
