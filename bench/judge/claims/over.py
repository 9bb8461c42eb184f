"""The test of what one arm has over another: rows of one part of a scope over those of the other. Pure; knows no file.

Each figure is a ratio to the baseline of its own cell, so machine and hour cancel as far as they moved both arms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.judge.claims.claim import Claim
from bench.judge.claims.intervals import Ends, between
from bench.judge.claims.outcome import Outcome, found_in, step_down
from bench.judge.claims.rows import (
    Row,
    behind,
    cells,
    ends_for,
    equal,
    figure,
    freedom,
    no_interval,
    value_of,
)
from bench.judge.claims.tests import absolute, direction
from bench.judge.tables.contrast import GRADES
from bench.records.drawing import USUAL

ALIKE = (
    "model", "quantization", "streams", "temperature", "prompt_class", "scope", "n_predict", "layout", "width",
    "n_past", "n_ctx", "kv_unified", "type_k", "type_v", "flash_attn", *USUAL,
)  # fmt: skip
"""What two rows share, unless it is what they are told apart by."""


def over(claim: Claim, rows: Sequence[Row]) -> list[Outcome]:
    """What each row has over those that the rule's `against` names, all else being alike.

    The two intervals are taken for independent. Where both cells ran the same texts, theirs is too wide and never too
    narrow.
    """
    against = claim.rule.against
    below = [row for row in rows if _is(row, against)]
    pairs = [(row, other) for row in rows if not _is(row, against) for other in below
             if all(row.get(key) == other.get(key) for key in ALIKE if key not in against)]  # fmt: skip
    if not pairs:
        told = ", ".join(f"{key}={value}" for key, value in against.items())
        return [found_in(claim, rows, "inconclusive", f"It takes a row with {told} and one without, all else alike.")]
    lacking = {id(row): row for pair in pairs for row in pair if _ends(claim, row) is None}
    found = [found_in(claim, [row], "inconclusive", no_interval(claim, row)) for row in lacking.values()]
    test = absolute if claim.rule.expect == "equal" else direction
    made = [row for pair in pairs if (row := _quotient(claim, *pair)) is not None]
    return found + step_down(made, lambda row, left: test(replace(claim, family=left), row, ""))


def _is(row: Row, values: Mapping[str, Any]) -> bool:
    return all(equal(value_of(row, key), value) for key, value in values.items())


def _ends(claim: Claim, row: Row) -> Ends | None:
    """The figure and its interval, in logarithms; None where the row lacks one."""
    names = ends_for(claim, row) or ()
    found = [value for name in (claim.column, *names) if (value := figure(row, name)) is not None and value > 0]
    return (math.log(found[0]), math.log(found[1]), math.log(found[2])) if len(found) == 3 else None


def _quotient(claim: Claim, row: Row, other: Row) -> Row | None:
    """A row whose figure is that of one over that of another; as sure as the less sure of them."""
    above, below, names = _ends(claim, row), _ends(claim, other), ends_for(claim, row)
    if above is None or below is None or names is None:
        return None
    middle, low, high = between(above, below)
    least = min((row, other), key=lambda one: freedom(one, claim))
    units = behind(claim, row)[0]
    made: dict[str, Any] = {**row, units: least.get(units), "cells": cells([row, other])}
    if any(one.get("lossless") == GRADES[-1] for one in (row, other)):
        made["lossless"] = GRADES[-1]
    return made | {claim.column: math.exp(middle), names[0]: math.exp(low), names[1]: math.exp(high)}
