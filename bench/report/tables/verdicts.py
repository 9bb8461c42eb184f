"""The rows of claims in the order and the words in which they are printed. Decides no verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from bench.judge.tables.claims import VERDICTS
from bench.report.tables.values import MISSING, Row, get, line, number, plain

_PLAIN_UNITS = {"", "x", "1", "ratio", "count", "share", "none", "n/a"}


def ordered(claims: Sequence[Row]) -> list[Row]:
    """By verdict, each in the order of the sheet; a verdict of an unknown name comes last."""
    place = {verdict: at for at, verdict in enumerate(VERDICTS)}
    return sorted(claims, key=lambda claim: place.get(verdict_of(claim), len(VERDICTS)))


def verdict_of(claim: Row) -> str:
    return line(get(claim, "verdict"))


def totals(claims: Sequence[Row]) -> list[tuple[str, int]]:
    """How many claims have each verdict, those of `VERDICTS` first, also those that no claim has."""
    counts = Counter(verdict_of(claim) for claim in claims)
    others = sorted(set(counts) - set(VERDICTS))
    return [(verdict, counts[verdict]) for verdict in (*VERDICTS, *others)]


def on_intervals(claims: Sequence[Row]) -> int:
    """How many verdicts were decided by an interval, so that chance has a part in them."""
    return sum(verdict_of(claim) in ("reproduced", "refuted") and line(get(claim, "judged_by")) == "records"
               and plain(claim.get("ci_low")) != plain(claim.get("ci_high")) for claim in claims)  # fmt: skip


def with_unit(value: object, unit: object) -> str:
    """`1.96x`, `38.1 tok/s`, `0.71`: a value and its unit, where the unit says something."""
    text, unit = line(number(value)), line(unit)
    if isinstance(plain(value), bool):
        return text
    if text == MISSING or unit in _PLAIN_UNITS - {"x"}:
        return text
    return f"{text}x" if unit == "x" else f"{text} {unit}"


def published(claim: Row) -> str:
    return with_unit(claim.get("published"), claim.get("unit"))


def on_several(claims: Sequence[Row]) -> bool:
    """Whether the verdicts rest on more than one machine or engine build."""
    places = {(line(get(claim, "machine")), line(get(claim, "build"))) for claim in claims}
    return len({place for place in places if place[0] not in ("any", MISSING)}) > 1


def author_status(claim: Row) -> str:
    """What the claim's author has said of it since: `withdrawn 2026-06-09`."""
    status = plain(claim.get("author_status"))
    if isinstance(status, Mapping):
        words = [line(status[key]) for key in ("state", "date") if plain(status.get(key)) is not None]
        return " ".join(words) or MISSING
    return line(status)
