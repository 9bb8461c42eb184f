"""Judging one cell so that nothing in its files can take another cell's findings away.

What cannot be read comes as a `DamagedCell`; what can be read and not judged becomes one here. It opens no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from bench.errors import innermost_frame
from bench.judge.cell import JudgedCell, Profile, Profiles, is_profile, judge_cell, profile_of
from bench.judge.findings import rerun
from bench.judge.measure.chosen import traces_of
from bench.judge.tables.cell import DAMAGED, Cell
from bench.records.cells import DamagedCell, StoredCell


def judge_curves(cell: StoredCell | DamagedCell) -> tuple[JudgedCell | None, Profile | None]:
    """A profile, judged, and what others need of it; twice None for a cell that is no profile.

    A profile that cannot be judged says so, and has no curves; so has a void one.
    """
    if isinstance(cell, DamagedCell):
        return damaged_cell(cell), None
    try:
        if not is_profile(cell):
            return None, None
        profile = profile_of(cell)
        judged = judge_cell(cell, [profile])
        sound = not any(row.void for row in judged.findings.cells)
        return judged, profile if sound else None
    except Exception as error:  # as in `judge_whole`
        return damaged_cell(_unjudged(cell, error)), None


def judge_whole(cell: StoredCell | DamagedCell, profiles: Iterable[Profile] | Profiles) -> JudgedCell:
    """Any cell, judged; one that is damaged, or cannot be judged, says that and no more."""
    if isinstance(cell, DamagedCell):
        return damaged_cell(cell)
    try:
        return judge_cell(cell, profiles)
    except Exception as error:  # a file that was edited or cut may break any step; the others are judged all the same
        return damaged_cell(_unjudged(cell, error))


def with_traces(judged: JudgedCell, cell: StoredCell | DamagedCell) -> JudgedCell:
    """The judged cell with what there is to see of its records; a damaged one has nothing."""
    if isinstance(cell, StoredCell):
        with suppress(Exception):  # what a damaged record can show is judged elsewhere, and takes nothing with it
            judged.traces = traces_of(cell)
    return judged


def damaged_cell(cell: DamagedCell) -> JudgedCell:
    """A row of the table of cells, and nothing that counts for a verdict."""
    judged = JudgedCell()
    judged.findings.cells.append(damaged_row(cell.machine, cell.cell, cell.reason))
    return judged


def damaged_row(machine: str, cell: str, reason: str) -> Cell:
    """The row of something that cannot be read or judged; `cell` is the name of its folder."""
    return Cell(machine=machine, build="", cells=[cell], cell=cell, model="", method="", short="", streams=None,
                temperature=None, kind="", state=DAMAGED, reason=reason)  # fmt: skip


def _unjudged(cell: StoredCell, error: Exception) -> DamagedCell:
    why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return DamagedCell(cell.machine, cell.cell, f"it cannot be judged ({why}, {innermost_frame(error)}); {rerun(cell)}")
