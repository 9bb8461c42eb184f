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
