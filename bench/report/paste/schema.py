"""The JSON schema of a report's document, made from the types of its rows, as `docs/columns.md` is.

`python -m bench.report.paste.schema` writes docs/report.schema.json; a test holds the file, and a document, to it.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from bench.judge.columns import Column
from bench.judge.summary import Headline, Missing, Quiet
from bench.judge.summary.evidence import KINDS
from bench.judge.summary.missing import KINDS as LACKS
from bench.judge.summary.quiet import WORDS
from bench.judge.tables import columns_of, row_type
from bench.judge.tables.claims import VERDICTS, Verdict
from bench.report.paste.document import FORMAT, OF_HEADLINE, OF_MACHINE, OF_MISSING, RATIOS, VERSION
from bench.report.tables.csv_files import FILES

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "report.schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
_STRINGS = {"type": "array", "items": {"type": "string"}}


def schema() -> dict[str, Any]:
    """The schema of the whole document."""
    return {
        "$schema": DIALECT, "title": FORMAT,
        "description": "What `python -m bench report --json` prints. null is a value that is missing, or a number "
                       "without bound. A share is a part of 1, a ratio has no unit, an interval holds 95 %.",
        **_object({"format": {"const": FORMAT}, "version": {"const": VERSION}, "summary": _summary(),
                   "tables": _object({name: {"type": "array", "items": _row(name)} for name in FILES})}),
    }  # fmt: skip


def _row(table: str) -> dict[str, Any]:
    hints = get_type_hints(row_type(table))
    return {"description": " ".join((row_type(table).__doc__ or "").split("\n\n")[0].split()),
            **_object({name: _column(one, hints[name]) for name, one in columns_of(table).items() if one.written})}


def _column(one: Column, kind: Any) -> dict[str, Any]:
    about = one.help + (f", in {one.unit}" if one.unit else "")
    return {**(_STRINGS if one.name == "cells" else _kind(kind)), "description": about}


def _kind(hint: Any) -> dict[str, Any]:
    """The schema of a type. What may be missing as nan, or as a blank word, may be null."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    found: dict[str, Any] = {}
    names = [_NAMES[part] for part in parts if part in _NAMES]
    for part in parts:
        origin = get_origin(part)
        if origin is not None and issubclass(origin, Mapping):
            names.append("object")
        elif origin is not None and issubclass(origin, Sequence):
            names.append("array")
            found["items"] = _kind(get_args(part)[0])
    return {"type": [*dict.fromkeys(names), *(() if "null" in names else ("null",))], **found}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties),
            "additionalProperties": False}  # fmt: skip


def _summary() -> dict[str, Any]:
    verdict = {"enum": list(VERDICTS)}
    place = _object({"verdict": verdict, "machines": _STRINGS})
    machine = _fields(Quiet, OF_MACHINE) | {"verdict": {"enum": list(WORDS)}}
    headline = {name: {"type": "string"} for name in OF_HEADLINE} | _fields(Verdict, RATIOS)
    headline |= {"verdict": verdict, "kind": {"enum": list(KINDS)}, "places": {"type": "array", "items": place}}
    counts = {"type": "object", "propertyNames": verdict, "additionalProperties": {"type": "integer", "minimum": 1}}
    lack = _fields(Missing, OF_MISSING) | {"kind": {"enum": list(LACKS)}, "cells": _STRINGS}
    return _object({
        "machines": {"type": "array", "items": _object(machine)},
        "headlines": {"type": "array", "items": {"description": _line(Headline), **_object(headline)}},
        "marked": {"type": "boolean"}, "only": {"type": "string"},
        "evidence": {"type": "array", "items": _object({"kind": {"enum": list(KINDS)}, "counts": counts})},
        "claims": {"type": "integer"}, "verdicts": {"type": "integer"},
        "missing": {"type": "array", "items": _object(lack)},
    })  # fmt: skip


def _fields(kind: type, names: Sequence[str]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: _kind(hints[name]) for name in names}


def _line(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def text() -> str:
    """The schema as its file has it."""
    return json.dumps(schema(), indent=1) + "\n"


def main() -> None:
    """Write the schema."""
    PAGE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
