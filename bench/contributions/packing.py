"""A stored cell as it travels: its files without what tells who and where, and its manifest made again where that was.

What a cell's id is a hash of cannot be told otherwise, so that a cell whose settings or prompts name somebody stays at
home. A cell with nothing to hide travels byte for byte. It measures and judges nothing.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from bench.contributions.private import Private, foreign_server, users_in
from bench.errors import UserError
from bench.machine_name import machine_id
from bench.plan.config import CONFIGS
from bench.records import manifest
from bench.records.archives import STATUS, PackedCell
from bench.records.bounded import json_value, read_bytes, unpacked, yaml_value
from bench.records.cells import DamagedCell, json_bytes, read_cell, whole_contents
from bench.records.folders import KERNELS

SCRUBBED = "scrubbed"
"""Under which a manifest names the files that something was taken out of."""
_CONFIG, _LOG = "cell.yaml", "engine.log.gz"
_WORD = re.compile(r"[A-Za-z_]\w*")
"""A key that a record has, and nobody's name."""


def packed_cell(folder: Path, private: Private) -> PackedCell:
    """A cell, ready to travel. Raises `UserError` for one that cannot: damaged, or about somebody."""
    where = f"the cell {folder.parent.name}/{folder.name} is left out"
    cell = read_cell(folder)
    if isinstance(cell, DamagedCell):
        raise UserError(f"{where}: it is damaged ({cell.reason}); run its sweep again, then pack")
    contents = whole_contents(folder)
    texts = {name: _text(name, content) for name, content in contents.items()}
    private = private.with_users({name for text in texts.values() for name in users_in(text)})
    machine = _machine_name(cell.machine, cell.env, private)
    for name, text in texts.items():
        tells = private.named(text) if _is_table(name) else ""
        if named := _named_in(cell.config, private) if name == _CONFIG else tells:
            raise UserError(f"{where}: {name} names '{named}', and its id or its rows rest on that; measure it again "
                            "without the name, or send the folder as it is where the name may be known")  # fmt: skip
    changed = {name: content for name, text in texts.items()
               if name != STATUS and (content := _without(name, text, contents[name], private, machine))}  # fmt: skip
    status = _mapping(texts[STATUS])
    told = _scrubbed_status(status, private)
    if not changed and told == status and machine == cell.machine:
        return PackedCell(machine, cell.cell, contents)
    contents |= changed
    contents[STATUS] = _sealed(machine, cell.cell, contents, told, sorted(changed))
    _check(where, contents, private)
    return PackedCell(machine, cell.cell, contents)


def packed_kernels(folder: Path, private: Private) -> PackedCell:
    """The kernel records of a machine, which have no manifest. Raises `UserError` for a file that names somebody."""
    contents: dict[str, bytes] = {}
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    for path in paths:
        name, content = path.relative_to(folder).as_posix(), read_bytes(path)
        contents[name] = _without(name, _text(name, content), content, private, "") or content
    machine = folder.parent.name
    if private.named(machine):
        env = _mapping(contents.get("env.json", b"{}").decode())
        machine = _machine_name(machine, env, private)
    _check(f"the kernel records {machine}/{KERNELS} are left out", contents, private)
    return PackedCell(machine, KERNELS, contents)


def _text(name: str, content: bytes) -> str:
    plain = unpacked(content) if name.endswith(".gz") else content
    return plain.decode("utf-8", errors="replace")


def _mapping(text: str) -> dict[str, Any]:
    found = json_value(text)
    return found if isinstance(found, dict) else {}


def _is_table(name: str) -> bool:
    return name.endswith(".csv.gz")


def _machine_name(name: str, env: Mapping[str, Any], private: Private) -> str:
    """The machine's name; that of its make where it tells a person or a host."""
    if not private.named(name):
        return name
    about = env.get("machine") or {}
    return machine_id(str(about.get("cpu") or ""), int(about.get("cores") or 0), about.get("gpus") or [])


