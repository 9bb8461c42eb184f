"""The rule of a claim: how its verdict comes about, as it is written in a sheet.

Checks the rule by itself; whether it fits the claim is `bench.judge.claims.checks`. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any

from bench.errors import UserError, nearest
from bench.judge.claims.arithmetic import check_inputs, half_last_digit
from bench.judge.claims.columns import SIDES
from bench.judge.claims.words import known, text, word
from bench.judge.claims.yaml_text import PrintedNumber, numbers
from bench.judge.tables.contrast import GRADES

KINDS = ("records", "arithmetic", "fact", "projection")
TESTS: dict[str, tuple[str, ...]] = {
    "ratio": (),
    "direction": ("expect", "edge", "universal"),
    "one_answer": ("formula", "inputs"),
    "absolute": (),
    "value": ("tolerance", "max_half_width", "by_construction", "universal"),
    "collision": ("max_half_width", "min_temperatures"),
    "lossless": ("grade",),
    "stream_memory": (),
    "best_kernel": ("tolerance",),
    "over": ("against", "expect", "edge"),
}
"""Tests of a records rule, and the keys that each knows besides those of all."""
OF_ALL_TESTS = ("kind", "test", "table", "column", "needs", "command", "interval", "beside")
RULE_KEYS: dict[str, tuple[str, ...]] = {
    "records": tuple(dict.fromkeys([*OF_ALL_TESTS, *(key for keys in TESTS.values() for key in keys)])),
    "arithmetic": ("kind", "formula", "inputs", "expect", "tolerance"),
    "fact": ("kind", "fact", "tolerance"),
    "projection": ("kind", "needs", "command", "beside"),
}
PROMPTS, NOISE = INTERVALS = ("prompts", "noise")
EXPECTATIONS = ("equal", "at_most", "at_least", *SIDES)
OF_ARITHMETIC = ("equal", "at_most", "at_least", "greater_than_one", "less_than_one")
HALF_WIDTH = 0.10
"""Widest half interval of a rate that still tells anything. A rule may ask for a narrower one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How the verdict comes about. `kind` says from what; the other fields belong to one kind or another.

    records: `test` on `column` of `table` of the findings. arithmetic: `formula` of `inputs` (numbers, facts by name,
    or a printed value with its own rounding). fact: the published value against `fact`. projection: nothing to judge
    yet; `needs` names what would have to be run, and `command` what comes nearest to it.
    """

    kind: str
    test: str = ""
    table: str = ""
    column: str = ""
    expect: str = "equal"
    edge: float | None = None
    tolerance: float | None = None
    max_half_width: float = HALF_WIDTH
    min_temperatures: int = 1
    by_construction: bool = False
    universal: bool = False
    """Whether the claim is about any machine and model, so that one counter-example refutes it."""
    grade: str = "identical"
    against: Mapping[str, Any] = field(default_factory=dict)
    """Scope values of the rows that a figure is divided by, those of the others being in the scope too."""
    needs: str = ""
    command: str = ""
    beside: Sequence[Mapping[str, Any]] = ()
    """What is told with the verdict and decides nothing, as `bench.judge.claims.beside` has it."""
    formula: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    fact: str = ""
    interval: str = PROMPTS
    """What the claim's sentence is about: texts of a kind (`prompts`), or the very texts that were run (`noise`)."""


_UNUSUAL = ("table", "column", "edge", "tolerance", "min_temperatures", "universal", "fact", "interval")


def rule_text(rule: Rule) -> str:
    """A rule on one line: its kind and test, then whatever is not as usual."""
    given = {one.name: getattr(rule, one.name) for one in fields_of(Rule) if getattr(rule, one.name) != one.default}
    words = [f"{rule.kind}, {rule.test}" if rule.test else rule.kind]
    if rule.test == "direction" or rule.expect != "equal":
        words.append(f"expect {rule.expect}")
    words += [f"{name} {given[name]}" for name in _UNUSUAL if name in given]
    if rule.formula:
        words.append(f"{rule.formula}({', '.join(f'{name}={_input(item)}' for name, item in rule.inputs.items())})")
    return ", ".join(words)


def _input(item: Any) -> str:
    """A number as it is, a fact by its name, a printed value with its rounding."""
    if not isinstance(item, Mapping):
        return str(item)
    return str(item["fact"]) if "fact" in item else f"{item['value']} within {item['within']}"


