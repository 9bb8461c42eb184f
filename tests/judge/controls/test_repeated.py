"""An attempt that was not kept, in words: what others took, and how long it lasted."""

from __future__ import annotations

from typing import Any

import pytest

from bench.judge.controls.repeated import _named


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        ({"arm": "treatment", "block": 3, "other_cpus": 0.5, "steal": 0.25, "window_ns": 1_230_000_000},
         "treatment of block 3 (0.75 CPUs, 1.23 s)"),
        ({"arm": "baseline", "block": 0, "other_cpus": 0.5}, "baseline of block 0 (0.50 CPUs, 0.00 s)"),
        ({"arm": "again", "block": 1, "steal": 2.0, "window_ns": 10**9}, "again of block 1 (2.00 CPUs, 1.00 s)"),
        ({"width": 4, "layout": "tokens", "taken": 0.3}, "width 4 in tokens (0.30 CPUs)"),
    ],
)  # fmt: skip
def test_an_attempt_is_told_by_what_it_was(attempt: dict[str, Any], told: str) -> None:
    assert _named(attempt) == told
