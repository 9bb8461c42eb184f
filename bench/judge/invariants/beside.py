"""What is measured beside the runs and counts for no speed-up: drafters' contexts, memory, energy, noise, ends.

Each is held against what else the record has of it. It looks at no token.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.invariants.account import is_kept
from bench.judge.invariants.declared import bounds
from bench.judge.measure.tokens import arrays
from bench.records.arms import PLAIN
from bench.records.drawing import ENDS

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

SINCE = 3
"""The first schema whose every contrast tells of noise and drafters as it does today."""
BACK, TOUCHED = 4 << 20, 0.5
"""Bytes by which a process may shrink between two looks, and share of its caches that a context has touched."""
POWER, LONG_S = 2.0, 0.5
"""Factor between what a counter of energy says of power and what the driver does, from one arm to the other; and
seconds of a run from which on a counter that is renewed ten times a second says anything."""
OVER = 1.25
"""By which power may be over its limit."""
HEAD = "head"
WAITING = 4
"""Confirmed tokens that may be decoded again beside a round's own."""


def drafters_decode(case: Case) -> str | None:
    """A drafter with a context of its own decodes in it whenever it drafts; one that has none decodes nowhere."""
    told = case.cell.facts.get("drafter") or {}
    if int(case.cell.config.get("schema") or 0) < SINCE or not is_kept(case) or HEAD in told:
        return None
    table, runs = case.runs, arrays(case.cell.runs)
    drafting = np.bincount(table.turns["owner"], weights=table.turns["drafted"] > 0, minlength=len(table.run))
    decodes, tokens = runs["beside_window_decodes"], runs["beside_window_tokens"]
    if "context" not in told:
        busy = np.flatnonzero((decodes > 0) | (tokens > 0) | (runs["beside_outside_tokens"] > 0))
        if not len(busy):
            return None
        return (f"run {table.run[busy[0]]} ({table.arm[busy[0]]}) decodes in contexts beside its own, and no drafter "
                f"has one; {len(busy)} runs in all")  # fmt: skip
    wrong = ~table.any_of(PLAIN) & (drafting > 0) & (
        (decodes < drafting) | (tokens < decodes) | (runs["beside_outside_tokens"] <= 0))  # fmt: skip
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {table.run[at]} ({table.arm[at]}) drafts in {drafting[at]:.0f} rounds, and its drafter's context "
            f"counts {decodes[at]:.0f} decodes of {tokens[at]:.0f} tokens; {int(wrong.sum())} runs in all")  # fmt: skip


def memory_is_one_process(case: Case) -> str | None:
    """What a process held when contexts were made one after the other; each holds the caches that it was made for."""
    facts = case.cell.facts
    looks = [(name, one) for name, one in (facts.get("memory") or {}).items() if "process_bytes_before" in one]
    looks += [(f"{one.get('streams')} streams", one) for one in facts.get("memory_by_streams") or []
              if "process_bytes_before" in one]  # fmt: skip
    offloaded = (facts.get("model") or {}).get("layers_offloaded")
    for name, one in looks:
        if fault := _grows(name, one, bool(offloaded)):
            return fault
    if facts.get("sides") or not facts.get("memory"):
        return None
    order = sorted(looks, key=lambda look: float(look[1]["process_bytes_before"]))
    for (before, left), (then, right) in pairwise(order):
        if abs(float(right["process_bytes_before"]) - float(left["process_bytes"])) > BACK:
            return (f"the process held {left['process_bytes']} bytes behind the context of {before}, and "
                    f"{right['process_bytes_before']} before that of {then}, which came next")  # fmt: skip
    return None


def _grows(name: str, one: Mapping[str, Any], offloaded: bool) -> str | None:
    grown = {part: float(one[f"{part}_bytes"]) - float(one[f"{part}_bytes_before"])
             for part in ("process", "rss", "card") if one.get(f"{part}_bytes_before") is not None}  # fmt: skip
    if min(grown.values()) < -BACK:
        return f"the context of {name} made memory smaller, by {-min(grown.values()):.0f} bytes"
    if "rss" in grown and abs(grown["rss"] - grown["process"]) > BACK + 0.1 * abs(grown["process"]):
        return (f"the context of {name} took {grown['process']:.0f} bytes of the process's own, and {grown['rss']:.0f} "
                "of what it holds in memory")  # fmt: skip
    cached = float(one.get("kv_bytes") or 0) + float(one.get("state_bytes") or 0)
    held = grown["process"] + grown.get("card", 0.0)
    if cached and held < TOUCHED * cached and ("card" in grown or not offloaded):
        return f"the context of {name} has caches of {cached:.0f} bytes, and took {held:.0f}"
    return None


def energy_fits(case: Case) -> str | None:
    """A counter of energy and a driver's power say the same of both arms, and neither is over the limit."""
    table, runs = case.runs, arrays(case.cell.runs)
    energy, power, limit = (np.asarray(runs[name], dtype=float) for name in ("energy_j", "power_w", "power_cap_w"))
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero((energy < 0) | (power < 0) | (power > OVER * limit))
    if len(wrong):
        at = wrong[0]
        return (f"run {table.run[at]} ({table.arm[at]}) took {energy[at]:g} J at {power[at]:g} W under a limit of "
                f"{limit[at]:g} W")  # fmt: skip
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(table.window >= LONG_S, energy / (table.window * power), np.nan)
    arms = [ratio[table.of(arm) & np.isfinite(ratio)] for arm in ("baseline", "treatment")]
    if not all(map(len, arms)):
        return None
    base, mine = map(float, map(np.median, arms))
    if max(base, mine) <= POWER * min(base, mine):
        return None
    return (f"by the counter of energy the baseline takes {base:.2f} times what its driver says, and the treatment "
            f"{mine:.2f} times")  # fmt: skip


def noise_is_the_shapes(case: Case) -> str | None:
    """The noise between shapes: of a row alone and the treatment's decode, over all tokens that were asked for."""
    noise, config = case.cell.facts.get("noise") or {}, case.cell.config
    if int(config.get("schema") or 0) < SINCE or not noise.get("positions"):
        return None
    prompts = min(int((config.get("measure") or {}).get("noise_prompts") or 0), len(np.unique(case.runs.block)))
    wanted = prompts * int(config.get("n_predict") or 0)
    if wanted and not case.runs.ends and int(noise["positions"]) != wanted:
        return f"the noise was to be measured at {wanted} positions, and it was at {noise['positions']}"
    widths = noise.get("widths") or []
    most = int(config.get("streams") or 1) if case.arm.independent else 1 + int(case.runs.turns["drafted"].max())
    if noise.get("of") != "treatment" or (len(widths) == 2 and widths[0] == 1 and widths[1] >= most):
        return None
    return f"the noise was measured between decodes of {' and '.join(map(str, widths))} rows, and rounds decode {most}"


def ends_as_configured(case: Case) -> str | None:
    """Answers may end by themselves where that was configured, and nowhere else."""
    config, ends = case.cell.config, case.cell.facts.get("ends") or []
    if "schema" not in config or bool(ends) == (config.get(ENDS, True) is False):
        return None
    asked = f"{ENDS}={str(config.get(ENDS, True)).lower()}"
    return f"{len(ends)} tokens may end an answer, and {asked} was configured"


def untimed_widths(case: Case) -> int | None:
    """Most rows of an answer's round, with tokens that waited to be decoded again; None where nothing bounds it."""
    found = bounds(case)
    return 1 + max(found) + WAITING if found else None
