"""Every row that the judge makes of one committed cell alone is the row of the committed report, column by column.

`tests/report/test_reference.py` compares the report as a whole. This does it cell by cell, so that a wrong figure is
told with its cell, table and column.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from functools import cache

import pytest

from bench.judge.damage import judge_curves, judge_whole
from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from bench.judge.measure.case import is_profile
from bench.judge.measure.contexts import ENDS
from bench.judge.tables import TABLES
from bench.readme import REFERENCE, ROOT
from bench.records.cells import cell_folders, read_cell
from bench.report.tables.csv_files import Ordered, table_text

FOLDERS = {folder.name: folder for folder in cell_folders(REFERENCE)}
ALONE = tuple(name for name, table in TABLES.items() if table.made_by)
_WIDENED = {*ENDS, "direction"}
OF_SEVERAL = {"speedup": _WIDENED, "trials": _WIDENED,
              "cells": {"warnings", "void", "void_reason"}, "step_cost": {"void", "void_reason"}}  # fmt: skip
"""Columns that other cells have a say in, by the table."""
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")

Line = dict[str, str]


@cache
def committed() -> dict[str, dict[str, list[Line]]]:
    """Lines of the committed report that rest on one cell, by cell and table."""
    found: dict[str, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for name in ALONE:
        path = ROOT / "reports" / "reference" / f"{name}.csv"
        for line in csv.DictReader(path.read_text().splitlines()) if path.exists() else ():
            found[line["cells"]][name].append(line)
    return found


@cache
def prices(machine: str) -> list:
    """The step-cost curves of a machine's profiles."""
    cells = [read_cell(folder) for folder in FOLDERS.values() if folder.parent.name == machine]
    made = [judge_curves(cell)[1] for cell in cells if is_profile(cell)]
    return [profile for profile in made if profile is not None]


def test_the_rows_of_kernels_are_those_of_the_committed_report() -> None:
    findings = judge_kernels(Findings(), sorted(path.parent for path in REFERENCE.glob("*/kernels/env.json")))
    for table in ("kernels", "counters", "ssq", "kernel_resources"):
        kept = (ROOT / "reports" / "reference" / f"{table}.csv").read_text()
        made = table_text(table, Ordered(findings).rows(table))
        # The counters of a decode are of a cell, and stand in the table of the kernels' own.
        lines = [line for line in csv.DictReader(kept.splitlines()) if line["cells"] not in FOLDERS]
        for mine, theirs in zip(csv.DictReader(made.splitlines()), lines, strict=True):
            wrong = [name for name in theirs if not same(mine[name], theirs[name])]
            assert not wrong, (table, wrong, mine)


def lines_of(name: str, rows: list) -> list[Line]:
    findings = type("Rows", (), {name: rows})()
    return list(csv.DictReader(table_text(name, Ordered(findings).rows(name)).splitlines()))


def same(made: str, kept: str) -> bool:
    """Numbers to the digits that no processor rounds otherwise, in a sentence to the last that it prints."""
    mine, theirs = NUMBER.findall(made), NUMBER.findall(kept)
    if len(mine) != len(theirs) or NUMBER.sub("#", made) != NUMBER.sub("#", kept):
        return False
    near = 1e-6 if NUMBER.fullmatch(kept) else 2e-3
    return [float(one) for one in mine] == pytest.approx([float(one) for one in theirs], rel=near, abs=1e-12)


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_the_rows_of_a_cell_are_those_of_the_committed_report(name: str) -> None:
    folder = FOLDERS[name]
    judged = judge_whole(read_cell(folder), prices(folder.parent.name))
    for table in ALONE:
        made, kept = lines_of(table, getattr(judged.findings, table)), committed()[name][table]
        assert len(made) <= len(kept) if table == "controls" else len(made) == len(kept), table
        left = list(kept)
        for line in made:
            columns = [key for key in line if key not in OF_SEVERAL.get(table, ())]
            match = next((one for one in left if all(same(line[key], one[key]) for key in columns)), None)
            assert match is not None, f"{table}: {line}"
            left.remove(match)
