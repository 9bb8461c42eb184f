"""Rows of the speed-up table: one contrast cell, all its prompts and each class, per answer and in sum.

It knows no control and no claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure import two_phase
from bench.judge.measure.again import columns as again_columns
from bench.judge.measure.contexts import sets_of
from bench.judge.measure.decomposition import factors
from bench.judge.measure.estimands import Both, both, depends_on_text, noise_of
from bench.judge.measure.intervals import direction, known_mean
from bench.judge.measure.layout import Design, block_flags, class_masks, contrast_design
from bench.judge.measure.lossless import prompt_parts
from bench.judge.measure.roofline import bounds
from bench.judge.measure.sharp import graded
from bench.judge.tables.contrast import ANSWER, SCOPES, SpeedUp
from bench.records.stopping import looked

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

SoloDesigns = tuple[Design, Design | None]


def speedup_rows(case: Case) -> list[SpeedUp]:
    """All speed-up rows of a contrast cell. A class without a graded answer has no row."""
    table, plain, limits = case.settled, case.runs, case.once(bounds)
    together = int(np.ceil(table.concurrent[table.of("treatment")].max()))
    bound = limits[-1].bound_tok_s if limits else float("nan")
    stopped, by_text = looked(case.cell.config), depends_on_text(case)
    noise = noise_of(np.log(table.rate), case.stalls.unknown, table, stopped=stopped)
    about = {"concurrent": together, "stalled_share": case.stalls.share, "stopped": case.stopped,
             **again_columns(case)}  # fmt: skip
    rows = []
    for name, mask in class_masks(table).items():
        design = contrast_design(table, mask)
        prompts = None if name == "all" else prompt_parts(str(prompt) for prompt in table.prompt[mask])
        grade = graded(case, "treatment", prompts)
        if design is None or grade is None:
            continue
        solo = _solo_designs(table, mask)
        shared = {**about, "prompt_class": name, "contexts": sets_of(table, mask), **grade.columns(),
                  **_round_columns(table, design), **_guess_time(table, mask),
                  **table.lengths(mask),
                  **two_phase.columns(case, name)}  # fmt: skip
        for scope in SCOPES if together > 1 else (ANSWER,):
            divisor = np.log(table.concurrent) if scope == ANSWER else np.zeros(len(table.run))
            found = both(design, np.log(table.rate) - divisor, noise, by_text, not case.arm.guesses, stopped)
            rows.append(SpeedUp(**case.of_arm, **shared, scope=scope, **_speeds(table, design, divisor),
                                **intervals(found), **_with_stalls(plain, design, divisor),
                                **_against_solo(solo, np.log(table.rate) - divisor),
                                **_all_wrong(table, mask, np.log(table.rate) - divisor),
                                bound_tok_s=bound / (together if scope == ANSWER else 1)))  # fmt: skip
    return rows


def intervals(found: Both) -> dict[str, Any]:
    """The ratio with both of its intervals, and which of them the row's own is."""
    told = found.told
    ends = {"ci": told, "noise": found.noise, "prompts": found.prompts}
    columns = {f"{name}_{end}": value for name, one in ends.items() if one is not None
               for end, value in zip(("low", "high"), one.interval(), strict=True)}  # fmt: skip
    return {
        "speedup": told.ratio, **columns, "speaks_of": found.speaks_of, "direction": direction(told),
        "min_visible_effect": told.min_visible_effect, "n_blocks": told.n_blocks, "n_prompts": told.n_prompts,
        "n_units": told.n_units, "units": told.units, "freedom": told.freedom,
        "noise_freedom": found.noise.freedom,
    }  # fmt: skip


def _with_stalls(plain: RunTable, design: Design, divisor: np.ndarray) -> dict[str, Any]:
    """The same ratio from the records as they are."""
    found = design.contrast(np.log(plain.rate) - divisor)
    low, high = found.interval()
    return {"plain_speedup": found.ratio, "plain_low": low, "plain_high": high}


