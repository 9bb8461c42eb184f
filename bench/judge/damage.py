"""Judging one cell so that nothing in its files can take another cell's findings away.

What cannot be read comes as a `DamagedCell`; what can be read and not judged becomes one here. It opens no file.
"""

from __future__ import annotations

from bench.errors import innermost_frame
from bench.judge.cell import Part, Profiles, Source, cell_row, is_profile, judge_cell, profile_of
from bench.judge.findings import rerun
from bench.judge.measure.roofline import bandwidth_rows
from bench.judge.measure.step_cost import Curve
from bench.records.cells import DamagedCell, StoredCell

Judged = tuple[Part | None, tuple[StoredCell | Source, list[Curve]] | None]
"""A cell's part, and the curves that it offers to others."""

DAMAGED = "damaged"
"""State of a cell in the table of cells; no status.json says it."""


def judge_curves(cell: StoredCell | DamagedCell) -> Judged:
    """A profile's part and what others need of it; twice None for a cell that is no profile.

    A profile that cannot be judged has a part that says so, and no curves.
    """
    if isinstance(cell, DamagedCell):
        return damaged_part(cell), None
    try:
        if not is_profile(cell):
            return None, None
        profile = profile_of(cell)
        return _sound(judge_cell(cell, [profile])), profile
    except Exception as error:  # as in `judge_whole`
        return damaged_part(_unjudged(cell, error)), None


def judge_whole(cell: StoredCell | DamagedCell, profiles: Profiles) -> Part:
    """The part of any cell; one that is damaged, or cannot be judged, says that and no more."""
    if isinstance(cell, DamagedCell):
        return damaged_part(cell)
    try:
        return _sound(judge_cell(cell, profiles))
    except Exception as error:  # a file that was edited or cut may break any step; the others are judged all the same
        return damaged_part(_unjudged(cell, error))


def damaged_part(cell: DamagedCell) -> Part:
    """A row of the table of cells, and nothing that counts for a verdict."""
    part = Part(Source(cell.machine, cell.cell, {}, {}, {}))
    empty = StoredCell(cell.machine, cell.cell, {}, {}, {}, {}, *[{}] * 6)
    part.findings.cells.append(dict.fromkeys(cell_row(empty, [])) | {
        "machine": cell.machine, "build": "", "cells": [cell.cell], "cell": cell.cell, "state": DAMAGED,
        "reason": cell.reason, "void": False, "void_reason": "", "warnings": 0,
    })  # fmt: skip
    return part


def _sound(part: Part) -> Part:
    """The part, once what is made of all cells together can be made of this one alone."""
    if part.done:
        bandwidth_rows([part.source], {})
    return part


def _unjudged(cell: StoredCell, error: Exception) -> DamagedCell:
    why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return DamagedCell(cell.machine, cell.cell, f"it cannot be judged ({why}, {innermost_frame(error)}); {rerun(cell)}")
