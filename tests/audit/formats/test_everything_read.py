"""Everything that is read from each text of a tool, not its rate alone: tokens, times, places, settings, notes.

`read.json` has the texts of tests/data/audit one by one, each row and each kernel on a line of its own: what a person
finds in the text, where it is no default. A time that a tool does not print follows from those that it does (512 prompt
tokens at 1480.31 a second took 0.345873 s; 256 tokens of an answer at 18.2 ms behind 150 ms to the first, 4.791 s).
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from bench.audit.launches import Launches
from bench.audit.record import read_record
from bench.audit.trials import Trial

DATA = Path(__file__).resolve().parents[2] / "data" / "audit"
READ: dict[str, dict[str, list[Any]]] = json.loads(Path(__file__).with_name("read.json").read_text())


def told(row: Trial | Launches) -> dict[str, Any]:
    """What differs from an empty row; emits and steps as their number."""
    found = {}
    for one in fields(row):
        value = getattr(row, one.name)
        empty = one.default_factory() if one.default_factory is not MISSING else one.default
        if value == empty or (isinstance(value, float) and math.isnan(value)):
            continue
        if one.name in ("emits", "steps"):
            value = len(value)
        found[one.name] = list(value) if isinstance(value, tuple) else value
    return found


@pytest.mark.parametrize("name", sorted(READ))
def test_all_that_a_text_says_is_read_and_nothing_else(name: str) -> None:
    record = read_record(DATA / name)
    wanted = READ[name]
    assert [*record.notes] == wanted.get("notes", [])
    assert [flag.code for flag in record.flags] == wanted.get("flags", [])
    for rows, key in ((record.trials, "trials"), (record.launches, "launches")):
        found = [told(row) for row in rows]
        assert [list(row) for row in found] == [list(row) for row in wanted.get(key, [])]
        for mine, theirs in zip(found, wanted.get(key, []), strict=True):
            for word, value in theirs.items():
                close = isinstance(value, float | dict) or (isinstance(value, list) and isinstance(value[0], float))
                texts = isinstance(value, dict) and any(isinstance(one, str) for one in value.values())
                assert mine[word] == (pytest.approx(value, rel=1e-5) if close and not texts else value), word


def test_every_text_is_there() -> None:
    assert set(READ) == {path.name for path in DATA.iterdir()}
