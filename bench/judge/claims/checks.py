"""Whether a rule can judge its claim: metric, test, column, unit, direction, bounds, and what the claim is about.

A combination that could only come out one way, or that says yes to another question, is a UserError when the sheet is
read. It judges nothing and reads no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bench.errors import UserError, nearest
from bench.judge.claims.arithmetic import BYTES, FORMULAS, half_last_digit, in_unit, recompute
from bench.judge.claims.beside import check_beside
from bench.judge.claims.columns import BYTE_UNITS, UNITS, check_combination, find_column
from bench.judge.claims.mechanism import SAME_DRAW, mechanism
from bench.judge.claims.scope import ANY, check_documentary, check_scope, declaration, values_of
from pti_loop.parameters import declared

if TYPE_CHECKING:
    from bench.judge.claims.claim import Claim

WIDEST = 0.10
"""Largest tolerance, as a share of the published figure. A wider one would say yes to another figure."""
WIDEST_RANGE = 5.0
"""How many times its low end the high end of a published range may be. A wider one would say yes to whatever comes."""
WIDEST_SHARES = 0.5
"""Part of all shares there are that a published range may hold."""
FROM_0 = ("share", "difference", "area")
"""Kinds of figure that may be 0; all others are above it."""
SCALES = {"share": (0.0, 1.0), "difference": (-1.0, 1.0), "area": (0.0, 1.0)}
"""Where a kind of figure begins and ends, whatever was measured."""
NOT_A_FIGURE = ("expected_tokens", "grown_increments", "tiles")
"""Formulas whose inputs are numbers of things, which may well equal the result."""
LEAST = {"n_predict": 2, "n_ctx": 8, "n_seq_max": 1, "window": 1, "temperature": 0, "baseline_tok_s": 0}
"""Conditions that are numbers, and the least that each can be."""
OF_A_DEVICE = ("machine", "model", "quantization")


def check_claim(where: str, claim: Claim) -> None:
    """Raises UserError for a claim that its own rule cannot judge."""
    truth = claim.published[0] in ("true", "false")
    if truth and claim.rule.kind not in ("fact", "projection"):
        raise UserError(f"{where}: true / false can only be judged by a fact; use kind: fact or write a number")
    if not truth and float(claim.published[0]) > float(claim.published[-1]):
        raise UserError(f"{where}: the published range {claim.printed} has no low and high end")
    if claim.rule.kind == "records":
        _check_records(where, claim)
    else:
        check_documentary(where, claim.scope)
    check_beside(where, claim.rule.beside)
    if claim.rule.kind == "arithmetic":
        _check_circle(where, claim)
        _check_formula_unit(where, claim)
        _check_expected(where, claim)
    _check_conditions(where, claim)
    _check_tolerance(where, claim)


def _check_records(where: str, claim: Claim) -> None:
    column = find_column(where, claim.metric, claim.table, claim.column)
    check_scope(where, claim.table, claim.scope)
    check_combination(where, claim.metric, claim.rule.test, claim.unit, claim.per, claim.column, column)
    _check_published(where, claim, column.kind)
    if claim.rule.test == "direction" or (claim.rule.test == "over" and claim.rule.expect != "equal"):
        _check_side(where, claim)
        _check_possible(where, claim, column.kind)
    for key, value in claim.rule.against.items():
        if value not in (both := values_of(where, key, claim.scope.get(key, ANY))) or len(set(map(str, both))) < 2:
            raise UserError(f"{where}: rule.against.{key} is '{value}'; name it in scope.{key} beside what is compared")
    if claim.rule.test == "one_answer":
        _check_distinct(where, claim)
    if claim.column in claim.conditions:
        raise UserError(f"{where}: {claim.column} is the claim's own figure and no condition of it; leave it out there")
    _check_answers(where, claim)
    _check_two_draws(where, claim)
    if claim.rule.universal:
        _check_universal(where, claim)


def _check_published(where: str, claim: Claim, kind: str) -> None:
    """The published figure is one that the column can have and the test can tell from others."""
    low, high = float(claim.published[0]), float(claim.published[-1])
    whole = 100.0 if claim.unit == "%" else 1.0
    if kind == "share" and not 0 <= low <= high <= whole:
        raise UserError(f"{where}: a share in {claim.unit} lies between 0 and {whole:g}, not at {claim.printed}")
    if kind not in FROM_0 and low <= 0:
        raise UserError(f"{where}: a figure in {claim.unit} is above 0, not {claim.printed}")
    if low < high and not high <= WIDEST_RANGE * low:
        raise UserError(f"{where}: a range from {low:g} to {high:g} says yes to almost anything; write one whose high "
                        f"end is at most {WIDEST_RANGE:g} times its low end")  # fmt: skip
    if kind == "share" and high - low > WIDEST_SHARES * whole:
        raise UserError(f"{where}: a range from {low:g} to {high:g} {claim.unit} says yes to more than half of all "
                        "shares that there are; write a narrower one")  # fmt: skip
    if claim.rule.test == "ratio" and low <= 1:
        raise UserError(f"{where}: test 'ratio' is for a gain above 1, not {claim.printed}; use direction or absolute")
    if claim.rule.test == "lossless" and not low == high == whole:
        raise UserError(f"{where}: test 'lossless' asks whether all answers are plain decoding's, and {claim.printed} "
                        f"is published; use test: absolute for a share of them")  # fmt: skip
    if claim.column == "relative_cost" and values_of(where, "width", claim.scope.get("width", ANY)) == [1]:
        raise UserError(f"{where}: the cost of width 1 is what the others are divided by, 1 on every machine")


def _check_two_draws(where: str, claim: Claim) -> None:
    """Chance decides whether two draws agree, and there is none at temperature 0."""
    if claim.rule.test == "collision" and values_of(where, "temperature", claim.scope.get("temperature", ANY)) == [0]:
        raise UserError(f"{where}: test 'collision' is about two draws from one distribution, and temperature 0 draws "
                        "none; use test: value")  # fmt: skip


def _check_side(where: str, claim: Claim) -> None:
    """The published figure lies on the side that the rule expects."""
    rule = claim.rule
    edge = 1.0 if rule.expect.endswith("_one") or rule.edge is None else rule.edge
    if rule.expect.endswith("_one") and rule.edge is not None:
        raise UserError(f"{where}: expect '{rule.expect}' has the edge 1; use less_than or greater_than with an edge")
    above = rule.expect.startswith("greater")
    if any(float(text) < edge if above else float(text) > edge for text in claim.published):
        raise UserError(f"{where}: expect '{rule.expect}' does not fit the published {claim.printed}, which lies "
                        f"{'below' if above else 'above'} {edge:g}")  # fmt: skip
    ends = float(claim.published[0]) - (near := half_last_digit(claim.published[0])), float(claim.published[-1]) + near
    if rule.edge is not None and not ends[0] <= edge <= ends[1]:
        raise UserError(f"{where}: the edge {edge:g} is not the published {claim.printed}, so that a row could agree "
                        "that says another thing; write the published figure, or expect greater_than_one or "
                        "less_than_one")  # fmt: skip


def _check_possible(where: str, claim: Claim, kind: str) -> None:
    """A figure can lie on the side that is expected, and on the other one too."""
    rule = claim.rule
    above, one = rule.expect.startswith("greater"), rule.expect.endswith("_one")
    if one and kind in SCALES:
        raise UserError(f"{where}: expect '{rule.expect}' says nothing of {kind}s, which are never above 1; use "
                        "less_than or greater_than with an edge")  # fmt: skip
    if one and above and claim.column == "relative_cost":
        raise UserError(f"{where}: a wider decode costs more than one of width 1 on any machine, so that "
                        "expect 'greater_than_one' says nothing; use greater_than with an edge")  # fmt: skip
    if kind in SCALES and rule.edge is not None:
        edge = rule.edge * UNITS[kind][claim.unit]
        least, most = SCALES[kind]
        if edge >= most if not above else edge <= least and kind != "difference":
            raise UserError(f"{where}: every {kind} lies {'above' if above else 'below'} {rule.edge:g} {claim.unit}; "
                            "write an edge that one can lie on either side of")  # fmt: skip


def _check_distinct(where: str, claim: Claim) -> None:
    """A rate of `one_answer` is above its baseline's, and a formula tells what it is in distinct tokens."""
    base = claim.conditions.get("baseline_tok_s")
    if base is not None and not 0 < base < float(claim.published[0]):
        raise UserError(f"{where}: conditions.baseline_tok_s is {base}, and the published {claim.printed} is to be "
                        "faster than plain decoding; write plain decoding's rate")  # fmt: skip
    if not claim.rule.formula:
        return
    rate = claim.rule.inputs.get("counted_rate")
    if claim.rule.formula != "distinct_rate" or rate != float(claim.published[0]):
        raise UserError(f"{where}: the formula of test 'one_answer' is distinct_rate with counted_rate: "
                        f"{claim.published[0]}")  # fmt: skip


