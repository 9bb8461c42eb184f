"""The controls that a cell carries as extra arms, and the noise that its grades rest on.

It does not know what a method does; A/A is in `bench.judge.controls.again`. Wrong guesses must change nothing but the
time, right ones must all be taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.measure.acceptance import draws_disagree
from bench.judge.measure.intervals import Estimate
from bench.judge.measure.layout import pairs_design
from bench.judge.measure.lossless import grade_arm, rates
from bench.judge.measure.sharp import graded
from bench.judge.tables.contrast import DIVERGENT

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

TIE_MISSES = 0.1
"""Share of wrong guesses that may be right by accident once a near tie moved the answer off the one they deny."""
OTHER_MODEL = 0.5
"""Rounding changes a choice now and then; a shape that changes most of them computes another model's logits."""
WIDE_NOISE = 0.5
"""A move of half a logit changes the odds of two tokens by 1.6; below a larger noise a near tie is no close call."""
NO_NOISE = 5.0
"""Logits: 2.65 is the most that a change of width was seen to move on quantised weights of a GPU."""
DEGRADED = 0.9
"""A solo stream in the treatment's context slower than this, against the baseline, flatters whoever divides by it."""

Rule = Callable[[int, int, bool, "Estimate | None"], tuple[list[str], bool, str]]
"""(accepted, verified, near ties excuse, speed against the baseline) -> (faults, oddity to warn of, what is told)."""


def arm_controls(case: Case) -> list[Control]:
    """All checks of this module for one cell."""
    cell, table, proposes = case.cell, case.settled, case.arm.guesses
    controls = [noise(cell), grades(cell), sharp(case), denominator(table)]
    if proposes:
        rules = {"sabotage": wrong_guesses, "oracle": right_guesses}
        controls += [planted(cell, table, arm, rule) for arm, rule in rules.items()]
    mismatch = draws_disagree(table)
    if mismatch:
        controls.append(Control("counters", VOID, f"{mismatch}; mend the method's counting, then {rerun(cell)}"))
    elif proposes:
        controls.append(Control("counters", OK, "single draws and round counters agree", 0.0))
    return controls


def ratio_of(table: RunTable, arm: str) -> Estimate | None:
    """Speed of a control arm against the baseline, over replicate pairs; None when it did not run."""
    design = pairs_design(table, arm)
    with np.errstate(divide="ignore", invalid="ignore"):
        return None if design is None else design.contrast(np.log(table.rate / table.concurrent))


def planted(cell: StoredCell, table: RunTable, arm: str, rule: Rule) -> Control:
    """An arm whose guesses were planted: void when it was not run, when its output changed, or by its own `rule`."""
    if not table.of(arm).any():
        return Control(arm, VOID, f"no {arm} control was run, and a method that guesses is believed no speed without "
                       f"it; ask for measure.control_blocks and run {rerun(cell)}")  # fmt: skip
    accepted, verified = _tested(cell, table, arm)
    tied = _near_ties(cell, arm)
    estimate = ratio_of(table, arm)
    value = (estimate.ratio, *estimate.interval()) if estimate else (math.nan,) * 3
    wrong, odd, sentence = rule(accepted, verified, bool(tied), estimate)
    faults = _changed(cell, arm) + wrong
    if faults:
        return Control(arm, VOID, f"{'; '.join(faults)}; mend the method, then {rerun(cell)}", *value)
    return Control(arm, WARNING, f"{sentence}; {tied}", *value) if odd else Control(arm, OK, sentence, *value)


def wrong_guesses(accepted: int, verified: int, tied: bool, speed: Estimate | None) -> tuple[list[str], bool, str]:
    """Sabotage: none accepted, not faster than plain decoding. Returns faults, whether it is odd, and what is told."""
    faults = []
    if accepted > (verified * TIE_MISSES if tied else 0):
        faults.append(f"{accepted} of {verified} wrong guesses were accepted")
    if speed and speed.ratio > 1.0 and speed.excludes(1.0):
        faults.append(f"wrong guesses make it {speed.ratio:.3f} times as fast as plain decoding")
    ratio = speed.ratio if speed else math.nan
    sentence = f"{accepted} of {verified} wrong guesses accepted, same output, {ratio:.3f} of plain speed"
    return faults, accepted > 0, sentence


def right_guesses(accepted: int, verified: int, tied: bool, speed: Estimate | None) -> tuple[list[str], bool, str]:
    """Oracle: all accepted; its speed is the ceiling of the method. Returns what `wrong_guesses` does."""
    faults = []
    if not verified:
        faults.append("no guess was tested")
    elif accepted < verified and not tied:
        faults.append(f"only {accepted} of {verified} right guesses were accepted")
    ratio = speed.ratio if speed else math.nan
    sentence = f"{accepted} of {verified} right guesses accepted; the method's ceiling is {ratio:.3f}"
    return faults, accepted < verified, sentence


