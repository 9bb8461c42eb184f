"""Where a round's time goes, and whether tokens per round over relative round cost give the speed-up.

Both factors come from other columns than the speed-up does: tokens and window make the speed-up, the rounds table the
cost. It knows no method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.measure.intervals import Estimate, known_mean
from bench.judge.measure.layout import Design
from bench.judge.tables.contrast import Decomposition

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

CLOSES_WARNING, CLOSES_VOID = 0.02, 0.05


@dataclass(frozen=True, slots=True)
class Factors:
    """speed-up = tokens_per_round / baseline_tokens_per_round / relative_round_cost / outside."""

    tokens_per_round: float
    baseline_tokens_per_round: float
    cost: Estimate
    outside: float
    """Window over the sum of its rounds, treatment against baseline: time that no round accounts for."""

    @property
    def product(self) -> float:
        """The speed-up that the rounds table gives."""
        return self.tokens_per_round / self.baseline_tokens_per_round / self.cost.ratio


def factors(table: RunTable, design: Design) -> Factors:
    """Factors over the runs of a contrast, with the estimator of the speed-up itself."""
    with np.errstate(divide="ignore", invalid="ignore"):
        per_round = np.log(table.tokens.distinct / table.rounds)
        cost = np.log(table.seconds["total"] / table.rounds)
        outside = np.log(table.window / table.seconds["total"])
    mine, base = design.levels(per_round)
    return Factors(mine, base, design.contrast(cost), design.ratio(outside))


def closes(case: Case) -> list[Control]:
    """The control: factors that were measured apart multiply to the speed-up."""
    measured = case.design.ratio(np.log(case.runs.rate))
    return [agreement(case.cell, factors(case.runs, case.design), measured)]


def agreement(cell: StoredCell, found: Factors, speedup: float) -> Control:
    """Whether some factors multiply to a speed-up that was measured apart."""
    value = found.product / speedup
    numbers = (
        f"{found.tokens_per_round:.3f} tokens a round / {found.cost.ratio:.3f} round cost = {found.product:.3f}, "
        f"measured {speedup:.3f}"
    )
    gap = abs(np.log(value))
    if not gap > CLOSES_WARNING:
        return Control("decomposition", OK, numbers, value)
    if gap <= CLOSES_VOID:
        return Control("decomposition", WARNING, f"{numbers}: time between rounds is {100 * gap:.1f} %", value)
    return Control(
        "decomposition", VOID,
        f"{numbers}: the rounds do not account for the window; look at rounds.csv.gz, then {rerun(cell)}",
        value,
    )  # fmt: skip


def decomposition_rows(case: Case) -> list[Decomposition]:
    """Mean milliseconds of a round by what they were spent on, one row an arm."""
    table = case.runs
    rows = []
    for arm in dict.fromkeys(table.arm):
        mine = table.of(arm)
        count = int(table.rounds[mine].sum())
        if not count:
            continue
        ms = {name: 1e3 * float(values[mine].sum()) / count for name, values in table.seconds.items()}
        named: dict[str, Any] = {f"{name}_ms": ms[name] for name in ("draft", "decode", "sample", "rollback")}
        rows.append(
            Decomposition(
                **case.of_arm, **named, cell=case.cell.cell, arm=str(arm),
                host_ms=ms["total"] - sum(named.values()), total_ms=ms["total"],
                between_ms=1e3 * float((table.window - table.seconds["total"])[mine].sum()) / count,
                host_share=known_mean(table.host[mine]), rounds=count,
                startup_rounds=int(table.startup_rounds[mine].sum()),
                tokens_per_round=float(table.tokens.distinct[mine].sum()) / count,
                counted_per_round=float(table.tokens.counted[mine].sum()) / count,
            )
        )  # fmt: skip
    return rows
