"""An entry of a claim sheet as it is being made: words with dots, what follows from them, and its YAML.

Numbers keep the digits that they were typed with, since the last one is the claim's tolerance. It asks nobody.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.errors import UserError, nearest
from bench.judge.claims.claim import Claim
from bench.judge.claims.columns import COLUMNS, TABLE_OF, UNITS, Column, usual_column, usual_per
from bench.judge.claims.rule import RULE_KEYS
from bench.judge.claims.scope import KEYS as KEYS_OF
from bench.judge.claims.sheet import CONDITION_KEYS, KEYS, METRICS, REQUIRED, SOURCE_KEYS, STATUS_KEYS, load_sheet
from bench.judge.claims.words import word
from bench.judge.claims.yaml_text import PrintedNumber, printed_value
from bench.plan.config import CONFIGS

Entry = dict[str, Any]
INSIDE: Mapping[str, tuple[str, ...] | None] = {
    "source": SOURCE_KEYS, "author_status": STATUS_KEYS, "conditions": CONDITION_KEYS,
    "rule": tuple(dict.fromkeys(key for keys in RULE_KEYS.values() for key in keys)), "scope": None,
}  # fmt: skip
"""Keys that hold others; the keys of a scope belong to the table, and the sheet's own check knows them."""
ASKED = ("id", "says", "source.document", "source.date", "metric", "published")
"""What nothing follows from, in the order in which it is asked for."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # yaml has no types
    """Block style outside, flow style for what is inside, numbers as they were typed."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(PrintedNumber, lambda dumper, value: dumper.represent_scalar(
    f"tag:yaml.org,2002:{'float' if set(value) & set('.eE') else 'int'}", str(value)))  # fmt: skip


def words_of(words: Sequence[str]) -> tuple[list[str], Entry]:
    """Files, and what was given as `key=value`, `--key=value` or `--key value`. Raises `UserError`."""
    files: list[str] = []
    given: Entry = {}
    left = list(words)
    while left:
        item = left.pop(0)
        key, equals, value = item.removeprefix("--").partition("=")
        if item.startswith("--") and not equals:
            if not left:
                raise UserError(f"{item} has no value; write {item} VALUE")
            value = left.pop(0)
        elif not equals:
            files.append(item)
            continue
        put(given, key.replace("-", "_"), value)
    return files, given


def put(entry: Entry, key: str, text: str) -> None:
    """Set a key, `scope.method` and the like. Raises `UserError` with the nearest key for one that there is not."""
    head, dot, inner = key.partition(".")
    names = [*KEYS, *(f"{name}.{one}" for name, keys in INSIDE.items() for one in keys or ())]
    if head not in KEYS or (dot and head not in INSIDE):
        raise UserError(f"an entry has no key '{key}'; {nearest(key, names)}")
    if dot and (keys := INSIDE[head]) is not None and inner.partition(".")[0] not in keys:
        raise UserError(f"an entry has no key '{key}'; {nearest(inner, keys)}")
    value = printed_value(text) if head not in ("id", "says", "note", "place") else text
    if dot:
        put_inside(entry.setdefault(head, {}), inner, value)
    else:
        entry[head] = value


def put_inside(values: Entry, key: str, value: Any) -> None:
    """Set a key of a mapping in an entry, which may hold another one (`rule.inputs.larger`)."""
    head, dot, inner = key.partition(".")
    if dot:
        put_inside(values.setdefault(head, {}), inner, value)
    else:
        values[head] = value


def absent(entry: Entry) -> list[str]:
    """Keys that were not given and that nothing follows from."""
    return [key for key in ASKED if _of(entry, key) in (None, "")]


def _of(entry: Entry, key: str) -> Any:
    head, dot, inner = key.partition(".")
    value = entry.get(head)
    return value.get(inner) if dot and isinstance(value, Mapping) else value if not dot else None


def completed(given: Entry) -> Entry:
    """The entry with what follows: unit, evidence, status and rule. Raises `UserError` where something is missing."""
    if lacks := absent(given):
        raise UserError(f"the entry lacks {', '.join(lacks)}; give it as {lacks[0]}=.., or type `python -m bench "
                        "claims new` on a terminal and be asked")  # fmt: skip
    entry = {key: given[key] for key in KEYS if key in given}
    metric = str(entry["metric"])
    word("the entry", "metric", metric, METRICS)
    if not entry.get("scope"):
        about = next((key for key in KEYS_OF.get(TABLE_OF.get(metric, ""), ()) if key != "machine"), "method")
        raise UserError(f"the entry lacks a scope; say what the number is about, as scope.{about}=..")
    entry.setdefault("evidence", "stated")
    entry["author_status"] = {"state": "standing"} | dict(entry.get("author_status") or {})
    entry["unit"] = entry.get("unit") or usual_unit(metric, entry)
    entry["rule"] = usual_rule(metric, str(entry["unit"]), entry) | dict(entry.get("rule") or {})
    return {key: entry[key] for key in KEYS if key in entry and (entry[key] or key in REQUIRED)}