def _check_answers(where: str, claim: Claim) -> None:
    """A sum over answers needs a method that decodes several."""
    if claim.per == "aggregate":
        for name in values_of(where, "method", claim.scope.get("method", ANY)):
            if name == ANY or declared()[name].answers != "independent":
                raise UserError(f"{where}: method={name} decodes one answer, so no sum over answers is its speed; use "
                                "metric: speedup with per: answer, or rate with per: counted")  # fmt: skip
    if claim.rule.by_construction and mechanism(claim) is not SAME_DRAW:
        raise UserError(f"{where}: rule.by_construction is for copies of one answer that draw alike, at temperature 0 "
                        "or coupled, and the scope has others")  # fmt: skip


def _check_universal(where: str, claim: Claim) -> None:
    """What is claimed of any machine and model names none; of a drafter it is a direction on a kind of text."""
    named = [key for key in OF_A_DEVICE if key in claim.conditions or key in claim.scope]
    if named:
        raise UserError(f"{where} is universal and names {', '.join(named)}; leave one of the two out")
    told = declaration(claim.scope)
    of_a_text = claim.rule.test == "direction" and claim.scope.get("prompt_class", ANY) != ANY
    if claim.metric == "speedup" and (told is None or (told.guesses and told.answers == "one" and not of_a_text)):
        raise UserError(f"{where}: what a drafter gains depends on machine, model and text, so it is not universal; "
                        "name them in conditions, or claim a direction for a scope.prompt_class")  # fmt: skip


