"""The interval of a prediction, the widths behind it, and how far a machine's predictions are off, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.judge.measure.intervals import Estimate, mean_estimate
from bench.judge.predict.cost_model import Prices
from bench.judge.predict.predictions import _note, _wide, _with_curve, median_errors


def test_the_curve_s_own_error_is_added_to_that_of_the_units() -> None:
    error = mean_estimate(np.array([0.10, 0.14, 0.09, 0.15]), "prompts")
    low, high = error.interval()
    assert _with_curve(error, 0.0) == pytest.approx((low, high))
    half = math.sqrt(math.log(high / error.ratio) ** 2 + (1.96 * 0.05) ** 2)
    expected = error.ratio * math.exp(-half), error.ratio * math.exp(half)
    assert _with_curve(error, 0.05) == pytest.approx(expected)
    assert _with_curve(Estimate(0.1, 0.0, 1, "prompts"), 0.05) == (0.0, math.inf)


def basis_of(widths: list[int], times: list[int], prices: Any = None) -> Any:
    """Two runs, the second of the arm, with these rounds."""
    size = len(widths)
    turns = {"owner": np.array([0] * 3 + [1] * size), "decode_ns": np.array([7, 8, 9, *times]),
             "width": np.array([1, 1, 5, *widths])}  # fmt: skip
    table = SimpleNamespace(of=lambda arm: np.array([False, True]), turns=turns)
    return SimpleNamespace(table=table, prices=prices)


def test_only_wider_decodes_have_the_curve_s_error() -> None:
    assert _wide(basis_of([1, 2, 4], [10, 20, 30]), "treatment") == pytest.approx(50 / 60)
    assert _wide(basis_of([1, 1], [10, 20]), "treatment") == 0
    assert _wide(basis_of([2, 3], [10, 20]), "treatment") == 1
    assert _wide(basis_of([2], [0]), "treatment") == 0


def test_every_width_without_a_price_of_its_own_is_named_once() -> None:
    prices = Prices.of(SimpleNamespace(relative={1: mean_estimate(np.array([0.0, 0.0]), "passes"),
                                                 2: mean_estimate(np.log([1.1, 1.1]), "passes"),
                                                 4: mean_estimate(np.log([1.3, 1.3]), "passes"),
                                                 8: mean_estimate(np.log([4.0, 4.0]), "passes")}))  # fmt: skip
    told = _note(basis_of([3, 2, 3, 9, 6, 16, 1], [1] * 7, prices), "treatment")
    parts = ("width 9, 16: outside the curve", "width 6: beside a cliff of the curve",
             "width 3: between two timed widths")  # fmt: skip
    assert told == "; ".join(parts)
    assert _note(basis_of([1, 2, 4, 8], [1] * 4, prices), "treatment") == ""


def row(arm: str, error: float, curve: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"machine": "box", "build": "b", "arm": arm, "prompt_class": "all", "void": False, "ratio": 1 + error,
            "abs_error": error, "measured": 1.5, "curve_only": 1.5 / curve, **more}  # fmt: skip


def test_the_median_error_of_a_machine_is_over_its_sound_treatments() -> None:
    rows = [row("treatment", 0.02, 1.3), row("treatment", 0.05, 0.9), row("treatment", 0.30, 1.1),
            row("oracle", 0.40), row("sabotage", 0.50), row("treatment", 9.0, void=True),
            row("treatment", 9.0, prompt_class="prose"), row("treatment", 9.0, ratio=math.nan),
            row("treatment", 0.07, machine="card"), row("oracle", 0.09, build="other")]  # fmt: skip
    box, card = median_errors(rows)
    assert (box["machine"], box["build"], box["arms"], box["all_arms"]) == ("box", "b", 3, 5)
    assert (box["abs_error"], box["with_controls"]) == pytest.approx((0.05, 0.30))
    assert box["curve_error"] == pytest.approx(0.1)
    assert (card["machine"], card["arms"], card["abs_error"]) == ("card", 1, pytest.approx(0.07))
