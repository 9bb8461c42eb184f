"""Columns whose name has two readings: `streams` is which one or how many, `tokens` are ids or a number of them.

The values decide, since a sum that is taken for one answer is the worst misreading there is. It knows the canonical
names of `bench.audit.formats.plain_csv`, and nothing about trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bench.audit.text import Row

ANSWERS, STREAM, TOKENS, EMITTED = "answers", "stream", "tokens", "emitted"
_ALWAYS_IDS = ("slot", "lane", "seq_id")
"""Names that nobody gives to a number of streams."""
_PLURAL = "streams"
_MOMENTS = ("step", "t_s", "t_ms", "t_us", "t_ns")
"""Columns that say when a row was; rows of one moment are decoded together."""

_WORDS = {EMITTED: "how many tokens a row emitted", ANSWERS: "how many answers are decoded together",
          STREAM: "which answer a row belongs to"}  # fmt: skip

Names = dict[str, str]
"""Column as it stands in the file -> canonical name."""


def resolved(names: Names, rows: list[Row]) -> tuple[Names, list[Row], list[str]]:
    """The same columns with `stream` called `answers` where it counts, and `tokens` called `emitted` where these count.

    The third value says in a sentence each how a column was read.
    """
    notes: list[str] = []
    for name, counts, target in ((TOKENS, _tokens_count, EMITTED), (STREAM, _streams_count, ANSWERS)):
        column = next((column for column, known in names.items() if known == name), None)
        if column is None or not rows:
            continue
        count = counts(column.strip().lower(), set(names.values()), rows)
        if count:
            names = {key: target if key == column else known for key, known in names.items()}
            rows = [replace(row, cells={target if key == name else key: value for key, value in row.cells.items()})
                    for row in rows]  # fmt: skip
        if count or name == STREAM:
            notes.append(f"column '{column}' read as {_WORDS[target if count else name]}")
    if {ANSWERS, "tok_s"} <= set(names.values()):
        notes.append("a printed rate is taken as the sum of the answers")
    return names, rows, notes


def _single(rows: Iterable[Row], name: str) -> list[int] | None:
    """The one whole number of every cell that is not empty; None where a cell holds several."""
    lists = [row.integers(name) for row in rows if row.cells[name].strip()]
    return [values[0] for values in lists] if all(len(values) == 1 for values in lists) else None


def _tokens_count(column: str, present: set[str], rows: list[Row]) -> bool:
    """Whether `tokens` counts: never beside ids' positions or another count, and only where it cannot be one id a step.

    A row that is a whole run has more than one token; a step has no more than it decoded; and no text says one token
    only.
    """
    values = _single(rows, TOKENS)
    if column != TOKENS or not values or {"positions", EMITTED} & present:
        return False
    if "step" not in present and "phase" not in present and len(_groups(rows)) == len(rows) and min(values) > 1:
        return True
    decoded = [_decoded(row) for row in rows if row.cells[TOKENS].strip()]
    if all(most is not None and value <= most for value, most in zip(values, decoded, strict=True)):
        return True
    return len(values) > 1 and set(values) == {1}


def _decoded(row: Row) -> int | None:
    """Most tokens that a step can emit, where the row says how many it decoded."""
    if row.cells.get("width", "").strip():
        return row.integer("width")
    return 1 + row.integer("drafted") if row.cells.get("drafted", "").strip() else None


def _streams_count(column: str, present: set[str], rows: list[Row]) -> bool:
    """Whether `stream` counts.

    Not where a cell lists several, where one is 0, where a row has fewer tokens than it would have answers, where rows
    of one moment differ, or, without moments, where it goes to and fro inside a run. Rows that may be runs or answers
    are told by the name alone: `streams` counts, `stream` numbers answers where a group has 1, 2, .. n.
    """
    told = [row for row in rows if row.cells[STREAM].strip()]
    values = _single(told, STREAM)
    if not values or column in _ALWAYS_IDS or min(values) < 1:
        return False
    if any(_fewer(row, value) for row, value in zip(told, values, strict=True)):
        return False
    groups, timed = _groups(told), bool(set(_MOMENTS) & present)
    if not timed and TOKENS not in present:
        return column == _PLURAL or not any(_numbered(group) for group in groups)
    return all(_one_a_moment(group) and (timed or _falls(group)) for group in groups)


def _of(group: Sequence[Row]) -> list[int]:
    return [row.integer(STREAM) for row in group]


def _groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows of one arm, run and prompt."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.cells.get(name, "").strip() for name in ("arm", "run", "prompt")), []).append(row)
    return list(found.values())


def _fewer(row: Row, value: int) -> bool:
    """Whether a row is known to have fewer tokens than `value` answers would have emitted."""
    if TOKENS in row.cells:
        return len(row.integers(TOKENS)) < value
    said = row.cells.get(EMITTED, "").strip()
    return bool(said) and 0 < row.integer(EMITTED, 0) < value


def _falls(group: Sequence[Row]) -> bool:
    """Whether the values of a run only fall, as answers end."""
    return _of(group) == sorted(_of(group), reverse=True)


def _numbered(group: Sequence[Row]) -> bool:
    """Whether several rows have the values 1, 2, .. n, each once."""
    return len(group) > 1 and sorted(_of(group)) == list(range(1, len(group) + 1))


def _one_a_moment(group: Sequence[Row]) -> bool:
    """Whether no two rows that say when they were are of one moment with different values."""
    seen: dict[str, str] = {}
    for row in group:
        moment = next((row.cells[name].strip() for name in _MOMENTS if row.cells.get(name, "").strip()), None)
        if moment is not None and seen.setdefault(moment, row.cells[STREAM].strip()) != row.cells[STREAM].strip():
            return False
    return True
