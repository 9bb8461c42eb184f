"""The table of a tuned drafter's domain: what is accepted on it and off it, and whether acceptance tells them apart."""

from __future__ import annotations

from bench.judge.columns import DIFFERENCE, SHARE, column, table
from bench.judge.tables.base import ArmFact

NAN = float("nan")




@table
class Domain(ArmFact):
    """Scores of answers on and off a domain, by what is scored and after how many guesses. A low score means off it."""

    domain: str = column("class of the prompts that the drafter was tuned on")
    signal: str = column("what is scored: acceptance, the text's collision probability, or the excess over another")
    against: str = column("what an excess is over; `none` for the others")
    window: int = column("guesses of an answer that are scored; 0 are all", words="guesses")
    on_mean: float = column("mean over prompts on the domain", SHARE, decimals=0, words="on the domain",
                            interval="on", default=NAN)  # fmt: skip
    on_low: float = column("lower end of the interval of `on_mean`", SHARE, decimals=0, default=NAN)
    on_high: float = column("upper end of the interval of `on_mean`", SHARE, decimals=0, default=NAN)
    off_mean: float = column("mean over prompts off it", SHARE, decimals=0, words="off it", interval="off",
                             default=NAN)  # fmt: skip
    off_low: float = column("lower end of the interval of `off_mean`", SHARE, decimals=0, default=NAN)
    off_high: float = column("upper end of the interval of `off_mean`", SHARE, decimals=0, default=NAN)
    drop: float = column("mean on the domain minus mean off it", DIFFERENCE, decimals=0, interval="drop", default=NAN)
    drop_low: float = column("lower end of the interval of `drop`", DIFFERENCE, decimals=0, default=NAN)
    drop_high: float = column("upper end of the interval of `drop`", DIFFERENCE, decimals=0, default=NAN)
    auc: float = column("how often an answer on the domain scores above one off it; 0.5 is chance", "area", decimals=2,
                        words="AUC", interval="auc", default=NAN)  # fmt: skip
    auc_low: float = column("lower end of the interval of `auc`", decimals=2, default=NAN)
    auc_high: float = column("upper end of the interval of `auc`", decimals=2, default=NAN)
    tells: str = column("yes, reversed, or no better than chance")
    threshold: float = column("score that separates the sides", decimals=3, default=NAN)
    false_alarm: float = column("answers on the domain below the threshold of the other prompts", SHARE, decimals=0,
                                words="false alarms", interval="false_alarm", default=NAN)  # fmt: skip
    false_alarm_low: float = column("lower end of the interval of `false_alarm`", SHARE, decimals=0, default=NAN)
    false_alarm_high: float = column("upper end of the interval of `false_alarm`", SHARE, decimals=0, default=NAN)
    miss: float = column("answers off the domain that are not below it", SHARE, decimals=0, words="misses",
                         interval="miss", default=NAN)  # fmt: skip
    miss_low: float = column("lower end of the interval of `miss`", SHARE, decimals=0, default=NAN)
    miss_high: float = column("upper end of the interval of `miss`", SHARE, decimals=0, default=NAN)
    needed: int | None = column("fewest guesses from which on both error rates average 10 % or less", default=None,
                                words="guesses needed")  # fmt: skip
    sentence: str = column("what the row says, in words")
    by_class: str = column("mean score of each class of prompts", default="")
    reach: int = column("guesses of the shortest answer")
    answers: int | None = column("answers", default=None)
    on_prompts: int | None = column("prompts on the domain", default=None)
    off_prompts: int | None = column("prompts off it", default=None)
    on_tested: int | None = column("guesses tested on the domain", default=None)
    on_accepted: int | None = column("guesses accepted on it", default=None)
    off_tested: int | None = column("guesses tested off it", default=None)
    off_accepted: int | None = column("guesses accepted off it", default=None)
