"""Checks of the conditions of a contrast: same engine, nothing cached, balanced order, steady clock, sound ledger.

It does not look at speed. What makes two arms incomparable voids the cell, with a sentence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.arm import arm_of
from bench.judge.engine_settings import FREE, SHARED
from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.records.arms import TREATED

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

CLOCK_DROP = 0.95


def different_settings(
    left: Mapping[str, Any], right: Mapping[str, Any], allowed: Collection[str] = ()
) -> list[str]:
    """Settings that make two records incomparable, as `name left against right`; a setting only one side has counts."""
    names = [name for name in SHARED if name in left or name in right]
    return [
        f"{name} {left.get(name)} against {right.get(name)}"
        for name in names
        if name not in allowed and left.get(name) != right.get(name)
    ]


def conditions(case: Case) -> list[Control]:
    """All checks of this module for one cell."""
    cell, table = case.cell, case.runs
    return [same_engine(cell), nothing_cached(cell, table), balanced(cell, table), steady_clock(cell, table),
            *sound_ledger(cell, table)]  # fmt: skip


def same_engine(cell: StoredCell) -> Control:
    """Baseline and treatment ran under equal settings."""
    engines = cell.facts.get("engine") or {}
    base, treated = engines.get("baseline"), engines.get("treatment")
    if not base or not treated:
        return Control("engine", WARNING, "the engine's settings were not recorded for both arms")
    differing = different_settings(base, treated, FREE)
    if not differing:
        return Control("engine", OK, "both arms ran with the same engine settings", 0.0)
    return Control(
        "engine", VOID, f"not comparable: {'; '.join(differing)}; make them equal and run {rerun(cell)}",
        float(len(differing)),
    )  # fmt: skip


def nothing_cached(cell: StoredCell, table: RunTable) -> Control:
    """Every prompt token of a run went through the model: in it, or before it of what all prompts begin with."""
    wrong = np.flatnonzero(table.n_prompt != table.n_prompt_evaluated + table.restored)
    if not len(wrong):
        told = "every prompt was evaluated in full"
        if most := int(table.restored.max(initial=0)):
            told += f" behind the tokens that all begin with, up to {most} a run, which were restored"
        return Control("prefill", OK, told, 0.0)
    index = wrong[0]
    return Control(
        "prefill", VOID,
        f"cached: run {table.run[index]} ({table.arm[index]}) evaluated {table.n_prompt_evaluated[index]} of "
        f"{table.n_prompt[index]} prompt tokens, {len(wrong)} runs in all; clear the cache between runs, then "
        f"{rerun(cell)}",
        float(len(wrong)),
    )  # fmt: skip


def balanced(cell: StoredCell, table: RunTable) -> Control:
    """In every block each arm has the same mean place and number of runs, so that linear drift cancels."""
    _, block = np.unique(table.block, return_inverse=True)
    arms = int(table.arm_code.max()) + 1
    group = block * arms + table.arm_code
    size = (block.max() + 1) * arms
    count = np.bincount(group, minlength=size).reshape(-1, arms)
    with np.errstate(invalid="ignore", divide="ignore"):
        place = np.bincount(group, weights=table.order, minlength=size).reshape(-1, arms) / count
    uneven = np.nanmax(place, axis=1) - np.nanmin(place, axis=1) > 1e-9
    lone = ((count > 0) & (count != count.max(axis=1, keepdims=True))).any(axis=1)
    bad = np.flatnonzero(uneven | lone)
    if not len(bad):
        return Control("order", OK, f"{len(count)} balanced blocks", 0.0)
    name = np.unique(table.block)[bad[0]]
    members = np.flatnonzero(table.block == name)
    order = " ".join(table.arm[members[np.argsort(table.order[members])]])
    return Control(
        "order", VOID,
        f"block {name} is not balanced ({order}), so drift looks like a speed-up; {len(bad)} of {len(count)} blocks; "
        f"run {rerun(cell)}",
        float(len(bad)),
    )  # fmt: skip


def steady_clock(cell: StoredCell, table: RunTable) -> Control:
    """No run at a clock clearly below the cell's median."""
    clock = table.clock_mhz
    known = np.isfinite(clock) & (clock > 0)
    if not known.any():
        return Control("clock", WARNING, "no clock was recorded, so throttled runs cannot be told")
    if known.sum() > 1 and np.ptp(clock[known]) == 0:
        return Control("clock", WARNING, f"not measured: all {int(known.sum())} readings are {clock[known][0]:g} MHz, "
                       "and a clock that never changes says nothing of throttled runs")  # fmt: skip
    ratio = clock[known] / np.median(clock[known])
    slow = int((ratio < CLOCK_DROP).sum())
    if not slow:
        return Control("clock", OK, "the clock stayed within 5 % of its median", float(ratio.min()))
    return Control(
        "clock", WARNING,
        f"{slow} of {int(known.sum())} runs had a clock more than 5 % below the median (lowest {ratio.min():.2f}); "
        f"let the machine cool and run {rerun(cell)}",
        float(ratio.min()),
    )  # fmt: skip


