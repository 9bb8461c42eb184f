"""What all prompts of a cell begin with (`depth`), where its state was restored: in every run of every arm, or in none.

It looks at no speed: with equal conditions before the window, prefills stay comparable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.runs import known_counts
from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


def restored_as_told(case: Case) -> str | None:
    """A run restores the cell's depth before each of its prompts, as facts.json says of every arm, or nothing."""
    table, told = case.runs, case.cell.facts.get("beginning") or {}
    depth = int(case.cell.config.get("depth") or 0)
    prompts = np.array([prompt.count("+") + 1 for prompt in table.prompt.tolist()])
    wanted = depth * prompts if told.get("restored") else np.zeros(len(prompts), np.int64)
    if (wrong := np.flatnonzero(table.restored != wanted)).size:
        at = wrong[0]
        return (f"run {table.run[at]} ({table.arm[at]}) restores {table.restored[at]} tokens of its prompt, and "
                f"{wanted[at]} were to be; {len(wrong)} runs in all")  # fmt: skip
    took = known_counts(arrays(case.cell.runs).get("restore_ns"), len(table.run))
    if ((took > 0) != (table.restored > 0)).any():
        return "some runs restore tokens in no time, or take time to restore none"
    return _once(told, depth) if told.get("restored") else None


def _once(told: dict[str, object], depth: int) -> str | None:
    """What evaluating them once took is told of every arm that has a context."""
    if told.get("tokens") != depth:
        return f"{told.get('tokens')} tokens were evaluated once by facts.json, and depth={depth} is configured"
    arms = told.get("arms")
    for arm in ("baseline", "treatment"):
        about = (arms if isinstance(arms, dict) else {}).get(arm) or {}
        if not all(isinstance(about.get(name), (int, float)) and about[name] > 0 for name in ("seconds", "bytes")):
            return f"facts.json does not tell what evaluating {depth} tokens once took in the context of the {arm}"
    return None
