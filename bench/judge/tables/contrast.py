"""Tables of one contrast: speed-up, acceptance, where a round's time goes, tokens over time, distribution of draws."""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.columns import DIFFERENCE, RATIO, SHARE, column, table
from bench.judge.tables.base import ArmFact, Fact
from pti_loop.ledger import RecordError

NAN = float("nan")
IDENTICAL, NEAR_TIE, DIVERGENT = "identical", "near_tie", "divergent"
GRADES = (IDENTICAL, NEAR_TIE, DIVERGENT)
"""Grades of losslessness, the best first."""
ANSWER, AGGREGATE = "answer", "aggregate"
SCOPES = (ANSWER, AGGREGATE)
"""What a speed is that of: what one reader waits for, or the sum over several answers."""
THESE, LIKE_THESE = "these texts", "texts like these"
"""What an interval speaks of: the very prompts that were run, on this machine, or others of their kind too."""
SPOKEN_OF = (THESE, LIKE_THESE)
CANNOT_TELL = "cannot tell"
"""What A/A says where it is too wide for the effect beside it."""


@table
class SpeedUp(ArmFact):
    """Speed over plain decoding: all prompts and each class, of one answer and in sum over several.

    Raises RecordError without a lossless grade: a speed of other output is none.
    """

    prompt_class: str = column("class of the prompts; `all` are all together")
    scope: str = column("`answer`: the speed of one answer; `aggregate`: the sum over answers decoded together")
    tok_s: float = column("distinct tokens a second after the first, start-up inside", "tok/s",
                          scaled_by="speedup", decimals=1, metric="rate")  # fmt: skip
    baseline_tok_s: float = column("the same of plain decoding in a context of its own", "tok/s",
                                   scaled_by="speedup", decimals=1, words="plain tok/s")  # fmt: skip
    speedup: float = column("ratio of the two, a geometric mean in which every prompt weighs the same", RATIO,
                            decimals=2, words="speed-up", interval="ci", metric=("speedup", "aggregate"))  # fmt: skip
    ci_low: float = column("lower end of the interval of `speedup`, for what `speaks_of` says", RATIO)
    ci_high: float = column("upper end of the interval of `speedup`, for what `speaks_of` says", RATIO)
    speaks_of: str = column("estimand of the interval: `these texts` on this machine, or `texts like these`",
                            words="interval speaks of", default=THESE)  # fmt: skip
    noise_low: float = column("lower end for these texts on this machine: the spread between two runs of one work",
                              RATIO, default=NAN)  # fmt: skip
    noise_high: float = column("upper end for these texts on this machine", RATIO, default=NAN)
    prompts_low: float = column("lower end over prompts: for texts like these, where `speaks_of` says so", RATIO,
                                default=NAN)  # fmt: skip
    prompts_high: float = column("upper end over prompts", RATIO, default=NAN)
    prompted_speedup: float = column("the ratio with what the arm's drafters took to take in the prompt as part of its "
                                     "time; `speedup` is without", RATIO, scaled_by="speedup", decimals=2,
                                     words="with the drafter's prefill", default=NAN)  # fmt: skip
    draft_prefill_ms: float = column("what they took, a run", "ms", decimals=1, words="drafter's prefill ms",
                                     default=NAN)  # fmt: skip
    texts_speedup: float = column("the ratio over further texts too, whose acceptance is known and whose time is not",
                                  RATIO, decimals=2, words="over all texts", interval="texts", default=NAN)  # fmt: skip
    texts_low: float = column("lower end of the interval of `texts_speedup`, for texts like these", RATIO, default=NAN)
    texts_high: float = column("upper end of the interval of `texts_speedup`", RATIO, default=NAN)
    n_texts: int = column("texts that `texts_speedup` is over, timed and untimed", default=0)
    plain_speedup: float = column("`speedup` with every stall in it", RATIO, decimals=2, words="with stalls",
                                  interval="plain", default=NAN)  # fmt: skip
    plain_low: float = column("lower end of the interval of `plain_speedup`, over prompts", RATIO, default=NAN)
    plain_high: float = column("upper end of the interval of `plain_speedup`, over prompts", RATIO, default=NAN)
    stalled_share: float = column("share of the arms' time that stalls took, which no estimate has in it", SHARE,
                                  decimals=1, words="stalled", default=NAN)  # fmt: skip
    again: str = column("what A/A says: `ok`, `cannot tell` where it is too wide for the effect, or `none`",
                        words="A/A", default="none")  # fmt: skip
    again_ratio: float = column("A/A of the cell: a second baseline over the first", RATIO, interval="again",
                                default=NAN)  # fmt: skip
    again_low: float = column("lower end of the interval of `again_ratio`", RATIO, default=NAN)
    again_high: float = column("upper end of the interval of `again_ratio`", RATIO, default=NAN)
    again_freedom: float = column("degrees of freedom of that interval", default=NAN)
    counted_tok_s: float = column("every emit call counted, a token said again too: no speed", "tok/s",
                                  scaled_by="speedup", decimals=1, words="counted tok/s")  # fmt: skip
    aggregate_tok_s: float = column("distinct tokens a second in sum over answers, whatever the scope", "tok/s",
                                    scaled_by="speedup", decimals=1, words="aggregate tok/s")  # fmt: skip
    lossless: str = column("grade of the worst answer: identical, near_tie or divergent; divergent too where the "
                           "grade on F16 weights is", words="output")  # fmt: skip
    lossless_own: str = column("the grade on the cell's own weights alone", words="on these weights", default="")
    lossless_f16: str = column("the same on F16 weights of the same file, where noise excuses no more than a quarter "
                               "of a logit; `n/a` where there is none", words="on F16 weights", default="")  # fmt: skip
    identical_share: float = column("answers that are the baseline's, token by token", SHARE, decimals=1,
                                    words="identical", metric="lossless")  # fmt: skip
    near_tie_share: float = column("answers whose first difference is at a measured near tie", SHARE)
    divergent_share: float = column("answers that differ for another reason", SHARE)
    answers_graded: int = column("answers that were compared with the baseline's")
    divergent_prompts: int = column("prompts with a divergent answer")
    divergent_names: str = column("their ids")
    f16_answers: int = column("answers that were compared on F16 weights", default=0)
    f16_identical_share: float = column("of them, those that are the baseline's token by token", SHARE, decimals=1,
                                        words="identical on F16", default=NAN)  # fmt: skip
    f16_divergent_share: float = column("of them, those that differ by more than rounding", SHARE, default=NAN)
    f16_weights: str = column("SHA-256 of the file of F16 weights", default="")
    f16_note: str = column("why there is no grade on F16 weights, or whose they are", default="")
    direction: str = column("faster or slower; inconclusive where the interval spans 1")
    answer_tokens: float = column("tokens of an answer in the mean, where answers end by themselves; else all have "
                                  "`n_predict`", "tokens", decimals=1, words="answer tokens", default=NAN)  # fmt: skip
    baseline_answer_tokens: float = column("the same of the baseline's answers", "tokens", decimals=1,
                                           words="baseline's", default=NAN)  # fmt: skip
    min_visible_effect: float = column("smallest ratio above 1 seen in 80 % of such runs, by an upper bound of the "
                                       "spread", RATIO,
                                       decimals=3, words="smallest visible effect")  # fmt: skip
    n_blocks: int = column("balanced groups of runs")
    n_prompts: int = column("prompts; groups that share one count once")
    n_units: int = column("units of the interval")
    stopped: str = column("why there are no more blocks: `fixed` by the plan; `narrow` enough, `decided` or at the end "
                          "of the `budget`, and then the intervals hold at any number of blocks", words="blocks ended",
                          default="fixed")  # fmt: skip
    freedom: float = column("degrees of freedom of the interval", default=1.0)
    contexts: float = column("sets of contexts that the row's blocks are spread over, as many of equal weight",
                             decimals=1, default=1.0)  # fmt: skip
    noise_freedom: float = column("degrees of freedom of that for these texts", default=NAN)
    units: str = column("what they are: prompts, blocks or replicate pairs")
    concurrent: int = column("answers that were decoded at the same time")
    counted_speedup: float = column("`counted_tok_s` over `baseline_tok_s`", RATIO, scaled_by="speedup")
    steady_tok_s: float = column("distinct tokens a second without start-up rounds and their tokens", "tok/s",
                                 scaled_by="speedup")
    steady_speedup: float = column("its ratio over plain decoding", RATIO, decimals=2, words="steady window")
    bound_tok_s: float = column("what the read bandwidth measured in the same process allows", "tok/s", decimals=1,
                                words="bound tok/s", default=NAN)  # fmt: skip
    tokens_per_round: float = column("distinct tokens a round, all answers", "tokens", metric="tokens_per_round")
    steady_tokens_per_round: float = column("the same without start-up rounds", "tokens")
    counted_per_round: float = column("emit calls a round", "tokens")
    tokens_per_round_answer: float = column("distinct tokens a round of one answer", "tokens")
    relative_round_cost: float = column("time of a round over that of a baseline's round", RATIO,
                                        interval="round_cost")  # fmt: skip
    round_cost_low: float = column("lower end of the interval of `relative_round_cost`", RATIO)
    round_cost_high: float = column("upper end of the interval of `relative_round_cost`", RATIO)
    product_speedup: float = column("tokens a round over round cost: the speed-up that the rounds table gives", RATIO)
    outside_rounds: float = column("window over the sum of its rounds, against the baseline's", RATIO)
    host_share: float = column("share of the window outside `llama_decode`", SHARE, decimals=1, words="host time")
    baseline_host_share: float = column("the same of the baseline", SHARE)
    sample_share: float = column("share of the window that drawing the model's own tokens took", SHARE, decimals=1,
                                 words="sampling", default=NAN)  # fmt: skip
    baseline_sample_share: float = column("the same of the baseline", SHARE, decimals=1, words="plain sampling",
                                          default=NAN)  # fmt: skip
    unsampled_speedup: float = column("`speedup` with that time taken out of both windows", RATIO, decimals=2,
                                      words="without sampling", default=NAN)  # fmt: skip
    solo_tok_s: float = column("one stream alone in the arm's own context", "tok/s", scaled_by="solo_speedup",
                               default=NAN)  # fmt: skip
    solo_speedup: float = column("speed over that denominator", RATIO, decimals=2, words="over same context",
                                 interval="solo_ci", default=NAN)  # fmt: skip
    solo_ci_low: float = column("lower end of the interval of `solo_speedup`", RATIO, default=NAN)
    solo_ci_high: float = column("upper end of the interval of `solo_speedup`", RATIO, default=NAN)
    sabotage_tok_s: float = column("the arm's own speed where every guess is wrong: what guessing costs", "tok/s",
                                   scaled_by="sabotage_speedup", default=NAN)  # fmt: skip
    sabotage_speedup: float = column("that speed over plain decoding's", RATIO, decimals=2,
                                     words="all guesses wrong", interval="sabotage", default=NAN)  # fmt: skip
    sabotage_low: float = column("lower end of the interval of `sabotage_speedup`", RATIO, default=NAN)
    sabotage_high: float = column("upper end of the interval of `sabotage_speedup`", RATIO, default=NAN)
    guess_ms: float = column("time that making a guess took, over all rounds that made one", "ms", decimals=3,
                             words="a guess ms", default=NAN)  # fmt: skip
    solo_flatters: bool = column("whether that denominator is so slow that it flatters", default=False)

    def __post_init__(self) -> None:
        if self.lossless not in GRADES:
            raise RecordError("a speed-up without a lossless grade says nothing: grade the answers first")
        if self.scope not in SCOPES:
            raise RecordError(f"scope '{self.scope}' is neither {' nor '.join(SCOPES)}")
        if self.speaks_of not in SPOKEN_OF:
            raise RecordError(f"an interval speaks of {' or of '.join(SPOKEN_OF)}, not of '{self.speaks_of}'")