def sound_ledger(cell: StoredCell, table: RunTable) -> list[Control]:
    """No token twice, none beyond what was asked for, none skipped; except where the method declares that it does."""
    tokens, arm = table.tokens, arm_of(cell)
    treated = table.any_of(TREATED)
    excused = treated & arm.repeats
    twice, total = int(tokens.duplicates.sum()), int(tokens.counted.sum() + tokens.first.sum())
    controls = [
        _fault(cell, table, "duplicates", tokens.duplicates, ~excused, "emits {} tokens a second time"),
        _fault(cell, table, "gaps", tokens.gaps, np.ones_like(excused), "skips {} positions"),
        _fault(cell, table, "requested", _beyond(table), ~(treated & arm.by_rounds),
               "emits {} tokens more than were asked for"),
    ]  # fmt: skip
    if controls[0].severity == OK and twice:
        sentence = f"{twice} of {total} emit calls repeat a token: their count is not a speed"
        controls[0] = Control("duplicates", WARNING, sentence, twice / total)
    if int(tokens.conflicts[~excused].sum()):
        controls.append(_fault(cell, table, "conflicts", tokens.conflicts, ~excused, "changes {} emitted tokens"))
    controls.append(_equal_length(table, arm.by_rounds))
    return controls


def _beyond(table: RunTable) -> np.ndarray:
    made = table.tokens.distinct + table.tokens.unverified + table.tokens.first
    beyond: np.ndarray = np.maximum(made - table.n_predict * np.maximum(table.tokens.streams, 1), 0)
    return beyond


def _equal_length(table: RunTable, by_rounds: bool) -> Control:
    """Baseline and treatment made equally many tokens: a longer answer has a longer context."""
    base, treated = (table.tokens.distinct[table.of(arm)] for arm in ("baseline", "treatment"))
    ratio = float(treated.mean() / base.mean())
    more = _ends_told(table) if table.ends else ""
    if abs(ratio - 1) < 0.005 or by_rounds:
        return Control("length", OK, f"both arms made about the same number of tokens{more}", ratio)
    return Control("length", WARNING, f"the treatment made {ratio:.3f} times the baseline's tokens a run{more}", ratio)


def _ends_told(table: RunTable) -> str:
    """How long answers are that end by themselves: where a near tie parts two of them, they end elsewhere."""
    mine, base = (table.said[table.of(arm)] for arm in ("treatment", "baseline"))
    return (f"; answers end by themselves, after {mine.mean():.1f} tokens in the mean ({mine.min():.0f} to "
            f"{mine.max():.0f}), the baseline's after {base.mean():.1f} ({base.min():.0f} to {base.max():.0f})")


def _fault(
    cell: StoredCell, table: RunTable, name: str, values: np.ndarray, mask: np.ndarray, what: str
) -> Control:
    """Void when a run under `mask` has the fault at all."""
    wrong = np.flatnonzero((values > 0) & mask)
    if not len(wrong):
        return Control(name, OK, f"no run {what.replace('{} ', '')}", 0.0)
    index = wrong[0]
    return Control(
        name, VOID,
        f"run {table.run[index]} ({table.arm[index]}) {what.format(int(values[index]))}; {len(wrong)} runs in all; "
        f"look at ledger.csv.gz, mend the method, then {rerun(cell)}",
        float(values[wrong].sum()),
    )  # fmt: skip
