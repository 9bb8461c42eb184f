"""`report results=A,B` and `report --check BASE`: two results folders side by side, and whether one got worse.

It decides nothing: what belongs together, what may be compared and what is worse is said by `bench.judge.compare`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError

if TYPE_CHECKING:
    from bench.judge.compare.rows import Set
    from bench.judge.tables.compare import Comparison
    from bench.stored.chosen import Chosen

WORSE_CODE = 1


def side_by_side(folders: Sequence[Path], chosen: Chosen, reports: Path) -> int:
    """Write and print how each folder compares with the first; returns 1 where a cell is damaged, else 0.

    Raises `UserError` where a folder has no cells, one is given twice, or nothing of two belongs together.
    """
    from bench.report.compare.files import write_comparison
    from bench.report.compare.screen import print_comparison

    rows, damaged = _compared(folders, chosen)
    page = write_comparison(rows, reports)
    print_comparison(rows)
    print(f"Every row: {page}")
    return _told(damaged)


def check(base: Path, present: Path, chosen: Chosen) -> int:
    """Print what is worse in `present` than in `base`.

    Returns 1 where something that counts is worse beyond its interval, or a cell is damaged, else 0. Raises `UserError`
    as `side_by_side`, and where not one figure can be compared: a check of nothing has not passed.
    """
    from bench.judge.compare.rows import compared, worse
    from bench.report.compare.screen import print_check

    rows, damaged = _compared([base, present], chosen)
    if not compared(rows):
        why = next((row.reason for row in rows if row.base_cell and row.cell), "no cell of both has a figure")
        raise UserError(f"not one figure of {present} can be compared with {base}: {why}; measure the same cells again")
    print_check(rows)
    return WORSE_CODE if worse(rows) else _told(damaged)


def _compared(folders: Sequence[Path], chosen: Chosen) -> tuple[list[Comparison], list[str]]:
    """The rows of all comparisons with the first folder, and a line on each damaged cell."""
    from bench.judge.compare.rows import compare
    from bench.report.page.damaged import damaged_lines

    _distinct(folders)
    base, *others = [_set(folder, chosen) for folder in folders]
    rows = []
    for one in others:
        found = compare(base, one)
        if not any(row.base_cell and row.cell for row in found):
            raise UserError(f"no cell of {one.name} belongs to one of {base.name}: no id is in both, nor a cell of the "
                            "same model, method, parameters, streams, temperature, length and prompts")  # fmt: skip
        rows += found
    return rows, [line for one in (base, *others) for line in damaged_lines(one.cells)]


def _distinct(folders: Sequence[Path]) -> None:
    from bench.records.cells import records_root

    known: dict[str, Path] = {}
    for folder in folders:
        place = os.path.realpath(records_root(folder))
        if place in known:
            also = "twice" if known[place] == folder else f"twice, as {known[place]} too"
            raise UserError(f"the results folder {folder} is given {also}; give another one to compare it with")
        known[place] = folder


def _set(folder: Path, chosen: Chosen) -> Set:
    """What is compared of one folder: of results, or of one machine of them."""
    from bench.host.cpus import available_cpus
    from bench.judge.compare.rows import Set, set_of
    from bench.records.cells import cell_folders, whole_cells
    from bench.stored import judge_stored, many_stored

    if not folder.is_dir():
        raise UserError(f"there is no results folder {folder}; give one that `python -m bench sweep` has written")
    cells = whole_cells(folder)
    if not cells:  # of one machine
        place = folder.resolve()
        cells = [one for one in cell_folders(place.parent) if one.parent == place]
    if not cells:
        raise UserError(f"the folder {folder} has no cells; give one that `python -m bench sweep` has written")
    if (many := many_stored(cells, chosen)) is None:
        return set_of(judge_stored(cells, chosen=chosen), str(folder))
    found = Set(str(folder))
    for part in many.each(set_of, available_cpus()):
        found.add(part)
    return found


def _told(damaged: Sequence[str]) -> int:
    for line in damaged:
        print(line, file=sys.stderr)
    return 1 if damaged else 0
