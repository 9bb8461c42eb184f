"""Collision probabilities of draws, against each other and against what was drawn. It looks at no time.

A draw's collision probability is the sum of the squares of the distribution that it came from, so it is how often two
independent draws agree. A guess cannot be right more often than the likeliest token, whose probability is no more than
the root of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.invariants.places import prefixes
from bench.judge.measure.acceptance import evidence

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

GREEDY = "argmax"
"""What draws at temperature 0."""
FAR = 5.0
"""Standard deviations of a count of hits that no honest record is away from its mean."""
ALIKE = 0.05
"""Beside what rounding does: by how much, of its logarithm, one prefix's probability may differ from run to run."""


def collisions_fit(case: Case) -> str | None:
    """A probability for every draw above temperature 0, none at it."""
    table = case.runs
    by = (case.cell.facts.get("process") or {}).get("draws")
    if by is not None and (by == GREEDY) != (case.temperature == 0):
        return f"tokens were drawn by '{by}', and the temperature is {case.temperature:g}"
    known = ~np.isnan(table.draws["collision"].astype(float))
    if case.temperature == 0 and known.any():
        return "draws have a collision probability, which there is none of at temperature 0"
    if case.temperature > 0 and not known.all():
        return f"{int((~known).sum())} draws lack the collision probability that they have above temperature 0"
    return None


def collisions_are_the_draws(case: Case) -> str | None:
    """Above temperature 0: one prefix has one probability, as many tokens have it as were left, and hits follow it."""
    if not case.temperature or not len(case.runs.draws["run"]):
        return None
    return _least(case) or _one_a_prefix(case) or _hits(case)


def rounding(case: Case) -> float:
    """How far the logarithm of a collision probability may move where the shape of a decode moves logits."""
    gap = float((case.cell.facts.get("noise") or {}).get("logit_gap") or 0.0)
    return ALIKE + 4 * gap / case.temperature


def _least(case: Case) -> str | None:
    """Of so many tokens all alike it would be one by their number."""
    left = float(case.cell.config.get("top_k") or (case.cell.facts.get("model") or {}).get("n_vocab") or 0)
    least = float(case.runs.draws["collision"].min())
    if not left or least * left >= 1 - ALIKE:
        return None
    return f"a draw has a collision probability of {least:.3g}, and of {left:.0f} tokens none is below {1 / left:.3g}"


def _one_a_prefix(case: Case) -> str | None:
    found: dict[Any, float] = {}
    collision = case.runs.draws["collision"].astype(float)
    for at, key in enumerate(case.once(prefixes)):
        if key is None:
            continue
        before = found.setdefault(key, float(collision[at]))
        if abs(np.log(max(collision[at], 1e-300) / max(before, 1e-300))) > rounding(case):
            run, place = case.runs.draws["run"][at], case.runs.draws["position"][at]
            return (f"the draw at position {place} of run {run} has a collision probability of {collision[at]:.4g}, "
                    f"and behind the same text another has {before:.4g}")  # fmt: skip
    return None


def _hits(case: Case) -> str | None:
    """Hits of the treatment against what its draws let guesses be: copies draw from the very distribution."""
    table, kind = case.runs, str(case.arm.parameters.get("draws", "greedy"))
    used = evidence(table, "treatment", case.temperature)[table.draws["owner"]]
    hits = int((table.draws["guess"] == table.draws["drawn"])[used].sum())
    chance = table.draws["collision"][used].astype(float)
    if not len(chance):
        return None
    mean, spread = float(chance.sum()), max(float(np.sqrt((chance * (1 - chance)).sum())), 1.0)
    copies = case.arm.answers == "copies"
    if copies and kind == "coupled" and len(chance) - mean > FAR * spread and hits < mean + spread:
        return (f"{hits} of {len(chance)} guesses that share random numbers were right, as many as of such that do "
                f"not, of which {mean:.0f} are")  # fmt: skip
    if copies and kind == "independent" and abs(hits - mean) > FAR * spread:
        return f"{hits} of {len(chance)} guesses were right, and the collision probabilities make it {mean:.0f}"
    most = float(np.sqrt(chance).sum())
    if kind != "coupled" and hits > most + FAR * spread:
        return f"{hits} of {len(chance)} guesses were right, and the collision probabilities allow {most:.0f} at most"
    return None
