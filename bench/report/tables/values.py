"""One value of a row as text, and rows in a fixed order. Knows nothing about which table a value stands in.

A row is a dict as the judge made it. A value that is absent, None, nan or blank is *missing* and prints as `n/a`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.plain_text import plain_text

Row = Mapping[str, Any]

MISSING = "n/a"
MOST_IDS = 40
"""Ids that are told in one place: with hundreds of them nobody would find what stands behind."""
_PAIR = re.compile(r"(\w+)\s*[=:]\s*([^\s,;=]+)")
_SCALARS = {str, float, int, bool, type(None)}
_BLANK = {"", "nan", "none", "null", "n/a", "<na>", "nat"}


def plain(value: Any) -> Any:
    """A numpy or pandas scalar as the Python value it holds; anything missing as None."""
    kind = type(value)
    # The common kinds first: this runs for every value of every table.
    if kind is float:
        return value if value == value else None
    if kind is str:
        # 'none' in lower case is a value (`rebuild=none`); only the spellings of a missing cell are dropped.
        word = value.strip()
        return None if len(word) <= 4 and word != "none" and word.lower() in _BLANK else value
    if kind in (int, bool, list, dict) or value is None:
        return value
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return plain(value.item())
    return None if kind.__name__ in ("NAType", "NaTType") else value


def get(row: Row, *names: str) -> Any:
    """The first of `names` that the row has a value for; the name of a nested group when the value is one."""
    for name in names:
        value = plain(row.get(name))
        # The usual kinds first: to ask whether something is a Mapping takes longer than all else here.
        if type(value) not in _SCALARS and isinstance(value, Mapping) and "name" in value:
            value = plain(value["name"])
        if value is not None:
            return value
    return None


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def figure(row: Row, name: str) -> float | None:
    """The finite number in column `name`, or None."""
    value = plain(row.get(name))
    return float(value) if is_number(value) and math.isfinite(value) else None


def figures(rows: Iterable[Row], name: str) -> list[float]:
    """The numbers in column `name`, nan where there is none: what an axis leaves out."""
    found = (figure(row, name) for row in rows)
    return [math.nan if value is None else value for value in found]


def number(value: Any, digits: int = 4) -> str:
    """At most `digits` significant digits; whole numbers in full; text as it is."""
    value = plain(value)
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return " to ".join(number(part, digits) for part in value) if len(value) else MISSING
    if not is_number(value):
        return plain_text(str(value))
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return str(int(value))
    return f"{value:.{digits}g}"


def fixed(value: Any, decimals: int) -> str:
    """A number with that many decimals; whatever is no finite number as `number` prints it."""
    value = plain(value)
    if not is_number(value) or not math.isfinite(value):
        return number(value)
    # Adding zero turns the negative zero of a rounded trifle into zero.
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def percent(value: Any, decimals: int = 1) -> str:
    """A share of 1 as a percentage."""
    value = plain(value)
    return f"{fixed(100 * value, decimals)} %" if is_number(value) and math.isfinite(value) else number(value)


def mebibytes(value: Any) -> str:
    value = plain(value)
    return f"{value / 2**20:.1f} MiB" if is_number(value) and math.isfinite(value) else number(value)


def interval(low: Any, high: Any, decimals: int = 2) -> str:
    """`0.50 to 0.53`, or `n/a` when an end is missing."""
    low, high = plain(low), plain(high)
    return MISSING if low is None or high is None else f"{fixed(low, decimals)} to {fixed(high, decimals)}"


def line(value: Any) -> str:
    """Text on one line, blanks folded."""
    return " ".join(str(number(value)).split())


def cells_of(row: Row) -> list[str]:
    """Ids of the cells that a row rests on, sorted."""
    value = row.get("cells")
    if type(value) is list and len(value) == 1 and type(value[0]) is str:
        return [value[0]] if value[0] else []
    value = plain(value)
    if value is None:
        value = plain(row.get("cell"))
    if value is None or value == "none":
        return []
    parts = re.split(r"[\s,;]+", value) if isinstance(value, str) else value
    return sorted({str(part) for part in parts if str(part)})


def all_cells(rows: Iterable[Row]) -> list[str]:
    return sorted({cell for row in rows for cell in cells_of(row)})


def listed_ids(ids: Sequence[str], limit: int = MOST_IDS) -> str:
    """Ids with blanks between them; of many the first `limit` and how many more there are."""
    told = " ".join(ids[:limit]) or "none"
    return told if len(ids) <= limit else f"{told} and {len(ids) - limit} more"


def sort_key(row: Row, names: Iterable[str]) -> tuple[tuple[int, float, str], ...]:
    """Orders rows by the named columns: numbers, then text, then missing; types may be mixed in a column."""
    return tuple(_sortable(plain(row.get(name))) for name in names)


def sort_column(values: list[Any]) -> list[Any]:
    """What a column sorts by, in the order of `sort_key`. Numbers alone and text alone sort as they are."""
    kinds = {*map(type, values)}
    if kinds == {int} or (kinds <= {int, float} and all(value == value for value in values)):
        return values
    if kinds == {str} and all(plain(word) is not None for word in {*values}):
        return values
    return [_sortable(plain(value)) for value in values]


def _sortable(value: Any) -> tuple[int, float, str]:
    if value is None:
        return 2, 0.0, ""
    return (0, float(value), "") if is_number(value) else (1, 0.0, str(value))


def scope_of(claim: Row) -> dict[str, Any]:
    """The scope of a claim as a dict; the judge may hand it over as a dict or as the text of one."""
    scope = plain(claim.get("scope"))
    if isinstance(scope, Mapping):
        return dict(scope)
    if not isinstance(scope, str):
        return {}
    if scope.lstrip().startswith("{"):
        try:
            found = ast.literal_eval(scope)
            return dict(found) if isinstance(found, Mapping) else {}
        except (SyntaxError, ValueError):
            pass
    pairs = _PAIR.findall(scope) or [
        piece.split(None, 1) for piece in re.split(r"[,;]", scope) if len(piece.split()) == 2
    ]
    return {key: _literal(word) for key, word in pairs}


def _literal(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word
