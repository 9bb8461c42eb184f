"""Which parameters each method has: the one list that ids, records, tables and charts go by.

A parameter that a method does not have changes nothing about it, so it is no part of its id and no column of its rows.
It knows neither values nor what they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STAGGER = ("emission", "rebuild", "draws", "stop")
"""Part of every method's id, at their defaults where the method is another."""
_LOOKUP = ("draft", "ngram", "gate", "adaptive")
_OWN = {
    "lookup": _LOOKUP,
    "draft": ("draft", "draft_model", "draws"),
    "twin": ("draft", "twin", "draws"),
    "adapter": ("draft", "adapter", "draws"),
    "mtp": ("draft", "draws"),
    "lookup_mtp": (*_LOOKUP, "head_draft", "draws"),
}
ONE_STREAM = tuple(_OWN)
"""Methods for one answer that have no streams."""
COLUMNS = ("draft", "ngram", "gate", "adaptive", "drafter", "draft_model", "twin", "adapter", "head_draft", "rollback")
"""Parameters that only some methods have, in the order of a table's columns."""
FILES = ("draft_model", "adapter")
"""Parameters that are files beside the model."""


def own(method: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the parameters that a method has, as its values are (a packed one may have a drafter's).

    The strategy of rollback counts where it was asked for by name.
    """
    name = method["name"]
    if name == "packed" and method.get("drafter", "none") != "none":
        names = ("drafter", *_OWN.get(method["drafter"], ()))
    else:
        names = _OWN.get(name, ())
    guesses = name == "jacobi" or bool(names)
    return (*names, "rollback") if guesses and method.get("rollback", "auto") != "auto" else names


def guesses(row: Mapping[str, Any]) -> bool:
    """Whether the method of a row of a report proposes tokens that may be wrong."""
    return row.get("method") not in ("autoregressive", "packed") or row.get("drafter", "none") != "none"
