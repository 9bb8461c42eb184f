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
_OF_A_COST = {"width", "k", "streams", "layout", "metric"}
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
    source: str = ""
    """In full: document, date, commit, address."""

    @property
    def sheet(self) -> str:
        """What its id begins with: one sheet is about one claim, whoever else it quotes."""
        return self.claim_id.split(".")[0]

    @property
    def document(self) -> str:
        return self.source.split(", ")[0]


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


def published_span(claim: Row) -> Span | None:
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


def source_of(claim: Row) -> str:
    """Document, date, commit and address, on one line."""
    source = plain(claim.get("source"))
    if isinstance(source, Mapping):
        source = ", ".join(str(part) for part in source.values() if plain(part) is not None)
    return source if isinstance(source, str) else ""


def _series(claim: Row) -> str:
    """Date and commit of the source where it has them, else its name."""
    if source := source_of(claim):
        name, *rest = [part for part in source.split(", ") if "://" not in part] or [source]
        return ", ".join(rest) or name
    words = re.split(r"[._\-]", str(get(claim, "claim_id") or "published"))
    return " ".join(word for word in words if not word.isdigit() and word not in _COUNT_WORDS)


def _points(claims: Sequence[Row], metric: str, axis: Sequence[str], units: Sequence[str]) -> list[Point]:
    """Points of one metric against the first of the scope's keys in `axis`, in the order of the sheet."""
    points = []
    for claim in claims:
        published = published_span(claim)
        if metric_of(claim) != metric or published is None or not _in_units(claim, units):
            continue
        scope = scope_of(claim)
        places = next((spans(scope[key]) for key in axis if spans(scope.get(key))), [])
        name = str(get(claim, "claim_id") or "")
        points += [Point(name, _series(claim), place, published, _evidence(claim), scope, source_of(claim))
                   for place in places]  # fmt: skip
    return points


def cost_curves(claims: Sequence[Row]) -> list[list[Point]]:
    """Measured step costs by sheet, in the order of layout, source and width; a scope that names more is about more.

    Where one source gives a width twice, the sheet's first entry is the cost and the others are statements about it.
    """
    curves: dict[str, dict[tuple[str, str, float], Point]] = {}
    for point in _points(claims, "step_cost", ("width", "k", "streams"), _RATIOS):
        if point.evidence in MEASURED and point.y[0] == point.y[1] and set(point.scope) <= _OF_A_COST:
            key = (str(point.scope.get("layout") or ""), point.series, point.x[0])
            curves.setdefault(point.sheet, {}).setdefault(key, point)
    return [[curves[sheet][key] for key in sorted(curves[sheet])] for sheet in sorted(curves)]


def acceptance_claims(claims: Sequence[Row]) -> list[Point]:
    """Acceptance rates by temperature, in the order of the sheet: read once, every row of a figure asks for its own."""
    return _points(claims, "acceptance", ("temperature",), _SHARES)


def acceptance_points(published: Sequence[Point], methods: Sequence[str]) -> list[Point]:
    """Of those rates the ones of the methods named or of none in particular, each once."""
    points: dict[tuple[Span, Span, str], Point] = {}
    for point in published:
        if point.scope.get("method") in (None, "any", *methods):
            points.setdefault((point.x, point.y, point.evidence), point)
    return [points[key] for key in sorted(points)]


class SpeedupClaims:
    """Speed-ups published as measured, read once: every row of a figure asks for those that it stands beside."""

    def __init__(self, claims: Sequence[Row]) -> None:
        self._known: list[tuple[Mapping[str, Any], bool, Span, str]] = []
        for claim in claims:
            metric, published = metric_of(claim), published_span(claim)
            if metric not in ("speedup", "aggregate") or published is None:
                continue
            if _in_units(claim, _RATIOS) and _evidence(claim) in MEASURED:
                scope = scope_of(claim)
                summed = metric == "aggregate" or scope.get("per") == "aggregate"
                self._known.append((scope, summed, published, str(get(claim, "claim_id") or "")))

    def beside(self, row: Row) -> list[tuple[Span, str]]:
        """What was published about just what a measured row is about, with the claims' ids."""
        aggregate = get(row, "scope") == "aggregate"
        named = ["method", *(["streams"] if get(row, "streams") not in (None, 1) else [])]
        found: dict[Span, set[str]] = {}
        for scope, summed, published, name in self._known:
            if summed == aggregate and _same_point(scope, row, named):
                found.setdefault(published, set()).add(name)
        return [(span, " ".join(sorted(found[span]))) for span in sorted(found)]


def acceptance_beside(points: Sequence[Point], row: Row) -> list[Point]:
    """Of the published acceptance rates those that are about just what a measured row is about."""
    return [point for point in points if _same_point(point.scope, row, ["method"])]


def _same_point(scope: Mapping[str, Any], row: Row, named: Sequence[str]) -> bool:
    """Keys that must be named have to agree; others only where the scope names them."""
    if any(scope.get(key) is None or not _agrees(scope[key], get(row, key)) for key in named):
        return False
    # A scope that does not say what is emitted is about the loop as it was published.
    if "emission" not in scope and get(row, "emission") not in (None, "published"):
        return False
    own = plain(row.get("parameters")) or {}
    return all(_agrees(scope.get(key), get(row, key)) for key in ("temperature", "prompt_class", "streams", *own))


def _agrees(wanted: Any, found: Any) -> bool:
    if wanted is None or wanted == "any" or found is None:
        return True
    if isinstance(found, str):
        return found in (wanted if isinstance(wanted, (list, tuple)) else str(wanted).split("/"))
    return any(low <= found <= high for low, high in spans(wanted))
