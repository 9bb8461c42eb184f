"""The table of answers that are not the baseline's: where each leaves it, and by how little either was chosen there."""

from __future__ import annotations

from bench.judge.columns import column, table
from bench.judge.tables.base import Fact

NAN = float("nan")


@table
class Difference(Fact):
    """An answer that differs from the baseline's to the same prompt. Behind the first difference the prefix is another.

    A gap is the distance of the two likeliest tokens in logits, or of a draw to a boundary of the cumulative
    distribution; negative where the replay prefers the other arm's token.
    """

    cell: str = column("id of the cell")
    arm: str = column("arm of the contrast: treatment or a control")
    prompt: str = column("id of the prompt")
    seed: int = column("seed of the run")
    stream: int = column("which answer of the run, from 0")
    compared: int = column("tokens that were compared", "tokens")
    position: int = column("position of the first difference in the answer, from 0")
    token_baseline: int = column("id of the baseline's token there")
    token_arm: int = column("id of the arm's token there")
    quantity: str = column("what the gaps are of: `logit_gap` or `cdf_distance`")
    gap_baseline: float = column("gap there by the baseline's decode", decimals=4, words="baseline's gap")
    gap_arm: float = column("gap there by a replay in the arm's shape", decimals=4, words="arm's gap")
    noise: float = column("how far the shape of the decode alone moves that gap: at this position, or the cell's",
                          decimals=4, default=NAN)  # fmt: skip
    disagreements: int = column("positions of the replay at which both shapes prefer another token", default=0)
    replayed: int = column("positions of that replay", default=0)
    worst_gap: float = column("largest gap of such a disagreement", decimals=4, default=NAN)
    grade: str = column("near_tie or divergent, of this answer alone")
    void: bool = column("whether a control failed, so that the row counts for nothing", default=False)
