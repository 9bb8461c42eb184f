"""What a cell's counted draws say: a row for the treatment and one for the planted fault, and the control they make.

The fault is what makes the test able to fail: where it is not seen, the treatment's draws were too few to say anything.
It does not know the statistic, which is `bench.judge.measure.chi_square`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.measure.chi_square import DIFFERENT, SAME, TOO_FEW, Assessment, Group, assess, pooled
from bench.judge.tables.contrast import Distribution
from bench.records.arms import COUNTED
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.records.cells import StoredCell

_WHOLE = 1e-6
"""Probabilities of a group add up to one but for float64's rounding."""


class Judged(NamedTuple):
    """The draws of one arm, how many of them were compared with a guess, and what both arms together say of them."""

    found: Assessment
    tested: int
    verdict: str


def judged(case: Case) -> dict[str, Judged]:
    """By arm; empty where no draws were counted. Raises RecordError when a group's cells are not a whole."""
    if not len(case.cell.counts["arm"]):
        return {}
    found = {arm: _assess(case.cell, arm, case.arm.guesses) for arm in COUNTED}
    verdicts = {arm: assessment.verdict for arm, (assessment, _) in found.items()}
    if verdicts["treatment"] == SAME and verdicts["biased"] != DIFFERENT:
        verdicts["treatment"] = TOO_FEW
    return {arm: Judged(*found[arm], verdicts[arm]) for arm in found}


def distribution_rows(case: Case) -> list[Distribution]:
    """One row an arm."""
    held = case.cell.facts.get("distribution") or {}
    return [
        Distribution(
            **case.of_arm, arm=arm, verdict=verdict, tokens=found.draws, tested=tested, prefixes=found.groups,
            tv=found.tv, tv_expected=found.tv_expected, tv_high=found.tv_high, chi2=found.chi2, df=found.df, p=found.p,
            visible_tv=found.visible, rounding_tv=found.rounding_tv, prompt=held.get("prompt", ""),
            runs=held.get("runs", float("nan")),
        )
        for arm, (found, tested, verdict) in case.once(judged).items()
    ]  # fmt: skip


def _assess(cell: StoredCell, arm: str, proposes: bool) -> tuple[Assessment, int]:
    """The assessment of an arm, and how many of its draws were compared with a guess.

    For a method that guesses, what the test would have seen is asked of those draws alone: a wrong acceptance has no
    other place to be. Prefixes behind which one token is all but certain tell nothing and are left out.
    """
    groups = [(group, compared) for group, compared in _groups(cell, arm) if len(pooled(group)) > 1]
    tested = [group for group, compared in groups if compared]
    return assess([group for group, _ in groups], tested if proposes else None), sum(group.n for group in tested)


def _groups(cell: StoredCell, arm: str) -> list[tuple[Group, bool]]:
    """Groups of an arm, and whether a guess was compared there."""
    columns = {name: np.asarray(cell.counts[name]) for name in ("arm", "group", "tested", "count", "probability",
                                                               "moved")}  # fmt: skip
    mine = columns["arm"] == arm
    groups = []
    for number in np.unique(columns["group"][mine]):
        rows = mine & (columns["group"] == number)
        group = Group(*(columns[name][rows] for name in ("count", "probability", "moved")))
        for name in ("probability", "moved"):
            whole = float(columns[name][rows].sum())
            if abs(whole - 1) > _WHOLE:
                raise RecordError(f"counts of the {arm} arm, group {number}: {name} adds up to {whole:.6g}")
        groups.append((group, bool(columns["tested"][rows].all())))
    return groups


def distribution_control(case: Case) -> list[Control]:
    """The check that the draws make; none where none were counted. A different distribution has no speed."""
    arms = case.once(judged)
    if not arms:
        return []
    treated, planted = arms["treatment"], arms["biased"]
    found = treated.found
    told = (f"{found.draws} tokens behind {found.groups} prefixes: total variation {found.tv:.3f}, "
            f"{found.tv_expected:.3f} expected of so many, p {found.p:.2g}; planted fault: "
            f"p {planted.found.p:.2g}")  # fmt: skip
    value = (found.tv, 0.0, found.tv_high)
    if treated.verdict == DIFFERENT:
        why = f"the draws are not plain decoding's, so they have no speed; mend the method, then {rerun(case.cell)}"
        return [Control("distribution", VOID, f"{told}; {why}", *value)]
    if treated.verdict == SAME:
        return [Control("distribution", OK, told, *value)]
    if planted.verdict != DIFFERENT:
        why = "the planted fault was not seen"
    elif not treated.tested:
        why = "no guess was compared with any of them"
    else:
        why = f"a total variation below {found.visible:.2f} would not be seen"
    return [Control("distribution", WARNING, f"{told}; too few draws: {why}; raise measure.distribution", *value)]
