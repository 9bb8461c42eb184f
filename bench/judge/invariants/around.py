"""What stands beside each run: which contexts it ran in, and what else ran on the machine. It looks at no token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.invariants.pieces import machine_times
from bench.judge.invariants.places import CARRY
from bench.judge.invariants.plan import renewals
from bench.judge.measure.tokens import arrays, owners
from bench.records.arms import APART
from bench.records.repeats import TAKEN

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

SHARED = ("clock_mhz", "temp_c", "load", "other_cpus", "steal", "gpu_others", "power_w", "power_cap_w", "memory_mhz")
"""Read once for all runs that were open at once."""
MEAN_S, TICK_S = 60.0, 5.0
"""Seconds that the system's load is a mean over, and seconds between two looks of it."""
DIGIT = 0.02
"""The load has two digits."""
BUSY = 0.5
"""Share of its time in which a process that measures counts as running, at least."""
MORE, ROUGH = 1.25, 0.5
"""Factor and number by which CPUs at work may be over those that there are: they are counted in hundredths of a second,
which short runs have few of."""


def contexts_as_configured(case: Case) -> str | None:
    """Contexts are made anew before the blocks that were configured, and nowhere else."""
    table = case.runs
    if table.made is None or (table.made < 0).all() or "schema" not in case.cell.config:
        return None
    blocks = int(table.block[~table.any_of(APART)].max()) + 1
    made = renewals(case, blocks)
    first = np.array([sum(block >= one for one in made) for block in range(blocks)])
    expected = np.append(first, [first[-1]] * (int(table.block.max()) + 1))[table.block]
    expected[table.of(CARRY) & (table.order < 2)] = 0
    wrong = np.flatnonzero(table.made != expected)
    if not len(wrong):
        return None
    at = wrong[0]
    return (f"run {table.run[at]} ({table.arm[at]}) is said to be of the contexts made {table.made[at]} times anew, "
            f"and its block is of those made {expected[at]} times")  # fmt: skip


def machine_around_is_one(case: Case) -> str | None:
    """What else ran, in CPUs that the machine has; told once for runs that were open at once; a load that fades."""
    runs = arrays(case.cell.runs)
    cores = _cores(case)
    for name in ("load", "other_cpus", "steal", "idle_cpus"):
        values = np.asarray(runs[name], dtype=float)
        least, most = (float(edge(values)) if np.isfinite(values).any() else 0.0 for edge in (np.nanmin, np.nanmax))
        if least < 0 or (name != "load" and cores and most > MORE * cores + ROUGH):
            return f"{name} is {least if least < 0 else most:.2f} beside a run, and the machine has {cores:.0f} CPUs"
    return _told_once(case, runs) or _fades(case) or _attempts(case)


def _cores(case: Case) -> float:
    about = case.cell.env.get("machine") or {}
    return float(about.get("cores_present") or about.get("cores") or 0)


def load_is_the_runs(case: Case) -> str | None:
    """Whoever measures for long is a part of the machine's load himself."""
    load, when = _loads(case)
    if not len(load):
        return None
    long = float(when[-1] - when[0]) - TICK_S
    least = BUSY * (1 - np.exp(-max(long, 0.0) / MEAN_S)) - DIGIT
    if load[-1] >= least:
        return None
    return (f"the machine's load is {load[-1]:.2f} after {long:.0f} s of decoding, which alone make it {least:.2f}: it "
            "was not read, or not here")  # fmt: skip


def _loads(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Loads that are known, and when they were read in seconds, in the order of that."""
    load, when = np.asarray(arrays(case.cell.runs)["load"], dtype=float), machine_times(case)[1] * 1e-9
    order = np.argsort(when, kind="stable")
    order = order[np.isfinite(load[order])]
    return load[order], when[order]


def _told_once(case: Case, runs: dict[str, Any]) -> str | None:
    pieces = arrays(case.cell.pieces)
    if not len(pieces["run"]) or case.cell.facts.get("sides"):  # each side looks for itself
        return None
    table, taking = case.runs, np.zeros(len(case.runs.run), dtype=bool)
    taking[owners(table.run, pieces["run"]).astype(np.int64)] = True
    ends = machine_times(case)[1]
    for name in SHARED:
        values = np.asarray(runs[name], dtype=float)
        for end in np.unique(ends[taking]):
            mine = np.unique(values[taking & (ends == end)])
            if len(mine) > 1:
                return f"{name} is {mine[0]:g} and {mine[1]:g} beside runs that were open at once, and was read once"
    return None


def _fades(case: Case) -> str | None:
    """A load is a mean of the last minute: it cannot be gone in less."""
    load, when = _loads(case)
    if not len(load):
        return None
    since = when - when[0]
    with np.errstate(divide="ignore"):  # no load is minus infinity
        left = np.exp(np.maximum.accumulate(np.log(load) + since / MEAN_S) - (since + TICK_S) / MEAN_S)
    low = np.flatnonzero(load < left - DIGIT)
    if not len(low):
        return None
    return (f"the machine's load is {load[low[0]]:.2f} {since[low[0]]:.1f} s after the first run, and what it was "
            f"before leaves {left[low[0]]:.2f} of it")  # fmt: skip


def _attempts(case: Case) -> str | None:
    """What was measured again was disturbed, and as many times as were asked for."""
    told = case.cell.facts.get("repeated") or {}
    cores = _cores(case)
    if cores and float(told.get("free_cpus") or 0) >= cores:
        return f"{told['free_cpus']:g} CPUs are said to be free beside a decode, and the machine has {cores:.0f}"
    asked = (case.cell.config.get("measure") or {}).get("repeats")
    if told and asked is not None and float(told.get("share") or 0) != float(asked):
        return f"runs were measured again for {told.get('share')} of the time, and {asked} were configured"
    for one in told.get("attempts") or []:
        taken = one.get("taken")
        taken = float(one.get("other_cpus") or 0) + float(one.get("steal") or 0) if taken is None else float(taken)
        if taken - float(told.get("free_cpus") or 0) <= TAKEN:
            return f"a run was measured again although nothing else took more than {taken:.2f} CPUs"
    return None
