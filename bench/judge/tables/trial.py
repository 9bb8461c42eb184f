"""The tables of what is on trial beside a method: a build of the engine or one of its settings; and of energy."""

from __future__ import annotations

from bench.judge.columns import RATIO, SHARE, column, table
from bench.judge.tables.base import ArmFact
from bench.judge.tables.contrast import GRADES, SPOKEN_OF, THESE
from pti_loop.ledger import RecordError

NAN = float("nan")


@table
class Trial(ArmFact):
    """Speed of another build or setting over the baseline's: all prompts and each class.

    `build` is that of the arm on trial. Raises RecordError without a lossless grade, and without a difference.
    """

    difference: str = column("what the arms differ in: `build`, or a setting of the engine")
    was: str = column("what the baseline has")
    became: str = column("what the arm on trial has", words="on trial")
    baseline_build: str = column("the baseline's build of the engine")
    depth: int = column("tokens of other text before every prompt", "tokens", default=0)
    prompt_class: str = column("class of the prompts; `all` are all together")
    scope: str = column("`answer`: the speed of one answer; `aggregate`: the sum over answers decoded together")
    tok_s: float = column("distinct tokens a second after the first, of the arm on trial", "tok/s",
                          scaled_by="speedup", decimals=1)  # fmt: skip
    baseline_tok_s: float = column("the same of plain decoding by the baseline", "tok/s", scaled_by="speedup",
                                   decimals=1)  # fmt: skip
    speedup: float = column("ratio of the two, a geometric mean in which every prompt weighs the same", RATIO,
                            decimals=3, words="on trial / baseline", interval="ci", metric="trial")  # fmt: skip
    ci_low: float = column("lower end of the interval of `speedup`, for what `speaks_of` says", RATIO)
    ci_high: float = column("upper end of the interval of `speedup`, for what `speaks_of` says", RATIO)
    speaks_of: str = column("estimand of the interval: `these texts` on this machine, or `texts like these`",
                            words="interval speaks of", default=THESE)  # fmt: skip
    noise_low: float = column("lower end for these texts on this machine", RATIO, default=NAN)
    noise_high: float = column("upper end for these texts on this machine", RATIO, default=NAN)
    prompts_low: float = column("lower end over prompts", RATIO, default=NAN)
    prompts_high: float = column("upper end over prompts", RATIO, default=NAN)
    plain_speedup: float = column("`speedup` with every stall in it", RATIO, decimals=3, words="with stalls",
                                  default=NAN)  # fmt: skip
    again: str = column("what A/A of the baseline says", words="A/A", default="none")
    prefill_speedup: float = column("time that the baseline takes for the prompts over that of the arm on trial; "
                                    "without what is restored before them", RATIO, decimals=2, words="prefill",
                                    default=NAN)  # fmt: skip
    depth_s: float = column("what the `depth` tokens took the arm on trial once, where runs restore them; empty where "
                            "every run evaluates them", "s", decimals=1, default=NAN)  # fmt: skip
    baseline_depth_s: float = column("the same of the baseline", "s", decimals=1, default=NAN)
    lossless: str = column("grade of the worst answer against the baseline's: identical, near_tie or divergent",
                           words="output")  # fmt: skip
    identical_share: float = column("answers that are the baseline's, token by token", SHARE, decimals=1,
                                    words="identical")  # fmt: skip
    answers_graded: int = column("answers that were compared")
    direction: str = column("faster or slower; inconclusive where the interval spans 1")
    answer_tokens: float = column("tokens of an answer in the mean, where answers end by themselves; else all have "
                                  "`n_predict`", "tokens", decimals=1, words="answer tokens", default=NAN)  # fmt: skip
    baseline_answer_tokens: float = column("the same of the baseline's answers", "tokens", decimals=1,
                                           words="baseline's", default=NAN)  # fmt: skip
    min_visible_effect: float = column("smallest ratio above 1 seen in 80 % of such runs", RATIO, decimals=3,
                                       words="smallest visible effect")  # fmt: skip
    n_blocks: int = column("balanced groups of runs")
    n_prompts: int = column("prompts; groups that share one count once")
    n_units: int = column("units of the interval")
    freedom: float = column("degrees of freedom of the interval", default=1.0)
    noise_freedom: float = column("degrees of freedom of that for these texts", written=False, default=NAN)
    units: str = column("what they are: prompts, blocks or replicate pairs")
    loaded: str = column("whether both arms share a process, or have one each: loaded together or in turn; of servers "
                         "whether each run had a fresh one", words="loaded")  # fmt: skip
    compared_by: str = column("what answers were compared by: token ids, or text where a server gives no ids",
                              words="compared by", default="token ids")  # fmt: skip
    contexts: float = column("sets of contexts of equal weight that the runs are spread over", default=1.0)
    idle_cpus: float = column("most CPU time a second that the waiting arm's process took beside a run", decimals=3,
                              words="waiting arm's CPUs", default=NAN)  # fmt: skip

    def __post_init__(self) -> None:
        if self.lossless not in GRADES:
            raise RecordError("a speed-up without a lossless grade says nothing: grade the answers first")
        if not self.difference:
            raise RecordError("a trial names the difference between its arms")
        if self.speaks_of not in SPOKEN_OF:
            raise RecordError(f"an interval speaks of {' or of '.join(SPOKEN_OF)}, not of '{self.speaks_of}'")


@table
class Energy(ArmFact):
    """What the device took in the timed windows, and the limits that it worked under: one row a cell and arm."""

    cell: str = column("id of the cell")
    arm: str = column("arm of the contrast: baseline, treatment or a control")
    runs: int = column("runs of which the energy is known")
    joules: float = column("energy of their timed windows", "J", decimals=1)
    tokens: int = column("distinct tokens in them", "tokens")
    joules_per_token: float = column("the quotient of the two", "J", decimals=3, words="J a token")
    mean_w: float = column("energy over the length of the windows", "W", decimals=1, words="mean W")
    power_cap_w: float = column("median limit of the device's power", "W", decimals=0, words="cap W", default=NAN)
    memory_mhz: float = column("median clock of the device's memory", "MHz", decimals=0, words="memory MHz",
                               default=NAN)  # fmt: skip
