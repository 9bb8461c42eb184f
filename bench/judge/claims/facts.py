"""Facts about devices, models and formats that somebody else published, each with its source.

It knows nothing about claims: it reads `configs/facts/*.yaml`, checks the entries and hands them out by name.
A fact is never measured here; what this machine measured is in the records. Beside the facts lie the names that mean
the same machine or model (`bench.judge.claims.names`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.judge.claims import names
from bench.judge.claims.names import Names
from bench.judge.claims.yaml_text import read_yaml

QUALITIES = ("primary", "secondary", "derived")
"""The maker's own document, a report of one, or a value computed from such."""

KEYS = ("value", "unit", "says", "quality", "source")
SOURCE_KEYS = ("title", "url")


@dataclass(frozen=True, slots=True)
class Fact:
    """One published value. `value` is a number, or true / false for what a device has or has not."""

    name: str
    value: float | bool
    unit: str
    says: str
    quality: str
    title: str
    url: str


class Facts(dict[str, Fact]):
    """Facts by name, and the names that mean the same."""

    def __init__(self, facts: Mapping[str, Fact] | None = None, alike: Names | None = None) -> None:
        super().__init__(facts or {})
        self.names = alike or Names()


def load_facts(folder: Path) -> Facts:
    """Facts by name from every `*.yaml` in `folder`. Raises UserError for an unreadable, unknown or double entry."""
    files = sorted(file for file in folder.glob("*.yaml") if file.name != names.FILE)
    if not files:
        raise UserError(f"there is no fact file (*.yaml) in {folder}; give the folder that has them")
    facts = Facts(alike=names.load_names(folder))
    for file in files:
        entries = read_yaml(file)
        if not isinstance(entries, dict):
            raise UserError(f"{file}: a fact file is a mapping from names to facts, not a {type(entries).__name__}")
        for name, entry in entries.items():
            if name in facts:
                raise UserError(f"{file}: fact '{name}' is defined twice; rename or remove one")
            facts[str(name)] = _fact(file, str(name), entry)
    return facts


def find_fact(facts: Mapping[str, Fact], name: str, claim_id: str) -> Fact:
    """The fact that a claim names. Raises UserError with the nearest name when there is none."""
    if name not in facts:
        raise UserError(f"claim '{claim_id}' names the unknown fact '{name}'; {nearest(name, facts)}")
    return facts[name]


def _fact(file: Path, name: str, entry: Any) -> Fact:
    where = f"{file}: fact '{name}'"
    _check_keys(where, entry, KEYS)
    source = entry["source"]
    _check_keys(f"{where}, source", source, SOURCE_KEYS)
    value = entry["value"]
    if not isinstance(value, (bool, int, float)):
        raise UserError(f"{where} has the value '{value}'; write a number, true or false")
    if entry["quality"] not in QUALITIES:
        raise UserError(f"{where} has the unknown quality '{entry['quality']}'; {nearest(entry['quality'], QUALITIES)}")
    if not str(source["url"]).startswith("http"):
        raise UserError(f"{where} has no address as source ('{source['url']}'); give the page that says it")
    return Fact(
        name, value, str(entry["unit"]), str(entry["says"]), str(entry["quality"]), str(source["title"]), source["url"]
    )


def _check_keys(where: str, entry: Any, keys: tuple[str, ...]) -> None:
    """Every key of `keys` is there and no other."""
    if not isinstance(entry, dict):
        raise UserError(f"{where} is not a mapping; write {', '.join(keys)}")
    for key in entry:
        if key not in keys:
            raise UserError(f"{where} has the unknown key '{key}'; {nearest(str(key), keys)}")
    missing = [key for key in keys if entry.get(key) is None]
    if missing:
        raise UserError(f"{where} lacks {', '.join(missing)}")
