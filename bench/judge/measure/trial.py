"""Rows of a build or a setting on trial, and of energy. The speeds are those of any contrast.

It knows no claim, and no setting by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import origin
from bench.judge.measure.layout import contrast_design
from bench.judge.measure.served import compared_by, trial_columns
from bench.judge.measure.speedup import speedup_rows
from bench.judge.measure.tokens import arrays
from bench.judge.tables import SERVED
from bench.judge.tables.trial import Energy, Trial

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

SHARED = ("prompt_class", "scope", "tok_s", "baseline_tok_s", "speedup", "ci_low", "ci_high", "speaks_of", "noise_low",
          "noise_high", "prompts_low", "prompts_high", "plain_speedup", "again", "lossless", "identical_share",
          "answers_graded", "direction", "min_visible_effect", "n_blocks", "n_prompts", "n_units", "freedom",
          "noise_freedom", "units", "contexts", "answer_tokens", "baseline_answer_tokens")  # fmt: skip
SERVERS = {"fresh": "a fresh server a run", "kept": "servers that are kept", "at addresses": "servers at addresses"}
"""How servers were started, by what the record says."""


def trial_rows(case: Case) -> list[Trial]:
    """All rows of one trial, of a build, a setting or a server."""
    served = case.kind == SERVED
    told, known = case.difference, case.cell.facts.get("sides")
    own = case.cell.env.get("treatment") or case.cell.env.get("engine") or {}
    about = {**case.of_arm, "build": str(own.get("build", ""))}
    idle = arrays(case.cell.runs)["idle_cpus"].astype(float)
    prefill = contrast_design(case.runs)
    faster = prefill.ratio(-np.log(arrays(case.cell.runs)["prefill_ns"].astype(float))) if prefill else float("nan")
    once = (case.cell.facts.get("beginning") or {}).get("arms") or {}
    loaded = SERVERS.get(str(known), "") if served else f"each alone, {known}" if known else "one process"
    return [
        Trial(**about, **{name: row[name] for name in SHARED}, difference=told.get("key", ""), was=told.get("was", ""),
              became=told.get("became", ""), baseline_build=origin(case.cell)["build"], prefill_speedup=faster,
              depth=int(case.cell.config.get("depth") or 0), loaded=loaded, compared_by=compared_by(case),
              **{name: (once.get(arm) or {}).get("seconds", float("nan"))
                 for name, arm in (("depth_s", "treatment"), ("baseline_depth_s", "baseline"))},
              idle_cpus=float(np.nanmax(idle)) if np.isfinite(idle).any() else float("nan"))
        for row in (trial_columns(case) if served else speedup_rows(case))
    ]  # fmt: skip


def energy_rows(case: Case) -> list[Energy]:
    """One row an arm of the cell whose energy is known."""
    runs, table = arrays(case.cell.runs), case.runs
    joules = runs["energy_j"].astype(float)
    rows = []
    for arm in dict.fromkeys(table.arm.tolist()):
        known = table.of(arm) & np.isfinite(joules) & (joules > 0)
        if not known.any():
            continue
        tokens, total = int(table.tokens.distinct[known].sum()), float(joules[known].sum())
        rows.append(Energy(
            **case.of_arm, cell=case.cell.cell, arm=str(arm), runs=int(known.sum()), joules=total, tokens=tokens,
            joules_per_token=total / tokens, mean_w=total / float(table.window[known].sum()),
            power_cap_w=_median(runs["power_cap_w"][known]), memory_mhz=_median(runs["memory_mhz"][known]),
        ))  # fmt: skip
    return rows


def _median(values: np.ndarray) -> float:
    known = values.astype(float)
    known = known[np.isfinite(known)]
    return float(np.median(known)) if len(known) else float("nan")
