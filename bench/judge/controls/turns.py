"""What taking turns costs: the first round behind another arm's turn, against the arm's other rounds of its shape.

Caches hold the other arm's data then, and a GPU may have to build a graph again. Both arms pay it, which moves their
ratio as far as they pay it differently. It knows no method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import OK, WARNING, Control, rerun
from bench.judge.measure.stalls import SHAPE
from bench.judge.measure.tokens import owners

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable

MOVES = 0.01
"""By how much of a log ratio first rounds of turns may move it."""


def switching(case: Case) -> list[Control]:
    """The control; none where runs did not take turns."""
    pieces, table = case.cell.pieces, case.settled
    if not len(pieces["run"]):
        return []
    first = np.zeros(len(table.turns["run"]), dtype=bool)
    owner = owners(table.run, np.asarray(pieces["run"])).astype(np.int64)
    begins = np.searchsorted(table.turns["owner"], owner) + np.asarray(pieces["round"]).astype(np.int64)
    first[begins[np.asarray(pieces["round"]) < table.rounds[owner]]] = True
    paid = {arm: _paid(table, arm, first) for arm in ("baseline", "treatment")}
    (base, mine), moves = paid.values(), paid["baseline"][1] - paid["treatment"][1]
    sentence = (f"first rounds of turns take {mine[0]:.3f} (treatment) and {base[0]:.3f} (baseline) of others of their "
                f"shape, which moves the ratio by {100 * moves:+.2f} %")  # fmt: skip
    if abs(moves) <= MOVES:
        return [Control("turns_cost", OK, sentence, moves)]
    return [Control("turns_cost", WARNING, f"{sentence}; give a longer measure.chunk, or 0, and {rerun(case.cell)}",
                    moves)]  # fmt: skip


def _paid(table: RunTable, arm: str, first: np.ndarray) -> tuple[float, float]:
    """Time of first rounds over the median of others of their shape, and the share of the arm's window beyond that."""
    owner = table.turns["owner"]
    mine, total = table.of(arm)[owner], table.turns["total_ns"].astype(float)
    shape = np.zeros(len(owner), dtype=np.int64)
    for name in SHAPE:
        part = table.turns[name].astype(np.int64)
        shape = shape * (int(part.max(initial=0)) + 1) + part
    taken = usual = 0.0
    for one in np.unique(shape[mine & first]):
        those = mine & (shape == one)
        others = total[those & ~first]
        if len(others):
            count = int((those & first).sum())
            taken += count * float(np.median(total[those & first]))
            usual += count * float(np.median(others))
    window = 1e9 * float(table.window[table.of(arm)].sum())
    return (taken / usual, (taken - usual) / window) if usual else (1.0, 0.0)