def _named_in(config: Mapping[str, Any], private: Private) -> str:
    """Who or what is named in what the cell's id is a hash of. What the project's own prompts say counts as nobody."""
    for text in _strings({key: value for key, value in config.items() if key != "machine"}):
        if text not in _own_prompts() and (named := private.named(text) or foreign_server(text)):
            return named
    return ""


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _strings(inner)
            yield str(key) if not _WORD.fullmatch(str(key)) else ""
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


@cache
def _own_prompts() -> frozenset[str]:
    """Every text of the shipped prompt sets."""
    paths = sorted((CONFIGS / "prompts").glob("*.yaml"))
    return frozenset(text for path in paths for text in _strings(yaml_value(path.read_text())))


def _without(name: str, text: str, content: bytes, private: Private, machine: str) -> bytes | None:
    """A file without what tells who and where; None where it has nothing of the kind."""
    if name == _CONFIG:
        found = yaml_value(text)
        if not isinstance(found, dict) or found.get("machine") in (None, machine):
            return None
        return str(yaml.safe_dump(found | {"machine": machine}, sort_keys=True)).encode()
    if name.endswith(".json"):
        told = _mapping(text)
        about = told.get("machine")
        if machine and isinstance(about, dict) and "name" in about:
            told = told | {"machine": about | {"name": machine}}
        scrubbed = _scrubbed(told, private)
        return json_bytes(scrubbed) if scrubbed != _mapping(text) else None
    scrubbed_text = text if _is_table(name) else private.scrubbed(text)
    if name.endswith(".gz"):  # its header may have the name of a file, and the time
        bare = content[3:4] == b"\0" and content[4:8] == bytes(4)
        if bare and scrubbed_text == text:
            return None
        return gzip.compress(scrubbed_text.encode(errors="replace"), mtime=0)
    return scrubbed_text.encode() if scrubbed_text != text else None


def _scrubbed(value: Any, private: Private) -> Any:
    """The same value with every text in it scrubbed; keys that are no word of a record, too."""
    if isinstance(value, str):
        return private.scrubbed(value)
    if isinstance(value, Mapping):
        return {key if _WORD.fullmatch(key) else private.scrubbed(key): _scrubbed(inner, private)
                for key, inner in value.items()}  # fmt: skip
    return [_scrubbed(inner, private) for inner in value] if isinstance(value, list) else value


def _scrubbed_status(status: Mapping[str, Any], private: Private) -> dict[str, Any]:
    """status.json without names, its manifest as it is: that is made again where anything changed."""
    rest = {key: value for key, value in status.items() if key != manifest.KEY}
    made = {key: value for key, value in status.items() if key == manifest.KEY}
    return {**_scrubbed(rest, private), **made}


def _sealed(machine: str, cell: str, contents: Mapping[str, bytes], status: Mapping[str, Any],
            changed: list[str]) -> bytes:  # fmt: skip
    """status.json of the changed files; one of a schema without manifests gets none."""
    old = status.get(manifest.KEY)
    rest = {key: value for key, value in status.items() if key != manifest.KEY}
    if not isinstance(old, Mapping):
        return json_bytes(rest)
    rows = {name: told["rows"] for name, told in old["files"].items() if "rows" in told}
    files = {name: content for name, content in contents.items() if name != STATUS}
    config, env = yaml_value(files[_CONFIG].decode()), _mapping(files["env.json"].decode())
    made = manifest.manifest(machine, cell, files, rows, config, env)
    return json_bytes(manifest.sealed(rest, made | {SCRUBBED: sorted({*changed, *old.get(SCRUBBED, ())})}))


def _check(where: str, contents: Mapping[str, bytes], private: Private) -> None:
    """Look once more at what travels. Raises `UserError` where a name is left."""
    for name, content in contents.items():
        if name != _CONFIG and (named := next(filter(None, map(private.named, _told(name, _text(name, content)))), "")):
            raise UserError(f"{where}: {name} still names '{named}'; send it by hand where the name may be known")


def _told(name: str, text: str) -> Iterator[str]:
    """All that a file says, without the words that every record has."""
    if name.endswith(".json"):
        yield from _strings(_mapping(text))
    else:
        yield text
