"""Names of one machine, model or quantisation: `configs/facts/names.yaml` lists which are the same.

Two names are one when they are written alike but for case and punctuation, or stand in one list. It knows no claim; a
part of a name is never taken for the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.judge.claims.yaml_text import read_yaml
from bench.judge.findings import MARK
from bench.machine_name import make_of

FILE = "names.yaml"
KINDS = ("machine", "model", "quantization")


@dataclass(frozen=True, slots=True)
class Names:
    """`alike` has the first name of a list by kind and by each of its names; `files` what a file's name says."""

    alike: Mapping[tuple[str, str], str] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def first(self, kind: str, name: Any) -> str:
        """The name that stands for all that are the same."""
        letters = plain(str(name))
        return self.alike.get((kind, letters), letters)

    def same(self, kind: str, one: Any, other: Any) -> bool:
        """Whether two names mean the same machine, model or quantisation."""
        return bool(one and other) and self.first(kind, one) == self.first(kind, other)

    def of_row(self, key: str, row: Mapping[str, Any]) -> str:
        """The row's machine, model or quantisation. A model that goes by its file's name has both in it."""
        said = self.files.get(plain(without_mark(str(row.get("model") or ""))), {})
        return said.get(key) or make_of(str(row.get(key) or ""))


def without_mark(model: str) -> str:
    """A model's name without the mark of random weights."""
    return model.removesuffix(MARK).strip()


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """A name without case and punctuation, in any script; one of punctuation alone is itself.

    Every claim is held against the names of all rows.
    """
    return re.sub(r"[\W_]", "", text.casefold()) or text


def load_names(folder: Path) -> Names:
    """The names in a folder of facts; none where it has no such file. Raises UserError for a name in two lists."""
    path = folder / FILE
    if not path.is_file():
        return Names()
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: write machine, model, quantization and files, each a mapping")
    for key in content:
        if key not in (*KINDS, "files"):
            raise UserError(f"{path} has the unknown key '{key}'; {nearest(str(key), (*KINDS, 'files'))}")
    alike: dict[tuple[str, str], str] = {}
    for kind in KINDS:
        for name, others in _entries(path, kind, content.get(kind)):
            if not isinstance(others, list):
                raise UserError(f"{path}: {kind} '{name}' is no list of names; write [{others}]")
            _add(path, alike, kind, name, others)
    return Names(alike, dict(_files(path, content.get("files"))))


def _add(path: Path, alike: dict[tuple[str, str], str], kind: str, name: str, others: list[Any]) -> None:
    for one in {plain(str(word)) for word in (name, *others)}:
        known = alike.setdefault((kind, one), plain(name))
        if known != plain(name):
            raise UserError(f"{path}: the {kind} '{one}' stands in two lists; leave it in one")


def _entries(path: Path, key: str, value: Any) -> Iterable[tuple[str, Any]]:
    if value is not None and not isinstance(value, dict):
        raise UserError(f"{path}: {key} is '{value}'; write a mapping")
    return (value or {}).items()


def _files(path: Path, value: Any) -> Iterable[tuple[str, dict[str, str]]]:
    for name, said in _entries(path, "files", value):
        if not isinstance(said, dict) or set(said) != {"model", "quantization"}:
            raise UserError(f"{path}: file '{name}' needs model and quantization")
        yield plain(name), {key: str(word) for key, word in said.items()}
