"""What was on trial in a cell, as its record declares it, and the arms that a contrast has.

Knows no method by name, and nothing about figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.records.arms import COUNTED, ROLES

if TYPE_CHECKING:
    from bench.records.cells import StoredCell

__all__ = ["COUNTED", "ROLES", "Arm", "arm_of"]


@dataclass(frozen=True, slots=True)
class Arm:
    """A method with its parameters, and what it declares of itself."""

    method: str
    parameters: Mapping[str, Any]
    answers: str = "one"
    """`one`, one answer in staggered `copies`, or several `independent` ones."""
    layout: str = "tokens"
    """What the rows of a decode are: `tokens` of one sequence, or one token of each of several `sequences`."""
    guesses: bool = True
    """Whether it proposes tokens that may be wrong."""
    repeats: bool = False
    """Whether it says a token again by design, so that its emit calls are no count of tokens."""
    by_rounds: bool = False
    """Whether it ends after so many rounds, so that lengths differ by design."""
    label: str = ""
    """In words."""
    short: str = ""
    """Name and whatever is not at its usual value, for a chart."""
    tuned: bool = False
    """Whether its drafter was tuned on a kind of text, which the prompts may name as their domain."""

    @property
    def plain(self) -> bool:
        """Whether it is plain decoding: one answer, and no guess."""
        return self.answers == "one" and not self.guesses

    @property
    def independent(self) -> bool:
        """Whether it decodes several answers at once."""
        return self.answers == "independent"


def arm_of(cell: StoredCell) -> Arm:
    """The treatment of a contrast; of another kind of cell one without a name."""
    method = cell.config.get("method") or {}
    return Arm(str(method.get("name", "")), method.get("parameters") or {}, **(method.get("declaration") or {}))
