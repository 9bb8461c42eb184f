"""The judge of records: stored cells in, findings out. Pure: it opens no file, asks no device and keeps no state.

It does not know what anybody claimed (`bench.judge.claims`) nor how findings are printed (`bench.report`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.acceptance import acceptance_rows
from bench.judge.conditions import conditions
from bench.judge.controls import arm_controls
from bench.judge.decomposition import closes, decomposition_rows, factors, matching_curve
from bench.judge.findings import VOID, WARNING, Control, Findings, Row, origin, settings, subject
from bench.judge.memory import memory_rows
from bench.judge.peers import peer_rows
from bench.judge.rates import RunTable, run_table
from bench.judge.roofline import bandwidth_rows, bounds, physics
from bench.judge.speedup import Context, class_masks, contrast_design, speedup_rows
from bench.judge.step_cost import Curve, curves, step_cost_rows
from bench.judge.tokens import timeline
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.store import StoredCell

__all__ = ["Findings", "judge"]

Profiles = list[tuple["StoredCell", list[Curve]]]


def judge(cells: list[StoredCell]) -> Findings:
    """Judge every cell. A cell whose records contradict themselves is listed as void with the reason, and no more."""
    findings = Findings()
    done = [cell for cell in cells if cell.status.get("state") == "done"]
    profiles: Profiles = []
    for cell in done:
        if cell.config.get("kind") == "profile":
            profiles.append((cell, curves(cell.steps)))
            findings.step_cost += step_cost_rows(cell, profiles[-1][1])
            findings.memory += memory_rows(cell)
            findings.peers += peer_rows(cell)
    shares: dict[str, float] = {}
    for cell in cells:
        controls: list[Control] = []
        if cell.status.get("state") == "done" and cell.config.get("kind") == "contrast":
            controls = _judge_contrast(cell, profiles, findings, shares)
        findings.controls += [control.row(cell) for control in controls]
        findings.cells.append(_cell_row(cell, controls))
    findings.bandwidth = bandwidth_rows(done, shares)
    if not findings.memory:
        findings.memory = [row for cell in done for row in memory_rows(cell)]
    return findings


def _judge_contrast(
    cell: StoredCell, profiles: Profiles, findings: Findings, shares: dict[str, float]
) -> list[Control]:
    """Add a contrast cell's rows to the findings; returns its controls."""
    try:
        table = run_table(cell)
        layout = contrast_design(table, class_masks(table)["all"])
        if layout is None:
            raise RecordError("no block has both a baseline and a treatment run")
    except RecordError as error:
        return [Control("records", VOID, f"{error}; run the cell again")]
    limits = bounds(cell, table, layout)
    if limits:
        shares[cell.cell] = max(limit.share for limit in limits)
    measured = layout.contrast(np.log(table.rate))
    controls = [
        *arm_controls(cell, table),
        *conditions(cell, table),
        physics(cell, limits),
        closes(cell, factors(table, layout), measured.ratio),
    ]
    match = matching_curve(cell, profiles)
    context = Context(
        bound_tok_s=limits[-1].bound_tok_s if limits else float("nan"),
        curve=match[1] if match else None,
        curve_cell=match[0].cell if match else "",
        void_reason=_void_reason(controls),
    )
    findings.speedup += speedup_rows(cell, table, context)
    findings.acceptance += [row | _void_columns(controls) for row in acceptance_rows(cell, table)]
    findings.decomposition += [row | _void_columns(controls) for row in decomposition_rows(cell, table)]
    findings.timeline += _timeline_rows(cell, table)
    return controls


def _void_reason(controls: list[Control]) -> str:
    return "; ".join(f"{control.control}: {control.sentence}" for control in controls if control.severity == VOID)


def _void_columns(controls: list[Control]) -> Row:
    reason = _void_reason(controls)
    return {"void": bool(reason), "void_reason": reason}


def _timeline_rows(cell: StoredCell, table: RunTable) -> list[Row]:
    """Tokens over time of the treatment's run of median speed, for cells that emit a token twice."""
    mine = np.flatnonzero(table.of("treatment"))
    if not table.tokens.duplicates[mine].any():
        return []
    middle = mine[np.argsort(table.rate[mine], kind="stable")[len(mine) // 2]]
    emits = cell.ledger[(cell.ledger["run"] == table.run[middle]).to_numpy(bool)]
    common = {**origin(cell), **subject(cell), "cell": cell.cell, "run": int(table.run[middle])}
    points = timeline(emits, int(table.start_ns[middle])).to_dict("records")
    return [{**common, **point} for point in points]


def _cell_row(cell: StoredCell, controls: list[Control]) -> Row:
    gpus = (cell.env.get("machine") or {}).get("gpus") or []
    return {
        **origin(cell),
        "cell": cell.cell,
        "kind": cell.config.get("kind", ""),
        **subject(cell),
        **settings(cell),
        "gpu": ", ".join(str(gpu.get("name", "")) for gpu in gpus),
        "cpu": (cell.env.get("machine") or {}).get("cpu", ""),
        "llama_cpp_commit": (cell.env.get("engine") or {}).get("llama_cpp_commit", ""),
        "time_utc": cell.env.get("time_utc", ""),
        "state": cell.status.get("state", ""),
        "reason": cell.status.get("reason", ""),
        "seconds": cell.status.get("seconds"),
        **_void_columns(controls),
        "warnings": sum(control.severity == WARNING for control in controls),
    }
