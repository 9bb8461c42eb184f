"""How often intervals hold the truth and verdicts are wrong, counted over simulated contrasts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.judge.claims.claim import Claim
from bench.judge.claims.rule import Rule
from bench.judge.claims.tests import MARGIN, ratio
from bench.judge.measure.estimands import Both, both, noise_of
from bench.judge.measure.intervals import mean_estimate
from bench.judge.measure.layout import contrast_design
from bench.judge.measure.runs import RunTable
from bench.judge.measure.stalls import settled
from bench.judge.tables.contrast import LIKE_THESE
from tests.calibration.simulation import Noise, Texts, contrast


@dataclass(frozen=True)
class Rates:
    """Shares of contrasts, and the median half widths of their intervals as logs."""

    these: float
    """Intervals for these texts that hold the truth."""
    like_these: float
    """The same for texts like these; nan where no row spoke of them."""
    reproduced: float
    """Claims just false that were reproduced, judged on what the row speaks of."""
    refuted: float
    """Claims just true that were refuted."""
    half_these: float
    half_like: float
    half_plain: float
    """Of the estimator without any of it: stalls inside, over prompts."""
    seen: float
    """Contrasts whose interval for these texts excludes 1."""
    seen_plain: float


def judged(table: RunTable, by_text: bool) -> tuple[Both, tuple[float, float]]:
    """Both intervals as the judge makes them, and that of the plain estimator."""
    design = contrast_design(table)
    assert design is not None
    found = settled(table)
    logs, clean = np.log(found.table.rate), found.table
    plain = mean_estimate(design.units_of(np.log(table.rate)), "prompts")
    return both(design, logs, noise_of(logs, found.unknown, clean), by_text), plain.interval()


def measure(
    seed: int | Sequence[int], count: int, noise: Noise, texts: Texts, prompts: int, blocks_each: int = 1,
    effect: float = 1.1, by_text: bool = False,
) -> Rates:  # fmt: skip
    """Rates over `count` contrasts. Lines of a page have seeds of their own: one odd draw is not to show in several."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        table, truth = contrast(rng, effect, noise, prompts, blocks_each, texts=texts)
        made, plain = judged(table, by_text)
        speaks = made.prompts is not None and made.speaks_of == LIKE_THESE
        here, over = (np.log(one.interval()) for one in (made.noise, made.prompts or made.noise))
        ends = np.log(plain)
        target = truth.like_these if speaks else truth.these
        found.append((
            here[0] <= truth.these <= here[1], over[0] <= truth.like_these <= over[1] if speaks else np.nan,
            verdict(made, target) == "reproduced", verdict(made, target) == "refuted",
            np.ptp(here) / 2, np.ptp(over) / 2 if speaks else np.nan, np.ptp(ends) / 2,
            not here[0] <= 0 <= here[1], not ends[0] <= 0 <= ends[1],
        ))  # fmt: skip
    columns = np.array(found, dtype=float).T
    medians = [float(np.median(column)) for column in columns[4:7]]
    means = [float(np.mean(column)) for column in (*columns[:4], *columns[7:])]
    return Rates(*means[:4], *medians, *means[4:])


def verdict(made: Both, target: float) -> str:
    """What a claim is told that lies right at its edge: a claim of at least 1.05 times what is true."""
    return ratio(_claim(float(np.exp(target)) / (1 - MARGIN)), row_of(made), "").verdict


def row_of(made: Both) -> dict[str, Any]:
    """A contrast as a row that claims are judged on."""
    low, high = made.told.interval()
    return {"speedup": made.told.ratio, "ci_low": low, "ci_high": high, "freedom": made.told.freedom, "model": "m",
            "lossless": "identical"}  # fmt: skip


def _claim(published: float) -> Claim:
    rule = Rule("records", test="ratio")
    return Claim("c", "", {}, "", "speedup", {}, (repr(published),), "x", {}, "measured", {}, rule, "", "")


def within(share: float, low: float, high: float, count: int) -> bool:
    """Whether a share of `count` agrees with a rate between `low` and `high`, at three standard errors."""
    slack = [3 * np.sqrt(rate * (1 - rate) / count) for rate in (low, high)]
    return bool(low - slack[0] <= share <= high + slack[1])


def mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