@table
class Stall(Fact):
    """Time that one of two runs of identical work lost. It is in the records, and in no estimate.

    But for a run that was slow throughout: which of the two is the odd one is not known, so it stays in.
    """

    cell: str = column("id of the cell")
    run: int = column("number of the run in its cell")
    arm: str = column("arm of the run")
    block: int = column("block of the run")
    prompt: str = column("prompt or prompts of the run")
    round: int | None = column("the round; -1 is time between rounds, -2 the whole run, `n/a` several that lost less "
                               "than 5 % each")  # fmt: skip
    rounds: int = column("how many rounds the row is about")
    lost_ms: float = column("time lost", "ms", decimals=1, words="lost ms")
    took_ms: float = column("what the rounds took", "ms", decimals=1, words="took ms")
    other_ms: float = column("what the same work takes without", "ms", decimals=1, words="instead of ms")
    share: float = column("time lost over the run's time without stalls", SHARE, decimals=0, words="of the run")
    held_against: str = column("the other run of the block, or rounds of the same shape where that did other work")
    load: float = column("processes of the machine that ran or waited, by the run's record", default=NAN)
    other_cpus: float = column("CPUs' worth of time that everything else took", decimals=2, words="others' CPUs",
                               default=NAN)  # fmt: skip
    steal: float = column("CPUs' worth of time that the hypervisor gave to others", decimals=2, default=NAN)


