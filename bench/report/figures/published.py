"""Published values, as points to draw beside measured ones. Knows only the claim rows: no number lives in this file.

The judge may hand a scope over as a dict or as text. In text a range is `0.6..0.7`, a choice is `0.3/0.7`, and a
published range is `0.7 to 0.8`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.report.tables.values import Row, get, is_number, plain, scope_of

_COUNT_WORDS = {"one", "two", "three", "four", "five", "six", "seven", "eight", "twelve", "sixteen"}
_RATIOS = ("x", "ratio", "times", "1", "", "n/a")
_SHARES = ("share", "%", "percent", "", "n/a")
MEASURED = ("measured", "")
"""Evidence that may stand beside a measurement without a word; other kinds have to be named where they are drawn."""

Span = tuple[float, float]


@dataclass(frozen=True)
class Point:
    claim_id: str
    series: str
    """What the point belongs with: the document and date that published it."""
    x: Span
    y: Span
    """Both ends equal unless a range was published."""
    evidence: str
    scope: Mapping[str, Any]


def metric_of(claim: Row) -> str:
    return str(get(claim, "metric") or scope_of(claim).get("metric") or "")


def _number(word: Any) -> float | None:
    if isinstance(word, str):
        try:
            word = float(word)
        except ValueError:
            return None
    return float(word) if is_number(word) and math.isfinite(word) else None


def _span(parts: Sequence[Any]) -> Span | None:
    ends = [end for end in map(_number, parts) if end is not None]
    return (min(ends), max(ends)) if ends and len(ends) == len(parts) else None


def spans(value: Any) -> list[Span]:
    """Numbers that a scope's value names: one, several to choose from, or a range; none where it is no number."""
    value = plain(value)
    if isinstance(value, Mapping):
        found = [_span([value.get("from"), value.get("to")])]
    elif isinstance(value, (list, tuple)):
        found = [_span([part]) for part in value]
    elif isinstance(value, str) and ".." in value:
        found = [_span(value.split(".."))]
    else:
        found = [_span([part]) for part in (value.split("/") if isinstance(value, str) else [value])]
    return [span for span in found if span is not None]


def _published(claim: Row) -> Span | None:
    """The published value as low and high, shares as parts of 1; None when it is no number."""
    value = plain(claim.get("published"))
    parts = value.split(" to ") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else [value]
    span = _span(parts)
    if span is None or str(get(claim, "unit") or "").strip() not in ("%", "percent"):
        return span
    return span[0] / 100, span[1] / 100


def _evidence(claim: Row) -> str:
    return str(get(claim, "evidence") or "")


def _in_units(claim: Row, units: Sequence[str]) -> bool:
    """Whether the published value can stand on an axis of that kind."""
    return str(get(claim, "unit") or "").strip().lower() in units


def _series(claim: Row) -> str:
    """Date and commit of the source where it has them, else its name: a legend has no room for both."""
    source = plain(claim.get("source"))
    if isinstance(source, Mapping):
        source = ", ".join(str(part) for part in source.values() if plain(part) is not None)
    if isinstance(source, str) and source:
        name, *rest = [part for part in source.split(", ") if "://" not in part] or [source]
        return ", ".join(rest) or name
    words = re.split(r"[._\-]", str(get(claim, "claim_id") or "published"))
    return " ".join(word for word in words if not word.isdigit() and word not in _COUNT_WORDS)


def _points(claims: Sequence[Row], metric: str, axis: Sequence[str], units: Sequence[str]) -> list[Point]:
    """Points of one metric against the first of the scope's keys in `axis`, in the order of the sheet."""
    points = []
    for claim in claims:
        published = _published(claim)
        if metric_of(claim) != metric or published is None or not _in_units(claim, units):
            continue
        scope = scope_of(claim)
        places = next((spans(scope[key]) for key in axis if spans(scope.get(key))), [])
        name = str(get(claim, "claim_id") or "")
        points += [Point(name, _series(claim), place, published, _evidence(claim), scope) for place in places]
    return points


def cost_curves(claims: Sequence[Row], widest: float, limit: int) -> tuple[list[list[Point]], int]:
    """Measured step costs up to a width, by what published them: the `limit` longest curves, and how many are left out.

    Where one source gives a width twice, the sheet's first entry is the cost and the others are statements about it.
    """
    curves: dict[str, dict[float, Point]] = {}
    for point in _points(claims, "step_cost", ("width", "k", "streams"), _RATIOS):
        if point.evidence in MEASURED and point.x[1] <= widest and point.y[0] == point.y[1]:
            curves.setdefault(point.series, {}).setdefault(point.x[0], point)
    kept = sorted(curves, key=lambda series: (-len(curves[series]), series))[:limit]
    return [[curves[series][x] for x in sorted(curves[series])] for series in sorted(kept)], len(curves) - len(kept)


def acceptance_points(claims: Sequence[Row], methods: Sequence[str]) -> list[Point]:
    """Acceptance rates by temperature, of the methods named or of none in particular, each once."""
    points: dict[tuple[Span, Span, str], Point] = {}
    for point in _points(claims, "acceptance", ("temperature",), _SHARES):
        if point.scope.get("method") in (None, "any", *methods):
            points.setdefault((point.x, point.y, point.evidence), point)
    return [points[key] for key in sorted(points)]


def speedup_points(claims: Sequence[Row], row: Row) -> list[Span]:
    """Speed-ups published as measured that are about what a measured speed-up row is about."""
    aggregate = get(row, "scope") == "aggregate"
    found = set()
    for claim in claims:
        scope, published = scope_of(claim), _published(claim)
        metric = metric_of(claim)
        summed = metric == "aggregate" or scope.get("per") == "aggregate"
        if metric not in ("speedup", "aggregate") or summed != aggregate or published is None:
            continue
        if _in_units(claim, _RATIOS) and _evidence(claim) in MEASURED and _same_point(scope, row):
            found.add(published)
    return sorted(found)


def _same_point(scope: Mapping[str, Any], row: Row) -> bool:
    """Method and streams must be named and agree; other keys only have to agree where the scope names them."""
    named = ["method", *(["streams"] if get(row, "streams") not in (None, 1) else [])]
    if any(scope.get(key) is None or not _agrees(scope[key], get(row, key)) for key in named):
        return False
    # A scope that does not say what is emitted is about the loop as it was published.
    if "emission" not in scope and get(row, "emission") not in (None, "published"):
        return False
    own = plain(row.get("parameters")) or {}
    return all(_agrees(scope.get(key), get(row, key)) for key in ("temperature", "prompt_class", *own))


def _agrees(wanted: Any, found: Any) -> bool:
    if wanted is None or wanted == "any" or found is None:
        return True
    if isinstance(found, str):
        return found in (wanted if isinstance(wanted, (list, tuple)) else str(wanted).split("/"))
    return any(low <= found <= high for low, high in spans(wanted))
