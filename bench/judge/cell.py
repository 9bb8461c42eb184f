"""What one stored cell says by itself: its rows of every table, and the little that rows over several cells need of it.

It knows of other cells only the step-cost curves that it is handed, so that cells can be judged in any order and in
several processes. Which tables there are is in `bench.judge.tables`. It opens no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.judge.compare.about import about as about_of
from bench.judge.findings import WARNING, Findings
from bench.judge.measure.beside import beside
from bench.judge.measure.case import Case, Profile, Profiles, identity, is_profile, profile_of
from bench.judge.tables import ANY, CONTRASTS, PROFILE, SERVED, TABLES, Table, named
from bench.judge.tables.cell import Cell, ControlRow
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.judge.traces import Traces
    from bench.records.cells import StoredCell

__all__ = ["JudgedCell", "Profile", "Profiles", "identity", "is_profile", "judge_cell", "profile_of"]


@dataclass
class JudgedCell:
    """One cell's share of the findings."""

    findings: Findings = field(default_factory=Findings)
    gathered: dict[str, Any] = field(default_factory=dict)
    """What it has to say in rows over several cells, by their table."""
    traces: Traces | None = None
    """What a reader can look at of its records, where that was asked for."""


def judge_cell(cell: StoredCell, profiles: Iterable[Profile] | Profiles = ()) -> JudgedCell:
    """Judge one cell. One whose records contradict themselves is listed as void with the reason, and no more."""
    try:
        return _judged(Case(cell, profiles))
    except RecordError as error:
        return _judged(Case(cell, profiles, str(error)))


def _judged(case: Case) -> JudgedCell:
    judged = JudgedCell()
    for name, table in TABLES.items():
        if not _asked(table, case):
            continue
        if table.made_by:
            getattr(judged.findings, name).extend(named(table.made_by)(case))
        if table.gathered_by and (found := named(table.gathered_by)(case)) is not None:
            judged.gathered[name] = found
    return judged


def _asked(table: Table, case: Case) -> bool:
    """Whether a table wants to know of the cell. Runs that contradict themselves are asked for no figure.

    Nor is a void profile: its rows have no column that would say so.
    """
    spoilt = (case.contradiction and {*table.of} <= {*CONTRASTS, SERVED}) or (case.kind == PROFILE and case.void_reason)
    asked = case.done and case.kind in table.of and not spoilt
    return asked or ANY in table.of


def control_rows(case: Case) -> list[ControlRow]:
    """One row a check."""
    return [control.row(case.cell) for control in case.controls]


def cell_rows(case: Case) -> list[Cell]:
    """The cell itself, with its conditions."""
    cell = case.cell
    machine, engine = cell.env.get("machine") or {}, cell.env.get("engine") or {}
    about = dict(case.of_arm)
    known = about.pop("conditions")
    return [
        Cell(
            **about, **case.settings, cell=cell.cell, kind=case.kind, label=known["label"],
            parameters=known["parameters"], guesses=known["guesses"], synthetic=bool(known.get("synthetic")),
            n_predict=known["n_predict"], conditions=case.arm.parameters,
            **beside(case), gpu=", ".join(str(gpu.get("name", "")) for gpu in machine.get("gpus") or []),
            cpu=machine.get("cpu", ""), llama_cpp_commit=engine.get("llama_cpp_commit", ""),
            time_utc=cell.env.get("time_utc", ""), about=about_of(cell), state=cell.status.get("state", ""),
            reason=cell.status.get("reason", ""), unproven=cell.note, seconds=cell.status.get("seconds"),
            warnings=sum(control.severity == WARNING for control in case.controls),
        )
    ]  # fmt: skip