@table
class Acceptance(ArmFact):
    """How often a guess equals what the model itself draws: in all, and by its depth."""

    draws: str = column("how a guess is drawn; `n/a` where the arm has no choice", default="")
    prompt_class: str = column("class of all the cell's prompts, or `all` where they are of several", default="all")
    depth: int = column("which guess of a round, from 1; 0 are all together", formerly="position")
    tested: int = column("guesses that were compared with the model's own draw")
    accepted: int = column("guesses that were equal to it")
    rate: float = column("accepted over tested", SHARE, decimals=1, interval="ci", metric="acceptance")
    ci_low: float = column("lower end of the interval of `rate`", SHARE, decimals=1)
    ci_high: float = column("upper end of the interval of `rate`", SHARE, decimals=1)
    clusters: int = column("texts that the interval is over, or runs where there is one text", default=0)
    collision_mean: float = column("mean sum of p(x)^2: how often two independent draws agree", SHARE, decimals=1,
                                   words="collision probability")  # fmt: skip
    collision_draws: int = column("draws of which it is known")
    difference: float = column("accepted minus collision probability, paired a draw", DIFFERENCE, decimals=2,
                               interval="difference")  # fmt: skip
    difference_low: float = column("lower end of the interval of `difference`", DIFFERENCE, decimals=2)
    difference_high: float = column("upper end of the interval of `difference`", DIFFERENCE, decimals=2)
    by_construction: bool = column("whether the guess must equal the draw, whatever the model is")
    independent_runs: int = column("runs that repeat no other run's draws")
    rounds: float = column("rounds of those runs", default=NAN)
    drafted: float = column("guesses that were made", default=NAN)
    verified: float = column("guesses that were looked at", default=NAN)
    bonus: float = column("the model's own draws that were emitted beside accepted guesses", default=NAN)
    redecoded: float = column("sequential decodes that made guesses", default=NAN)
    per_tested: float = column("accepted over tested, from the counters", SHARE, default=NAN)
    per_drafted: float = column("accepted over drafted: what nobody looked at counts as a miss", SHARE, default=NAN)
    per_round: float = column("accepted guesses a round", "tokens", default=NAN)
    per_emitted: float = column("accepted over emitted tokens", SHARE, default=NAN)
    smoothed: float = column("(accepted + 1) over (drafted + 1)", SHARE, default=NAN)
    mean_length: float = column("emitted tokens a round, the model's own draw among them", "tokens", default=NAN)


