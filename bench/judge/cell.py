"""What one stored cell says by itself: its rows of every table, and the little that other cells need of it.

It knows of other cells only the step-cost curves that it is handed, so that cells can be judged in any order and in
several processes. It opens no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.controls.arms import arm_controls
from bench.judge.controls.conditions import conditions
from bench.judge.findings import VOID, WARNING, Control, Findings, Row, origin, settings, subject
from bench.judge.measure.acceptance import acceptance_rows
from bench.judge.measure.decomposition import closes, decomposition_rows, factors, matching_curve
from bench.judge.measure.domain import Answers, answers_of, with_void
from bench.judge.measure.memory import memory_rows
from bench.judge.measure.peer_programs import peer_rows
from bench.judge.measure.roofline import bounds, physics
from bench.judge.measure.runs import RunTable, run_table
from bench.judge.measure.sampled_tokens import distribution_control, distribution_rows
from bench.judge.measure.speedup import Context, class_masks, contrast_design, speedup_rows
from bench.judge.measure.step_cost import Curve, curves, step_cost_rows
from bench.judge.measure.tokens import timeline
from bench.judge.predict.predictions import prediction_rows
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.records.cells import StoredCell


@dataclass(frozen=True)
class Source:
    """A cell without its tables: what is still asked about it once they are judged."""

    machine: str
    cell: str
    config: dict[str, Any]
    env: dict[str, Any]
    facts: dict[str, Any]


Profiles = Sequence[tuple["StoredCell | Source", list[Curve]]]


@dataclass
class Part:
    """One cell's share of the findings."""

    source: Source
    done: bool = False
    profile: bool = False
    findings: Findings = field(default_factory=Findings)
    share: float | None = None
    """The largest share of the read bandwidth that an arm reached; None where no bound is known."""
    answers: Answers | None = None
    """What was accepted of each answer, where the prompts have a domain: drafters are compared across cells."""


def is_profile(cell: StoredCell) -> bool:
    """Whether the cell has finished step-cost curves to offer."""
    return cell.status.get("state") == "done" and cell.config.get("kind") == "profile"


def profile_of(cell: StoredCell) -> tuple[Source, list[Curve]]:
    """A profile as `judge_cell` takes it."""
    return source_of(cell), curves(cell.steps)


def source_of(cell: StoredCell) -> Source:
    return Source(
        machine=cell.machine,
        cell=cell.cell,
        config={name: cell.config.get(name) for name in ("model", "engine")},
        env={"engine": cell.env.get("engine")},
        facts={name: cell.facts.get(name) for name in ("model", "bandwidth")},
    )


def judge_cell(cell: StoredCell, profiles: Profiles) -> Part:
    """Judge one cell. One whose records contradict themselves is listed as void with the reason, and no more."""
    part = Part(source_of(cell), done=cell.status.get("state") == "done", profile=is_profile(cell))
    controls: list[Control] = []
    if part.done:
        part.findings.memory += memory_rows(cell)
    if part.profile:
        mine = [found for profile, found in profiles if (profile.machine, profile.cell) == (cell.machine, cell.cell)]
        part.findings.step_cost += step_cost_rows(cell, mine[0] if mine else curves(cell.steps))
        part.findings.peers += peer_rows(cell)
    elif part.done and cell.config.get("kind") == "contrast":
        controls = _judge_contrast(cell, profiles, part)
    part.findings.controls += [control.row(cell) for control in controls]
    part.findings.cells.append(cell_row(cell, controls))
    return part


def _judge_contrast(cell: StoredCell, profiles: Profiles, part: Part) -> list[Control]:
    """Add a contrast cell's rows to its part; returns its controls."""
    try:
        table = run_table(cell)
        layout = contrast_design(table, class_masks(table)["all"])
        if layout is None:
            raise RecordError("no block has both a baseline and a treatment run")
        drawn = distribution_rows(cell)
    except RecordError as error:
        return [Control("records", VOID, f"{error}; run the cell again")]
    limits = bounds(cell, table, layout)
    if limits:
        part.share = max(limit.share for limit in limits)
    measured = layout.ratio(np.log(table.rate))
    controls = [
        *arm_controls(cell, table),
        *conditions(cell, table),
        physics(cell, limits),
        closes(cell, factors(table, layout), measured),
        *distribution_control(cell, drawn),
    ]
    context = Context(
        bound_tok_s=limits[-1].bound_tok_s if limits else float("nan"),
        void_reason=_void_reason(controls),
    )
    void, findings = _void_columns(controls), part.findings
    findings.speedup += speedup_rows(cell, table, context)
    findings.acceptance += [row | void for row in acceptance_rows(cell, table)]
    part.answers = with_void(answers_of(cell, table), void)
    findings.decomposition += [row | void for row in decomposition_rows(cell, table)]
    match = matching_curve(cell, profiles)
    predicted = prediction_rows(cell, table, match[1], match[0].cell) if match else []
    findings.predictions += [row | void for row in predicted]
    findings.timeline += _timeline_rows(cell, table)
    findings.distribution += drawn
    return controls


def _void_reason(controls: list[Control]) -> str:
    return "; ".join(f"{control.control}: {control.sentence}" for control in controls if control.severity == VOID)


def _void_columns(controls: list[Control]) -> Row:
    reason = _void_reason(controls)
    return {"void": bool(reason), "void_reason": reason}


def _timeline_rows(cell: StoredCell, table: RunTable) -> list[Row]:
    """Tokens over time of the treatment's run of median speed, in one row, for a cell that emits a token twice."""
    mine = np.flatnonzero(table.of("treatment"))
    if not table.tokens.duplicates[mine].any():
        return []
    middle = mine[np.argsort(table.rate[mine], kind="stable")[len(mine) // 2]]
    rows = table.emits["run"] == table.run[middle]
    emits = {name: table.emits[name][rows] for name in ("stream", "position", "round", "t_ns")}
    curve = timeline(emits, int(table.start_ns[middle]))
    points = {name: values.tolist() for name, values in curve.items()}
    return [{**origin(cell), **subject(cell), "cell": cell.cell, "run": int(table.run[middle]), **points}]


def cell_row(cell: StoredCell, controls: list[Control]) -> Row:
    """A cell's row of the table of cells: what it is, under which conditions, and what became of it."""
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
