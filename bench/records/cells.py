"""The folder of a cell: written once under a temporary name and renamed, read back as typed tables.

`results/<machine>/<cell>/` holds cell.yaml, env.json, facts.json, status.json, engine.log and the csv.gz tables of
`bench.records.rows.TABLES`. It knows nothing about what is in a table beyond its columns.
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from bench.errors import UserError
from bench.records import manifest, partial_cells, schema_1
from bench.records.bounded import json_value, read_bytes, read_text, yaml_value
from bench.records.cell_shape import fault_in
from bench.records.engine_log import NOTHING, EngineLog, engine_log
from bench.records.folders import UNREADABLE, has_cells
from bench.records.folders import cell_folders as cell_folders
from bench.records.rows import SCHEMA, STATUSES, TABLES, columns
from bench.records.table_files import Columns as Columns
from bench.records.table_files import no_rows, packed, table_of

REFERENCE = "reference"
"""results/reference/<machine>/ is committed, results/<machine>/ is local; both have the same layout."""

_Read = TypeVar("_Read")
MOST_LETTERS = 300
"""Of a reason: what a damaged file says of itself may be as long as the file."""
MOST_TEXT_BYTES = 16 << 20
"""Of a file that is no table."""


@dataclass(frozen=True)
class StoredCell:
    """One cell, read back. Tables are arrays by column name; those that it does not have are empty ones."""

    machine: str
    cell: str
    config: dict[str, Any]
    env: dict[str, Any]
    status: dict[str, Any]
    facts: dict[str, Any]
    runs: Columns
    rounds: Columns
    ledger: Columns
    draws: Columns
    steps: Columns
    counts: Columns
    pieces: Columns
    sharp: Columns
    launches: Columns
    served: Columns
    note: str = ""
    """Why nothing proves that the files are as they were written; empty when they prove it."""
    log: EngineLog = NOTHING
    """What llama.cpp's log of the cell tells; nothing where it has none."""


@dataclass(frozen=True)
class DamagedCell:
    """A cell that cannot be read or judged, and why, in one sentence that names the file and no folder."""

    machine: str
    cell: str
    reason: str
    newer: bool = False
    """Whether a later release may read it, so that nothing may be written over it."""


class NewerSchema(ValueError):
    """A record that only a later release can read."""


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


def write_cell(folder: Path, *, config: Mapping[str, Any], env: Mapping[str, Any], status: Mapping[str, Any],
               facts: Mapping[str, Any] | None = None, tables: Mapping[str, Sequence[Any]] | None = None,
               log: str = "") -> None:  # fmt: skip
    """Write a whole cell: into a temporary folder beside it, on the disk for good, then renamed over what is there.

    status.json comes last, with the manifest of the others. `tables` maps names of `bench.records.rows.TABLES` to lists
    of their records. Raises ValueError on an unknown state, OSError, and `UserError` where a record of a later schema
    lies in its place.
    """
    if status.get("state") not in STATUSES:
        raise ValueError(f"a cell cannot be '{status.get('state')}'")
    if is_newer(folder):
        raise UserError(f"the cell {folder} was written by a later release of pti-bench; it is left as it is, give "
                        "another folder with results=FOLDER")  # fmt: skip
    folder.parent.mkdir(parents=True, exist_ok=True)
    stored = {"schema": SCHEMA, **config}
    contents = {
        "cell.yaml": yaml.safe_dump(stored, sort_keys=True).encode(),
        "env.json": json_bytes(env),
        "facts.json": json_bytes(facts or {}),
    }
    if log:
        contents["engine.log.gz"] = gzip.compress(log.encode(errors="replace"), mtime=0)
    rows = {f"{name}.csv.gz": len(found) for name, found in (tables or {}).items() if found}
    for name, found in (tables or {}).items():
        if found:
            contents[f"{name}.csv.gz"] = packed(map(astuple, found), columns(TABLES[name]))
    made = manifest.manifest(folder.parent.name, folder.name, contents, rows, stored, env)
    partial_cells.write_whole(folder, contents | {"status.json": json_bytes(manifest.sealed(status, made))})


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """A JSON file of a cell, as it is written."""
    return (json.dumps(value, indent=1, sort_keys=True, allow_nan=True) + "\n").encode()


