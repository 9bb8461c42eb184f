"""Rows of the speed-up table: one contrast cell, all its prompts and each class, per answer and in sum.

It knows no control and no claim; a speed-up without a lossless grade cannot be built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import Row, origin, settings, subject
from bench.judge.measure.decomposition import Factors, factors
from bench.judge.measure.intervals import Estimate, direction, known_mean
from bench.judge.measure.layout import Design, block_flags, design
from bench.judge.measure.lossless import Grade, grade_arm, prompt_parts
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

SCOPES = ("answer", "aggregate")
SoloDesigns = tuple[Design, Design | None]


@dataclass(frozen=True)
class SpeedUp:
    """A speed-up with the grade that allows it. Raises RecordError without one."""

    scope: str
    estimate: Estimate
    tok_s: float
    baseline_tok_s: float
    grade: Grade | None

    def __post_init__(self) -> None:
        if self.grade is None:
            raise RecordError("a speed-up without a lossless grade says nothing: grade the answers first")
        if self.scope not in SCOPES:
            raise RecordError(f"scope '{self.scope}' is neither {' nor '.join(SCOPES)}")

    def row(self) -> Row:
        assert self.grade is not None
        low, high = self.estimate.interval()
        return {
            "scope": self.scope,
            "tok_s": self.tok_s,
            "baseline_tok_s": self.baseline_tok_s,
            "speedup": self.estimate.ratio,
            "ci_low": low,
            "ci_high": high,
            "direction": direction(self.estimate),
            "min_visible_effect": self.estimate.min_visible_effect,
            "n_blocks": self.estimate.n_blocks,
            "n_prompts": self.estimate.n_prompts,
            "n_units": self.estimate.n_units,
            "units": self.estimate.units,
            **self.grade.row(),
        }


@dataclass(frozen=True)
class Context:
    """What a cell's speed-up rows take from elsewhere."""

    bound_tok_s: float = float("nan")
    void_reason: str = ""


def class_masks(table: RunTable) -> dict[str, np.ndarray]:
    """Runs of all prompts together, then of each class."""
    classes = list(dict.fromkeys(str(name) for name in table.prompt_class))
    return {"all": np.ones(len(table.run), dtype=bool), **{name: table.prompt_class == name for name in classes}}


def contrast_design(table: RunTable, mask: np.ndarray, arm: str = "treatment", base: str = "baseline") -> Design | None:
    """The layout of a contrast over some runs; the others get no weight."""
    # An arm of no other number keeps masked runs out without changing the length of the arrays.
    arms = np.where(mask, table.arm_code, -2)
    return design(arms, table.block, table.prompt_code, table.order, table.code_of(arm), table.code_of(base))


def speedup_rows(cell: StoredCell, table: RunTable, context: Context) -> list[Row]:
    """All speed-up rows of a contrast cell. A class without a graded answer has no row."""
    together = int(table.concurrent[table.of("treatment")].max())
    common = {**origin(cell), **subject(cell), **settings(cell), "concurrent": together,
              "void": bool(context.void_reason), "void_reason": context.void_reason}  # fmt: skip
    rows = []
    for name, mask in class_masks(table).items():
        layout = contrast_design(table, mask)
        prompts = None if name == "all" else prompt_parts(str(prompt) for prompt in table.prompt[mask])
        grade = grade_arm(cell.facts, "treatment", prompts)
        if layout is None or grade is None:
            continue
        found, solo = factors(table, layout), _solo_designs(table, mask)
        shared = {
            **common,
            "prompt_class": name,
            **_all_streams(table, layout),
            **_round_columns(table, layout, found),
        }
        for scope in SCOPES if together > 1 else SCOPES[:1]:
            rows.append({**shared, **_scope_row(table, solo, layout, scope, grade, context)})
    return rows


def _all_streams(table: RunTable, layout: Design) -> Row:
    """Rates in sum over streams, whatever the scope of the row."""
    return {"aggregate_tok_s": layout.levels(np.log(table.rate))[0]}


def _scope_row(
    table: RunTable, solo: SoloDesigns | None, layout: Design, scope: str, grade: Grade, context: Context
) -> Row:
    divisor = np.log(table.concurrent) if scope == "answer" else np.zeros(len(table.run))
    log_rate = np.log(table.rate) - divisor
    tok_s, baseline = layout.levels(log_rate)
    row = SpeedUp(scope, layout.contrast(log_rate), tok_s, baseline, grade).row()
    steady, counted = np.log(table.steady_rate) - divisor, np.log(table.counted_rate) - divisor
    counted_tok_s = layout.levels(counted)[0]
    streams = float(np.exp(divisor[table.of("treatment")].max()))
    row |= {
        "steady_tok_s": layout.levels(steady)[0],
        "steady_speedup": layout.ratio(steady),
        "counted_tok_s": counted_tok_s,
        "counted_speedup": counted_tok_s / baseline,
        "bound_tok_s": context.bound_tok_s / streams,
    }
    return row | _against_solo(solo, log_rate)


def _solo_designs(table: RunTable, mask: np.ndarray) -> SoloDesigns | None:
    """Layouts against the solo arm and, over the same blocks, against the baseline; None where no solo run is."""
    layout = contrast_design(table, mask, "treatment", "solo")
    if layout is None:
        return None
    # Both ratios over the blocks that have a solo run, so that prompts do not differ between them.
    return layout, contrast_design(table, mask & block_flags(table.block, mask & table.of("solo"))[table.block])


def _against_solo(solo: SoloDesigns | None, log_rate: np.ndarray) -> Row:
    """The second denominator: one stream in the treatment's own context."""
    if solo is None:
        nan = float("nan")
        return {"solo_tok_s": nan, "solo_speedup": nan, "solo_ci_low": nan, "solo_ci_high": nan, "solo_flatters": False}
    layout, fair = solo
    estimate = layout.contrast(log_rate)
    low, high = estimate.interval()
    flatters = fair is not None and estimate.ratio > 1.1 * fair.ratio(log_rate)
    return {"solo_tok_s": layout.levels(log_rate)[1], "solo_speedup": estimate.ratio, "solo_ci_low": low,
            "solo_ci_high": high, "solo_flatters": bool(flatters)}  # fmt: skip


def _round_columns(table: RunTable, layout: Design, found: Factors) -> Row:
    low, high = found.cost.interval()
    host = table.host
    treated = table.of("treatment")
    together = float(table.concurrent[treated].max())
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = np.log((table.tokens.distinct - table.tokens.startup) / (table.rounds - table.startup_rounds))
    return {
        "tokens_per_round": found.tokens_per_round,
        "steady_tokens_per_round": layout.levels(steady)[0],
        "counted_per_round": layout.levels(np.log(table.tokens.counted / table.rounds))[0],
        "relative_round_cost": found.cost.ratio,
        "round_cost_low": low,
        "round_cost_high": high,
        "product_speedup": found.product,
        "outside_rounds": found.outside,
        "host_share": known_mean(host[layout.arm.run]),
        "baseline_host_share": known_mean(host[layout.baseline.run]),
        "tokens_per_round_answer": found.tokens_per_round / together,
    }
