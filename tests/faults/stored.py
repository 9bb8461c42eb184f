"""A copy of a real cell of the reference that can be edited and written again, as with an editor."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from bench.judge.damage import judge_whole
from bench.judge.findings import Findings
from bench.records import manifest
from bench.records.cells import read_cell
from bench.records.rows import TABLES

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
KEPT = (Path(__file__).parents[1] / "data" / "cells", Path(__file__).parent / "cells")
"""Cells that were among those of the reference and show what its newest do not."""
EARLIER = Path(__file__).parents[1] / "data" / "earlier"
"""Cells as an earlier release wrote them, without hashes and without turns: tests name them, readers may have such."""
ROWS = tuple(TABLES)
OF_RUNS = ("rounds", "ledger", "draws", "pieces", "served", "runs")
"""Tables whose rows belong to a run, the runs themselves last."""


@dataclass
class Record:
    """The files of a cell, to be changed at will."""

    machine: str
    cell: str
    config: dict[str, Any]
    env: dict[str, Any]
    facts: dict[str, Any]
    status: dict[str, Any]
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    log: bytes = b""
    """llama.cpp's own, packed; empty where the cell has none."""

    def mask(self, table: str, *arms: str) -> pd.Series:
        """Rows of a table that belong to runs of some arms."""
        runs = self.tables["runs"]
        wanted = runs["run"][runs["arm"].isin(arms)]
        return self.tables[table]["run"].isin(wanted)

    def scale(self, table: str, columns: tuple[str, ...], factor: float, *arms: str) -> None:
        """Times of some arms, multiplied."""
        rows = self.tables[table]
        mask = self.mask(table, *arms)
        for column in columns:
            rows.loc[mask, column] = (rows.loc[mask, column] * factor).astype("int64")

    def drop(self, *arms: str) -> None:
        """Forget some arms altogether: runs, rows, grades, engine."""
        for name in OF_RUNS:
            if name in self.tables:
                self.tables[name] = self.tables[name][~self.mask(name, *arms)]
        self.facts["lossless"] = [row for row in self.facts["lossless"] if row["arm"] not in arms]
        for arm in arms:
            self.facts["engine"].pop(arm, None)

    def write(self, root: Path) -> Path:
        """The folder of the cell below `root`."""
        folder = root / self.machine / self.cell
        folder.mkdir(parents=True)
        contents = {"cell.yaml": yaml.safe_dump(self.config).encode()}
        contents |= {f"{name}.json": json.dumps(getattr(self, name)).encode() for name in ("env", "facts")}
        contents |= {f"{name}.csv.gz": gzip.compress(rows.to_csv(index=False, na_rep="nan").encode(), 1)
                     for name, rows in self.tables.items()}  # fmt: skip
        contents |= {"engine.log.gz": self.log} if self.log else {}
        status = {key: value for key, value in self.status.items() if key != manifest.KEY}
        if manifest.KEY in self.status:  # whoever edits it may write a manifest of his own, too
            rows = {f"{name}.csv.gz": len(found) for name, found in self.tables.items()}
            made = manifest.manifest(self.machine, self.cell, contents, rows, self.config, self.env)
            status = manifest.sealed(status, made)
        for name, content in (contents | {"status.json": json.dumps(status).encode()}).items():
            (folder / name).write_bytes(content)
        return folder


def folder_of(cell: str) -> Path:
    """Where a cell lies that a test names: among those of the reference, or of the tests."""
    return next(path for root in (REFERENCE, *KEPT, EARLIER) for path in root.glob(f"*/{cell}"))


def unsealed(kind: str) -> list[Path]:
    """Cells of a kind, by id, that no manifest ties to their names: a copy of one may lie under another."""
    found = sorted({path.parent.name for root in (*KEPT, EARLIER) for path in root.glob("amd-epyc-2c/*/cell.yaml")})
    texts = {folder: (folder / "cell.yaml").read_text().splitlines() for folder in map(folder_of, found)}
    return [folder for folder, lines in texts.items() if f"kind: {kind}" in lines and "schema: 3" not in lines]


@cache
def _texts(cell: str) -> tuple[str, str, dict[str, str], dict[str, str], bytes]:
    folder = folder_of(cell)
    parts = {name: (folder / f"{name}.json").read_text() for name in ("env", "facts", "status")}
    tables = {name: gzip.decompress((folder / f"{name}.csv.gz").read_bytes()).decode()
              for name in ROWS if (folder / f"{name}.csv.gz").exists()}  # fmt: skip
    log = folder / "engine.log.gz"
    return (folder.parent.name, (folder / "cell.yaml").read_text(), parts, tables,
            log.read_bytes() if log.exists() else b"")  # fmt: skip


def record(cell: str) -> Record:
    """A fresh copy of a cell of the reference."""
    machine, config, parts, tables, log = _texts(cell)
    return Record(machine, cell, yaml.safe_load(config), **{name: json.loads(text) for name, text in parts.items()},
                  tables={name: pd.read_csv(StringIO(text)) for name, text in tables.items()}, log=log)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: `void`, `damaged`, `warning` or `sound`, and every control that is not ok."""

    verdict: str
    said: dict[str, str]


def judged(folder: Path) -> Outcome:
    """Read and judge one folder as a report does."""
    return outcome(judge_whole(read_cell(folder), []).findings)


def outcome(findings: Findings) -> Outcome:
    """What the findings of one cell say of it."""
    (cell,) = findings.cells
    if cell.state == "damaged":
        return Outcome("damaged", {"damaged": cell.reason})
    said = {row.control: row.sentence for row in findings.controls if row.severity != "ok"}
    if cell.void:
        return Outcome("void", said)
    return Outcome("warning" if said else "sound", said)


Edit = Callable[[Record], None]
