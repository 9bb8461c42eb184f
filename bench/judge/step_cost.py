"""The cost of one `llama_decode` by its width, from interleaved passes; and what follows from it.

It does not know any method, and it never interpolates: costs have cliffs (between 8 and 9 on some devices), so a width
that nobody timed has no cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bench.errors import UserError
from bench.judge.findings import Row, origin, settings
from bench.judge.statistics import Estimate, mean_estimate

if TYPE_CHECKING:
    from bench.store import StoredCell


WARM_UP = 1.5
"""A first pass this many times the median of the later ones is a warm-up, not a measurement."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Costs of one layout: width -> milliseconds and cost relative to width 1. `n_past` tokens were held before."""

    layout: str
    n_past: int
    step_ms: dict[int, float]
    relative: dict[int, Estimate]
    warm_ups: int = 0
    """Widths whose first pass was left out as a warm-up."""

    def milliseconds(self, width: int) -> float:
        """Step time of a width that was timed. Raises UserError for any other: no interpolation."""
        if width not in self.step_ms:
            timed = ", ".join(map(str, sorted(self.step_ms)))
            raise UserError(
                f"width {width} was not timed (timed: {timed}) and costs are not interpolated across widths; add it "
                f"to the curve with measure.step_widths={width} and repeat the sweep"
            )
        return self.step_ms[width]


def curves(steps: pd.DataFrame) -> list[Curve]:
    """One curve for each layout. Several steps of a width in one pass are averaged before passes are."""
    if steps.empty:
        return []
    steps = steps.assign(log_ms=np.log(steps["decode_ns"].to_numpy(float) * 1e-6))
    tables = {}
    for layout, group in steps.groupby("layout"):
        passes = group.pivot_table(index="repeat", columns="width", values="log_ms", aggfunc="mean")
        tables[str(layout)] = passes.mask(_warm_up(passes))
    # A layout whose width 1 was not timed apart has that of the other as its own: one token is one token.
    ones = [table[1] for table in tables.values() if 1 in table]
    return [
        _curve(
            layout,
            int(steps["n_past"][steps["layout"] == layout].min()),
            table,
            table[1] if 1 in table else next(iter(ones), None),
        )
        for layout, table in tables.items()
    ]


def _warm_up(passes: pd.DataFrame) -> pd.DataFrame:
    """Marks first passes of a width that took much longer than its later ones: a shape that had not been warmed."""
    marks = pd.DataFrame(False, index=passes.index, columns=passes.columns)
    if len(passes) > 2:
        later = passes.iloc[1:].median()
        marks.iloc[0] = passes.iloc[0] > later + np.log(WARM_UP)
    return marks


def _curve(layout: str, n_past: int, passes: pd.DataFrame, reference: pd.Series | None) -> Curve:
    step_ms, relative = {}, {}
    for width in passes.columns:
        logs = passes[width].dropna()
        step_ms[int(width)] = float(np.exp(logs.mean()))
        ratio = (logs - reference).dropna().to_numpy() if reference is not None else []
        if len(ratio):
            relative[int(width)] = mean_estimate(ratio, "passes")
    if reference is not None:
        step_ms.setdefault(1, float(np.exp(reference.mean())))
    return Curve(layout, n_past, step_ms, relative, int(passes.iloc[0].isna().sum()) if len(passes) else 0)


def step_cost_rows(cell: StoredCell, found: list[Curve]) -> list[Row]:
    """One row a width and layout."""
    model = cell.config.get("model") or {}
    common = {**origin(cell), **settings(cell), "model": model.get("name", ""),
              "quantization": (cell.facts.get("model") or {}).get("quantization", "")}  # fmt: skip
    rows = []
    for curve in found:
        for width in sorted(curve.step_ms):
            cost = curve.relative.get(width)
            low, high = cost.interval() if cost else (float("nan"), float("nan"))
            rows.append(
                {
                    **common,
                    "layout": curve.layout,
                    "n_past": curve.n_past,
                    "width": width,
                    "step_ms": curve.step_ms[width],
                    "relative_cost": cost.ratio if cost else float("nan"),
                    "ci_low": low,
                    "ci_high": high,
                    "passes": cost.n_units if cost else 0,
                    "warm_ups_dropped": curve.warm_ups,
                    "predicted_tok_s_all_accepted": width / curve.step_ms[width] * 1e3,
                }
            )
    return rows


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