def usual_rule(metric: str, unit: str, entry: Entry) -> Entry:
    """The rule of a metric whose entry names none: its column's first test that fits the published figure."""
    own = dict(entry.get("rule") or {})
    kind = own.get("kind") or ("records" if metric in TABLE_OF else "arithmetic" if metric == "arithmetic" else "fact")
    if kind != "records" or "test" in own or metric not in TABLE_OF:
        return {"kind": kind}
    above = _above_one(str(entry.get("published", "")))
    # A direction needs to be told, and a gain lies above 1.
    found = [test for test in tests_of(metric, unit, entry) if test != "direction" and (above or test != "ratio")]
    return {"kind": kind} | ({"test": found[0]} if found else {})


def tests_of(metric: str, unit: str, entry: Entry) -> list[str]:
    """The tests that say something about a metric's usual column."""
    found = _column(metric, unit, entry)
    return list(found.tests.get(metric, ())) if found else []


def usual_unit(metric: str, entry: Entry) -> str:
    """The first unit that a metric's column may have; of arithmetic and facts there is none, so a ratio's."""
    found = _column(metric, "", entry)
    if found and metric not in found.tests:  # a rate, whose column its unit decides
        return "tok/s"
    return next(iter(UNITS[found.kind])) if found else "x"


def _column(metric: str, unit: str, entry: Entry) -> Column | None:
    """The column that an entry of a metric is about."""
    own = dict(entry.get("rule") or {})
    table = str(own.get("table") or TABLE_OF.get(metric, ""))
    per = str((entry.get("scope") or {}).get("per", usual_per(metric)))
    column = str(own.get("column") or usual_column(metric, str(own.get("test", "")), unit, per))
    return COLUMNS.get(table, {}).get(column)


def _above_one(published: str) -> bool:
    try:
        return float(published) > 1
    except ValueError:
        return False


def yaml_of(entry: Entry) -> str:
    """The entry as text, as the shipped sheets are written."""
    lines = []
    for key, value in entry.items():
        inside = isinstance(value, (dict, list))
        text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000,
                         default_flow_style=True if inside else None)  # fmt: skip
        lines.append(f"{key}: {text.removesuffix(chr(10)).removesuffix('...').rstrip()}")
    return "- " + "\n  ".join(lines) + "\n"


def checked(entry: Entry, known: Collection[str] = ()) -> str:
    """The entry's text, which is a sheet of one entry. Raises `UserError` for whatever a sheet may not say."""
    if str(entry.get("id")) in known:
        raise UserError(f"the sheet has a claim '{entry['id']}' already; give this one another id")
    text = yaml_of(entry)
    claims_of(text)
    return text


def claims_of(text: str) -> list[Claim]:
    """The claims of a sheet that is no file yet. Raises `UserError`, whose sentence names the claim and no file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "the sheet"
        path.write_text(text, encoding="utf-8")
        try:
            return load_sheet(path)
        except UserError as error:
            raise UserError(str(error).replace(f"{path}: ", "").replace(str(path), path.name)) from error


def known_ids(path: Path | None) -> frozenset[str]:
    """Ids of a sheet that is there; none where there is no such file. Raises `UserError` for a sheet with mistakes."""
    if path is None or not path.exists() or not path.read_text(encoding="utf-8", errors="replace").strip():
        return frozenset()
    return frozenset(claim.id for claim in load_sheet(path))


def append(path: Path, text: str) -> None:
    """Add an entry behind those that a sheet has, all or nothing. Raises `UserError` where it cannot be written."""
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
        made = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            made.write_text(before + gap + text, encoding="utf-8")
            load_sheet(made)
            os.replace(made, path)
        finally:
            made.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"the sheet {path} cannot be written ({error.strerror}); give another file") from error


def sheet_path(name: str) -> Path:
    """A file, or a shipped sheet by its name."""
    shipped = CONFIGS / "claims" / f"{name}.yaml"
    return shipped if shipped.is_file() and not Path(name).exists() else Path(name)
