"""What the judge says of stored cells in which one thing is changed: `python -m tests.judge.said` writes down what it
says at present, a line a cell and column in said.csv, for whoever changes it to read as a diff.

A line has the checks that some of the changes fail. What they say, and every figure to six digits, is in a digest. It
is of the columns that there were when it was written down (columns.json): a further one changes no line.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.judge import judge
from bench.judge.damage import judge_curves, judge_whole
from bench.judge.findings import Findings
from bench.judge.measure.case import Profile
from bench.judge.predict.advice import Advice, advise
from bench.judge.tables import TABLES, written
from bench.records.cells import StoredCell, read_cell
from bench.report.tables.csv_files import cell_text
from pti_loop.parameters import declared
from tests.faults.stored import KEPT as FOLDERS

KEPT = Path(__file__).with_name("said.csv")
COLUMNS_OF = Path(__file__).with_name("columns.json")
COLUMNS = ("cell", "place", "fails", "digest")
CELLS = sorted(path.parent.name for root in FOLDERS for path in root.glob("*/*/cell.yaml"))
"""Most methods, at and above temperature 0, a profile of either machine, and a cell with all that later ones have."""
ROWS = ("runs", "rounds", "ledger", "draws", "steps", "counts", "pieces", "sharp")
SHOWN = tuple(name for name, table in TABLES.items() if table.made_by and name != "timeline")
JOINED = tuple(name for name, table in TABLES.items() if table.joined_by and not table.made_by)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
A_TABLE, LEAVES = 4, 12
"""Columns of a table and values of the other files that are changed in a cell, drawn by its name."""

Change = Callable[[StoredCell], StoredCell]


@cache
def stored(name: str) -> StoredCell:
    """A cell as it is."""
    (folder,) = (path for root in FOLDERS for path in root.glob(f"*/{name}"))
    cell = read_cell(folder)
    assert isinstance(cell, StoredCell)
    return cell


@cache
def columns() -> dict[str, list[str]]:
    """Columns of each table that are in the digests."""
    found: dict[str, list[str]] = json.loads(COLUMNS_OF.read_text())
    return found


def own() -> list[str]:
    """Tables that a cell fills alone."""
    return [table for table in columns() if TABLES[table].made_by]


@cache
def prices() -> list[Profile]:
    """The step-cost curves of both machines."""
    found = [judge_curves(stored(name))[1] for name in CELLS]
    return [profile for profile in found if profile is not None]


def changes(name: str) -> Iterator[tuple[str, list[Change]]]:
    """Words for a place of a cell, and what is done to it."""
    draw, cell = random.Random(name), stored(name)
    for table in ROWS:
        rows = getattr(cell, table)
        count = len(next(iter(rows.values()))) if rows else 0
        if not count:
            continue
        yield f"{table} rows", [_picked(table, order) for order in _orders(count, draw)]
        for column in draw.sample(sorted(rows), min(A_TABLE, len(rows))):
            yield f"{table}.{column}", _of_column(table, rows, column, draw)
    leaves = [(file, path) for file in ("config", "facts", "env") for path in _leaves(getattr(cell, file), ())]
    for file, path in sorted(draw.sample(leaves, min(LEAVES, len(leaves))), key=str):
        words = ".".join(map(str, (file, *path)))
        yield words, [_leaf(file, path, how) for how in (_gone, _other)]


def _orders(count: int, draw: random.Random) -> list[np.ndarray]:
    every, one, two = np.arange(count), draw.randrange(count), draw.randrange(count)
    swapped = every.copy()
    swapped[[one, two]] = swapped[[two, one]]
    return [every[:-1], every[1:], np.delete(every, one), np.sort(np.append(every, one)), swapped, every[: count // 2]]


def _picked(table: str, order: np.ndarray) -> Change:
    return lambda cell: replace(cell, **{table: {key: value[order] for key, value in getattr(cell, table).items()}})


def _of_column(table: str, rows: Any, column: str, draw: random.Random) -> list[Change]:
    values = rows[column]
    place, other = draw.randrange(len(values)), draw.randrange(len(values))
    if values.dtype.kind in "US":
        return [_set(table, column, values, place, values[other]), _set(table, column, values, place, "other")]
    made = [_set(table, column, values, place, new) for new in (values[place] + 1, values[place] * 3, 0, -1)]
    if "run" in rows:
        runs = rows["run"]
        made += [_set(table, column, values, runs % 2 == 1, values[runs % 2 == 1] * factor) for factor in (1.1, 2)]
    return made


def _set(table: str, column: str, values: np.ndarray, place: Any, new: Any) -> Change:
    def change(cell: StoredCell) -> StoredCell:
        made = values.copy()
        made[place] = new
        return replace(cell, **{table: {**getattr(cell, table), column: made}})

    return change


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(one, (*path, key))
    elif path[-1] not in ("sha256", "text", "host"):
        yield path


def _leaf(file: str, path: tuple[Any, ...], how: Callable[[Any, Any], None]) -> Change:
    def change(cell: StoredCell) -> StoredCell:
        made = copy.deepcopy(getattr(cell, file))
        inner = made
        for key in path[:-1]:
            inner = inner[key]
        how(inner, path[-1])
        return replace(cell, **{file: made})

    return change


def _gone(inner: Any, key: Any) -> None:
    del inner[key]


def _other(inner: Any, key: Any) -> None:
    value = inner[key]
    numeric = not isinstance(value, (bool, str))
    inner[key] = (value or 0) * 2 + 1 if numeric else f"{value}x" if isinstance(value, str) else not value


def said(name: str, place: str, made: list[Change]) -> dict[str, str]:
    """One line."""
    found = [judge_whole(change(stored(name)), prices()).findings for change in made]
    return {"cell": name, "place": place, **_told(found, own())}


def together(without: str) -> dict[str, str]:
    """One line of all cells but one: what rests on several, and the advice that follows."""
    found = judge([stored(name) for name in CELLS if name != without])
    plans = [advise(found, model, machine, sorted(declared())) for machine in ("amd-epyc-2c", "h200")
             for model in ("smollm2-135m", "pti-tiny")]  # fmt: skip
    return {"cell": "all", "place": f"without {without}", **_told([found], columns(), repr([*map(_advice, plans)]))}


def _advice(plan: Advice | None) -> Any:
    """What is advised, without the whole rows that it is about."""
    if plan is None:
        return None
    names = ("short", "speedup", "ci_low", "ci_high")
    chosen = [(one.verdict, one.temperature, one.prompt_class, one.several, one.settings, *map(one.row.get, names))
              for one in plan.choices]  # fmt: skip
    rejected = [(one.row["short"], one.reason) for one in plan.rejected]
    return (chosen, rejected, plan.cells, plan.void, plan.unmeasured, plan.unsupported, plan.drafters, plan.cliffs,
            plan.missing)  # fmt: skip


def _told(findings: list[Findings], tables: Iterable[str], more: str = "") -> dict[str, str]:
    fails: dict[str, None] = {}
    whole = hashlib.sha256(_short(more))
    for found in findings:
        fails |= {row.control: None for row in found.controls if row.severity != "ok"}
        for row in found.cells:
            if row.state == "damaged":
                fails["damaged"] = None
                whole.update(_short(_without_lines(row.reason)))
        for table in tables:
            for row in getattr(found, table):
                whole.update(_short(_without_lines("\t".join(cell_text(row[name]) for name in columns()[table]))))
    return {"fails": ", ".join(fails), "digest": whole.hexdigest()[:12]}


def _without_lines(text: str) -> str:
    """A text without the places in the code that it names, which move with every line that is written above them."""
    return re.sub(r"\w+\.py:\d+", "", text)


def _short(text: str) -> bytes:
    """A text with its numbers to six digits."""
    return NUMBER.sub(lambda one: f"{float(one[0]) if abs(float(one[0])) > 1e-9 else 0:.6g}", text).encode()


def main() -> int:
    """Write all of them down."""
    made = {table: list(written(table)) for table in (*SHOWN, *JOINED)}
    COLUMNS_OF.write_text(json.dumps(made, indent=1) + "\n")
    with KEPT.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name in CELLS:
            writer.writerows(said(name, *one) for one in changes(name))
        writer.writerows(together(name) for name in ("", *CELLS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
