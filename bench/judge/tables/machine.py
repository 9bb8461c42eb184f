"""Tables of a machine: cost of a step by its width, memory by streams, read bandwidth, and other programs."""

from __future__ import annotations

from bench.judge.columns import BYTES, RATIO, SHARE, column, table
from bench.judge.tables.base import END, Fact, ModelFact

NAN = float("nan")


@table
class StepCost(ModelFact):
    """Time of one `llama_decode` of a width over that of width 1. Nothing is interpolated between widths."""

    layout: str = column("rows of the decode: `tokens` of one sequence, or one of each of several `sequences`")
    width: int = column("tokens in one decode", "tokens")
    step_ms: float = column("time of the decode, mean over passes", "ms", decimals=3, words="step ms",
                            scaled_by="relative_cost")  # fmt: skip
    relative_cost: float = column("over that of width 1", RATIO, decimals=2, interval="ci", metric="step_cost")
    ci_low: float = column("lower end of the interval of `relative_cost`", RATIO)
    ci_high: float = column("upper end of the interval of `relative_cost`", RATIO)
    predicted_tok_s_all_accepted: float = column("width over step time: the rate if every token counted", "tok/s",
                                                 decimals=1, words="tok/s if all were accepted")  # fmt: skip
    n_past: int = column("tokens that were in the cache", "tokens")
    passes: int = column("passes over all widths, which are the units of the interval")
    warm_ups_dropped: int = column("widths whose first pass was left out as a warm-up")
    change_decodes: float = column("decodes after a change to this width until its time was steady", default=NAN)
    change_ms: float = column("what those take beyond steady ones, in no cost", "ms", decimals=3,
                              words="first decodes, ms more", default=NAN)  # fmt: skip
    void: bool = column("whether the curve disagrees with other measurements of its decodes, so that it counts for "
                        "nothing", place=END, default=False)  # fmt: skip
    void_reason: str = column("with which", words="why void", place=END, default="")


@table
class Memory(ModelFact):
    """Bytes that a context takes by its number of streams, measured and computed."""

    streams: int = column("sequences of the context")
    kv_bytes: float = column("attention cache", BYTES, words="KV cache", default=NAN)
    state_bytes: float = column("recurrent state", BYTES, words="recurrent state", default=NAN)
    measured_bytes: float = column("what the process grew by, or the sum of the two", BYTES, words="measured",
                                   default=NAN)  # fmt: skip
    per_stream_bytes: float = column("the same, a stream", BYTES, words="a stream", metric="memory", default=NAN)
    computed_kv_bytes: float = column("attention cache by the model's shape", BYTES, default=NAN)
    computed_state_bytes: float = column("recurrent state by the model's shape", BYTES, default=NAN)
    kv_ratio: float = column("`kv_bytes` over `computed_kv_bytes`", RATIO, default=NAN)
    state_ratio: float = column("`state_bytes` over `computed_state_bytes`", RATIO, default=NAN)
    compute_bytes: float | None = column("buffers of the computation", BYTES, default=None)
    output_bytes: float | None = column("buffers of the logits", BYTES, default=None)
    process_bytes: float = column("what the whole process held when the context had decoded, weights too: its share of "
                                  "pages that it shares", BYTES, words="process", default=NAN)  # fmt: skip
    rss_bytes: float = column("the same with every page that it maps", BYTES, default=NAN)
    card_bytes: float = column("what the cards held at that moment, by whomever", BYTES, words="cards", default=NAN)
    process_bytes_before: float = column("`process_bytes` before the context was made", BYTES, default=NAN)
    rss_bytes_before: float = column("`rss_bytes` before", BYTES, default=NAN)
    card_bytes_before: float = column("`card_bytes` before", BYTES, default=NAN)
    held_bytes: float = column("what process and cards held more when it had decoded than before it was made, with all "
                               "that drafts for it", BYTES, words="process and cards grew by", default=NAN)  # fmt: skip
    extra_bytes: float = column("`held_bytes` less that of the baseline's context in the same cell", BYTES,
                                words="more than the baseline", default=NAN)  # fmt: skip
    weight_bytes: float = column("tensors of the model's file", BYTES, default=NAN)
    source: str = column("measured in a `profile` or a `contrast`")
    arm: str = column("arm of the contrast; empty for a profile", default="")
    method: str = column("way of decoding of the contrast's treatment; empty for a profile", default="")
    drafts: bool = column("whether the arm has a drafter beside its context", default=False)


@table
class Bandwidth(Fact):
    """Read bandwidth by machine, build and number of threads: the ceiling of every rate."""

    read_gb_s: float = column("median over cells", "GB/s", decimals=2, words="read GB/s", metric="bandwidth",
                              interval=("low_gb_s", "high_gb_s"))  # fmt: skip
    low_gb_s: float = column("lowest of a cell", "GB/s")
    high_gb_s: float = column("highest of a cell", "GB/s")
    best_gb_s: float = column("best single reading: what was reached once is a ceiling", "GB/s")
    threads: int | None = column("threads that read", default=None)
    bytes: float | None = column("size of what was read", BYTES, default=None)
    largest_share: float = column("largest share of it that an arm reached", SHARE, default=NAN)
    void: bool = column("whether an arm went above it, so that it is no ceiling", default=False)


@table
class Peer(ModelFact):
    """Other programs on the same model and build, in pairs with the baseline arm."""

    tool: str = column("the program", words="program")
    width: int = column("tokens in one decode")
    tok_s: float = column("its median rate", "tok/s", decimals=2, words="its tok/s")
    ours_tok_s: float = column("the baseline's median rate beside it, choice of every token included", "tok/s",
                               decimals=2, words="ours, tok/s")  # fmt: skip
    ratio: float = column("median of ours over its, by pairs", RATIO, decimals=3,
                          words="ours / its", interval="ci")  # fmt: skip
    ci_low: float = column("lower end of the interval of `ratio`", RATIO)
    ci_high: float = column("upper end of the interval of `ratio`", RATIO)
    decode_ratio: float = column("the same by our decodes alone: llama-bench and llama-batched-bench choose no token; "
                                 "nan where the record does not tell", RATIO, decimals=3,
                                 words="our decodes / its")  # fmt: skip
    pairs: int = column("pairs of runs")
