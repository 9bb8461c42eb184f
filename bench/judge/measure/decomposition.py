"""Where a round's time goes, and whether tokens per round over relative round cost give the speed-up.

Both factors come from other columns than the speed-up does: tokens and window make the speed-up, the rounds table the
cost. It also finds the step-cost curve that belongs to a cell; it predicts nothing. Of a method it knows only how its
rounds are laid out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.arm import arm_of
from bench.judge.findings import OK, VOID, WARNING, Control, Row, origin, rerun, settings, subject
from bench.judge.measure.intervals import Estimate, known_mean
from bench.judge.measure.layout import Design
from bench.judge.measure.step_cost import Curve

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable
    from bench.records.cells import StoredCell

MATCH = ("threads", "type_k", "type_v", "flash_attn", "n_gpu_layers", "kv_unified")
"""Engine settings that a step-cost curve must share with the cell it predicts."""
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


def closes(cell: StoredCell, found: Factors, speedup: float) -> Control:
    """The control: factors that were measured apart multiply to the speed-up."""
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


def matching_curve(cell: StoredCell, profiles: list[tuple[StoredCell, list[Curve]]]) -> tuple[StoredCell, Curve] | None:
    """The step-cost curve of the same machine, build, weights and settings.

    The method's own layout comes first, the other stands in for it, then the nearest context length.
    """
    layout = arm_of(cell).layout
    wanted = _identity(cell)
    # The machine first: most of what does not fit is told by it, and it costs nothing to look at.
    fits = [(profile, curve) for profile, found in profiles
            if profile.machine == cell.machine and _identity(profile) == wanted
            for curve in found if 1 in curve.step_ms]  # fmt: skip
    if not fits:
        return None
    n_past = float(cell.runs["n_prompt"].mean()) / max(int(cell.config.get("streams") or 1), 1)
    return min(fits, key=lambda fit: (fit[1].layout != layout, abs(fit[1].n_past - n_past), fit[0].cell))


def _identity(cell: StoredCell) -> tuple[object, ...]:
    source, engine, model = origin(cell), cell.config.get("engine") or {}, cell.facts.get("model") or {}
    weights = model.get("sha256") or (cell.config.get("model") or {}).get("name")
    return (source["machine"], source["build"], weights, *(str(engine.get(key)) for key in MATCH))


def decomposition_rows(cell: StoredCell, table: RunTable) -> list[Row]:
    """Mean milliseconds of a round by what they were spent on, one row an arm."""
    common = {**origin(cell), **subject(cell), **settings(cell), "cell": cell.cell}
    rows = []
    for arm in dict.fromkeys(table.arm):
        mine = table.of(arm)
        count = int(table.rounds[mine].sum())
        if not count:
            continue
        part = {name: 1e3 * float(values[mine].sum()) / count for name, values in table.seconds.items()}
        host = part["total"] - part["draft"] - part["decode"] - part["sample"] - part["rollback"]
        rows.append(
            {
                **common,
                "arm": arm,
                **{f"{name}_ms": part[name] for name in ("draft", "decode", "sample", "rollback")},
                "host_ms": host,
                "total_ms": part["total"],
                "between_ms": 1e3 * float((table.window - table.seconds["total"])[mine].sum()) / count,
                "host_share": known_mean(table.host[mine]),
                "rounds": count,
                "startup_rounds": int(table.startup_rounds[mine].sum()),
                "tokens_per_round": float(table.tokens.distinct[mine].sum()) / count,
                "counted_per_round": float(table.tokens.counted[mine].sum()) / count,
            }
        )
    return rows
