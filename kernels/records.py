"""What a run leaves behind: env.json and timings.csv.gz, written whole or not at all. Knows no device, no verdict."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kernels.errors import KernelError


@dataclass(frozen=True, slots=True)
class Row:
    """One sample, or why there is none (status unsupported or failed, block -1). Times in microseconds of one launch.

    `ceiling_us`: the fastest plain read of the same weight bytes, `peer_us`: llama.cpp's kernel, both in the same
    block.
    """

    variant: str
    format: str
    streams: int
    rows: int
    cols: int
    cache: str
    status: str
    reason: str
    layout: str
    bytes_per_weight: float
    weight_bytes: int
    bytes_read: int
    max_rel_err: float | None
    tolerance: float
    block: int = -1
    us: float | None = None
    ceiling_us: float | None = None
    copy_gb_s: float | None = None
    peer_us: float | None = None

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.us is not None and self.block >= 0):
            raise ValueError(f"{self.variant}: a time belongs to a variant that passed its check, and to no other")


COLUMNS = tuple(field.name for field in fields(Row))
"""Of timings.csv.gz."""


def write(folder: Path, rows: list[Row], env: dict[str, Any]) -> None:
    """Write both files. KernelError when the disk does not take them; no half file is left."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _whole(folder / "env.json", lambda path: path.write_text(json.dumps(env, indent=1, sort_keys=True) + "\n"))
        _whole(folder / "timings.csv.gz", lambda path: _write_csv(path, rows))
    except OSError as error:
        raise KernelError(f"the records could not be written to {folder}: {error.strerror}.") from error


def _whole(path: Path, write_to: Callable[[Path], object]) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        write_to(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _write_csv(path: Path, rows: list[Row]) -> None:
    with gzip.GzipFile(path, "wb", mtime=0) as packed:
        lines = _Lines()
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: _text(v) for k, v in asdict(row).items()})
        packed.write("".join(lines.parts).encode())


class _Lines:
    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: str) -> None:
        self.parts.append(text)


def _text(value: object) -> object:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows as texts, by column. `OSError` when the file is not there or is no gzip."""
    with gzip.open(path, "rt", newline="") as text:
        return list(csv.DictReader(text))
