"""The folder of a cell: written once under a temporary name and renamed, read back as typed tables.

`results/<machine>/<cell>/` holds cell.yaml, env.json, facts.json, status.json, engine.log and the csv.gz tables of
`bench.records.rows.TABLES`. A folder without status.json does not exist for a reader. It knows nothing about what is in
a table beyond its columns.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, astuple, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from bench.errors import UserError
from bench.records import partial_cells, schema_1
from bench.records.cell_shape import fault_in
from bench.records.rows import SCHEMA, STATUSES, TABLES, columns

REFERENCE = "reference"
"""results/reference/<machine>/ is committed, results/<machine>/ is local; both have the same layout."""


Columns = Mapping[str, np.ndarray]
_Read = TypeVar("_Read")
MOST_LETTERS = 300
"""Of a reason: what a damaged file says of itself may be as long as the file."""
_KINDS = {"int": "i8", "float": "f8"}


@dataclass(frozen=True)
class StoredCell:
    """One cell, read back. Tables are arrays by column name; those that it does not have are empty ones."""

    machine: str
    cell: str
    config: dict
    env: dict
    status: dict
    facts: dict
    runs: Columns
    rounds: Columns
    ledger: Columns
    draws: Columns
    steps: Columns
    counts: Columns


@dataclass(frozen=True)
class DamagedCell:
    """A cell that cannot be read or judged, and why, in one sentence that names the file and no folder."""

    machine: str
    cell: str
    reason: str


def check_writable(root: Path) -> None:
    """Raise `UserError` when the results folder cannot be made or written, before anything is measured."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root):
            pass
    except OSError as error:
        raise UserError(
            f"the folder {root} cannot be written ({error.strerror}); give another one with results=FOLDER"
        ) from error


def _csv_gz(rows: Iterable[Sequence], header: Sequence[str]) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        text.flush()
        text.detach()
    return buffer.getvalue()


def write_cell(folder: Path, *, config: Mapping, env: Mapping, status: Mapping, facts: Mapping | None = None,
               tables: Mapping[str, Sequence[Any]] | None = None, log: str = "") -> None:
    """Write a whole cell: into a temporary folder beside it, then renamed over what is there.

    `tables` maps names of `bench.records.rows.TABLES` to lists of their records. Raises ValueError on an unknown state.
    """
    if status.get("state") not in STATUSES:
        raise ValueError(f"a cell cannot be '{status.get('state')}'")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = partial_cells.make_partial(folder)
    try:
        (temporary / "cell.yaml").write_text(yaml.safe_dump({"schema": SCHEMA, **config}, sort_keys=True))
        _write_json(temporary / "env.json", env)
        _write_json(temporary / "facts.json", facts or {})
        if log:
            (temporary / "engine.log.gz").write_bytes(gzip.compress(log.encode(), mtime=0))
        for name, rows in (tables or {}).items():
            if rows:
                data = _csv_gz(map(astuple, rows), columns(TABLES[name]))
                (temporary / f"{name}.csv.gz").write_bytes(data)
        _write_json(temporary / "status.json", status)
        os.chmod(temporary, 0o755)
        partial_cells.put_in_place(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _write_json(path: Path, value: Mapping) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True, allow_nan=True) + "\n")