@table
class KeptDrafter(ArmFact):
    """One prompt with a drafter that is kept from answer to answer: no speed of the method, which makes one each."""

    prompt: str = column("id of the prompt")
    when: str = column("cold: the drafter has met no prompt before; again: the same prompt once more; after a foreign "
                       "prompt: a drafter that met a long one of other text before; again after it")  # fmt: skip
    tokens_per_round: float = column("distinct tokens a round", "tokens", decimals=2)
    over_cold: float = column("the same over that of the cold drafter", RATIO, decimals=2)
    tok_s: float = column("distinct tokens a second of this one run", "tok/s", decimals=1)
    drafted: int = column("guesses that were made")
    accepted: int = column("guesses that were right")


@table
class Decomposition(ArmFact):
    """Mean milliseconds of a round by what they were spent on, one row an arm."""

    arm: str = column("arm of the contrast: baseline, treatment or a control")
    draft_ms: float = column("making guesses", "ms", decimals=3)
    decode_ms: float = column("`llama_decode`", "ms", decimals=3)
    sample_ms: float = column("drawing and comparing", "ms", decimals=3)
    rollback_ms: float = column("forgetting rejected tokens", "ms", decimals=3)
    host_ms: float = column("wall time of the round outside the four", "ms", decimals=3)
    total_ms: float = column("the whole round", "ms", decimals=3)
    between_ms: float = column("time between rounds", "ms")
    host_share: float = column("share of the window outside `llama_decode`", SHARE)
    rounds: int = column("rounds")
    startup_rounds: int = column("start-up rounds among them")
    tokens_per_round: float = column("distinct tokens a round", "tokens")
    counted_per_round: float = column("emit calls a round", "tokens")
    cell: str = column("id of the cell")


