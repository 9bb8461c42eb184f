"""What a cell's counted draws say: a row for the treatment and one for the planted fault, and the control they make.

The fault is what makes the test able to fail: where it is not seen, the treatment's draws were too few to say anything.
It does not know the statistic, which is `bench.judge.measure.chi_square`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.arm import arm_of
from bench.judge.findings import OK, VOID, WARNING, Control, Row, origin, rerun, settings, subject
from bench.judge.measure.chi_square import DIFFERENT, SAME, TOO_FEW, Assessment, Group, assess, pooled
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.records.cells import StoredCell

ARMS = ("treatment", "biased")
_WHOLE = 1e-6
"""Probabilities of a group add up to one but for float64's rounding."""


def distribution_rows(cell: StoredCell) -> list[Row]:
    """One row an arm; empty where no draws were counted. Raises RecordError when a group's cells are not a whole."""
    if not len(cell.counts["arm"]):
        return []
    proposes = arm_of(cell).guesses
    found = {arm: _assess(cell, arm, proposes) for arm in ARMS}
    verdicts = {arm: found[arm][0].verdict for arm in ARMS}
    if verdicts["treatment"] == SAME and verdicts["biased"] != DIFFERENT:
        verdicts["treatment"] = TOO_FEW
    return [_row(cell, arm, *found[arm], verdicts[arm]) for arm in ARMS]


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
        for name, share in (("probability", group.probability), ("moved", group.moved)):
            if abs(float(share.sum()) - 1) > _WHOLE:
                raise RecordError(f"counts of the {arm} arm, group {number}: {name} adds up to {share.sum():.6g}")
        groups.append((group, bool(columns["tested"][rows].all())))
    return groups


def _row(cell: StoredCell, arm: str, found: Assessment, tested: int, verdict: str) -> Row:
    held = cell.facts.get("distribution") or {}
    return {
        **origin(cell), **subject(cell), **settings(cell), "arm": arm, "verdict": verdict, "tokens": found.draws,
        "tested": tested, "prefixes": found.groups, "tv": found.tv, "tv_expected": found.tv_expected,
        "tv_high": found.tv_high, "chi2": found.chi2, "df": found.df, "p": found.p, "visible_tv": found.visible,
        "rounding_tv": found.rounding_tv, "prompt": held.get("prompt", ""), "runs": held.get("runs"),
    }  # fmt: skip


def distribution_control(cell: StoredCell, rows: list[Row]) -> list[Control]:
    """The check that the rows make; none where no draws were counted. A different distribution has no speed."""
    if not rows:
        return []
    treated, planted = rows
    told = (f"{treated['tokens']} tokens behind {treated['prefixes']} prefixes: total variation {treated['tv']:.3f}, "
            f"{treated['tv_expected']:.3f} expected of so many, p {treated['p']:.2g}; planted fault: "
            f"p {planted['p']:.2g}")  # fmt: skip
    value = (treated["tv"], 0.0, treated["tv_high"])
    if treated["verdict"] == DIFFERENT:
        why = f"the draws are not plain decoding's, so they have no speed; mend the method, then {rerun(cell)}"
        return [Control("distribution", VOID, f"{told}; {why}", *value)]
    if treated["verdict"] == SAME:
        return [Control("distribution", OK, told, *value)]
    if planted["verdict"] != DIFFERENT:
        why = "the planted fault was not seen"
    elif not treated["tested"]:
        why = "no guess was compared with any of them"
    else:
        why = f"a total variation below {treated['visible_tv']:.2f} would not be seen"
    return [Control("distribution", WARNING, f"{told}; too few draws: {why}; raise measure.distribution", *value)]