def _speeds(table: RunTable, design: Design, divisor: np.ndarray) -> dict[str, Any]:
    """Rates and their ratios; `divisor` (runs) is the logarithm of what the rate of all streams is divided by."""
    log_rate = np.log(table.rate) - divisor
    tok_s, baseline = design.levels(log_rate)
    steady, counted = np.log(table.steady_rate) - divisor, np.log(table.counted_rate) - divisor
    counted_tok_s, unsampled = design.levels(counted)[0], np.log(table.unsampled_rate) - divisor
    return {
        "tok_s": tok_s, "baseline_tok_s": baseline, "aggregate_tok_s": design.levels(np.log(table.rate))[0],
        "steady_tok_s": design.levels(steady)[0], "steady_speedup": design.ratio(steady),
        "counted_tok_s": counted_tok_s, "counted_speedup": counted_tok_s / baseline,
        "unsampled_speedup": design.ratio(unsampled),
        **_with_draft_prefill(table, design, divisor),
    }  # fmt: skip


def _with_draft_prefill(table: RunTable, design: Design, divisor: np.ndarray) -> dict[str, Any]:
    """The ratio where what a drafter took to take in the prompt is the arm's time too; nothing where it is unknown."""
    taken = table.draft_prefill[np.unique(design.arm.run)]
    if np.isnan(taken).any() or np.isnan(table.draft_prefill[np.unique(design.baseline.run)]).any():
        return {}
    return {"prompted_speedup": design.ratio(np.log(table.prompted_rate) - divisor),
            "draft_prefill_ms": float(taken.mean()) * 1e3}  # fmt: skip


def _solo_designs(table: RunTable, mask: np.ndarray) -> SoloDesigns | None:
    """Layouts against the solo arm and, over the same blocks, against the baseline; None where no solo run is."""
    design = contrast_design(table, mask, "treatment", "solo")
    if design is None:
        return None
    # Both ratios over the blocks that have a solo run, so that prompts do not differ between them.
    return design, contrast_design(table, mask & block_flags(table.block, mask & table.of("solo"))[table.block])


def _against_solo(solo: SoloDesigns | None, log_rate: np.ndarray) -> dict[str, Any]:
    """The second denominator: one stream in the treatment's own context. Nothing where there is none."""
    if solo is None:
        return {}
    design, fair = solo
    estimate = design.contrast(log_rate)
    low, high = estimate.interval()
    flatters = fair is not None and estimate.ratio > 1.1 * fair.ratio(log_rate)
    return {"solo_tok_s": design.levels(log_rate)[1], "solo_speedup": estimate.ratio, "solo_ci_low": low,
            "solo_ci_high": high, "solo_flatters": bool(flatters)}  # fmt: skip


def _all_wrong(table: RunTable, mask: np.ndarray, log_rate: np.ndarray) -> dict[str, Any]:
    """Speed of the arm whose every guess is wrong, over plain decoding's; nothing where it did not run."""
    design = contrast_design(table, mask, "sabotage")
    if design is None:
        return {}
    estimate = design.contrast(log_rate)
    low, high = estimate.interval()
    return {"sabotage_tok_s": design.levels(log_rate)[0], "sabotage_speedup": estimate.ratio,
            "sabotage_low": low, "sabotage_high": high}  # fmt: skip


def _guess_time(table: RunTable, mask: np.ndarray) -> dict[str, Any]:
    """Drafting time of the treatment's rounds that made guesses, a guess."""
    turns = table.turns
    mine = (mask & table.of("treatment"))[turns["owner"]] & (turns["drafted"] > 0)
    guesses = int(turns["drafted"][mine].sum())
    return {"guess_ms": float(turns["draft_ns"][mine].sum()) * 1e-6 / guesses} if guesses else {}


def _round_columns(table: RunTable, design: Design) -> dict[str, Any]:
    found, host, sampled = factors(table, design), table.host, table.sampled
    low, high = found.cost.interval()
    together = float(table.concurrent[table.of("treatment")].max())
    with np.errstate(divide="ignore", invalid="ignore"):
        steady = np.log((table.tokens.distinct - table.tokens.startup) / (table.rounds - table.startup_rounds))
    return {
        "tokens_per_round": found.tokens_per_round,
        "steady_tokens_per_round": design.levels(steady)[0],
        "counted_per_round": design.levels(np.log(table.tokens.counted / table.rounds))[0],
        "relative_round_cost": found.cost.ratio,
        "round_cost_low": low,
        "round_cost_high": high,
        "product_speedup": found.product,
        "outside_rounds": found.outside,
        "host_share": known_mean(host[design.arm.run]),
        "baseline_host_share": known_mean(host[design.baseline.run]),
        "sample_share": known_mean(sampled[design.arm.run]),
        "baseline_sample_share": known_mean(sampled[design.baseline.run]),
        "tokens_per_round_answer": found.tokens_per_round / together,
    }
