"""What the cost model says of every arm of a cell, beside what was measured: one row an arm and prompt class.

Two strengths, kept apart. `predicted` takes the arm's own rounds and widths and prices their decodes by the step-cost
curve; its error is that of the curve. `from_draws` takes only how guesses were accepted, so it can be asked for any
draft length; its error is that of the whole model. Both divide by the measured baseline. It knows no method by name.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure.intervals import Estimate, mean_estimate
from bench.judge.measure.layout import Design, class_masks, contrast_design, pairs_design
from bench.judge.predict.cost_model import (
    INTERPOLATED,
    MEASURED,
    PROJECTED,
    Answer,
    Best,
    Prices,
    all_accepted,
    best_length,
    break_even,
    conditional,
    log_interval,
    measured_depth,
    planted,
    resamples,
    speedups,
)
from bench.judge.predict.rounds import Guessing, Turns, guessing, round_prices, turns
from bench.judge.tables.contrast import AGGREGATE, ANSWER
from bench.judge.tables.prediction import Prediction
from bench.records.arms import PLANTED

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

RESAMPLES = 400
LONGEST = 31
"""No longer draft is looked at, however wide the curve is."""
NAN = float("nan")


@dataclass(frozen=True)
class Basis:
    """What the predictions of one cell rest on."""

    cell: StoredCell
    table: RunTable
    turns: Turns
    prices: Prices

    @cached_property
    def price(self) -> np.ndarray:
        """Price of every round's width."""
        return round_prices(self.table, self.prices)

    @cached_property
    def extra(self) -> dict[str, np.ndarray]:
        """What changes of width add, by arm."""
        return {arm: self.turns.surcharges(self.table, arm, self.price) for arm in ("treatment", *PLANTED)}

    @cached_property
    def whole(self) -> Guessing | None:
        """How the guesses of all prompts went."""
        return self.guesses(np.ones(len(self.table.run), dtype=bool))

    def guesses(self, mask: np.ndarray) -> Guessing | None:
        """How those of some runs went."""
        temperature = float(self.cell.config.get("temperature", 0.0))
        return guessing(self.table, self.turns, self.extra["treatment"], mask, temperature)

    @cached_property
    def costs(self) -> np.ndarray:
        """Prices by width."""
        return self.prices.array()

    @property
    def seed(self) -> int:
        """The cell's own, so that the same records give the same interval."""
        return zlib.crc32(self.cell.cell.encode())

    @cached_property
    def drawn_costs(self) -> np.ndarray:
        """Prices (resamples, width) with their own error."""
        return self.prices.drawn(np.random.default_rng(self.seed), RESAMPLES)


def prediction_rows(case: Case) -> list[Prediction]:
    """Rows of the treatment for all prompts and each class, and of its planted controls; none without a curve."""
    if case.priced_by is None:
        return []
    table, (curve_cell, curve) = case.settled, case.priced_by
    basis = Basis(case.cell, table, turns(table), Prices.of(curve))
    common = {**case.of_arm, "predicted_from": curve_cell, "predicted_layout": curve.layout}
    rows = []
    for name, mask in class_masks(table).items():
        design = contrast_design(table, mask)
        if design is not None:
            found = _explained(basis, "treatment", design)
            rows.append(Prediction(**common, arm="treatment", prompt_class=name, **found,
                                   **_from_draws(basis, mask, found["measured"])))  # fmt: skip
    for arm in PLANTED:
        design = pairs_design(table, arm)
        if design is not None:
            found = _explained(basis, arm, design)
            rows.append(Prediction(**common, arm=arm, prompt_class="all", **found,
                                   **_planted(basis, arm, found["measured"])))  # fmt: skip
    return rows