def read_status(folder: Path) -> dict[str, Any] | None:
    """status.json of a cell, or None when there is no whole cell."""
    try:
        status = json_value(read_text(folder / "status.json", MOST_TEXT_BYTES))
    except (OSError, ValueError):
        return None
    return None if fault_in("status.json", status) else status


def host_of(folder: Path) -> str:
    """Key of the host whose finished cell lies here; empty where there is none, or where it does not tell."""
    status = read_status(folder) or {}
    made = status.get(manifest.KEY)
    return str(made.get("host") or "") if isinstance(made, Mapping) and status["state"] == "done" else ""


def read_part(folder: Path, name: str) -> dict[str, Any] | None:
    """cell.yaml (as this version writes it), env.json or facts.json alone; None where it cannot be read.

    Nothing is checked against the manifest, so it is for guesses and never for a figure.
    """
    try:
        found = _mapping(name, read_bytes(folder / name, MOST_TEXT_BYTES))
        return READERS[found["schema"]](found) if name == "cell.yaml" else found
    except (OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return None


def is_newer(folder: Path) -> bool:
    """Whether a record of a later schema than this version writes lies here."""
    try:
        _mapping("cell.yaml", read_bytes(folder / "cell.yaml", MOST_TEXT_BYTES))
    except NewerSchema:
        return True
    except (OSError, ValueError, yaml.YAMLError):
        return False
    return False


def state_of(folder: Path) -> str:
    """`done`, `failed`, `unsupported`, `missing`, `damaged` or `newer`.

    Damaged: done once, with a file that is not as it was written. Newer: of a later release, to be left as it is. A
    cell whose hashes prove it whole is not read any further, so that thousands can be asked.
    """
    status = read_status(folder)
    if status is not None and _is_proven(folder, status):
        return str(status["state"])
    if is_newer(folder):
        return "newer"
    if status is None:
        return "damaged" if (folder / "status.json").exists() else "missing"
    done = status["state"] == "done"
    return "damaged" if done and isinstance(read_cell(folder), DamagedCell) else str(status["state"])


_OF_THIS_SCHEMA = re.compile(rf"^schema: {SCHEMA}$".encode(), re.MULTILINE)


def _is_proven(folder: Path, status: Mapping[str, Any]) -> bool:
    """Whether the hashes of a cell of this schema say that all its files are as they were written."""
    if status.get(manifest.KEY) is None:
        return False
    try:
        contents = file_contents(folder)
    except (OSError, ValueError):
        return False
    whole = not manifest.fault_of_files(status, folder.parent.name, folder.name, contents)
    return whole and bool(_OF_THIS_SCHEMA.search(contents.get("cell.yaml", b"")))


def file_contents(folder: Path) -> dict[str, bytes]:
    """All files of `bench.records.manifest.FILES` that a cell has. Raises ValueError for one too long, and OSError."""
    found = {}
    for name in manifest.FILES:
        with suppress(FileNotFoundError):
            found[name] = read_bytes(folder / name)
    return found


def whole_contents(folder: Path) -> dict[str, bytes]:
    """The same with status.json, which has the manifest and is the last file of a cell that is written."""
    status = folder / "status.json"
    return file_contents(folder) | ({status.name: read_bytes(status)} if status.exists() else {})


def _mapping(name: str, content: bytes) -> dict[str, Any]:
    """What a file of `bench.records.cell_shape.SHAPES` holds. Raises ValueError where that is of another shape."""
    text = content.decode("utf-8")
    value = yaml_value(text) if name == "cell.yaml" else json_value(text)
    # Before its shape: a later schema may have another one.
    schema = value.get("schema") if name == "cell.yaml" and isinstance(value, dict) else SCHEMA
    if type(schema) is not int or schema not in READERS:
        newer = type(schema) is int and schema > SCHEMA
        way = f": a later release of pti-bench, with schema {schema} in its CHANGELOG, reads it" if newer else ""
        raise (NewerSchema if newer else ValueError)(
            f"it is of schema {schema!r}, this version reads 1 to {SCHEMA}{way}"
        )
    if fault := fault_in(name, value):
        raise ValueError(fault)
    found: dict[str, Any] = value
    return found


SPARE_BLOCKS = 1000
"""How far a block's number may be above the number of runs."""
READERS: Mapping[int, Callable[[Mapping[str, Any]], dict[str, Any]]] = {1: schema_1.converted, 2: dict, SCHEMA: dict}
"""What makes a configuration of each schema one of today's."""


def _part(read: Callable[[], _Read], name: str) -> _Read:
    """What a file of a cell holds. Raises `UserError` that names the file, whatever is wrong with it."""
    try:
        return read()
    except UserError:
        raise
    except Exception as error:  # a damaged file may say anything to its reader: zlib.error, RecursionError and so on
        why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise UserError(f"{name}: {' '.join(why.split())[:MOST_LETTERS]}") from error


def read_cell(folder: Path) -> StoredCell | DamagedCell:
    """Read one cell and check it against its manifest; one that does not fit is told as such, and raises nothing."""
    machine, cell = folder.parent.name, folder.name
    if cell == UNREADABLE:
        return DamagedCell(machine, cell, "the folder of this machine cannot be listed; mend its owner or its rights")
    try:
        return _read(folder, machine, cell)
    except UserError as error:
        return DamagedCell(machine, cell, str(error), isinstance(error.__cause__, NewerSchema))


def _read(folder: Path, machine: str, cell: str) -> StoredCell:
    def content(name: str) -> bytes:
        return _part(lambda: read_bytes(folder / name, *(() if name.endswith(".gz") else (MOST_TEXT_BYTES,))), name)

    contents = {"cell.yaml": content("cell.yaml")}
    config = _part(lambda: _mapping("cell.yaml", contents["cell.yaml"]), "cell.yaml")
    contents |= {name: content(name) for name in ("env.json", "facts.json")}
    contents |= {name: content(name) for name in manifest.FILES if name not in contents and (folder / name).exists()}
    env, facts = (_part(partial(_mapping, name, contents[name]), name) for name in ("env.json", "facts.json"))
    status = _part(lambda: _mapping("status.json", content("status.json")), "status.json")
    tables = {name: _part(partial(_table, contents, name, record), f"{name}.csv.gz") for name, record in TABLES.items()}
    _part(lambda: _blocks_fit(tables["runs"]), "runs.csv.gz")
    note = _part(lambda: _proof(status, machine, cell, contents, config, env), "status.json")
    text = contents.get("engine.log.gz")
    log = _part(lambda: NOTHING if text is None else engine_log(text), "engine.log.gz")
    converted = _part(lambda: READERS[config["schema"]](config), "cell.yaml")
    return StoredCell(machine=machine, cell=cell, config=converted, env=env, facts=facts, status=status, note=note,
                      log=log, **tables)  # fmt: skip


def _blocks_fit(runs: Columns) -> None:
    """Blocks are numbered from 0 and each has runs, so no number is far above theirs.

    Whoever judges the cell makes room for as many. Raises ValueError for a number that none can have.
    """
    blocks = runs["block"]
    if len(blocks) and not 0 <= min(blocks) <= max(blocks) <= len(blocks) + SPARE_BLOCKS:
        raise ValueError(f"it has {len(blocks)} runs, and blocks from {min(blocks)} to {max(blocks)}")


def _table(contents: Mapping[str, bytes], name: str, record: type) -> Columns:
    content = contents.get(f"{name}.csv.gz")
    return no_rows(record) if content is None else table_of(content, record)


def _proof(status: Mapping[str, Any], machine: str, cell: str, contents: Mapping[str, bytes],
           config: Mapping[str, Any], env: Mapping[str, Any]) -> str:  # fmt: skip
    """Empty for a cell that is as it was written, the note for one that cannot prove it. Raises `UserError`."""
    if status.get(manifest.KEY) is None:
        if config["schema"] >= manifest.SINCE:
            raise UserError("status.json: it has no manifest of the cell's files")
        return manifest.UNPROVEN.format(schema=config["schema"])
    if fault := manifest.fault(status, machine, cell, contents, config, env):
        raise UserError(fault)
    return ""


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
    return cell_folders(records_root(root))


def records_root(root: Path) -> Path:
    """The folder whose cells are read for `root`: itself, or the reference in it where it has none of its own."""
    return root if has_cells(root) else root / REFERENCE


def has_table(folder: Path, name: str) -> bool:
    """Whether a cell has rows in one of `bench.records.rows.TABLES`; nothing is read."""
    return (folder / f"{name}.csv.gz").exists()
