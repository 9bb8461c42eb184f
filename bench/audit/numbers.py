"""Numbers as people and tools write them: with a spread, a unit, a decimal comma, thousands. It knows no record.

`26.2 ± 0.1 t/s`, `26,2`, `1,030.5`, `62.3%`, `1m2.4s`, `94.700.000` under a decimal comma.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

NAN = math.nan
LARGEST = 1e21
"""A value above this is no measurement of anything here, and would overflow what is computed from it."""
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/-|\+-|\+\\-|\\pm|\ufffd)\s*")
_NUMBER = r"[-+]?(?:\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?|\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d{1,3})?"
_WITH_UNIT = re.compile(rf"[~≈<>=]?\s*\(?({_NUMBER})\)?\s*([^\d\s].*)?")
_COMMA_DECIMAL = re.compile(r"\d,(?:\d{1,2}|\d{4,})(?!\d)|\d\.\d{3}\.\d{3}|\d\.\d{3},\d|^0,\d")
_POINT_DECIMAL = re.compile(r"\d\.(?:\d{1,2}|\d{4,})(?![\d.])|\d,\d{3},\d{3}|\d,\d{3}\.\d|^0\.\d|^\.\d")
_DURATION = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|h|m|s)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Measured:
    """A value as it is printed. `spread` is what stands behind a plus-minus sign, nan where nothing does."""

    value: float
    spread: float = NAN
    unit: str = ""


def decimal_comma(cells: Iterable[str]) -> bool:
    """Whether a table writes 26,2 for 26.2: some cell can only be read so, and none only the other way."""
    comma = False
    for cell in cells:
        if _POINT_DECIMAL.search(cell.strip()):
            return False
        comma |= bool(_COMMA_DECIMAL.search(cell.strip()))
    return comma


def measured(text: str, comma: bool = False) -> Measured | None:
    """The number of a cell with its spread and unit; None where it is no number, or not finite."""
    if len(text) > 200:
        return None
    parts = _PLUS_MINUS.split(text.strip().strip("*`"), maxsplit=1)
    found = _WITH_UNIT.fullmatch(parts[0].strip().rstrip("("))
    if found is None:
        return None
    value = _plain(found[1], comma)
    spread, unit = NAN, (found[2] or "").strip()
    if len(parts) == 2:
        behind = _WITH_UNIT.fullmatch(parts[1].strip().rstrip(")"))
        if behind is None:
            return None
        known = _plain(behind[1], comma)
        spread, unit = (NAN if known is None else known), unit or (behind[2] or "").strip()
        if unit == "%" and not found[2]:  # 26.2 ± 3 %
            spread, unit = spread / 100 * (value or 0.0), ""
    return None if value is None else Measured(value, spread, unit)


def number(text: str, comma: bool = False) -> float | None:
    """The value of a cell, None where there is none."""
    found = measured(text, comma)
    return found.value if found else None


def whole(text: str) -> int | None:
    """A whole number of a cell, None where it is none."""
    value = number(text)
    return int(value) if value is not None and value == int(value) else None


def _plain(text: str, comma: bool) -> float | None:
    text = text.replace(" ", "").replace("'", "")
    if comma:
        text = text.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text) or "." not in text:
        text = text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text) else text.replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) <= LARGEST else None


def real(text: str) -> float:
    """A plain decimal number as C prints it, nan for anything else."""
    try:
        value = float(text[:40])
    except ValueError:
        return NAN
    return value if abs(value) <= LARGEST else NAN


def finite(value: object) -> float | None:
    """A value of a JSON document as a number, None where it is no finite one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LARGEST else None


def count(value: object) -> int | None:
    """A value of a JSON document as a count: a whole number of at least 0."""
    found = finite(value)
    return int(found) if found is not None and found >= 0 and found == int(found) else None


def seconds(text: str) -> float | None:
    """A duration as Go prints it: 2.411s, 60.1ms, 1m2.4s."""
    parts = _DURATION.findall(text.strip())
    if not parts or "".join(value + unit for value, unit in parts) != text.strip():
        return None
    return sum(float(value) * _SECONDS[unit] for value, unit in parts)


def rounding(value: float) -> float:
    """Half a unit of the last digit of a figure: 0.05 for 38.1, 0.5 for 40."""
    text = repr(float(value))
    if "e" in text or not math.isfinite(value):
        return abs(value) * 1e-6
    digits = text.split(".")[1]
    return 0.5 if digits == "0" else 0.5 * 10.0 ** -len(digits)
