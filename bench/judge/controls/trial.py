"""What makes a build or a setting on trial comparable: one difference, one limit of power, a waiting arm that waits.

It looks at no speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.controls.conditions import (
    balanced,
    different_settings,
    nothing_cached,
    sound_ledger,
    steady_clock,
)
from bench.judge.engine_settings import FREE
from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

FOLLOWS = {"n_gpu_layers": ("layers_offloaded",), "build": ("build",), "threads": ("threads", "threads_batch")}
"""What else differs between two contexts where a setting does; all others are called in the records as they are set."""
CAP = 0.01
"""Share by which two limits of power may differ: a driver tells them in whole watts."""
WAITS, SPINS = 0.02, 0.2
"""CPUs that a waiting process may take, its time being told in hundredths of a second; and what is no waiting."""


def trial_conditions(case: Case) -> list[Control]:
    """All checks of this module, and those of any contrast's conditions that hold here too."""
    cell, table = case.cell, case.runs
    return [one_difference(case), waiting(case), nothing_cached(cell, table), balanced(cell, table),
            steady_clock(cell, table), *sound_ledger(cell, table)]  # fmt: skip


def one_difference(case: Case) -> Control:
    """The contexts of the two arms differ in what the cell says is on trial, and in nothing else."""
    engines = case.cell.facts.get("engine") or {}
    base, treated = engines.get("baseline"), engines.get("treatment")
    if not base or not treated:
        return Control("engine", WARNING, "the engine's settings were not recorded for both arms")
    told = case.difference
    keys = [key.strip() for key in told["key"].split(",")]
    allowed = {name for key in keys for name in FOLLOWS.get(key, (key,))}
    if not case.arm.plain:
        allowed |= set(FREE)
    differing = different_settings(base, treated, allowed)
    if differing:
        why = f"{told['words']} is on trial, and the arms differ in more: {'; '.join(differing)}"
        return Control("engine", VOID, f"{why}; make them equal and run {rerun(case.cell)}", float(len(differing)))
    lacking = [key for key in keys if key in base and key != "build" and base[key] == treated[key]]
    if lacking:
        why = f"{told['words']} is on trial, and both contexts say {lacking[0]} {base[lacking[0]]}"
        return Control("engine", VOID, f"{why}: the engine did not take it, so there is nothing to compare", 0.0)
    return Control("engine", OK, f"the arms differ in {told['words']} against {told['was']}, and in nothing else", 1.0)


def waiting(case: Case) -> Control:
    """The process of the arm that waits takes no CPU time beside the one that is timed."""
    idle = arrays(case.cell.runs)["idle_cpus"].astype(float)
    apart = case.cell.facts.get("sides")
    if np.isfinite(idle).any() and not apart:
        return Control("waiting", VOID, "a waiting arm's process was watched, and facts.json says that there was none; "
                       f"{rerun(case.cell)}")  # fmt: skip
    if not np.isfinite(idle).any():
        return Control("waiting", WARNING if apart else OK, "what the waiting arm's process took was not recorded"
                       if apart else "both arms share one process, and take turns in it")  # fmt: skip
    most = float(np.nanmax(idle))
    told = f"the process of the waiting arm took at most {most:.3f} CPUs beside a run"
    if most > SPINS:
        return Control("waiting", VOID, f"{told}: it does not wait, and slows the other; {rerun(case.cell)}", most)
    return Control("waiting", WARNING if most > WAITS else OK, told, most)


def limits(case: Case) -> list[Control]:
    """The control of any contrast: both arms ran under the same limit of power, where a driver told it."""
    caps = {arm: _known(case, "power_cap_w", arm) for arm in ("baseline", "treatment")}
    if not all(map(len, caps.values())):
        read = [arm for arm, values in caps.items() if len(values)]
        return [Control("limits", VOID, f"the limit of power was read for the {read[0]} alone, so that it may be on "
                        f"trial, too; {rerun(case.cell)}")] if read else []  # fmt: skip
    base, mine = (float(np.median(values)) for values in caps.values())
    both = np.concatenate(list(caps.values()))
    if abs(np.log(mine / base)) > CAP:
        why = f"the treatment ran under a limit of {mine:.0f} W and the baseline of {base:.0f} W"
        told = f"{why}: the power is on trial, too; set one limit and run {rerun(case.cell)}"
        return [Control("limits", VOID, told, mine / base)]
    if float(both.max() / both.min()) > 1 + CAP:
        return [Control("limits", WARNING, f"the limit of power moved from {both.min():.0f} to {both.max():.0f} W "
                        "between runs", float(both.max() / both.min()))]  # fmt: skip
    return [Control("limits", OK, f"both arms ran under a limit of {base:.0f} W", 1.0)]


def _known(case: Case, name: str, arm: str) -> Any:
    values = arrays(case.cell.runs)[name].astype(float)
    return values[case.runs.of(arm) & np.isfinite(values) & (values > 0)]
