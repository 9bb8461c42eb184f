"""A value of a row as JSON takes it. Knows no table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bench.judge.tables import written
from bench.report.tables.values import Row, cells_of, plain


def row_of(table: str, row: Row, names: Sequence[str] = ()) -> dict[str, Any]:
    """A row of a table by its written columns, or some of them."""
    return {name: cells_of(row) if name == "cells" else value(row.get(name)) for name in names or written(table)}


def value(found: Any) -> Any:
    """A number, word, truth value, list or mapping; None for what is missing, and for a number without bound."""
    found = plain(found)
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, Mapping):
        return {str(key): value(item) for key, item in found.items()}
    if isinstance(found, (list, tuple)):
        return [value(item) for item in found]
    return found if found is None or isinstance(found, (bool, int, str)) else str(found)
