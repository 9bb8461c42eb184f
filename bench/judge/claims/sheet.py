"""A claim sheet: what somebody published, one entry a claim, and the rule that is to judge it.

Knows the format only. It judges nothing and reads no records; every mistake in a file is a UserError that names the
file, the entry's id and the nearest valid word.
"""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.judge.claims.checks import check_claim
from bench.judge.claims.claim import Claim
from bench.judge.claims.columns import TABLE_OF
from bench.judge.claims.rule import read_rule
from bench.judge.claims.words import known, mapping, text, word
from bench.judge.claims.yaml_text import numbers, read_entries
from bench.judge.tables.claims import VERDICTS
from bench.records.drawing import USUAL

METRICS = (*TABLE_OF, "arithmetic", "device")
"""`rate` is tok/s for its own sake; `speedup` in tok/s promises a gain over a baseline that the claim has to name."""

EVIDENCE = ("measured", "derived", "projected", "stated")
"""`stated`: the document says it without saying how it knows."""

STATES = ("standing", "withdrawn", "superseded", "corrected", "projection", "unsupported")
"""What the claim's own author made of it later. `corrected`: this figure is the author's correction of another."""

KEYS = (
    "id", "says", "source", "place", "metric", "scope", "published", "unit", "conditions", "evidence", "author_status",
    "rule", "verdict", "note", "headline",
)  # fmt: skip
REQUIRED = ("id", "says", "source", "metric", "scope", "published", "unit", "evidence", "author_status", "rule")
SOURCE_KEYS = ("document", "date", "commit", "url")
STATUS_KEYS = ("state", "date", "why")
CONDITION_KEYS = (
    "machine", "model", "quantization", "n_predict", "build", "baseline_tok_s", "prompt", "n_ctx", "n_seq_max",
    "type_k", "flash_attn", "temperature", "window", *USUAL,
)  # fmt: skip

SWITCHES = ("flash_attn",)
"""Keys whose values are `on`, `off` and further words."""


def load_sheet(path: Path | str) -> list[Claim]:
    """The claims of a sheet, in file order. Raises UserError for anything that is not exactly the format."""
    claims, faults = read_sheet(path)
    if faults:
        raise UserError(faults[0])
    return claims


def read_sheet(path: Path | str) -> tuple[list[Claim], list[str]]:
    """The claims of a sheet that can be judged, in file order, and a sentence on each entry that cannot.

    Of a file that breaks off, or has a line that is no YAML, the entries before that one count. Raises UserError for a
    file that cannot be read, or holds no entry at all.
    """
    path = Path(path)
    entries, broken = read_entries(path)
    if not isinstance(entries, list) or not entries:
        raise UserError(broken or f"{path} is not a claim sheet; write a list of entries, each beginning with '- id:'")
    claims: dict[str, Claim] = {}
    faults: list[str] = []
    for place, entry in enumerate(entries, start=1):
        try:
            claim = _claim(path, place, entry)
        except UserError as error:
            faults.append(str(error))
            continue
        if claim.id in claims:
            faults.append(f"{path}: the id '{claim.id}' stands twice; give one of the two entries another id")
        else:
            claims[claim.id] = claim
    return list(claims.values()), faults + ([broken] if broken else [])


def _claim(path: Path, place: int, entry: Any) -> Claim:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        raise UserError(f"{path}: entry {place} has no id; begin it with '- id: a.name.of.the.claim'")
    where = f"{path}: claim '{entry['id']}'"
    known(where, "key", entry, KEYS)
    missing = [key for key in REQUIRED if entry.get(key) in (None, "", {}, [])]
    if missing:
        raise UserError(f"{where} lacks {', '.join(missing)}")
    source = mapping(where, "source", entry["source"], SOURCE_KEYS, ("document", "date"))
    status = mapping(where, "author_status", entry["author_status"], STATUS_KEYS, ("state",))
    for name, dated in (("source", source), ("author_status", status)):
        _date(where, name, dated.get("date"))
    word(where, "author status", status["state"], STATES)
    word(where, "metric", entry["metric"], METRICS)
    word(where, "evidence", entry["evidence"], EVIDENCE)
    verdict = str(entry.get("verdict", ""))
    if verdict:
        word(where, "verdict", verdict, VERDICTS)
    if not isinstance(entry["scope"], dict):
        raise UserError(f"{where}: scope is '{entry['scope']}'; write a mapping of what the number is about")
    scope = _switched(numbers(entry["scope"]))
    _check_temperature(where, scope.get("temperature"))
    claim = Claim(
        id=str(entry["id"]),
        says=text(entry["says"]),
        source={key: str(value) for key, value in source.items()},
        place=text(entry.get("place", source["document"])),
        metric=str(entry["metric"]),
        scope=scope,
        published=_published(where, entry["published"]),
        unit=str(entry["unit"]),
        conditions=_switched(numbers(mapping(where, "conditions", entry.get("conditions", {}), CONDITION_KEYS, ()))),
        evidence=str(entry["evidence"]),
        author_status={key: text(value) for key, value in status.items()},
        rule=read_rule(where, entry["rule"]),
        verdict=verdict,
        note=text(entry.get("note", "")),
        headline=_headline(where, entry.get("headline")),
    )
    check_claim(where, claim)
    return claim


def _headline(where: str, value: Any) -> int | None:
    """A whole number from 1 on, or nothing."""
    if value is None:
        return None
    if not str(value).isdecimal() or int(value) < 1:
        raise UserError(f"{where}: headline is '{value}'; write its place among the claims that a reader is told "
                        "first, 1 for the first one, or leave it out")  # fmt: skip
    return int(value)


def _switched(values: dict[str, Any]) -> dict[str, Any]:
    """`on` and `off` of a switch as words, which YAML reads as truth values."""
    words = {True: "on", False: "off"}
    return {key: words[value] if key in SWITCHES and isinstance(value, bool) else value
            for key, value in values.items()}  # fmt: skip


def _published(where: str, value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else [value]
    texts = [str(part).lower() if isinstance(part, bool) else str(part) for part in parts]
    if len(texts) > 2:
        raise UserError(f"{where} publishes {len(texts)} values; write one, or a range as [low, high]")
    for one in texts:
        if one not in ("true", "false") and not _is_number(one):
            raise UserError(f"{where} has the published value '{one}'; write a number, or true / false for a fact")
    return tuple(texts)


def _check_temperature(where: str, value: Any) -> None:
    """A number from 0 on, a range, a list, or `any`."""
    if isinstance(value, (str, bool)) and value != "any":
        raise UserError(f"{where}: scope.temperature is '{value}'; write a number, a range, or any")
    if isinstance(value, (int, float)) and value < 0:
        raise UserError(f"{where}: scope.temperature {value} is below 0")


def _date(where: str, name: str, day: Any) -> None:
    if day is None:
        return
    try:
        datetime.date.fromisoformat(str(day))
    except ValueError:
        raise UserError(f"{where}: the date '{day}' of {name} is not a day; write it as YYYY-MM-DD") from None


def _is_number(printed: str) -> bool:
    try:
        return math.isfinite(float(printed))
    except ValueError:
        return False
