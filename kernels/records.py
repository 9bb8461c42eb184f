"""What a run leaves behind: env.json and timings.csv.gz, written whole or not at all. Knows no device, no verdict."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kernels.errors import KernelError

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample, or why there is none (status unsupported or failed, block -1). Times in microseconds of one launch.

    Bytes are those of one launch. `ceiling_us`: the fastest plain read of the same weight bytes, `peer_us`: llama.cpp's
    kernel, both in the same block. nan where there is none. Raises ValueError for a time of a variant that did not
    pass its check.
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
    weight_bytes: float
    bytes_read: float
    max_rel_err: float
    tolerance: float
    block: int = -1
    us: float = NAN
    ceiling_us: float = NAN
    copy_gb_s: float = NAN
    peer_us: float = NAN

    def __post_init__(self) -> None:
        if (self.status == "ok") != (not math.isnan(self.us) and self.block >= 0):
            raise ValueError(f"{self.variant}: a time belongs to a variant that passed its check, and to no other")


COLUMNS = tuple(field.name for field in fields(Sample))
"""Of timings.csv.gz."""


def write(folder: Path, rows: list[Sample], env: dict[str, Any]) -> None:
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


def _write_csv(path: Path, rows: list[Sample]) -> None:
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
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows as texts, by column. `OSError` when the file is not there or is no gzip."""
    with gzip.open(path, "rt", newline="") as text:
        return list(csv.DictReader(text))
