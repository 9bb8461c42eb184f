"""What a contrast keeps: the rows of its runs, its facts, and replays in the words of the record. It runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.records.rows import Piece, Run
from bench.run.replay import Comparison
from pti_loop.ledger import Trace


@dataclass
class Result:
    """Tables and facts of a cell."""

    tables: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in ("runs", "rounds", "ledger", "draws", "pieces")})
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    def add(self, run: Run, trace: Trace, pieces: Sequence[Piece] = ()) -> None:
        """Keep a run."""
        self.tables["pieces"] += pieces
        self.tables["runs"].append(run)
        self.tables["rounds"] += trace.rounds()
        self.tables["ledger"] += trace.emits()
        self.tables["draws"] += trace.draws()


def own_noise(compared: list[Comparison]) -> dict[str, float]:
    """What the shape of the decode moves on one answer's own prefix, where no guess is made.

    Noise can be nothing for hundreds of positions and then not, so that of another prompt may be too small.
    """
    return {
        "logit_gap": max(max(item.logit_noise) for item in compared),
        "cdf": max((max(item.cdf_noise) for item in compared if item.cdf_noise), default=0.0),
    }


def forced(compared: Comparison) -> dict[str, Any]:
    """How often a replay of the baseline's text says another token, and the largest gap there."""
    return {"positions": len(compared.disagrees), "disagreements": sum(compared.disagrees),
            "worst_gap": compared.worst_gap()}  # fmt: skip
