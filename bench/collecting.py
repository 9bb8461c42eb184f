"""`python -m bench collect`: cells that were measured elsewhere, put among the results. It measures and judges nothing.

A cell comes in whole and as its manifest says, or not at all. Nothing that is there is lost: where one id was measured
twice, what comes second is kept apart, in a folder of results of its own.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import UserError, nearest
from bench.plain_text import plain_text
from bench.records.archives import STATUS, is_archive, unpack
from bench.records.bounded import read_bytes
from bench.records.cells import (
    DamagedCell,
    check_writable,
    read_cell,
    read_part,
    read_status,
    state_of,
    whole_contents,
)
from bench.records.folders import KERNELS, cell_folders, folders_with
from bench.records.partial_cells import write_whole

HELP = """FOLDER|ARCHIVE .. [results=FOLDER]

Puts cells that were measured elsewhere among the results: folders of results, of machines or of cells, and archives as
`pack` and scripts/offline/measure.sh make them. Each is checked against its manifest; one that was edited or cut stays
out, with a sentence, and the others come in. One that is there already is left as it is. Of a cell that was measured
twice the second is kept apart below FOLDER/conflicts, for `report results=FOLDER/conflicts/HOST` to judge.
  results=FOLDER   where they go; results by default
Exit code: 0; 1 where a cell stayed out or was kept apart; 2 where nothing could be read."""
APART = "conflicts"
"""Folder below the results, whose folders have cells of their own: no report of the results looks so deep."""
DEFAULT = "results"


@dataclass
class Collected:
    """What came of some sources."""

    added: list[Path] = field(default_factory=list)
    replaced: list[Path] = field(default_factory=list)
    """In the place of one that had failed, or is damaged."""
    there: int = 0
    """Cells of the same bytes, or that had failed elsewhere and are done here."""
    faults: list[str] = field(default_factory=list)
    """A sentence on each cell that stayed out or apart."""


def main(rest: Sequence[str]) -> int:
    """Collect what the words name; returns the exit code. Raises `UserError` where nothing could be read."""
    results, sources = Path(DEFAULT), list[Path]()
    for word in rest:
        key, equals, value = word.partition("=")
        if key == "results" and value:
            results = Path(value)
        elif word.startswith("-") or (equals and not Path(word).exists()):
            raise UserError(f"'{word}' is nothing that collect knows; {nearest(key, ['results'])}")
        else:
            sources.append(Path(word))
    if not sources:
        raise UserError("collect needs a folder or an archive of cells, as in collect cells.tar.xz; "
                        "`python -m bench collect --help` tells more")  # fmt: skip
    check_writable(results)
    worst, failures = 0, list[str]()
    for source in sources:
        try:
            found = collect(source, results)
        except UserError as error:
            failures.append(str(error))
            continue
        for sentence in found.faults:
            print(f"error: {plain_text(sentence)}", file=sys.stderr)
        print(plain_text(_summary(source, found)), flush=True)
        worst = max(worst, bool(found.faults))
    if len(failures) == len(sources):
        raise UserError("; ".join(failures))
    for sentence in failures:
        print(f"error: {plain_text(sentence)}", file=sys.stderr)
    return 1 if failures else worst


def _summary(source: Path, found: Collected) -> str:
    counts = ((len(found.added), "added"), (len(found.replaced), "in the place of failed or damaged ones"),
              (found.there, "there already"), (len(found.faults), "left out or kept apart"))  # fmt: skip
    return f"{source}: " + (", ".join(f"{count} {words}" for count, words in counts if count) or "no cells")


def collect(source: Path, results: Path) -> Collected:
    """The cells of a folder or an archive. Raises `UserError` where there is none, `OSError` for the results."""
    if source.is_dir():
        return collect_folder(source, results)
    if not source.exists():
        raise UserError(f"there is no {source}; give a folder of cells, or an archive that `python -m bench pack` made")
    return collect_archive(source, results, str(source))


def collect_archive(path: Path, results: Path, name: str) -> Collected:
    """The cells of an archive, which is called `name` in sentences. Raises `UserError` for a file that is none."""
    if not is_archive(path):
        raise UserError(f"{name} is no archive of cells; `python -m bench pack CELLS.. -o FILE.tar.xz` makes one")
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".collect.", dir=results) as made:
        unpacked = unpack(path, Path(made))
        found = Collected(faults=[sentence.replace(str(path), name) for sentence in unpacked.faults])
        for folder in (*unpacked.folders, *unpacked.kernels):
            _put(folder, results, name, found)
    return found


def collect_folder(source: Path, results: Path) -> Collected:
    """The cells of a folder of results, of a machine or of one cell. Raises `UserError` where it has none."""
    source = source.resolve()
    if source == results.resolve():
        raise UserError(f"{source} is the folder that cells are collected in; name another, or results=FOLDER")
    folders = list(_folders(source))
    if not folders:
        raise UserError(f"{source} has no cell in it; give the folder of a cell, of a machine, or of results")
    found = Collected()
    for folder in folders:
        _put(folder, results, str(source), found)
    return found


def _folders(source: Path) -> Iterator[Path]:
    """Cells and kernel records that a folder is or has."""
    if (source / STATUS).exists() or (source / "cell.yaml").exists() or source.name == KERNELS:
        yield source
        return
    of_machine = [folder for folder in cell_folders(source.parent) if folder.parent == source]
    kernels = [source / KERNELS] if (source / KERNELS).is_dir() else []
    if of_machine or kernels:
        yield from (*of_machine, *kernels)
    else:
        yield from (*cell_folders(source), *folders_with(source, KERNELS, ("env.json", "timings.csv.gz")))


def _put(folder: Path, results: Path, source: str, found: Collected) -> None:
    """Put one folder where it belongs, or tell why not."""
    place = results / folder.parent.name / folder.name
    name = f"{folder.parent.name}/{folder.name}"
    try:
        contents, ours = _contents(folder), _contents(place) if place.exists() else None
    except (OSError, ValueError) as error:
        found.faults.append(f"{source}: {name} cannot be read ({error}), and stays out")
        return
    if folder.name != KERNELS:
        cell = read_cell(folder)
        if isinstance(cell, DamagedCell):
            found.faults.append(f"{source}: the cell {name} is not as it was written ({cell.reason}), and stays out; "
                                "get it again, or measure it again")  # fmt: skip
            return
    if ours is None:
        _write(place, contents)
        found.added.append(place)
    elif ours == contents:
        found.there += 1
    elif folder.name == KERNELS or (state := state_of(place)) == "done" == _state(folder):
        found.faults.append(_keep_apart(folder, place, contents, results, source))
    elif state == "newer" or state == "done" or (state != "damaged" and _state(folder) != "done"):
        found.there += 1
    else:
        _write(place, contents)
        found.replaced.append(place)


def _state(folder: Path) -> str:
    return str((read_status(folder) or {}).get("state", ""))


def _contents(folder: Path) -> dict[str, bytes]:
    """The files of a cell or of kernel records by name. Raises `OSError` and `ValueError`."""
    if folder.name == KERNELS:
        paths = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
        return {path.relative_to(folder).as_posix(): read_bytes(path) for path in paths}
    return whole_contents(folder)


def _write(place: Path, contents: Mapping[str, bytes]) -> None:
    """Write a folder whole or not at all. Raises `OSError`."""
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, dict(sorted(contents.items(), key=lambda item: item[0] == STATUS)))


def _keep_apart(folder: Path, place: Path, contents: Mapping[str, bytes], results: Path, source: str) -> str:
    """Keep a second measurement in a folder of results of its own; returns a sentence on both."""
    digest = hashlib.sha256(b"".join(contents[name] for name in sorted(contents))).hexdigest()[:8]
    key = str((read_part(folder, "env.json") or {}).get("host") or digest)
    apart = results / APART / key / folder.parent.name / folder.name
    if apart.exists() and _contents(apart) != contents:
        apart = results / APART / f"{key}-{digest}" / folder.parent.name / folder.name
    if not apart.exists():
        _write(apart, contents)
    name = f"{place.parent.name}/{place.name}"
    return (f"{name} was measured twice: {_measured(place)}, and {_measured(folder)} in {source}; the first stays, the "
            f"second is kept apart in {apart}; remove the one that is not meant")  # fmt: skip


def _measured(folder: Path) -> str:
    env = read_part(folder, "env.json") or {}
    return f"by host {env.get('host') or 'unknown'} at {env.get('time_utc') or 'a time unknown'}"

