"""The table of predictions: what the cost model says of an arm, beside what was measured."""

from __future__ import annotations

from bench.judge.columns import RATIO, SHARE, column, table
from bench.judge.tables.base import ArmFact

NAN = float("nan")
STEPS = "plain steps"
"""Unit of a cost: the time of one decode of plain decoding."""


@table
class Prediction(ArmFact):
    """An arm's own rounds at the prices of the step-cost curve, and what its acceptance says of other draft lengths."""

    arm: str = column("treatment, or the control: oracle (all guesses right), sabotage (all wrong)")
    prompt_class: str = column("class of the prompts; `all` are all together")
    scope: str = column("`answer` or, where several are decoded together, `aggregate`")
    predicted: float = column("speed-up with every decode at the curve's price and all else as measured", RATIO,
                              decimals=2)  # fmt: skip
    measured: float = column("speed-up that was measured", RATIO, decimals=2)
    ratio: float = column("measured over predicted", RATIO, decimals=3, words="measured / predicted",
                          interval="ratio")  # fmt: skip
    ratio_low: float = column("lower end of the interval of `ratio`", RATIO)
    ratio_high: float = column("upper end of the interval of `ratio`", RATIO)
    abs_error: float = column("distance of `ratio` from 1", RATIO)
    curve_only: float = column("prediction without what changes of width cost", RATIO, decimals=2,
                               words="from the curve alone")  # fmt: skip
    alternation: float = column("factor that changes of width make, as the cell's other arms show", RATIO, decimals=3,
                                words="changes of width")  # fmt: skip
    switched_share: float = column("rounds whose width had just changed", SHARE)
    redecode_cost: float = column("a guess that the model decodes on its own", STEPS)
    note: str = column("widths that have no price, or only one between two others", words="no price for")
    from_draws: float = column("speed-up from acceptance by depth alone, at the arm's draft length", RATIO, decimals=2,
                               words="from acceptance alone", interval="from_draws", default=NAN)  # fmt: skip
    from_draws_low: float = column("lower end of the interval of `from_draws`", RATIO, default=NAN)
    from_draws_high: float = column("upper end of the interval of `from_draws`", RATIO, default=NAN)
    ratio_from_draws: float = column("measured over `from_draws`", RATIO, default=NAN)
    ceiling: float = column("speed-up if every guess were right", RATIO, default=NAN)
    own_length: float = column("guesses that most rounds make", "tokens", default=NAN)
    best_draft: float = column("draft length with the highest predicted speed-up", "tokens", words="best draft",
                               default=NAN)  # fmt: skip
    best_speedup: float = column("that speed-up", RATIO, decimals=2, words="its speed-up", interval="best",
                                 default=NAN)  # fmt: skip
    best_low: float = column("lower end of the interval of `best_speedup`", RATIO, default=NAN)
    best_high: float = column("upper end of the interval of `best_speedup`", RATIO, default=NAN)
    best_draft_low: float = column("shortest best length in 95 % of resamples", "tokens", default=NAN)
    best_draft_high: float = column("longest best length in 95 % of resamples", "tokens", default=NAN)
    best_kind: str = column("measured, interpolated between widths, or projected beyond the depths tested",
                            words="acceptance by depth", default="")  # fmt: skip
    measured_depth: float = column("deepest guess that was tested often enough", "tokens", default=NAN)
    acceptance: float = column("accepted over tested", SHARE, default=NAN)
    break_even: float = column("acceptance from which on guessing pays", SHARE, default=NAN)
    free_break_even: float = column("the same if guesses took no time", SHARE, default=NAN)
    fires: float = column("rounds that guess at all", SHARE, default=NAN)
    kept: float = column("new tokens that an accepted guess brings", "tokens", default=NAN)
    keeps: bool = column("whether accepted guesses are new tokens, so that a draft length can be chosen", default=True,
                         written=False)  # fmt: skip
    draft_cost: float = column("making guesses, a round", STEPS, default=NAN)
    sample_cost: float = column("drawing and comparing, a round", STEPS, default=NAN)
    rollback_cost: float = column("rolling back, a round", STEPS, default=NAN)
    host_cost: float = column("the loop's own time, a round", STEPS, default=NAN)
    switch_cost: float = column("changes of width, a round", STEPS, default=NAN)
    predicted_from: str = column("cell of the step-cost curve")
    predicted_layout: str = column("what the rows of a decode are in that curve: tokens or sequences")
