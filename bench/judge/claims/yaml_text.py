"""Reads a YAML file that a person wrote. Knows nothing about what the file is for.

Stricter than YAML in one point (a key that stands twice is an error), and on demand it keeps numbers as they are
printed, because the last printed digit of a published figure says how exact it claims to be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from bench.errors import UserError
from bench.records.bounded import read_text, yaml_value

MOST_BYTES = 4 << 20
"""The longest sheet of this project has some sixty thousand."""


class PrintedNumber(str):
    """A number as the file prints it: '1.50' stays '1.50'."""

    __slots__ = ()


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the class depends on the build
    """Dates come as text, and no key may stand twice in one mapping."""


class _PrintedLoader(_Loader):
    """`_Loader` that also keeps numbers as text."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    if not isinstance(node, yaml.MappingNode):  # a tag may call anything a mapping
        raise ConstructorError(None, None, "it is called a mapping and is none", node.start_mark)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise ConstructorError(None, None, f"the key '{key}' is not a word", key_node.start_mark)
        if key in found:
            raise ConstructorError(None, None, f"the key '{key}' stands twice", key_node.start_mark)
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _date(loader: _Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _number(loader: _Loader, node: yaml.ScalarNode) -> PrintedNumber:
    text = str(loader.construct_scalar(node))
    try:
        plain = math.isfinite(float(text))
    except ValueError:
        plain = False
    if not plain:
        raise ConstructorError(None, None, f"'{text}' is not a plain decimal number", node.start_mark)
    return PrintedNumber(text)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _date)
_PrintedLoader.add_constructor("tag:yaml.org,2002:int", _number)
_PrintedLoader.add_constructor("tag:yaml.org,2002:float", _number)


def read_yaml(path: Path, printed: bool = False) -> Any:
    """The content of a YAML file; with `printed`, numbers are `PrintedNumber`. Raises UserError when unreadable."""
    return _value(path, _text(path), _PrintedLoader if printed else _Loader)


def read_entries(path: Path) -> tuple[Any, str]:
    """The content of a YAML list with printed numbers, and what is wrong with the file; empty where nothing is.

    Of a list that is broken at some line, the entries before the one with that line. Raises UserError for a file that
    cannot be read.
    """
    text = _text(path)
    try:
        return _value(path, text, _PrintedLoader), ""
    except UserError as error:
        cause = error.__cause__
        mark = getattr(cause, "problem_mark", None) or getattr(cause, "context_mark", None)
        lines = text.splitlines(keepends=True)[: mark.line + 1 if mark else 0]
        starts = [place for place, line in enumerate(lines) if line.startswith("- ")]
        for start in reversed(starts):
            with suppress(UserError):
                whole = _value(path, "".join(lines[:start]), _PrintedLoader)
                return whole, f"{error}; the entries from line {start + 1} on are left out"
        return None, str(error)


def printed_value(text: str) -> Any:
    """What a value means that somebody typed: numbers as they were printed, `[a, b]` a list; else the text itself."""
    try:
        return yaml_value(text, _PrintedLoader)
    except (yaml.YAMLError, ValueError):
        return text


def _text(path: Path) -> str:
    try:
        return read_text(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; give the path of an existing YAML file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {path}: it is not UTF-8 text; give the path of a YAML file") from error
    except ValueError as error:
        raise UserError(f"cannot read {path}: {error}; give the path of a YAML file") from error


def _value(path: Path, text: str, loader: type[_Loader]) -> Any:
    try:
        return yaml_value(text, loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise UserError(f"{path}{line} is not valid YAML: {problem}; mend that line") from error


def numbers(value: Any) -> Any:
    """Printed numbers as numbers, in mappings and lists too."""
    if isinstance(value, PrintedNumber):
        return _plain(value)
    if isinstance(value, Mapping):
        return {key: numbers(item) for key, item in value.items()}
    return [numbers(item) for item in value] if isinstance(value, list) else value


def _plain(printed: str) -> int | float:
    found = float(printed)
    return int(found) if found.is_integer() and not set(printed) & set(".eE") else found