def _explained(basis: Basis, arm: str, design: Design) -> dict[str, Any]:
    """The arm's own rounds with their decodes at the curve's prices, and where the difference lies.

    `alternation` is what changes of width add, measured in the cell's other arms: without it the prediction would be
    `curve_only`. Everything but the decodes is as measured.
    """
    table, own = basis.table, basis.turns
    plain, switched = own.priced(table, basis.price, basis.extra[arm])
    rest = table.window - table.seconds["decode"]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = [np.log(table.tokens.distinct / (rest + decode)) for decode in (plain + switched, plain)]
        measured = np.log(table.rate)
    # The baseline is never predicted: its runs keep the rate that was measured.
    mine = table.of(arm)
    predicted, curve_only = (design.ratio(np.where(mine, rate, measured)) for rate in rates)
    error = _arm_mean(design, measured - rates[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.mean((table.seconds["decode"] / table.window)[design.arm.run]))
    low, high = _with_curve(error, share * basis.prices.log_se * _wide(basis, arm))
    together = int(np.ceil(table.concurrent[mine].max()))
    return {
        "scope": AGGREGATE if together > 1 else ANSWER,
        "predicted": predicted,
        "measured": design.ratio(measured),
        "ratio": error.ratio if np.isfinite(predicted) else NAN,
        "ratio_low": low,
        "ratio_high": high,
        "abs_error": abs(error.ratio - 1),
        "curve_only": curve_only,
        "alternation": predicted / curve_only,
        "switched_share": own.share_switched(table, mine),
        "redecode_cost": own.redecode_cost(table, mine),
        "note": _note(basis, arm),
    }


def _wide(basis: Basis, arm: str) -> float:
    """Share of an arm's decode time in decodes wider than 1: the rest has no error of the curve in it."""
    mine = basis.table.of(arm)[basis.table.turns["owner"]]
    times, wide = basis.table.turns["decode_ns"][mine].astype(float), basis.table.turns["width"][mine] > 1
    return float(times[wide].sum() / times.sum()) if times.sum() > 0 else 0.0


def _arm_mean(design: Design, logs: np.ndarray) -> Estimate:
    return mean_estimate(design.arm.by_unit(logs, design.n_units), design.units)


def _with_curve(error: Estimate, curve_se: float) -> tuple[float, float]:
    """Interval of measured over predicted: the spread over units, and the curve's own error, which all units share."""
    low, high = error.interval()
    if not (low > 0 and np.isfinite(high)):
        return low, high
    half = float(np.hypot(np.log(high / error.ratio), 1.96 * curve_se))
    return float(error.ratio * np.exp(-half)), float(error.ratio * np.exp(half))


def _note(basis: Basis, arm: str) -> str:
    """Widths of the arm that have no price or only one between two others, as a sentence; else empty."""
    table = basis.table
    widths = np.unique(table.turns["width"][table.of(arm)[table.turns["owner"]]]).tolist()
    found = {width: basis.prices.price(width).how for width in widths}
    told = []
    for how, words in (
        ("unmeasured", "outside the curve"),
        ("cliff", "beside a cliff of the curve"),
        (INTERPOLATED, "between two timed widths"),
    ):
        these = [str(width) for width, kind in found.items() if kind == how]
        told += [f"width {', '.join(these)}: {words}"] if these else []
    return "; ".join(told)


def _from_draws(basis: Basis, mask: np.ndarray, measured: float) -> dict[str, Any]:
    """The weaker evidence: speed-up at the arm's own draft length from acceptance by depth, and the best length."""
    found = basis.whole if mask.all() else basis.guesses(mask)
    longest = 0 if found is None else min(LONGEST, (max(basis.prices.cost) // found.streams) - 1)
    if found is None or longest < 1:
        return {}
    tested, costs, terms = found.tested.sum(axis=0), basis.costs, found.terms()
    every = speedups(costs, conditional(tested, found.accepted.sum(axis=0), longest), terms)
    drawn = _resampled(basis, found, longest)
    row: dict[str, Any] = {
        "keeps": found.keeps,
        "fires": float(np.mean(terms.fires)),
        "kept": terms.kept,
        "acceptance": float(found.accepted.sum() / tested.sum()) if tested.any() else NAN,
        **{f"{name}_cost": float(value) for name, value in found.parts().items()},
        "break_even": break_even(costs, terms, longest)[0],
        "free_break_even": break_even(costs, terms.free(), longest)[0],
    }
    if found.length is not None and found.length <= longest:
        own, value = found.length, float(every[found.length - 1])
        low, high = log_interval(value, drawn[:, own - 1], len(found.tested))
        endless = replace(terms, switch=0.0) if found.settles else terms
        row |= {"own_length": own, "from_draws": value, "from_draws_low": low, "from_draws_high": high,
                "ratio_from_draws": measured / value,
                "ceiling": all_accepted(costs, endless, own)}  # fmt: skip
    best = best_length(every, drawn, len(found.tested)) if found.keeps else None
    return row if best is None else row | _best_columns(basis, found, best)


def _best_columns(basis: Basis, found: Guessing, best: Best) -> dict[str, Any]:
    depth = measured_depth(found.tested.sum(axis=0))
    widths = [found.streams + best.length * guessers for guessers in range(found.streams + 1)]
    between = any(basis.prices.price(width).how == INTERPOLATED for width in widths)
    return {
        "best_draft": best.length, "best_speedup": best.speedup, "best_low": best.low, "best_high": best.high,
        "best_draft_low": best.shortest, "best_draft_high": best.longest, "measured_depth": depth,
        "best_kind": PROJECTED if best.length > depth else INTERPOLATED if between else MEASURED,
    }  # fmt: skip


def _resampled(basis: Basis, found: Guessing, longest: int) -> np.ndarray:
    """Speed-ups (resamples, length): units drawn again, and prices with their own error."""
    weights = resamples(len(found.tested), RESAMPLES, basis.seed)
    evidence = found.tested.sum(axis=0)
    chances = conditional(weights @ found.tested, weights @ found.accepted, longest, evidence)
    return speedups(basis.drawn_costs, chances, found.terms(weights))


def _planted(basis: Basis, arm: str, measured: float) -> dict[str, Any]:
    """A control from the treatment's terms alone: every guess right (oracle), or every guess wrong (sabotage).

    Nothing is said of a loop whose accepted guesses bring no new tokens, since what its guesses cost hangs on how many
    are accepted; nor of an oracle that a near tie made wrong.
    """
    table = basis.table
    found, mine = basis.whole, table.of(arm)
    missed = int((table.counters["verified"] - table.counters["accepted"])[mine].sum())
    if found is None or found.length is None or not found.keeps or (arm == "oracle" and missed):
        return {}
    tokens = int(np.median(table.tokens.distinct[mine])) // found.streams
    answer = Answer(tokens, found.narrows, tuple(basis.extra[arm][0].tolist()), found.settles)
    value = planted(basis.costs, found.terms(), found.length, answer, right=arm == "oracle")
    return {"from_draws": value, "ratio_from_draws": measured / value, "own_length": found.length}


def median_errors(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How far the model was off in the median, by machine and build: |measured / predicted - 1| over sound treatments
    with all prompts together; `arms` is how many, `with_controls` the same over oracle and sabotage too.
    """
    sound = [row for row in rows if row["prompt_class"] == "all" and not row.get("void") and np.isfinite(row["ratio"])]
    found = []
    for machine, build in sorted({(row["machine"], row["build"]) for row in sound}):
        here = [row for row in sound if (row["machine"], row["build"]) == (machine, build)]
        own = [row for row in here if row["arm"] == "treatment"]
        if own:
            found.append({
                "machine": machine, "build": build, "arms": len(own),
                "abs_error": float(np.median([row["abs_error"] for row in own])),
                "curve_error": float(np.median([abs(row["measured"] / row["curve_only"] - 1) for row in own])),
                "with_controls": float(np.median([row["abs_error"] for row in here])), "all_arms": len(here),
            })  # fmt: skip
    return found