def _check_formula_unit(where: str, claim: Claim) -> None:
    unit = FORMULAS[claim.rule.formula].unit
    if unit == BYTES and claim.unit not in BYTE_UNITS:
        raise UserError(f"{where}: formula '{claim.rule.formula}' gives bytes, and the unit is '{claim.unit}'; "
                        + nearest(claim.unit, BYTE_UNITS))  # fmt: skip
    if (unit == "%") != (claim.unit == "%") and (unit == "%" or claim.rule.formula == "ratio"):
        raise UserError(f"{where}: formula '{claim.rule.formula}' gives {'per cent' if unit else 'a ratio'}, and the "
                        f"unit is '{claim.unit}'; use {'%' if unit else 'formula: percent'}")  # fmt: skip


def _check_expected(where: str, claim: Claim) -> None:
    """What is published of a side or a bound is the bound itself, near what the formula gives."""
    rule, low, high = claim.rule, float(claim.published[0]), float(claim.published[-1])
    if rule.expect.endswith("_one"):
        if not low == high == 1:
            raise UserError(f"{where}: expect '{rule.expect}' looks at 1 alone, and {claim.printed} is published; "
                            "publish 1, or use expect: equal")  # fmt: skip
        return
    if rule.expect not in ("at_most", "at_least") or any(isinstance(item, Mapping) for item in rule.inputs.values()):
        return
    try:
        result = in_unit(rule.formula, recompute(rule.formula, rule.inputs), claim.unit, where)
    except ArithmeticError:
        return
    far = high > WIDEST_RANGE * result if rule.expect == "at_most" else low * WIDEST_RANGE < result
    if far and result > 0:
        bound = rule.expect.replace("_", " ")
        raise UserError(f"{where}: the formula gives {result:g}, and '{bound} {claim.printed}' says yes to "
                        f"{WIDEST_RANGE:g} times that too; publish a bound that is nearer")  # fmt: skip


def _check_conditions(where: str, claim: Claim) -> None:
    """Numbers that some set-up could have; and what scope and conditions both name is one value."""
    for key, least in LEAST.items():
        value = claim.conditions.get(key, least)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < least:
            raise UserError(f"{where}: conditions.{key} is '{value}'; write a number from {least:g} on")
    for key in sorted({*claim.scope} & {*claim.conditions}):
        values = values_of(where, key, claim.scope[key])
        named, between = claim.conditions[key], isinstance(claim.scope[key], Mapping)
        fits = isinstance(named, (int, float)) and values[0] <= named <= values[-1] if between else named in values
        if not fits and ANY not in values:
            told = " to ".join(map(str, values)) if between else ", ".join(map(str, values))
            raise UserError(f"{where}: scope.{key} is '{told}' and conditions.{key} is '{named}'; leave one of them "
                            "out")  # fmt: skip


def _check_circle(where: str, claim: Claim) -> None:
    """No input is the published figure itself, passed through."""
    values = {name: float(item["value"]) if isinstance(item, Mapping) and "value" in item else item
              for name, item in claim.rule.inputs.items()}  # fmt: skip
    if claim.rule.formula in NOT_A_FIGURE or any(isinstance(item, Mapping) for item in values.values()):
        return
    try:
        result = recompute(claim.rule.formula, values)
    except ArithmeticError:
        return
    low, high = float(claim.published[0]), float(claim.published[-1])
    for name, value in values.items():
        if low <= value <= high and abs(result - value) <= 1e-9 * max(1.0, abs(value)):
            raise UserError(f"{where}: input '{name}' is the published {claim.printed} itself, so the formula proves "
                            "nothing; give the figures that it comes from")  # fmt: skip


def _check_tolerance(where: str, claim: Claim) -> None:
    tolerance = claim.rule.tolerance
    if tolerance is None or claim.published[0] in ("true", "false"):
        return
    if tolerance and float(claim.published[0]) < float(claim.published[-1]):
        raise UserError(f"{where}: the published range {claim.printed} is wide enough by itself; leave rule.tolerance "
                        "out")  # fmt: skip
    most = max(half_last_digit(claim.published[0]), WIDEST * abs(float(claim.published[0])))
    if tolerance > most * (1 + 1e-9):
        raise UserError(f"{where}: rule.tolerance {tolerance:g} is more than {WIDEST:.0%} of the published "
                        f"{claim.printed}; write at most {most:.4g}")  # fmt: skip