def noise(cell: StoredCell) -> Control:
    """The noise that makes a near tie was measured."""
    measured = cell.facts.get("noise") or {}
    if not measured.get("positions"):
        return Control("noise", WARNING, "batch-shape noise was not measured, so no difference is a near tie")
    gap = float(measured.get("logit_gap") or 0.0)
    sentence = (f"logit gap {gap:.4g}, cumulative distribution {float(measured.get('cdf') or 0.0):.4g}, over "
                f"{measured['positions']} positions")  # fmt: skip
    share = float(measured.get("disagreements") or 0) / measured["positions"]
    if share > OTHER_MODEL:
        sentence += f": on one prefix the arm's shape chooses another token at {100 * share:.0f} % of them, so it is no"
        return Control("noise", VOID, f"{sentence} rounding; {rerun(cell)}", gap)
    if gap > NO_NOISE:
        return Control("noise", VOID, f"{sentence}: no rounding moves logits so far; {rerun(cell)}", gap)
    if gap > WIDE_NOISE:
        return Control("noise", WARNING, f"{sentence}: batch shape alone moves logits so far that ties are wide", gap)
    return Control("noise", OK, sentence, gap)


def grades(cell: StoredCell) -> Control:
    """The treatment's answers were graded; how often it left the baseline's text is told beside what its shape does."""
    grade = grade_arm(cell.facts, "treatment")
    if grade is None:
        return Control("lossless", VOID, f"the treatment has no graded answer, so it has no speed; run {rerun(cell)}")
    numbers = f"{grade.identical} identical, {grade.near_tie} near ties, {grade.divergent} divergent"
    if grade.identical < grade.n:
        left = rates(cell.facts, [row for row in cell.facts["lossless"] if row.get("arm") == "treatment"])
        often = ", more often than rounding" if left.too_often else ""
        numbers += f" ({left.words}{often})"
    share = grade.identical / grade.n
    if grade.divergent:
        names = ", ".join(grade.divergent_names[:5])
        return Control("lossless", WARNING, f"{numbers} of {grade.n} answers ({names})", share)
    return Control("lossless", OK, f"{numbers} of {grade.n} answers", share)


def sharp(case: Case) -> Control:
    """The treatment's answers on F16 weights; told where there is no such grade."""
    found = graded(case, "treatment")
    if found is None or (found.grade is None and not case.cell.facts.get("sharp")):
        return Control("sharp", OK, "the record has no grade on F16 weights")
    if found.grade is None:
        return Control("sharp", WARNING, f"no grade on F16 weights: {found.note}")
    if found.grade is found.own:
        return Control("sharp", OK, f"the grade on F16 weights is the same: {found.note}")
    grade, facts = found.grade, case.cell.facts["sharp"]
    gap = float((facts.get("noise") or {}).get("logit_gap") or 0.0)
    numbers = (f"on F16 weights {grade.identical} identical, {grade.near_tie} near ties, {grade.divergent} divergent "
               f"of {grade.n} answers, where the shape of a decode moves a gap by {gap:.2g}")  # fmt: skip
    if grade.divergent:
        return Control("sharp", WARNING, f"{numbers} ({', '.join(grade.divergent_names[:5])}): the treatment is "
                       "divergent, whatever these weights excuse", grade.identical / grade.n)  # fmt: skip
    return Control("sharp", OK, numbers, grade.identical / grade.n)


def denominator(table: RunTable) -> Control:
    """What one stream gets in the treatment's own context, against the fair baseline."""
    estimate = ratio_of(table, "solo")
    if estimate is None:
        return Control("solo", OK, "no solo arm: the only denominator is plain decoding in its own context")
    low, high = estimate.interval()
    sentence = f"one stream in the treatment's own context runs at {estimate.ratio:.3f} of the baseline"
    if estimate.ratio >= DEGRADED:
        return Control("solo", OK, sentence, estimate.ratio, low, high)
    return Control("solo", WARNING, f"{sentence}: a speed-up over it is flattered by {1 / estimate.ratio:.2f}",
                   estimate.ratio, low, high)  # fmt: skip


def _tested(cell: StoredCell, table: RunTable, arm: str) -> tuple[int, int]:
    """Guesses of a control arm that were accepted and tested, as far as the control knows the answer.

    The last `streams` positions are left out: guesses reach beyond the end of the answer that the control was given.
    """
    mine = table.of(arm)
    draws = table.draws
    if not len(draws["run"]):
        accepted, verified = (int(table.counters[name][mine].sum()) for name in ("accepted", "verified"))
        return accepted, verified
    end = int(table.n_predict[mine].min()) - int(cell.config.get("streams") or 1)
    known = mine[draws["owner"]] & (draws["position"] < end)
    return int((known & (draws["guess"] == draws["drawn"])).sum()), int(known.sum())


def _near_ties(cell: StoredCell, arm: str) -> str:
    """Why an arm may have left the answer that its guesses were made from, as a phrase; empty when it cannot have."""
    grades_of = [grade_arm(cell.facts, name) for name in ("treatment", arm)]
    count = sum(grade.near_tie for grade in grades_of if grade is not None)
    return f"{count} near ties moved answers off the known one" if count else ""


def _changed(cell: StoredCell, arm: str) -> list[str]:
    grade = grade_arm(cell.facts, arm)
    if grade is not None and grade.grade == DIVERGENT:
        return [f"the output of {grade.divergent} of {grade.n} answers changed"]
    return []
