"""Prompts by path: which overrides name a file or a folder in place of a set of `configs/prompts`, and what it holds.

What a line or an entry of it means is `bench.plan.prompt_entries`. It knows no tokenizer and no cell.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.plan import prompt_entries
from bench.plan.hydra_words import quoted, unquoted
from bench.plan.settings import PromptsConfig
from bench.records.identity import name_of_file
from pti_loop.gguf.file_hash import sha256_of

KEY, GROUP, PATH = "prompts=", "file", "prompts.path="
TEXT_CLASS = "text"
"""Class of a prompt whose file names none."""
ABOUT_OTHERS = ("readme", "licence", "license")
"""How files of a folder begin that are about the prompts, and are none."""


def taken_whole(overrides: Sequence[str]) -> list[str]:
    """Overrides whose `prompts=PATH` is there as it stands, quoted, so that no comma of its name divides it."""
    return [f"{KEY}{quoted(value)}" if (value := _value(item)) and _exists(value) else item for item in overrides]


def by_path(point: Sequence[str], sets: Sequence[str]) -> list[str]:
    """A point's overrides with `prompts=PATH` as what it is short for; `sets` are the names that are no paths."""
    found: list[str] = []
    for item in point:
        value = _value(item)
        path = value and value not in sets and (_exists(value) or any(sign in value for sign in ("/", "\\", ".", "~")))
        found += [f"{KEY}{GROUP}", f"{PATH}{quoted(value)}"] if path else [item]
    if any(item.startswith(PATH) for item in found) and not any(item.startswith(KEY) for item in found):
        found.insert(0, f"{KEY}{GROUP}")
    return found


def _value(item: str) -> str:
    return unquoted(item.removeprefix(KEY)) if item.startswith(KEY) else ""


def _exists(value: str) -> bool:
    try:
        return value != "" and Path(value).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, or a home that there is not
        return False


def fill(prompts: PromptsConfig) -> None:
    """Read the prompts of `prompts.path`. Raises `UserError` that names file, line and what to do."""
    if prompts.path is None:
        return
    path = _path(prompts.path)
    found = _read(path, _state(path))
    if prompts.sha256 and prompts.sha256.lower() != found[1]:
        raise UserError(f"{path} has SHA-256 {found[1][:12]}.., and prompts.sha256 asks for {prompts.sha256[:12]}..; "
                        "get the file again, or leave prompts.sha256 out")  # fmt: skip
    prompts.items, prompts.sha256 = list(found[0]), found[1]
    if prompts.name == GROUP:
        prompts.name = name_of_file(path.name)


def _path(given: str) -> Path:
    path = Path(given).expanduser().absolute()
    if path.is_file() or path.is_dir():
        return path
    if not _exists(given):
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        near = f"; {nearest(path.name, beside)}" if 0 < len(beside) < 100 else ""
        raise UserError(f"prompts={given}: there is no such file or folder{near}")
    raise UserError(f"prompts={given} is neither a file nor a folder; give one of prompts")


def _state(path: Path) -> tuple[tuple[str, int, int], ...]:
    """What tells whether files are as they were when they were read."""
    found = []
    for one in _files(path):
        try:
            stat = one.stat()
        except OSError as error:
            raise UserError(f"{one} cannot be read ({error.strerror}); take it out of the folder") from error
        found.append((str(one), stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def _files(path: Path) -> list[Path]:
    """The files that hold prompts, in the order of their names. Raises `UserError` where there is none."""
    if path.is_file():
        return [path]
    found = [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    kept = sorted(one for one in found if not one.name.lower().startswith(ABOUT_OTHERS)
                  and not any(part.startswith(".") for part in one.relative_to(path).parts))  # fmt: skip
    if not kept:
        raise UserError(f"the folder {path} has no file of prompts; put text, YAML or JSONL there, or give a file")
    return kept


@lru_cache(maxsize=16)
def _read(path: Path, state: tuple[tuple[str, int, int], ...]) -> tuple[tuple[dict[str, Any], ...], str]:
    """(items, SHA-256 of the file, or of a folder's names and files)."""
    files = [Path(name) for name, _, _ in state]
    items: list[dict[str, Any]] = []
    seen: dict[str, str] = {}
    for file in files:
        inner = file.relative_to(path) if path.is_dir() else None
        for entry in prompt_entries.read(file, *_names(file, inner)):
            if entry.item["id"] in seen:
                raise UserError(f"{entry.where} has the id '{entry.item['id']}' of {seen[entry.item['id']]}; give each "
                                "prompt an id of its own")  # fmt: skip
            seen[entry.item["id"]] = entry.where
            items.append(entry.item)
    if path.is_file():
        return tuple(items), sha256_of([path])
    told = "\0".join(f"{file.relative_to(path)}\0{sha256_of([file])}" for file in files)
    return tuple(items), hashlib.sha256(told.encode()).hexdigest()


def _names(file: Path, inner: Path | None) -> tuple[str, str, str]:
    """(id of a text file, what stands before the ids of its entries, class where none is named)."""
    if inner is None:
        return file.stem, "", TEXT_CLASS
    name = inner.with_suffix("").as_posix()
    return name, f"{name}/", inner.parts[0] if len(inner.parts) > 1 else TEXT_CLASS
