"""Every reader of foreign files, with seeds, a way of damaging them, and the errors that are a sentence.

Anything else that comes out of a reader is a fault, and so is one that takes long or much memory.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.audit.audit import audit
from bench.audit.options import AuditOptions
from bench.audit.show import format_audit, to_json
from bench.errors import UserError
from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.damage import judge_whole
from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from bench.plan.compose import compose_points, expand
from bench.plan.config import CONFIGS
from bench.records.cells import read_cell
from kernels.counters import read_profile
from kernels.errors import KernelError
from kernels.ssq import open_container
from kernels.ssq.container import HEADER_BYTES, header_bytes
from kernels.ssq.source import open_source
from pti_loop.gguf import file as gguf_file
from pti_loop.gguf.compatible import draft_fits
from pti_loop.gguf.header import ModelFileError
from tests.fuzz import mutate
from tests.fuzz.mutate import Change, Draw

CORPUS = Path(__file__).parent / "corpus"
REFERENCE = CONFIGS.parent / "results" / "reference"


@dataclass(frozen=True)
class Target:
    """One reader. `change` makes a file's content from a seed's, `read` reads it from a folder that it may use."""

    seeds: Callable[[], list[Path]]
    change: Callable[[Draw, Path], bytes]
    read: Callable[[Path, bytes, Path], None]
    """Of the seed, the content, and a folder."""
    sentences: tuple[type[Exception], ...]


def corpus(name: str) -> Callable[[], list[Path]]:
    return cache(lambda: sorted((CORPUS / name).iterdir()))


def changed(by: Change) -> Callable[[Draw, Path], bytes]:
    return lambda draw, seed: by(draw, seed.read_bytes())


def put(seed: Path, content: bytes, folder: Path) -> Path:
    path = folder / seed.name
    path.write_bytes(content)
    return path


def _gguf(seed: Path, content: bytes, folder: Path) -> None:
    found = gguf_file.read(put(seed, content, folder))
    told = ("step_bytes", "quantization", "name", "n_params", "n_vocab", "n_ctx_train", "memory_note", "synthetic")
    for name in told:
        getattr(found, name)
    found.kv_bytes_per_token("q8_0", "f16")
    found.state_bytes_per_sequence()
    draft_fits(found.path, seed)


def _ssq_change(draw: Draw, seed: Path) -> bytes:
    """The table's values changed and its checksums made right again, or damaged bytes."""
    data = seed.read_bytes()
    if draw.random() < 0.2:
        return mutate.raw(draw, data)
    offset = struct.unpack_from("<Q", data, 16)[0]
    table = mutate.as_json(draw, data[offset:])
    return header_bytes(offset, table) + data[HEADER_BYTES:offset] + table


def _source_change(draw: Draw, data: bytes) -> bytes:
    return (mutate.as_gguf if data[:4] == b"GGUF" else mutate.raw)(draw, data)


def _ssq(seed: Path, content: bytes, folder: Path) -> None:
    held = open_container(put(seed, content, folder))
    held.damage()
    for name, tensor in held.tensors.items():
        held.weights(name, 1) if tensor.kind == "ssq" else held.raw(name, 1)


_OPTIONS = [
    AuditOptions(), AuditOptions(claim=1e300, bandwidth=100.0, bytes_per_step=1e9),
    AuditOptions(streams=2, requested=8),
    AuditOptions(speedup=1.9, baseline=3.0, acceptance=0.9, temperatures=(0.0, 1.0), per="aggregate"),
]  # fmt: skip


def _audit_change(draw: Draw, seed: Path) -> bytes:
    return (mutate.as_json if seed.suffix == ".json" else mutate.as_text)(draw, seed.read_bytes())


def _audit(seed: Path, content: bytes, folder: Path) -> None:
    options = _OPTIONS[zlib.crc32(content) % len(_OPTIONS)]
    found = audit([str(put(seed, content, folder))], options)
    format_audit(found)
    to_json(found)


@cache
def _facts() -> object:
    return load_facts(CONFIGS / "facts")


def _sheet(seed: Path, content: bytes, folder: Path) -> None:
    judge_claims(load_sheet(put(seed, content, folder)), Findings(), _facts())


def _override_change(draw: Draw, seed: Path) -> bytes:
    line = draw.choice(seed.read_text().splitlines())
    return mutate.text(draw, line).encode("utf-8", "replace")


