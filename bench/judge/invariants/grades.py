"""Stored grades against the ledgers that they were made from. What a difference is worth is no business of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.invariants.places import pairs
from bench.records.arms import APART

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

Place = tuple[str, str, int, int]
"""Arm, prompt, answer, seed."""


def grades_are_the_ledgers(case: Case) -> str | None:
    """Every answer of every arm but the baseline has one grade, and its first difference is the ledgers' own."""
    rows = case.cell.facts.get("lossless") or []
    if "schema" not in case.cell.config and not rows:
        return None
    stored: dict[Place, dict[str, Any]] = {
        (str(row.get("arm")), str(row.get("prompt")), int(row.get("stream") or 0), int(row.get("seed") or 0)): row
        for row in rows
    }
    if len(stored) != len(rows):
        return "facts.json grades one answer twice"
    for place, found in _first_differences(case).items():
        if place not in stored:
            return f"the answer to '{place[1]}' ({place[0]}, seed {place[3]}) has no grade"
        told = stored.pop(place).get("first_difference")
        kept = None if told is None else tuple(told.get(name) for name in ("position", "token_baseline", "token_arm"))
        if kept != found:
            return (f"the answer to '{place[1]}' ({place[0]}, seed {place[3]}) first differs {_where(found)} by the "
                    f"ledgers, and {_where(kept)} by its grade")  # fmt: skip
    if stored:
        arm, prompt, _, seed = next(iter(stored))
        return f"facts.json grades an answer to '{prompt}' ({arm}, seed {seed}), and no run says it"
    return None


def replays_fit(case: Case) -> str | None:
    """Numbers of the replays against each other and against the answers that they follow."""
    noise = case.cell.facts.get("noise") or {}
    if float(noise.get("disagreements") or 0) > float(noise.get("positions") or 0):
        return f"the noise has {noise['disagreements']} disagreements at {noise.get('positions')} positions"
    full = int(case.cell.config.get("n_predict") or 0) if "schema" in case.cell.config else 0
    prompts = int((case.cell.config.get("measure") or {}).get("noise_prompts") or 0)
    if full and prompts and int(noise.get("positions") or 0) > prompts * full:
        return (f"the noise was measured at {noise['positions']} positions, and {prompts} answers of {full} tokens "
                "were to be replayed for it")  # fmt: skip
    kind, ends = "cdf_distance" if case.temperature else "logit_gap", bool(case.runs.ends)
    for row in case.cell.facts.get("lossless") or []:
        about = f"the answer to '{row.get('prompt')}' ({row.get('arm')}, seed {row.get('seed')})"
        forced, first = row.get("teacher_forced"), row.get("first_difference")
        n = int(row.get("n") or 0)
        if full and row.get("arm") == "treatment" and not ends and n < min(full, case.once(_shortest)):
            return f"{about} is compared over {n} tokens, and it has more"
        if full and n > full:
            return f"{about} is compared over {n} tokens, and {full} were asked for"
        if first and full and str(first.get("quantity") or "logit_gap") != kind:
            return f"{about} differs by '{first.get('quantity')}', and at this temperature it is a {kind}"
        if (forced is None) != (first is None):
            return f"{about} has a first difference or a replay that follows it, and they come together"
        if not forced or not first:
            continue
        positions, apart = int(forced.get("positions") or 0), int(forced.get("disagreements") or 0)
        if apart > positions or (full and positions > full):
            return f"{about} was replayed over {positions} positions with {apart} disagreements, and has {full}"
        # Where a build or a setting is on trial, what follows the text in the baseline's own two shapes is apart.
        forced, own = row.get("arm_forced") or forced, float(first.get("gap_arm") or 0.0)
        apart = int(forced.get("disagreements") or 0)
        if own > 0 and (not apart or float(forced.get("worst_gap") or 0.0) < own):
            return f"{about} has a replay that prefers the arm's token by {own:.3g}, and disagrees nowhere so far"
    return None


def _shortest(case: Case) -> int:
    """Confirmed tokens of the treatment's shortest answer, the prefill's among them."""
    table = case.runs
    mine = table.of("treatment")
    made = table.tokens.distinct[mine] + table.tokens.first[mine]
    return int((made / np.maximum(table.tokens.streams[mine], 1)).min())


def _where(found: tuple[Any, ...] | None) -> str:
    return "nowhere" if found is None else f"at position {found[0]} ({found[1]} against {found[2]})"


def _first_differences(case: Case) -> dict[Place, tuple[int, int, int] | None]:
    """Of every answer: position, the baseline's token, the arm's; None for one that is the baseline's throughout."""
    table, (mine, base, there) = case.runs, case.once(pairs)
    found: dict[Place, tuple[int, int, int] | None] = {}
    for at in np.flatnonzero(~table.any_of(("baseline", *APART))).tolist():
        parts = str(table.prompt[at]).split("+")
        # How many answers a run has to give is another invariant's business.
        for answer in range(min(len(parts), int(table.tokens.streams[at]))):
            found[str(table.arm[at]), parts[answer], answer, int(table.seed[at])] = None
    # Backwards, so that the first of an answer is kept.
    for index in np.flatnonzero(there & (base != mine.token))[::-1].tolist():
        at = int(mine.owner[index])
        stream, position = mine.place(index)
        parts = str(table.prompt[at]).split("+")
        if stream < len(parts):
            key = str(table.arm[at]), parts[stream], stream, int(table.seed[at])
            found[key] = (position, int(base[index]), int(mine.token[index]))
    return found
