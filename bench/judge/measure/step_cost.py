"""Rows of the step-cost table, and what a curve says of guesses that are always as good. It times nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.judge.measure.curve import Curve
from bench.judge.tables.machine import StepCost

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


def step_cost_rows(case: Case) -> list[StepCost]:
    """One row a width and layout."""
    return [_row(case, curve, width) for curve in case.curves for width in sorted(curve.step_ms)]


def _row(case: Case, curve: Curve, width: int) -> StepCost:
    cost, change = curve.relative.get(width), curve.change.get(width)
    low, high = cost.interval() if cost else (float("nan"), float("nan"))
    return StepCost(
        **case.of_model, layout=curve.layout, n_past=curve.n_past, width=width, step_ms=curve.step_ms[width],
        relative_cost=cost.ratio if cost else float("nan"), ci_low=low, ci_high=high,
        passes=cost.n_units if cost else 0, warm_ups_dropped=curve.warm_ups,
        change_decodes=change.decodes if change else float("nan"),
        change_ms=change.extra_ms if change else float("nan"),
        predicted_tok_s_all_accepted=width / curve.step_ms[width] * 1e3,
    )  # fmt: skip


def expected_tokens(acceptance: float, guesses: int) -> float:
    """Mean tokens a round when each of `guesses` is accepted with the same chance, up to the first miss: 1 + a + a^2 ..

    Leviathan et al. 2023, equation 1.
    """
    return float(sum(acceptance**depth for depth in range(guesses + 1)))


def predicted_tok_s(curve: Curve, acceptance: float, guesses: int, draft_ms: float = 0.0) -> float:
    """Tokens per second of guess-and-verify with `guesses` guesses, hence width guesses + 1.

    Raises UserError when that width was not timed.
    """
    return expected_tokens(acceptance, guesses) / (curve.milliseconds(guesses + 1) + draft_ms) * 1e3
