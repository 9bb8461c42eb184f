"""The control that names runs which were done again since others took CPU time from them, and those kept all the same.

What counts as disturbed, `bench.records.repeats` says; it is never a run's own time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.findings import OK, WARNING, Control, rerun
from bench.records.arms import APART
from bench.records.repeats import is_disturbed

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

TOLD = 6
"""Runs that a sentence names; the record has all."""


def repeated(case: Case) -> list[Control]:
    """The control; none where the record does not tell of repeats."""
    told = case.cell.facts.get("repeated")
    if not told:
        return []
    attempts: Sequence[Mapping[str, Any]] = told.get("attempts") or []
    kept = _kept(case, float(told.get("free_cpus") or 0.0))
    sentence = "nothing had to be measured again"
    if attempts:
        sentence = (f"{len(attempts)} were measured again because others took CPU time from them: "
                    f"{_listed([_named(one) for one in attempts])}")  # fmt: skip
    if not kept:
        return [Control("repeated", OK, sentence, len(attempts))]
    why = "the load lasted" if told.get("lasting") else "no more repeats were left"
    return [Control("repeated", WARNING, f"{sentence}; kept although disturbed, as {why}: {_listed(kept)}; "
                    f"{rerun(case.cell)} on a quiet machine", len(attempts))]  # fmt: skip


def _kept(case: Case, free: float) -> list[str]:
    """The runs of blocks that were kept although others took CPU time from them."""
    runs = case.cell.runs
    if not len(runs["run"]) or "other_cpus" not in runs:
        return []
    taken = np.asarray(runs["other_cpus"], dtype=float) + np.asarray(runs["steal"], dtype=float) - free
    length = np.asarray(runs["finish_ns"], dtype=float) - np.asarray(runs["begin_ns"], dtype=float)
    return [f"run {runs['run'][at]} ({runs['arm'][at]}, {taken[at]:.2f} CPUs)" for at in range(len(taken))
            if str(runs["arm"][at]) not in APART and is_disturbed(float(taken[at]), float(length[at]))]  # fmt: skip


def _named(one: Mapping[str, Any]) -> str:
    """An attempt in words."""
    if "arm" in one:
        taken = float(one.get("other_cpus") or 0.0) + float(one.get("steal") or 0.0)
        took = 1e-9 * float(one.get("window_ns") or 0)
        return f"{one['arm']} of block {one.get('block')} ({taken:.2f} CPUs, {took:.2f} s)"
    return f"width {one.get('width')} in {one.get('layout')} ({float(one.get('taken') or 0.0):.2f} CPUs)"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
    return ", ".join(names[:TOLD]) + more
