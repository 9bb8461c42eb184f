"""What a cell says of its own files: part of status.json, which is written last.

Each file's size, hash and rows, the hash of what was measured, and where and by which commit of the harness. A file
that was cut, edited, swapped or copied elsewhere no longer fits. It protects against accidents and careless hands, not
against somebody who writes a manifest of their own. It reads no file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bench.records.identity import cell_id
from bench.records.rows import TABLES

KEY = "manifest"
SINCE = 3
"""The first schema whose every cell has one."""
FILES = ("cell.yaml", "env.json", "facts.json", "engine.log.gz", *(f"{name}.csv.gz" for name in TABLES))
"""All that a cell may consist of beside status.json."""
_SEAL = "seal"
UNPROVEN = "the record is of schema {schema}, whose cells carry no hashes: an edit of it would not show"


def manifest(machine: str, cell: str, contents: Mapping[str, bytes], rows: Mapping[str, int],
             config: Mapping[str, Any], env: Mapping[str, Any]) -> dict[str, Any]:  # fmt: skip
    """The manifest of the files `contents`, by name; `rows` are those of the tables among them."""
    files = {name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
             | ({"rows": rows[name]} if name in rows else {}) for name, content in contents.items()}  # fmt: skip
    return {
        "machine": machine, "cell": cell, "measured": cell_id(config, build_of(env)), "build": build_of(env),
        "host": env.get("host", ""), "device": env.get("device", ""), "harness_commit": env.get("harness_commit", ""),
        "files": files,
    }  # fmt: skip


def sealed(status: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """status.json with its manifest, which ends with a hash of the rest of both."""
    return {**status, KEY: {**made, _SEAL: _seal(status, made)}}


def fault(status: Mapping[str, Any], machine: str, cell: str, contents: Mapping[str, bytes],
          config: Mapping[str, Any], env: Mapping[str, Any]) -> str:  # fmt: skip
    """Why files are not those of their manifest, beginning with the file's name; empty when they are.

    `contents` are all files of `FILES` that there are; `config` is what cell.yaml holds.
    """
    if wrong := fault_of_files(status, machine, cell, contents):
        return wrong
    if cell_id(config, build_of(env)) != status[KEY].get("measured"):
        return "cell.yaml: it tells another measurement than the one that the cell's id was made of"
    return ""


def fault_of_files(status: Mapping[str, Any], machine: str, cell: str, contents: Mapping[str, bytes]) -> str:
    """The same by the hashes alone, whatever the files say."""
    made = status[KEY]
    if not isinstance(made, Mapping) or not isinstance(made.get("files"), Mapping):
        return "status.json: its manifest lists no files"
    rest = {key: value for key, value in status.items() if key != KEY}
    if made.get(_SEAL) != _seal(rest, {key: value for key, value in made.items() if key != _SEAL}):
        return "status.json: it was changed after it was written"
    if (machine, cell) != (made.get("machine"), made.get("cell")):
        return f"status.json: it is a copy of {made.get('machine')}/{made.get('cell')}, under another name"
    return _changed(made["files"], contents)


def _changed(files: Mapping[str, Any], contents: Mapping[str, bytes]) -> str:
    for name in sorted({*files, *contents}):
        if name not in contents:
            return f"{name}: it is missing"
        if name not in files:
            return f"{name}: it came into the folder after the cell was written"
        told = files[name].get("sha256") if isinstance(files[name], Mapping) else None
        if hashlib.sha256(contents[name]).hexdigest() != told:
            return f"{name}: it was changed after it was written"
    return ""


def build_of(env: Mapping[str, Any]) -> str:
    """The engine's build in an env.json; empty where there is none."""
    engine = env.get("engine")
    return str(engine.get("build", "")) if isinstance(engine, Mapping) else ""


def _seal(status: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    text = json.dumps([status, made], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
