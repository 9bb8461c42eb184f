"""`python -m bench pack`: some cells, or all of a results folder, as one file to send. It judges nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.contributions.packing import SCRUBBED, packed_cell, packed_kernels
from bench.contributions.private import Private, private_here
from bench.errors import UserError, nearest
from bench.host.provenance import harness_commit
from bench.plain_text import plain_text
from bench.records import manifest
from bench.records.archives import STATUS, SUFFIXES, PackedCell, write_archive
from bench.records.bounded import json_value
from bench.records.cells import REFERENCE, cell_folders
from bench.records.folders import KERNELS
from bench.records.kernels import kernel_folders

HELP = """[CELL|FOLDER ..] [results=FOLDER] [machine=NAME,..] -o FILE

Makes one file of cells that ended, the failed and the unsupported too, to send or to carry home: .tar.xz, .tar.gz or
.tar. Without a cell, all of the results folder. Names of users and hosts, home folders and other folders, addresses and
serials are taken out of logs, reasons and facts; a cell whose settings or prompts name somebody stays out, with a
sentence. The host is told by a key that says nothing about it.
  CELL             its folder, or its id below results; or the folder of a machine
  results=FOLDER   where the records lie; results by default
  machine=NAME,..  only such machines
Exit code: 0; 1 where a cell stayed out; 2 where nothing can be packed."""
KEYS = ("results", "machine")
DEFAULT = "results"


@dataclass
class _Asked:
    cells: list[str] = field(default_factory=list)
    results: Path = Path(DEFAULT)
    machines: tuple[str, ...] = ()
    out: Path | None = None


@dataclass
class _Told:
    """What was packed, for the last line and for the archive's own account."""

    states: Counter[str] = field(default_factory=Counter)
    scrubbed: Counter[str] = field(default_factory=Counter)
    machines: dict[str, set[str]] = field(default_factory=dict)
    """Host keys by machine."""
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def main(rest: Sequence[str]) -> int:
    """Pack what the words ask for; returns the exit code. Raises `UserError`."""
    asked = _options(rest)
    assert asked.out is not None
    folders = _folders(asked)
    told = _Told()
    try:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        about = {"harness_commit": harness_commit(), "environments": told.environments}
        digests = write_archive(asked.out, _packed(folders, private_here(), told), about)
    except _Nothing:
        for sentence in told.left_out:
            print(f"error: {plain_text(sentence)}", file=sys.stderr)
        raise UserError("no cell can be packed") from None
    for sentence in told.left_out:
        print(f"error: {plain_text(sentence)}", file=sys.stderr)
    print("\n".join(map(plain_text, _summary(asked.out, told, len(digests)))))
    return 1 if told.left_out else 0


class _Nothing(Exception):
    """Nothing is left to be packed."""


def _options(rest: Sequence[str]) -> _Asked:
    asked, words = _Asked(), list(rest)
    while words:
        word = words.pop(0)
        key, equals, value = word.partition("=")
        if word in ("-o", "--output"):
            if not words:
                raise UserError(f"{word} needs a file, as in {word} cells.tar.xz")
            asked.out = Path(words.pop(0))
        elif key == "results" and value:
            asked.results = Path(value)
        elif key == "machine" and value:
            asked.machines = tuple(part for part in value.split(",") if part)
        elif word.startswith("-") or (equals and not Path(word).exists()):
            raise UserError(f"'{word}' is nothing that pack knows; {nearest(key, (*KEYS, '-o'))}")
        else:
            asked.cells.append(word)
    if asked.out is None:
        raise UserError("pack needs the file to write, as in -o cells.tar.xz")
    if not asked.out.name.endswith(SUFFIXES) or asked.out.is_dir():
        raise UserError(f"{asked.out} is no name of an archive; let it end in {', '.join(SUFFIXES)}")
    return asked


