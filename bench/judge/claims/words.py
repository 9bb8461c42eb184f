"""Checks of the words that a sheet is written in. Knows no key by itself; every mistake is a UserError."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.errors import UserError, nearest


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}"


def known(where: str, what: str, keys: Iterable[Any], valid: Iterable[str]) -> None:
    """Raises UserError for the first key that is not valid."""
    words = [*valid]
    for key in keys:
        if key not in words:  # as it is: a list or a mapping in a word's place has no hash
            raise UserError(f"{where} has the unknown {what} '{key}'; {nearest(str(key), words)}")


def word(where: str, what: str, given: Any, valid: Iterable[str]) -> None:
    """Raises UserError when `given` is not a valid word."""
    known(where, what, [given], valid)


def mapping(where: str, name: str, value: Any, keys: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Any]:
    """`value` when it is a mapping with nothing but `keys` and all of `needed`. Raises UserError otherwise."""
    if not isinstance(value, dict):
        raise UserError(f"{where}: {name} is '{value}'; write a mapping with {', '.join(needed or keys[:3])}")
    known(where, f"{name} key", value, keys)
    missing = [key for key in needed if value.get(key) in (None, "")]
    if missing:
        raise UserError(f"{where}: {name} lacks {', '.join(missing)}")
    return value


def text(value: Any) -> str:
    """On one line."""
    return " ".join(str(value).split())