@table
class Timeline(Fact):
    """Tokens over time of the run of median speed, for cells that say a token twice. In the file, one row a point."""

    cell: str = column("id of the cell")
    t_s: Sequence[float] | float = column("time since the first token", "s")
    counted: Sequence[int] | int = column("emit calls so far", "tokens")
    distinct: Sequence[int] | int = column("distinct tokens so far", "tokens")
    run: int = column("number of the run in its cell", written=False)


@table
class Distribution(ArmFact):
    """Whether counted next tokens come from plain decoding's probabilities, behind prefixes that were held fixed."""

    arm: str = column("`treatment`, or `biased`: the same with a planted fault, which the test has to see")
    verdict: str = column("same, different, or too few draws", words="draws come from")
    tokens: int = column("draws")
    tested: int = column("draws that a guess was compared with", words="compared with a guess")
    prefixes: int = column("prefixes they were drawn behind")
    tv: float = column("total variation from the exact probabilities", SHARE, decimals=1, words="total variation")
    tv_expected: float = column("mean of it for so many sound draws", SHARE, decimals=1, words="expected of so many")
    tv_high: float = column("its 99.9 % point for so many sound draws", SHARE)
    chi2: float = column("Pearson's chi-square over all prefixes")
    df: int = column("its degrees of freedom")
    p: float = column("chance of a statistic at least as large from sound draws")
    visible_tv: float = column("smallest total variation that is seen in 80 % of such tests", SHARE, decimals=1,
                               words="smallest visible")  # fmt: skip
    rounding_tv: float = column("total variation that the shape of the decode alone makes", SHARE)
    prompt: str = column("id of the prompt", default="")
    runs: float = column("short runs that the draws are from", default=NAN)