def _folders(asked: _Asked) -> list[Path]:
    """Cells and kernel records that are asked for. Raises `UserError` where a word names none."""
    if not asked.results.is_dir() and not (asked.cells and all(Path(word).is_dir() for word in asked.cells)):
        raise UserError(f"there is no results folder {asked.results}; run a sweep, or give one with results=FOLDER")
    every = [*cell_folders(asked.results), *(kernel_folders(asked.results) if cell_folders(asked.results) else [])]
    found = [folder for word in asked.cells for folder in _named(word, asked.results)] if asked.cells else every
    found = [folder for folder in found if not asked.machines or folder.parent.name in asked.machines]
    if not found:
        which = f" of the machine {', '.join(asked.machines)}" if asked.machines else ""
        known = {folder.parent.name for folder in every}
        raise UserError(f"{asked.results} has no cell{which}; " + (nearest(asked.machines[0], known) if asked.machines
                        and known else "run a sweep, or give a folder with results=FOLDER"))  # fmt: skip
    return sorted(dict.fromkeys(found), key=lambda folder: (folder.parent.name, folder.name))


def _named(word: str, results: Path) -> list[Path]:
    """A cell's folder, the cells of a machine's folder or of a results folder, or a cell's id."""
    path = Path(word)
    if path.is_dir():
        path = path.resolve()
        if (path / STATUS).exists() or (path / "cell.yaml").exists() or path.name == KERNELS:
            return [path]
        of_machine = [one for one in cell_folders(path.parent) if one.parent == path]
        kernels = [path / KERNELS] if (path / KERNELS).is_dir() else []
        if found := [*of_machine, *kernels] or cell_folders(path):
            return found
        raise UserError(f"{word} has no cell in it; give the folder of a cell, of a machine, or of results")
    below = [one for root in (results, results / REFERENCE) if root.is_dir() for one in cell_folders(root)]
    if found := [one for one in below if one.name == word]:
        return found
    raise UserError(f"'{word}' is the folder or id of no cell; {nearest(word, {one.name for one in below})}")


def _packed(folders: Sequence[Path], private: Private, told: _Told) -> Iterator[PackedCell]:
    """The cells one after another, each told. Raises `_Nothing` when none is left."""
    count = 0
    for folder in folders:
        try:
            one = packed_kernels(folder, private) if folder.name == KERNELS else packed_cell(folder, private)
        except (UserError, ValueError, OSError) as error:
            known = isinstance(error, UserError)
            told.left_out.append(str(error) if known else f"{folder.parent.name}/{folder.name} is left out: {error}")
            continue
        count += 1
        _tell(told, one)
        yield one
    if not count:
        raise _Nothing


def _tell(told: _Told, one: PackedCell) -> None:
    status, env = _part(one, STATUS), _part(one, "env.json")
    told.states[str(status.get("state", "kernel records"))] += 1
    told.scrubbed.update((status.get(manifest.KEY) or {}).get(SCRUBBED, ()))
    host = str(env.get("host") or "")
    told.machines.setdefault(one.machine, set()).add(host)
    environment = {key: env.get(key) for key in ("machine", "python", "packages", "host", "device") if key in env}
    told.environments.setdefault(f"{one.machine} {host}".strip(), environment)


def _part(one: PackedCell, name: str) -> Mapping[str, Any]:
    found = json_value(one.contents[name].decode()) if name in one.contents else {}
    return found if isinstance(found, dict) else {}


def _summary(path: Path, told: _Told, count: int) -> list[str]:
    states = ", ".join(f"{number} {state}" for state, number in sorted(told.states.items()))
    hosts = sum(len(keys) for keys in told.machines.values())
    where = f"of {', '.join(sorted(told.machines))}" + (f" on {hosts} hosts" if hosts > len(told.machines) else "")
    lines = [f"{path}: {count} folders {where} ({states}), {path.stat().st_size / 1e6:.1f} MB"]
    if told.scrubbed:
        files = ", ".join(f"{name} of {number}" for name, number in sorted(told.scrubbed.items()))
        lines.append(f"names, addresses and folders were taken out of {files}; the cells are sealed again")
    return [*lines, f"next: python -m bench audit {path}; CONTRIBUTING.md says where to send it"]
