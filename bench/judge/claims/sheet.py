"""A claim sheet: what somebody published, one entry a claim, and the rule that is to judge it.

Knows the format only. It judges nothing and reads no records; every mistake in a file is a UserError that names the
file, the entry's id and the nearest valid word.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.judge.claims.arithmetic import check_inputs
from bench.judge.claims.yaml_text import PrintedNumber, read_yaml

METRICS = (
    "speedup", "rate", "aggregate", "step_cost", "acceptance", "tokens_per_round", "lossless", "memory", "bandwidth",
    "arithmetic", "device", "kernel",
)  # fmt: skip
"""`rate` is tok/s for its own sake; `speedup` in tok/s promises a gain over a baseline that the claim has to name."""

EVIDENCE = ("measured", "derived", "projected", "stated")
"""`stated`: the document says it without saying how it knows."""

VERDICTS = ("reproduced", "refuted", "inconclusive", "not_comparable", "not_run")
STATES = ("standing", "withdrawn", "superseded", "corrected", "projection", "unsupported")
"""What the claim's own author made of it later. `corrected`: this figure is the author's correction of another."""

KINDS = ("records", "arithmetic", "fact", "projection")
TESTS = (
    "ratio", "direction", "one_answer", "absolute", "value", "collision", "lossless", "stream_memory", "best_kernel",
)  # fmt: skip
EXPECTATIONS = ("equal", "at_most", "at_least", "greater_than_one", "less_than_one", "less_than", "greater_than")
GRADES = ("identical", "near_tie", "divergent")
PER = ("answer", "aggregate", "counted")

KEYS = (
    "id", "says", "source", "place", "metric", "scope", "published", "unit", "conditions", "evidence", "author_status",
    "rule", "verdict", "note",
)  # fmt: skip
REQUIRED = ("id", "says", "source", "metric", "scope", "published", "unit", "evidence", "author_status", "rule")
SOURCE_KEYS = ("document", "date", "commit", "url")
STATUS_KEYS = ("state", "date", "why")
SCOPE_KEYS = (
    "method", "emission", "rebuild", "draws", "stop", "streams", "temperature", "per", "prompt_class", "width",
    "layout", "position", "kernel", "format", "machine", "model", "draft", "gate", "adaptive", "drafter", "twin",
    "domain", "signal", "window", "variant", "rows", "cols", "cache",
)  # fmt: skip
CONDITION_KEYS = (
    "machine", "model", "quantization", "n_predict", "build", "baseline_tok_s", "prompt", "n_ctx", "n_seq_max",
    "type_k", "flash_attn", "temperature", "window",
)  # fmt: skip
RULE_KEYS: dict[str, tuple[str, ...]] = {
    "records": (
        "kind", "test", "table", "column", "expect", "edge", "tolerance", "max_half_width", "min_temperatures",
        "by_construction", "grade", "needs",
    ),
    "arithmetic": ("kind", "formula", "inputs", "expect", "tolerance"),
    "fact": ("kind", "fact", "expect", "tolerance"),
    "projection": ("kind", "needs"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """How the verdict comes about. `kind` says from what; the other fields belong to one kind or another.

    records: `test` on `column` of `table` of the findings. arithmetic: `formula` of `inputs` (numbers, facts by name,
    or a printed value with its own rounding). fact: the published value against `fact`. projection: nothing to judge
    yet; `needs` names what would have to be run.
    """

    kind: str
    test: str = ""
    table: str = ""
    column: str = ""
    expect: str = "equal"
    edge: float | None = None
    tolerance: float | None = None
    max_half_width: float | None = None
    min_temperatures: int = 1
    by_construction: bool = False
    grade: str = "near_tie"
    needs: str = ""
    formula: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One entry. `published` keeps the text as printed, because its last digit is the tolerance."""

    id: str
    says: str
    source: Mapping[str, str]
    place: str
    metric: str
    scope: Mapping[str, Any]
    published: tuple[str, ...]
    unit: str
    conditions: Mapping[str, Any]
    evidence: str
    author_status: Mapping[str, str]
    rule: Rule
    verdict: str
    note: str

    @property
    def value(self) -> float | bool:
        """The published number (the lower end of a range), or true / false."""
        text = self.published[0]
        return text == "true" if text in ("true", "false") else float(text)

    @property
    def printed(self) -> str:
        return " to ".join(self.published)


