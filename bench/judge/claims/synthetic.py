"""Models with random weights: how the rows that rest on one are marked, and which claims they are no evidence for.

A step costs the same whatever the weights are, so step cost, bandwidth, memory and the speed of plain or independent
decoding stand. What a model says does not: acceptance, losslessness, and every speed that depends on guesses coming
true. It knows nothing about how a model was made; the mark comes from the file's metadata by way of the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.judge.claims.claim import Claim

_OF_THE_TEXT = ("acceptance", "lossless", "tokens_per_round")
"""Metrics that say something about what a model wrote."""
_OF_THE_SHAPE = ("step_cost", "memory", "bandwidth")
"""Tables whose figures the shape and the format of the weights decide."""


def no_evidence(claim: Claim, table: str, row: Mapping[str, Any]) -> str:
    """Why a row of a synthetic model cannot speak about a claim; empty when it can, and for a real model's rows."""
    if not row.get("synthetic"):
        return ""
    text = claim.metric in _OF_THE_TEXT or claim.rule.test in ("lossless", "collision") or table == "acceptance"
    if text or claim.column in ("tokens_per_round", "identical_share"):
        return f"{row['model']} has random weights, and what it says is no evidence of {claim.metric}."
    plain = not row.get("guesses") or claim.column == "baseline_tok_s"
    if table not in _OF_THE_SHAPE and not plain:
        return f"{row['model']} has random weights, and this speed depends on which guesses its text accepts."
    return ""


def of_another_model(table: str, row: Mapping[str, Any]) -> bool:
    """Whether a claim about a named model is about another one: a rate is, what the shape decides is not."""
    return bool(row.get("synthetic")) and table not in _OF_THE_SHAPE