def _overrides(seed: Path, content: bytes, folder: Path) -> None:
    words = content.decode().split()
    points = expand(words)
    if zlib.crc32(content) % 50 == 0 and len(points) < 9:  # it takes thirty times as long
        compose_points(words)


@cache
def _cells() -> list[Path]:
    """Files of a few whole cells, small ones of each kind."""
    folders = sorted(path.parent for path in REFERENCE.glob("*/*/cell.yaml"))
    groups = [[one for one in folders if f"kind: {kind}" in (one / "cell.yaml").read_text()]
              for kind in ("contrast", "profile")]  # fmt: skip
    small = [sorted(group, key=lambda one: sum(path.stat().st_size for path in one.iterdir()))[:3] for group in groups]
    return sorted(path for group in small for one in group for path in one.iterdir() if "engine" not in path.name)


def by_name(draw: Draw, seed: Path, content: bytes = b"") -> bytes:
    ways: dict[str, Change] = {".gz": mutate.as_packed, ".yaml": mutate.as_yaml, ".json": mutate.as_json}
    return ways.get(seed.suffix, mutate.as_text)(draw, content or seed.read_bytes())


def _cell(seed: Path, content: bytes, folder: Path) -> None:
    place = folder / "box" / "cell"
    place.mkdir(parents=True)
    for path in seed.parent.iterdir():
        (place / path.name).symlink_to(path)
    (place / seed.name).unlink()
    (place / seed.name).write_bytes(content)
    judge_whole(read_cell(place), [])
    if zlib.crc32(content) % 4 == 0:
        with suppress(UserError):
            to_json(audit([str(place)], AuditOptions()))


_TIMINGS = 40


@cache
def _kernel_files() -> dict[Path, bytes]:
    """The files of a folder, the timings cut short, by their names in it."""
    (folder,) = list(REFERENCE.glob("*/kernels"))[:1]
    paths = [folder / "env.json", folder / "static.csv", *sorted((folder / "counters").glob("*.csv"))[:3]]
    lines = gzip.decompress((folder / "timings.csv.gz").read_bytes()).splitlines(keepends=True)
    timed = gzip.compress(b"".join(lines[:1] + lines[1 :: len(lines) // _TIMINGS]), 1)
    return {path.relative_to(folder): path.read_bytes() for path in paths} | {Path("timings.csv.gz"): timed}


def _kernel_change(draw: Draw, seed: Path) -> bytes:
    return by_name(draw, seed, _kernel_files()[seed])


def _kernels(seed: Path, content: bytes, folder: Path) -> None:
    place = folder / "box" / "kernels"
    (place / "counters").mkdir(parents=True)
    for path, sound in (_kernel_files() | {seed: content}).items():
        if path == seed or path.suffix != ".csv":  # a sound table of many lines says nothing of the damaged one
            (place / path).write_bytes(content if path == seed else sound)
    found = judge_kernels(Findings(), [place])
    assert all(row.state == "damaged" for row in found.cells)


TARGETS = {
    "gguf": Target(corpus("gguf"), changed(mutate.as_gguf), _gguf, (ModelFileError,)),
    "ssq": Target(corpus("ssq"), _ssq_change, _ssq, (KernelError,)),
    "source": Target(corpus("source"), changed(_source_change), lambda *given: open_source(put(*given)),
                     (KernelError,)),
    "audit": Target(corpus("audit"), _audit_change, _audit, (UserError,)),
    "sheet": Target(corpus("sheet"), changed(mutate.as_yaml), _sheet, (UserError,)),
    "profile": Target(corpus("profile"), changed(mutate.as_text), lambda *given: read_profile(put(*given)),
                      (KernelError,)),
    "overrides": Target(corpus("overrides"), _override_change, _overrides, (UserError,)),
    "cells": Target(_cells, by_name, _cell, ()),
    "kernels": Target(lambda: [*_kernel_files()], _kernel_change, _kernels, ()),
}  # fmt: skip


def once(name: str, number: int, folder: Path) -> bytes:
    """One input, by its number. Raises whatever is no sentence. Returns the content."""
    target, draw = TARGETS[name], random.Random(f"{name} {number}")
    seed = draw.choice(target.seeds())
    content = target.change(draw, seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with suppress(*target.sentences):
        target.read(seed, content, folder)
    return content


def described(content: bytes) -> str:
    """The beginning of an input, for a person."""
    return json.dumps(content[:300].decode("utf-8", "replace"))
