"""How exact a claim is meant in words, and the worse of two grades."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from bench.judge.claims.beside import _worst
from bench.judge.claims.outcome import told_tolerance
from bench.judge.tables.contrast import GRADES


@pytest.mark.parametrize(
    ("tolerance", "told"),
    [(None, "to 0.005 as printed"), (0.005, "to 0.005 as printed"), (0.001, "to 0.001 as printed"),
     (0.006, "to 0.006 as the rule allows"), (0.1, "to 0.1 as the rule allows")],
)  # fmt: skip
def test_a_tolerance_is_the_rules_where_it_is_wider_than_what_is_printed(tolerance: float | None, told: str) -> None:
    claim: Any = SimpleNamespace(published=("1.36",), rule=SimpleNamespace(tolerance=tolerance))
    assert told_tolerance(claim) == told


@pytest.mark.parametrize(("one", "other"), list(product(GRADES, GRADES)))
def test_two_rows_are_divergent_where_either_is(one: str, other: str) -> None:
    found: Any = _worst({"lossless": one}, {"lossless": other})  # type: ignore[arg-type]
    assert (found == GRADES[-1]) == (GRADES[-1] in (one, other))
    assert found in (one, GRADES[-1])
