"""Rows of servers on trial: what any trial has, and what each server says of itself beside what a client saw.

Servers have no rounds, so no stall can be told from the work, and no speed is taken apart. It knows no option of one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure.again import columns as again_columns
from bench.judge.measure.estimands import both, noise_of
from bench.judge.measure.layout import class_masks, contrast_design
from bench.judge.measure.lossless import Grade, grade_arm, prompt_parts
from bench.judge.measure.speedup import intervals
from bench.judge.measure.tokens import arrays, owners
from bench.judge.tables.contrast import ANSWER, SCOPES
from bench.judge.tables.served import ServerAnswers
from bench.records.arms import APART
from bench.records.stopping import looked

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

WHEN = {"carry": ("first of all", "directly again", "last of all"),
        "kept": ("cold", "again", "after a foreign prompt", "again after it")}  # fmt: skip
"""What the runs of arms in blocks of their own are, by their order."""
NAN = float("nan")
KEPT, BLOCKS = "kept", "blocks"
"""The arm whose server is kept; and the runs of an arm that the ratio rests on."""
BY_IDS, BY_TEXT = "token ids", "text"


def compared_by(case: Case) -> str:
    """What answers were compared by: token ids, or text where some server gave none."""
    by = {str(row.get("by")) for row in case.cell.facts.get("lossless") or []}
    return BY_TEXT if BY_TEXT in by else BY_IDS


def grade_of(case: Case, arm: str, prompts: Collection[str] | None = None) -> Grade | None:
    """Grade of an arm's answers; one that is known by its text alone is the baseline's, or divergent."""
    rows = [row for row in case.cell.facts.get("lossless") or [] if row.get("by") == BY_TEXT and row.get("arm") == arm
            and (prompts is None or row.get("prompt") in prompts)]  # fmt: skip
    other = [row for row in rows if not row.get("same_text")]
    by_ids = {**case.cell.facts, "lossless": [row for row in case.cell.facts.get("lossless") or []
                                              if row.get("by") != BY_TEXT]}  # fmt: skip
    found = grade_arm(by_ids, arm, prompts)
    if not rows:
        return found
    base = found or Grade(0, 0, 0, ())
    return replace(base, identical=base.identical + len(rows) - len(other), divergent=base.divergent + len(other),
                   divergent_names=tuple(sorted({*base.divergent_names, *(str(row["prompt"]) for row in other)})))


def trial_columns(case: Case) -> list[dict[str, Any]]:
    """Of all prompts and each class what a row of the trials has of a contrast. A class without a grade has none."""
    table, stopped = case.settled, looked(case.cell.config)
    together = int(table.concurrent[table.of("treatment")].max())
    guesses = bool((arrays(case.cell.served)["drafted"] > 0).any())
    noise = noise_of(np.log(table.rate), case.stalls.unknown, table, stopped=stopped)
    again, rows = again_columns(case)["again"], []
    for name, mask in class_masks(table).items():
        design = contrast_design(table, mask)
        prompts = None if name == "all" else prompt_parts(str(prompt) for prompt in table.prompt[mask])
        grade = grade_of(case, "treatment", prompts)
        if design is None or grade is None:
            continue
        for scope in SCOPES if together > 1 else (ANSWER,):
            logs = np.log(table.rate) - (np.log(table.concurrent) if scope == ANSWER else 0.0)
            tok_s, baseline = design.levels(logs)
            told = intervals(both(design, logs, noise, guesses, not guesses, stopped))
            missing = dict.fromkeys(("prompts_low", "prompts_high", "answer_tokens", "baseline_answer_tokens"), NAN)
            rows.append({**missing, **table.lengths(mask), **told, **grade.columns(), "prompt_class": name,
                         "scope": scope, "tok_s": tok_s, "baseline_tok_s": baseline,
                         "plain_speedup": told["speedup"], "again": again, "contexts": 1.0})  # fmt: skip
    return rows


@dataclass(frozen=True)
class Seen:
    """What was seen of an arm, or of one of its runs that have a block of their own. Rates in tokens a second."""

    arm: str
    when: str
    runs: np.ndarray
    """Their places in the table of runs."""
    tok_s: float
    own_tok_s: float
    over_first: float
    drafted: int | None
    accepted: int | None


def seen(case: Case) -> list[Seen]:
    """All arms, and the runs apart one by one in their order."""
    table, rows = case.runs, arrays(case.cell.served)
    owner = owners(table.run, rows["run"])
    found = []
    for arm in dict.fromkeys(table.arm.tolist()):
        runs = np.flatnonzero(table.of(arm))
        groups = [runs]
        if arm in APART:
            groups = [np.array([at]) for at in runs[np.argsort(table.order[runs], kind="stable")]]
        first = 0.0
        for when, group in zip(WHEN.get(arm, (BLOCKS,)), groups, strict=False):
            mine = {key: values[np.isin(owner, group)] for key, values in rows.items()}
            known = mine["drafted"] >= 0
            tok_s = float(np.exp(np.log(table.rate[group]).mean()))
            first = first or tok_s
            found.append(Seen(
                arm, when, group, tok_s, own_rate(mine) * float(np.mean(table.concurrent[group])), tok_s / first,
                *(int(mine[name][known].sum()) if known.any() else None for name in ("drafted", "accepted")),
            ))  # fmt: skip
    return found


def server_rows(case: Case) -> list[ServerAnswers]:
    """A row for each of `seen`, with what else is told of it."""
    table, rows = case.runs, arrays(case.cell.served)
    owner = owners(table.run, rows["run"])
    found = []
    for one in case.once(seen):
        mine = {key: values[np.isin(owner, one.runs)] for key, values in rows.items()}
        own_prompt = mine["prompt_ms"][np.isfinite(mine["prompt_ms"])]
        found.append(ServerAnswers(
            **case.of_arm, cell=case.cell.cell, arm=one.arm, when=one.when, runs=len(one.runs), tok_s=one.tok_s,
            own_tok_s=one.own_tok_s, over_first=one.over_first, drafted=one.drafted, accepted=one.accepted,
            acceptance=(one.accepted or 0) / one.drafted if one.drafted else float("nan"),
            prefill_ms=float(np.mean(arrays(case.cell.runs)["prefill_ns"][one.runs])) * 1e-6,
            own_prompt_ms=float(own_prompt.mean()) if len(own_prompt) else float("nan"),
            cached=int(np.maximum(mine["n_cached"], 0).sum()), prompt_tokens=int(table.n_prompt[one.runs].sum()),
            started=_started(case, one.arm, mine["starts"]), compared_by=compared_by(case),
        ))  # fmt: skip
    return found


def own_rate(rows: dict[str, np.ndarray]) -> float:
    """Geometric mean of an answer's rate by the server's own time, which does not count the first token; nan without.

    The prompt's decode gives the first token, so n tokens take n - 1 steps.
    """
    known = np.isfinite(rows["answer_ms"]) & (rows["answer_ms"] > 0) & (rows["told"] > 1)
    if not known.any():
        return float("nan")
    return float(np.exp(np.log((rows["told"][known] - 1) / rows["answer_ms"][known] * 1e3).mean()))


def _started(case: Case, arm: str, starts: np.ndarray) -> str:
    if (starts < 0).all():
        return "at an address"
    fresh = arm != KEPT and case.cell.facts.get("sides") == "fresh" and len(np.unique(starts)) == len(starts)
    return "fresh for each run" if fresh else "kept"