def load_sheet(path: Path | str) -> list[Claim]:
    """The claims of a sheet, in file order. Raises UserError for anything that is not exactly the format."""
    path = Path(path)
    entries = read_yaml(path, printed=True)
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{path} is not a claim sheet; write a list of entries, each beginning with '- id:'")
    claims: list[Claim] = []
    seen: set[str] = set()
    for place, entry in enumerate(entries, start=1):
        claim = _claim(path, place, entry)
        if claim.id in seen:
            raise UserError(f"{path}: the id '{claim.id}' stands twice; give one of the two entries another id")
        seen.add(claim.id)
        claims.append(claim)
    return claims


def _claim(path: Path, place: int, entry: Any) -> Claim:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        raise UserError(f"{path}: entry {place} has no id; begin it with '- id: a.name.of.the.claim'")
    where = f"{path}: claim '{entry['id']}'"
    _known(where, "key", entry, KEYS)
    missing = [key for key in REQUIRED if entry.get(key) in (None, "", {}, [])]
    if missing:
        raise UserError(f"{where} lacks {', '.join(missing)}")
    source = _mapping(where, "source", entry["source"], SOURCE_KEYS, ("document", "date"))
    status = _mapping(where, "author_status", entry["author_status"], STATUS_KEYS, ("state",))
    for name, dated in (("source", source), ("author_status", status)):
        _date(where, name, dated.get("date"))
    _word(where, "author status", status["state"], STATES)
    _word(where, "metric", entry["metric"], METRICS)
    _word(where, "evidence", entry["evidence"], EVIDENCE)
    verdict = str(entry.get("verdict", ""))
    if verdict:
        _word(where, "verdict", verdict, VERDICTS)
    published = _published(where, entry["published"])
    rule = _rule(where, entry["rule"])
    _check_rule(where, rule, published)
    return Claim(
        id=str(entry["id"]),
        says=_text(entry["says"]),
        source={key: str(value) for key, value in source.items()},
        place=_text(entry.get("place", source["document"])),
        metric=str(entry["metric"]),
        scope=_scope(where, entry["scope"]),
        published=published,
        unit=str(entry["unit"]),
        conditions=_numbers(_mapping(where, "conditions", entry.get("conditions", {}), CONDITION_KEYS, ())),
        evidence=str(entry["evidence"]),
        author_status={key: _text(value) for key, value in status.items()},
        rule=rule,
        verdict=verdict,
        note=_text(entry.get("note", "")),
    )


