"""The table of a comparison of two results folders: a row a figure of two cells that belong together."""

from __future__ import annotations

from bench.judge.columns import RATIO, column, table
from bench.judge.tables.base import ModelFact

NAN = float("nan")
WORSE, BETTER, ALIKE = "worse", "better", "no difference"
NOT_COMPARABLE, ONLY = "not comparable", "on one side only"
OUTCOMES = {
    WORSE: "it got worse beyond the interval of the ratio, or the output's grade did",
    BETTER: "it got better beyond the interval, or the grade did",
    ALIKE: "the interval of the ratio holds 1, or the grade is the same",
    NOT_COMPARABLE: "the two cells are not the same measurement, or one of them counts for nothing",
    ONLY: "the other folder has no such cell, or its cell no such figure",
}
"""What becomes of a figure, in the order in which it is told."""


@table
class Comparison(ModelFact):
    """One figure of two cells side by side. `machine` and `build` are the compared cell's, or the base's own alone."""

    method: str = column("way of decoding")
    short: str = column("the arm in short", words="arm")
    streams: int | None = column("copies or answers decoded together")
    temperature: float | None = column("sampling temperature", words="T")
    base_folder: str = column("results folder that is compared with")
    folder: str = column("results folder that is compared")
    figure: str = column("what is compared: speed-up, on trial / baseline, plain tok/s, step cost, acceptance or "
                         "output; empty for the whole cell")  # fmt: skip
    part: str = column("which one of several: the step's width, its layout and the tokens in the cache", default="")
    outcome: str = column("worse, better, no difference, not comparable, or on one side only")
    base: float = column("the base's figure", interval="base_ci", default=NAN)
    base_ci_low: float = column("lower end of the interval of `base`, for the texts that were run", default=NAN)
    base_ci_high: float = column("upper end of the interval of `base`", default=NAN)
    value: float = column("the compared one", interval="value_ci", default=NAN, words="compared")
    value_ci_low: float = column("lower end of the interval of `value`, for the texts that were run", default=NAN)
    value_ci_high: float = column("upper end of the interval of `value`", default=NAN)
    ratio: float = column("the compared one over the base's", RATIO, decimals=3, interval="ci", default=NAN)
    ci_low: float = column("lower end of the interval of `ratio`: Welch's, on logarithms", RATIO, default=NAN)
    ci_high: float = column("upper end of the interval of `ratio`", RATIO, default=NAN)
    freedom: float = column("degrees of freedom of that interval; without bound for a normal one", default=NAN)
    base_grade: str = column("grade of the base's output", default="")
    grade: str = column("grade of the compared output", default="")
    gates: bool = column("whether a worse one fails `--check`: all but a rate on another machine", default=True)
    reason: str = column("why it is not comparable, or where the only one is", default="")
    changed: str = column("what else is not as it was, by both records", default="")
    base_machine: str = column("machine of the base's cell", default="")
    base_build: str = column("build of the base's engine", default="")
    base_cell: str = column("id of the base's cell", default="")
    cell: str = column("id of the compared one", default="")
