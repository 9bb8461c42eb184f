"""A speed-up over many texts of which few were timed: acceptance is cheap to know, time is not.

What texts differ in is how many tokens a round gives and how wide its decodes are, and both are the same whoever times
them. So a text's log speed-up is x + d: x, its tokens a round over the price of its rounds, is known of every text that
the arm decoded; d, all else, only of the timed ones, where it hardly differs between texts. The estimate is the mean of
x over all texts plus the mean of d over the timed ones (a difference estimator in two phases; Cochran, Sampling
Techniques, 3rd edition 1977, 12.2 and 12.6, with the slope that the identity speed-up = tokens a round / round cost
gives). The price of a shape is its mean time in the timed runs over the baseline's round. It knows no method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure.estimands import noise_of
from bench.judge.measure.intervals import Estimate
from bench.judge.measure.layout import contrast_design
from bench.records.stopping import looked

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

FEWEST = 3
"""Timed texts whose d has a spread that means something, and further ones that are worth it."""
Shapes = dict[tuple[int, int], float]
"""By (width, decodes again): how many rounds, or what one costs in plain rounds."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The two phases. `x` of all texts, the timed ones first, and `d` of those."""

    x: np.ndarray
    d: np.ndarray

    def estimate(self) -> Estimate:
        """The speed-up over texts like all of these."""
        timed, every = len(self.d), len(self.x)
        # The timed are among all: their x and d go together.
        both = float(np.cov(self.x[:timed], self.d)[0, 1]) if timed > 1 else 0.0
        parts = np.array([self.x.var(ddof=1) / every, self.d.var(ddof=1) / timed])
        variance = max(float(parts.sum()) + 2 * both / every, float(parts.max()))
        freedom = float(parts.sum()) ** 2 / float((parts**2 / np.array([every - 1.0, timed - 1.0])).sum())
        return Estimate(float(self.x.mean() + self.d.mean()), float(np.sqrt(variance)), every, "prompts", 0, every,
                        df=freedom)  # fmt: skip


def texts_of(case: Case, kind: str = "all") -> Texts | None:
    """The phases of a cell or of a class of its prompts; None where too few texts were timed, or none was not."""
    found = case.cell.facts.get("untimed") or []
    further = [one for one in found if kind in ("all", one["class"])]
    table = case.settled
    mine = table.of("treatment") & ((table.prompt_class == kind) | (kind == "all"))
    names = list(dict.fromkeys(table.prompt[mine].tolist()))
    if len(names) < FEWEST or len(further) < FEWEST:
        return None
    prices = _prices(table)
    timed = [_timed(table, mine & (table.prompt == name), name, prices) for name in names]
    values = [_x(_shapes_of(one), one["tokens"], prices) for one in further]
    if None in values or any(one is None for one in timed):
        return None
    xs, ds = np.array([one for one in timed if one is not None]).T
    return Texts(np.r_[xs, np.array(values, dtype=float)], ds)


def columns(case: Case, kind: str) -> dict[str, Any]:
    """The columns of a row of the table of speed-ups; none where there is no such estimate."""
    found = texts_of(case, kind)
    if found is None:
        return {}
    made, table = found.estimate(), case.settled
    if looked(case.cell.config):
        noise = noise_of(np.log(table.rate), case.stalls.unknown, table, stopped=True)
        own = contrast_design(table, None if kind == "all" else table.prompt_class == kind)
        weight = own.block_weight if own else 1.0
        made = replace(made, stop_se=float(np.sqrt(noise.variance * weight)), stop_df=float(noise.df))
    low, high = made.interval()
    return {"texts_speedup": made.ratio, "texts_low": low, "texts_high": high, "n_texts": made.n_units}


def _timed(table: RunTable, runs: np.ndarray, name: str, prices: Shapes) -> tuple[float, float] | None:
    """x and d of a timed text."""
    rates = np.log(table.rate)
    base = table.of("baseline") & (table.prompt == name)
    inside = runs[table.turns["owner"]]
    x = _x(_count(table, inside), float(table.tokens.distinct[runs].sum()), prices)
    if x is None or not base.any():
        return None
    return x, float(rates[runs].mean() - rates[base].mean()) - x


def _x(shapes: Shapes, tokens: float, prices: Shapes) -> float | None:
    """Log of tokens over the price of the rounds that gave them; None where a shape has no price."""
    if not shapes or any(shape not in prices for shape in shapes):
        return None
    return float(np.log(tokens / sum(count * prices[shape] for shape, count in shapes.items())))


def _prices(table: RunTable) -> Shapes:
    """Mean time of the treatment's rounds of each shape over that of a baseline's round."""
    owner, total = table.turns["owner"], table.turns["total_ns"].astype(float)
    plain = float(total[table.of("baseline")[owner]].mean())
    mine = table.of("treatment")[owner]
    shape = _key(table)
    return {_shape(one): float(total[mine & (shape == one)].mean()) / plain for one in np.unique(shape[mine])}


def _count(table: RunTable, rows: np.ndarray) -> Shapes:
    kinds, counts = np.unique(_key(table)[rows], return_counts=True)
    return {_shape(kind): float(count) for kind, count in zip(kinds, counts, strict=True)}


_SPAN = 2**20


def _key(table: RunTable) -> np.ndarray:
    key: np.ndarray = table.turns["width"].astype(np.int64) * _SPAN + table.turns["redecoded"].astype(np.int64)
    return key


def _shape(key: int) -> tuple[int, int]:
    return int(key) // _SPAN, int(key) % _SPAN


def _shapes_of(one: Mapping[str, Any]) -> Shapes:
    rows: Iterable[Mapping[str, Any]] = one["rounds"]
    return {(int(row["width"]), int(row["redecoded"])): float(row["count"]) for row in rows}