def read_status(folder: Path) -> dict | None:
    """status.json of a cell, or None when there is no whole cell."""
    try:
        status = json.loads((folder / "status.json").read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return None if fault_in("status.json", status) else status


@lru_cache
def _no_rows(record: type) -> Columns:
    """The table of a cell that has none. One for all cells: nobody writes into what was read."""
    return dict.fromkeys(columns(record), np.zeros(0))


def _columns(path: Path, record: type) -> Columns:
    """A table by column; one that the file lacks has its field's default. Raises `UserError` on any other difference.

    numpy's reader: a frame would take longer to make than these small tables take to read.
    """
    try:
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    except FileNotFoundError:
        return _no_rows(record)
    header = lines[0].split(",") if lines else []
    known = [field for field in fields(record) if field.name in header]
    absent = {field.name: field.default for field in fields(record) if field.name not in header}
    if header != [field.name for field in known] or MISSING in absent.values():
        raise ValueError(f"it has the columns {header}, this version reads {columns(record)}")
    # No word is longer than its line, so nothing is cut off.
    word = f"U{max(map(len, lines))}"
    kinds = [(field.name, _KINDS.get(str(field.type), word)) for field in known]
    rows = np.loadtxt(lines[1:], dtype=kinds, delimiter=",", quotechar='"', comments=None, ndmin=1)
    found = {name: np.ascontiguousarray(rows[name]) for name in header}
    return found | {name: np.full(len(rows), default) for name, default in absent.items()}


def _mapping(path: Path) -> dict:
    """A file of `bench.records.cell_shape.SHAPES`. Raises ValueError where its content is of another shape."""
    text = path.read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    value = yaml.load(text, Loader=loader) if path.suffix == ".yaml" else json.loads(text)
    # Before its shape: a later schema may have another one.
    schema = value.get("schema") if path.name == "cell.yaml" and isinstance(value, dict) else SCHEMA
    if type(schema) is not int or schema not in READERS:
        newer = isinstance(schema, int) and schema > SCHEMA
        way = f": a later release of pti-bench, with schema {schema} in its CHANGELOG, reads it" if newer else ""
        raise ValueError(f"it is of schema {schema!r}, this version reads 1 to {SCHEMA}{way}")
    if fault := fault_in(path.name, value):
        raise ValueError(fault)
    return READERS[schema](value) if path.name == "cell.yaml" else value


READERS: Mapping[int, Callable[[Mapping[str, Any]], dict[str, Any]]] = {1: schema_1.converted, SCHEMA: dict}
"""What makes a configuration of each schema one of today's."""


def _part(read: Callable[[], _Read], name: str) -> _Read:
    """What a file of a cell holds. Raises `UserError` that names the file, whatever is wrong with it."""
    try:
        return read()
    except Exception as error:  # a damaged file may say anything to its reader: zlib.error, RecursionError and so on
        why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise UserError(f"{name}: {' '.join(why.split())[:MOST_LETTERS]}") from error


def read_cell(folder: Path) -> StoredCell | DamagedCell:
    """Read one cell; one with a damaged file is told as such, with the reason, and raises nothing."""
    machine, cell = folder.parent.name, folder.name
    try:
        config = _part(lambda: _mapping(folder / "cell.yaml"), "cell.yaml")
        parts = {name: _part(lambda name=name: _mapping(folder / f"{name}.json"), f"{name}.json")
                 for name in ("env", "facts", "status")}  # fmt: skip
        tables = {name: _part(lambda name=name, record=record: _columns(folder / f"{name}.csv.gz", record),
                              f"{name}.csv.gz") for name, record in TABLES.items()}  # fmt: skip
    except UserError as error:
        return DamagedCell(machine, cell, str(error))
    return StoredCell(machine=machine, cell=cell, config=config, **parts, **tables)


def load_cell(folder: Path) -> StoredCell:
    """Read one cell. Raises `UserError` naming the file when it is damaged or of another schema."""
    found = read_cell(folder)
    if isinstance(found, DamagedCell):
        raise UserError(f"the cell {folder} is damaged ({found.reason}); remove the folder and run the sweep again")
    return found


def load_cells(root: Path) -> list[StoredCell | DamagedCell]:
    """All whole cells of `root/<machine>/<cell>/`, in order of machine and id; damaged ones are told as such.

    When there are none, those of `root/reference/`, which come with the project. Raises `UserError` when there is no
    such folder.
    """
    return [read_cell(folder) for folder in whole_cells(root)]


def whole_cells(root: Path) -> list[Path]:
    """The folders that `load_cells` reads. Raises `UserError` when there is no such folder."""
    if not root.is_dir():
        raise UserError(f"there is no results folder {root}; run `make bench`, or give one with results=FOLDER")
    return cell_folders(root) or cell_folders(root / REFERENCE)


def has_table(folder: Path, name: str) -> bool:
    """Whether a cell has rows in one of `bench.records.rows.TABLES`; nothing is read."""
    return (folder / f"{name}.csv.gz").exists()


def cell_folders(root: Path) -> list[Path]:
    """Folders of the whole cells below `root`, not looking into the committed reference."""
    # A cell of the reference lies one folder deeper, so the pattern does not reach it.
    found = [path.parent for path in root.glob("*/*/status.json")]
    kept = [path for path in found if not path.name.startswith(".")]
    return sorted(kept, key=lambda path: (path.parent.name, path.name))
