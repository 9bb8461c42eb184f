"""The folder that a run of the kernels leaves, read back: env.json, timings.csv.gz, counters/*.csv, static.csv.

`results/<machine>/kernels/` stands beside the cells of that machine. Nothing here knows what a figure means; what a
profiler printed is read by `kernels.counters`.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bench.records.bounded import json_value, read_bytes, read_text, unpacked
from bench.records.cells import MOST_LETTERS, REFERENCE
from bench.records.folders import KERNELS as FOLDER
from bench.records.folders import folders_with, has_cells
from kernels.counters import Summary, read_profile, short_name, summarize
from kernels.errors import KernelError
from kernels.records import Sample

__all__ = ["FOLDER", "CounterFile", "KernelRecords", "Sample", "Summary", "kernel_folders", "load_kernels"]

_Read = TypeVar("_Read")
COUNTERS = "counters"
_PROFILE = re.compile(r"(?P<tool>[a-z0-9]+)_(?P<what>.+)_n(?P<streams>\d+)_(?P<rows>\d+)x(?P<cols>\d+)")
_FORMAT = re.compile(r"(?P<variant>.+?)_(?P<format>(?:I?Q\d\w*|SSQ|B?F16|F32))")


@dataclass(frozen=True, slots=True)
class CounterFile:
    """What a profiler said of one case: each launch's kernel, without arguments, with its figures.

    `reason` says why a file is none.
    """

    tool: str
    variant: str
    format: str
    streams: int
    rows: int
    cols: int
    launches: Sequence[tuple[str, Summary]] = ()
    missing: Sequence[str] = ()
    """Counters that were asked for and have no value in any launch."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KernelRecords:
    """All that one machine's folder has."""

    machine: str
    env: dict[str, Any]
    samples: Sequence[Sample]
    counters: Sequence[CounterFile]
    static: Sequence[dict[str, str]]
    damage: Sequence[str] = ()
    """Files that cannot be read, each a sentence that begins with its name; what the others say is there."""


def kernel_folders(root: Path) -> list[Path]:
    """Folders of kernel records below `root`; those of the reference when `root` has no records of its own."""
    own = _folders(root)
    return own if own or has_cells(root) else _folders(root / REFERENCE)


def _folders(root: Path) -> list[Path]:
    return folders_with(root, FOLDER, ("env.json", "timings.csv.gz"))


def load_kernels(folder: Path) -> KernelRecords:
    """One folder. Raises nothing: a file that cannot be read is told in `damage`, with its line where there is one."""
    damage: list[str] = []

    if not os.path.lexists(folder / "env.json"):
        damage.append("env.json: No such file or directory")

    def part(name: str, read: Callable[[Path], _Read]) -> _Read | None:
        try:
            return read(folder / name)
        except FileNotFoundError as error:
            if not (folder / name).is_symlink():
                return None
            why: object = error.strerror
        except Exception as error:  # a damaged file may say anything to its reader: zlib.error, RecursionError
            why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        damage.append(f"{name}: {' '.join(str(why).split())[:MOST_LETTERS]}")
        return None

    env = part("env.json", _env)
    samples, static = part("timings.csv.gz", _samples), part("static.csv", _static)
    files = [part(f"{COUNTERS}/{path.name}", _counter_file) for path in part(COUNTERS, _csv_files) or []]
    counters = [one for one in files if one is not None]
    return KernelRecords(folder.parent.name, env or {}, samples or [], counters, static or [], damage)


def _csv_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == ".csv")


def _env(path: Path) -> dict[str, Any]:
    env = json_value(read_text(path))
    if not isinstance(env, dict):
        raise ValueError("it holds no mapping")
    return env


def _samples(path: Path) -> list[Sample]:
    text = unpacked(read_bytes(path)).decode()
    return _sample_rows(csv.DictReader(io.StringIO(text), strict=True), [field.name for field in fields(Sample)])


def _sample_rows(reader: csv.DictReader[str], names: Sequence[str]) -> list[Sample]:
    if missing := [name for name in names if name not in (reader.fieldnames or ())]:
        raise ValueError(f"it lacks the column {', '.join(missing)}")
    kinds = {field.name: str(field.type) for field in fields(Sample)}
    return [_sample(reader.line_num, row, kinds) for row in reader]


def _sample(line: int, row: dict[str, str], kinds: dict[str, str]) -> Sample:
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        text = row[name] or ""
        try:
            values[name] = int(text) if kind == "int" else (float(text or "nan") if kind == "float" else text)
        except ValueError as error:
            raise ValueError(f"line {line}: {name} is '{text}', expected a number") from error
    try:
        found = Sample(**values)
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from error
    timed = (found.us, found.ceiling_us, found.peer_us)
    if any(value <= 0 or math.isinf(value) for value in timed):
        raise ValueError(f"line {line}: a time is not above 0")
    return found


def _counter_file(path: Path) -> CounterFile:
    named = _PROFILE.fullmatch(path.stem)
    kind = _FORMAT.fullmatch(named["what"]) if named else None
    if named is None or kind is None:
        raise ValueError("the name does not tell the case; call it TOOL_VARIANT_FORMAT_nSTREAMS_ROWSxCOLS.csv")
    about = partial(
        CounterFile, tool=named["tool"], variant=kind["variant"], format=kind["format"], streams=int(named["streams"]),
        rows=int(named["rows"]), cols=int(named["cols"]),
    )  # fmt: skip
    try:
        found = read_profile(path)
    except KernelError as error:
        # The sentence without the folder: it stands in a report.
        return about(reason=str(error).replace(str(path), path.name))
    return about(launches=[(short_name(one.kernel), summarize(one)) for one in found.launches], missing=found.missing)


def _static(path: Path) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(read_text(path)))
    # A line that is longer than the header has its rest under None, a shorter one None in place of texts.
    return [{name: text or "" for name, text in row.items() if isinstance(name, str)} for row in reader]