def _published(where: str, value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else [value]
    texts = [str(part).lower() if isinstance(part, bool) else str(part) for part in parts]
    if len(texts) > 2:
        raise UserError(f"{where} publishes {len(texts)} values; write one, or a range as [low, high]")
    for text in texts:
        if text not in ("true", "false") and not _is_number(text):
            raise UserError(f"{where} has the published value '{text}'; write a number, or true / false for a fact")
    return tuple(texts)


def _scope(where: str, value: Any) -> dict[str, Any]:
    scope = _numbers(_mapping(where, "scope", value, SCOPE_KEYS, ()))
    if "per" in scope:
        _word(where, "scope.per", scope["per"], PER)
    temperature = scope.get("temperature")
    if isinstance(temperature, Mapping):
        _known(where, "scope.temperature key", temperature, ("from", "to"))
        if len(temperature) != 2:
            raise UserError(f"{where}: scope.temperature needs both ends; write {{from: 0.1, to: 0.5}}")
    elif isinstance(temperature, str) and temperature != "any":
        raise UserError(f"{where}: scope.temperature is '{temperature}'; write a number, a range, or any")
    elif isinstance(temperature, (int, float)) and temperature < 0:
        raise UserError(f"{where}: scope.temperature {temperature} is below 0")
    return scope


def _rule(where: str, value: Any) -> Rule:
    if not isinstance(value, dict) or "kind" not in value:
        raise UserError(f"{where}: the rule has no kind; {nearest('', KINDS)}")
    _word(where, "rule kind", value["kind"], KINDS)
    keys = RULE_KEYS[value["kind"]]
    _known(where, f"{value['kind']} rule key", value, keys)
    fields = _numbers(value)
    _word(where, "expectation", fields.get("expect", "equal"), EXPECTATIONS)
    if fields["kind"] == "records":
        _word(where, "test", fields.get("test", ""), TESTS)
    for key in fields:
        _typed(where, key, fields[key])
    return Rule(**{key: _text(item) if isinstance(item, str) else item for key, item in fields.items()})


def _typed(where: str, key: str, value: Any) -> None:
    """Numbers, whole numbers and truth values of a rule are what they say."""
    truth = isinstance(value, bool)
    if key in ("edge", "tolerance", "max_half_width") and (truth or not isinstance(value, (int, float))):
        raise UserError(f"{where}: rule.{key} is '{value}'; write a number")
    if key == "min_temperatures" and (truth or not isinstance(value, int)):
        raise UserError(f"{where}: rule.{key} is '{value}'; write a whole number")
    if key == "by_construction" and not truth:
        raise UserError(f"{where}: rule.{key} is '{value}'; write true or false")
    if key == "grade":
        _word(where, "grade", value, GRADES)
    if key in ("needs", "table", "column", "fact") and not isinstance(value, str):
        raise UserError(f"{where}: rule.{key} is '{value}'; write it as text")


def _check_rule(where: str, rule: Rule, published: tuple[str, ...]) -> None:
    """What one rule needs from the entry as a whole."""
    truth = published[0] in ("true", "false")
    if rule.kind == "arithmetic":
        if not isinstance(rule.inputs, Mapping) or not rule.inputs:
            raise UserError(f"{where}: an arithmetic rule needs inputs, each with a name")
        check_inputs(rule.formula, list(rule.inputs), where)
        for name, item in rule.inputs.items():
            _check_input(where, name, item)
    if rule.kind == "fact" and not rule.fact:
        raise UserError(f"{where}: a fact rule names no fact; add 'fact: name' from the facts folder")
    if rule.kind == "projection" and not rule.needs:
        raise UserError(f"{where}: a projection says what would have to be run; add 'needs: ...'")
    sides = ("greater_than_one", "less_than_one", "less_than", "greater_than")
    if rule.test == "direction" and rule.expect not in sides:
        raise UserError(f"{where}: test 'direction' needs expect: {', '.join(sides[:-1])} or {sides[-1]}")
    if rule.expect in ("less_than", "greater_than") and rule.edge is None:
        raise UserError(f"{where}: expect '{rule.expect}' needs an edge; add 'edge: NUMBER'")
    if rule.expect == "greater_than" and rule.test != "direction":
        raise UserError(f"{where}: only test 'direction' knows expect 'greater_than'")
    if rule.test == "ratio" and (truth or float(published[0]) <= 1):
        raise UserError(f"{where}: test 'ratio' is for a gain above 1, not {published[0]}; use direction or absolute")
    if truth and rule.kind not in ("fact", "projection"):
        raise UserError(f"{where}: true / false can only be judged by a fact; use kind: fact or write a number")


def _check_input(where: str, name: str, item: Any) -> None:
    """A number, {fact: name}, or {value: number, within: rounding of the printed value}."""
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return
    if isinstance(item, Mapping):
        _known(where, f"key of input '{name}'", item, ("fact", "value", "within"))
        if set(item) in ({"fact"}, {"value", "within"}):
            return
    raise UserError(f"{where}: input '{name}' is '{item}'; write a number, {{fact: NAME}} or {{value: N, within: R}}")


def _mapping(where: str, name: str, value: Any, keys: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: {name} is '{value}'; write a mapping with {', '.join(needed or keys[:3])}")
    _known(where, f"{name} key", value, keys)
    missing = [key for key in needed if value.get(key) in (None, "")]
    if missing:
        raise UserError(f"{where}: {name} lacks {', '.join(missing)}")
    return value


def _date(where: str, name: str, text: Any) -> None:
    if text is None:
        return
    try:
        datetime.date.fromisoformat(str(text))
    except ValueError:
        raise UserError(f"{where}: the date '{text}' of {name} is not a day; write it as YYYY-MM-DD") from None


def _known(where: str, what: str, keys: Iterable[Any], valid: tuple[str, ...]) -> None:
    for key in keys:
        if key not in valid:
            raise UserError(f"{where} has the unknown {what} '{key}'; {nearest(str(key), valid)}")


def _word(where: str, what: str, word: Any, valid: tuple[str, ...]) -> None:
    if word not in valid:
        raise UserError(f"{where} has the unknown {what} '{word}'; {nearest(str(word), valid)}")


def _text(value: Any) -> str:
    return " ".join(str(value).split())


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and not set(text) & set(".eE") else value


def _numbers(value: Any) -> Any:
    """Printed numbers as numbers, in mappings and lists too."""
    if isinstance(value, PrintedNumber):
        return _number(value)
    if isinstance(value, Mapping):
        return {key: _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value