def read_rule(where: str, value: Any) -> Rule:
    """The rule as it is written. Raises UserError for a key, a type or a bound that its kind and test do not have."""
    if not isinstance(value, dict) or "kind" not in value:
        raise UserError(f"{where}: the rule has no kind; {nearest('', KINDS)}")
    word(where, "rule kind", value["kind"], KINDS)
    known(where, f"{value['kind']} rule key", value, RULE_KEYS[value["kind"]])
    fields = numbers(value)
    word(where, "expectation", fields.get("expect", "equal"), EXPECTATIONS)
    if fields["kind"] == "records":
        test = fields.get("test", "")
        word(where, "test", test, TESTS)
        for key in value:
            if key not in (*OF_ALL_TESTS, *TESTS[test]):
                raise UserError(f"{where}: test '{test}' has no {key}; leave it out")
    for key in fields:
        _typed(where, key, fields[key])
    words: dict[str, Any] = {key: text(item) if isinstance(item, str) else item for key, item in fields.items()}
    rule = Rule(**words)
    _whole(where, rule, value.get("inputs"))
    return rule


def _typed(where: str, key: str, value: Any) -> None:
    """Numbers, whole numbers and truth values of a rule are what they say."""
    truth = isinstance(value, bool)
    if key in ("edge", "tolerance", "max_half_width") and (truth or not isinstance(value, (int, float))):
        raise UserError(f"{where}: rule.{key} is '{value}'; write a number")
    if key == "tolerance" and value < 0:
        raise UserError(f"{where}: rule.tolerance is {value}, which is below 0")
    if key == "max_half_width" and not 0 < value <= HALF_WIDTH:
        raise UserError(f"{where}: rule.max_half_width is {value}; write a number above 0 and up to {HALF_WIDTH}")
    if key == "min_temperatures" and (truth or not isinstance(value, int) or value < 1):
        raise UserError(f"{where}: rule.{key} is '{value}'; write a whole number from 1 on")
    if key in ("by_construction", "universal") and not truth:
        raise UserError(f"{where}: rule.{key} is '{value}'; write true or false")
    if key == "interval":
        word(where, "interval", value, INTERVALS)
    if key == "grade":
        word(where, "grade", value, GRADES)
        if value == GRADES[-1]:
            raise UserError(f"{where}: grade '{value}' is no sameness; write {' or '.join(GRADES[:-1])}")
    if key == "against" and (not isinstance(value, Mapping) or not value):
        raise UserError(f"{where}: rule.against is '{value}'; write keys of the scope, each with one of its values")
    if key in ("needs", "table", "column", "fact", "command") and not isinstance(value, str):
        raise UserError(f"{where}: rule.{key} is '{value}'; write it as text")


def _whole(where: str, rule: Rule, printed: Any) -> None:
    """What one kind needs, whatever the claim is."""
    if rule.kind == "arithmetic" or rule.formula:
        if not isinstance(rule.inputs, Mapping) or not rule.inputs:
            raise UserError(f"{where}: an arithmetic rule needs inputs, each with a name")
        check_inputs(rule.formula, list(rule.inputs), where)
        for name, item in rule.inputs.items():
            _check_input(where, name, item, printed[name])
    elif rule.inputs:
        raise UserError(f"{where}: the rule has inputs and no formula; add 'formula: NAME'")
    if rule.kind == "arithmetic" and rule.expect not in OF_ARITHMETIC:
        raise UserError(f"{where}: an arithmetic rule has no expect '{rule.expect}'; use {', '.join(OF_ARITHMETIC)}")
    if rule.kind == "fact" and not rule.fact:
        raise UserError(f"{where}: a fact rule names no fact; add 'fact: name' from the facts folder")
    if rule.kind == "projection" and not rule.needs:
        raise UserError(f"{where}: a projection says what would have to be run; add 'needs: ...'")
    if rule.test == "over" and (not rule.against or rule.expect not in ("equal", *SIDES)):
        raise UserError(f"{where}: test 'over' needs against: {{KEY: VALUE}}, and knows expect: {', '.join(SIDES)}")
    if rule.test == "direction" and rule.expect not in SIDES:
        raise UserError(f"{where}: test 'direction' needs expect: {', '.join(SIDES[:-1])} or {SIDES[-1]}")
    if rule.expect in ("less_than", "greater_than") and rule.edge is None:
        raise UserError(f"{where}: expect '{rule.expect}' needs an edge; add 'edge: NUMBER'")


def _check_input(where: str, name: str, item: Any, printed: Any) -> None:
    """A number, {fact: name}, or {value: number, within: rounding of the printed value}."""
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return
    if isinstance(item, Mapping):
        known(where, f"key of input '{name}'", item, ("fact", "value", "within"))
        if set(item) == {"fact"}:
            return
        if set(item) == {"value", "within"} and all(isinstance(one, PrintedNumber) for one in printed.values()):
            least = half_last_digit(printed["value"])
            if not 0 < item["within"] <= least * (1 + 1e-9):
                raise UserError(f"{where}: input '{name}' is printed as {printed['value']}, which rounding moves by "
                                f"{least:g} at most, not by {item['within']}")  # fmt: skip
            return
    raise UserError(f"{where}: input '{name}' is '{item}'; write a number, {{fact: NAME}} or {{value: N, within: R}}")
