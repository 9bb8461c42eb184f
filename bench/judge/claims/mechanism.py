"""What decides a claim's figure, and with it whether rows of another machine or model can speak about it.

Counting and construction hold anywhere. What a machine, a model or a text decides is judged only under the conditions
that the claim names. It knows no method by name: what a method's rows are is declared beside its loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.judge.claims.scope import declaration
from pti_loop.parameters import NONE
from pti_loop.parameters import declared as specs

if TYPE_CHECKING:
    from bench.judge.claims.claim import Claim


@dataclass(frozen=True, slots=True)
class Mechanism:
    """`word` is counting, construction, universal or conditions; `why` ends a sentence that begins with 'judged'."""

    word: str
    why: str

    @property
    def anywhere(self) -> bool:
        """Whether rows of any machine and model can speak."""
        return self.word != "conditions"


COUNTING = Mechanism("counting", "anywhere: how often a token is counted is the loop's own")
BYTES = Mechanism("counting", "anywhere: the bytes that are read follow from the format")
COPIES = Mechanism("construction", "anywhere: copies of one answer pay for every stream")
SEVERAL = Mechanism("construction", "anywhere: each of several answers waits for the whole batch")
SAME_DRAW = Mechanism("construction", "anywhere: a guess is the very draw that it is compared with")
COLLISION = Mechanism("construction", "anywhere: it is said of any distribution")
LOSSLESS = Mechanism("construction", "anywhere: the output is said to be that of the same model alone")
MEMORY = Mechanism("construction", "anywhere: a stream shares the weights or does not")
UNIVERSAL = Mechanism("universal", "anywhere: the claim names neither machine nor model")
CONDITIONS = Mechanism("conditions", "under the claim's own conditions alone: machine, model and text decide it")

MATTERS: dict[str, tuple[str, ...]] = {
    "speedup": ("machine", "model", "quantization"),
    "trials": ("machine", "model", "quantization"),
    "step_cost": ("machine", "model", "quantization"),
    "acceptance": ("model", "quantization"),
    "domain": ("model", "quantization"),
    "memory": ("model", "quantization"),
    "bandwidth": ("machine",), "kernels": ("machine",), "counters": ("machine",), "ssq": ("machine",),
}  # fmt: skip
"""Conditions that a figure of a table cannot be told apart without. `n_predict` and others are compared where named."""

NEEDED_FOR_SPEED = ("machine", "model", "quantization", "build", "n_predict", "baseline_tok_s")
"""What a speed has to be published with before anybody can call it a gain."""


def mechanism(claim: Claim) -> Mechanism:
    """What decides the claim's figure."""
    fixed = {"collision": COLLISION, "stream_memory": MEMORY, "lossless": LOSSLESS}
    if claim.rule.test in fixed:
        return fixed[claim.rule.test]
    if claim.rule.test in ("absolute", "best_kernel", "over"):
        return CONDITIONS
    if claim.table == "ssq":
        return BYTES
    found = _of_the_method(claim)
    return found or (UNIVERSAL if claim.rule.universal else CONDITIONS)


def _of_the_method(claim: Claim) -> Mechanism | None:
    """What the declaration of the scope's method entails."""
    declared = declaration(claim.scope)
    if declared is None or declared.answers == "one":
        return None
    if claim.table == "acceptance":
        certain = claim.scope.get("temperature") == 0 or claim.scope.get("draws") == "coupled"
        return SAME_DRAW if declared.answers == "copies" and certain else None
    if claim.table != "speedup" or claim.per == "aggregate":
        return None
    if declared.answers == "copies":
        return COUNTING if declared.repeats or claim.metric == "tokens_per_round" else COPIES
    drafter = specs()[str(claim.scope["method"])].drafter
    # A scope that is silent about a drafter is about rows with one too.
    alone = drafter is None or claim.scope.get(drafter.name) == NONE
    return SEVERAL if alone and not declared.guesses else None


def missing(claim: Claim) -> list[str]:
    """Conditions that the claim does not name and cannot be judged without, here or anywhere."""
    named = {**claim.scope, **claim.conditions}
    if claim.metric == "speedup" and claim.unit == "tok/s" and "baseline_tok_s" not in claim.conditions:
        absent = [key for key in NEEDED_FOR_SPEED if key not in named]
        return absent + [key for key in ("streams", "temperature") if key not in claim.scope]
    if mechanism(claim).anywhere:
        return []
    return [key for key in MATTERS[claim.table] if key not in named]
