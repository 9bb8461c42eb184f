"""What a cell leaves on disk, as immutable typed rows. Knows nothing about models, files or statistics.

The rows that a decode loop itself writes are in `pti_loop.ledger`. A combination that makes no sense cannot be built:
the constructors raise `RecordError`.
All times are nanoseconds of one monotonic clock; every row of a cell uses the same clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from bench.records.arms import ARMS, COUNTED, SHARP_ARMS
from pti_loop.ledger import Draw, Emit, RecordError, Round
from pti_loop.ledger import require as _require

__all__ = [
    "ARMS", "SCHEMA", "STATUSES", "TABLES", "Count", "Draw", "Emit", "Launch", "Piece", "RecordError", "Round", "Run",
    "Served", "Sharp", "Step", "columns",
]  # fmt: skip

SCHEMA = 3
"""Version of the record files. 1: runs, rounds, ledger, draws, steps, counts, facts; a table may be absent. 2: the
method has its own parameters and its declaration, and the hashes of weights and files are beside the configuration; a
column that has a default may be absent, a column that is not known may not be there. 3: status.json holds a manifest of
the other files; the tables `sharp` and `served` may be there."""

STATUSES = ("done", "failed", "unsupported")
UNKNOWN = -1
"""Of a count or a time that an earlier version did not record."""


@dataclass(frozen=True, slots=True)
class Run:
    """One arm decoding one prompt (or `streams` prompts, for independent streams) once."""

    run: int
    block: int
    """Balanced group of runs that are compared with each other; one prompt a block."""
    order: int
    """Place of the run inside its block, from 0. A block is a palindrome of arms: A B B A."""
    arm: str
    prompt: str
    """Prompt id, or the ids joined by '+' when the streams have different prompts."""
    prompt_class: str
    seed: int
    n_prompt: int
    """Prompt tokens of all streams together."""
    n_prompt_evaluated: int
    """Prompt tokens that really went through the model; differs from n_prompt only when something was cached."""
    n_predict: int
    """Tokens asked for, a stream. The first comes from the prefill's logits."""
    prefill_ns: int
    start_ns: int
    """When the first token had been emitted and the timed window begins (first segment for several prompts)."""
    end_ns: int
    decode_window_ns: int
    """Length of the timed window, summed over segments: a baseline of N prompts runs them one after the other."""
    clock_mhz: float
    temp_c: float
    draft_prefill_ns: int = UNKNOWN
    """What drafters took to take in the prompt, outside the timed window and outside `prefill_ns`. This column and
    those below are -1 in records that lack them."""
    begin_ns: int = UNKNOWN
    """Before the method was called, by the clock of whoever called it: the prefill begins."""
    finish_ns: int = UNKNOWN
    """After it returned. From `begin_ns` on it covers the whole answer, whatever the method says of its windows."""
    outside_decodes: int = UNKNOWN
    """Decodes in the target's context outside the timed window, counted by the context: those of the prefill."""
    outside_tokens: int = UNKNOWN
    """Tokens in them; more than `n_prompt` is work that no rate has seen."""
    window_decodes: int = UNKNOWN
    """Decodes in the target's context inside the timed window, by the context."""
    window_tokens: int = UNKNOWN
    window_outputs: int = UNKNOWN
    """Rows of logits that they were asked for. Each gives one token at most, so no more can be the model's own."""
    beside_outside_tokens: int = UNKNOWN
    """Tokens decoded outside the timed window in any other context of the method, those of drafters."""
    beside_window_decodes: int = UNKNOWN
    """Decodes inside the timed window in those contexts."""
    beside_window_tokens: int = UNKNOWN
    context: int = UNKNOWN
    """Which contexts it ran in, from 0: those of all arms are made anew together."""
    load: float = math.nan
    """Processes of the machine that ran or waited, a mean of the last minute. As the next three, of the time since the
    run before: what else ran."""
    other_cpus: float = math.nan
    """CPUs' worth of time that everything but the measuring process took."""
    steal: float = math.nan
    """CPUs' worth of time that the hypervisor gave to others."""
    gpu_others: int = -1
    """Processes beside this one on the GPUs in use; -1 where that is unknown or none is used."""
    idle_cpus: float = math.nan
    """CPUs' worth of time that the process of the other arm took meanwhile, where each arm has its own."""
    energy_j: float = math.nan
    """What the device took in the timed window, by its driver's counter."""
    power_w: float = math.nan
    """The driver's own figure right after the run, as the next two."""
    power_cap_w: float = math.nan
    """The limit that the device worked under."""
    memory_mhz: float = math.nan
    """Clock of the device's memory."""
    n_prompt_restored: int = UNKNOWN
    """Prompt tokens, of those that all prompts begin with, whose state was restored and not evaluated in this run."""
    restore_ns: int = UNKNOWN
    """What that took, outside `prefill_ns` and the timed window."""

    def __post_init__(self) -> None:
        _require(self.arm in ARMS, f"run {self.run}: unknown arm '{self.arm}'")
        _require(self.end_ns >= self.start_ns, f"run {self.run}: ends before it starts")
        _require(self.n_predict >= 1, f"run {self.run}: n_predict {self.n_predict} is below 1")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a run's timed window without a break, where runs took turns: by the machine's clock.

    All other times of a run are those of its own clock, which stands still while another run has its turn.
    """

    run: int
    turn: int
    """Which turn it was, from 0. Runs that are open at once take each turn one after the other, in their order."""
    start_ns: int
    end_ns: int
    round: int
    """The first round in it."""

    def __post_init__(self) -> None:
        _require(self.end_ns >= self.start_ns, f"run {self.run}: a piece of turn {self.turn} ends before it starts")


@dataclass(frozen=True, slots=True)
class Step:
    """One timed `llama_decode` of the step-cost curve. Widths are interleaved inside a pass."""

    width: int
    repeat: int
    order: int
    layout: str
    """`sequences`: one token in each of `width` sequences; `tokens`: `width` tokens of one sequence."""
    decode_ns: int
    n_past: int
    settled: int = 1
    """0 for the first decodes of a width, before its series was flat; they tell what a change of width costs."""

    def __post_init__(self) -> None:
        _require(self.settled in (0, 1), f"step of width {self.width}: settled is {self.settled}, expected 0 or 1")
        _require(self.layout in ("sequences", "tokens"), f"step of width {self.width}: unknown layout '{self.layout}'")


@dataclass(frozen=True, slots=True)
class Count:
    """How often an arm drew a token behind one prefix, and how often plain decoding would.

    The rows of a group are all cells of its vocabulary: each token of some probability, and -1 for the rest together.
    """

    arm: str
    """`treatment`, or `biased`: the same with a planted fault, which the test must see."""
    prompt: str
    group: int
    position: int
    """Position in the answer. Position 0 is held fixed, so 1 is the first that is drawn."""
    prefix: str
    """Tokens of the answer between position 0 and this one, separated by spaces."""
    tested: int
    """1 where a guess was compared with the draws, 0 where the method had none."""
    token: int
    count: int
    probability: float
    """Of plain decoding, from its exact logits at this prefix."""
    moved: float
    """The same with the prefix decoded in the method's own shape: another rounding, on some devices."""

    def __post_init__(self) -> None:
        _require(self.arm in COUNTED, f"count of group {self.group}: unknown arm '{self.arm}'")
        _require(self.count >= 0, f"count of group {self.group}: {self.count} is below 0")
        for value in (self.probability, self.moved):
            _require(-1e-9 <= value <= 1 + 1e-9, f"count of group {self.group}: probability {value} is none")


@dataclass(frozen=True, slots=True)
class Sharp:
    """One token of the answers that both arms gave on F16 weights, untimed. Only what was said first is kept."""

    arm: str
    prompt: str
    """Prompt id, of several together the answer's own."""
    stream: int
    seed: int
    position: int
    token: int

    def __post_init__(self) -> None:
        _require(self.arm in SHARP_ARMS, f"an answer on F16 weights is of an unknown arm '{self.arm}'")
        _require(min(self.stream, self.position, self.token) >= 0,
                 f"an answer on F16 weights to '{self.prompt}' has a number below 0")


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel in a decode, as a profiler counted it; nan is not collected."""

    width: int
    """Sequences of the decode, one token each."""
    decode: int
    order: int
    """Place among the decode's launches, from 0."""
    kernel: str
    """Its name without arguments, those of a template kept."""
    us: float
    dram_bytes: float = math.nan
    """Read from the device's memory."""
    dram_write_bytes: float = math.nan
    l2_bytes: float = math.nan
    """Through the L2 cache, of any origin."""
    l2_hit_rate: float = math.nan

    def __post_init__(self) -> None:
        _require(self.width >= 1 and self.decode >= 0 and self.order >= 0,
                 f"a launch of '{self.kernel}' has a place below the first")
        _require(not self.us < 0, f"a launch of '{self.kernel}' takes {self.us} us")


@dataclass(frozen=True, slots=True)
class Served:
    """One request to a server and what the server says of its answer. What it does not tell is -1, nan or empty."""

    run: int
    stream: int
    sent_ns: int
    """By the client's clock, which is that of the runs."""
    first_ns: int
    last_ns: int
    finish_ns: int
    events: int
    """Pieces of the answer that came by themselves; an event is no token."""
    told: int
    """Tokens of the answer, as the server counts them."""
    text: str
    """A hash of the answer's text."""
    n_prompt: int = UNKNOWN
    n_cached: int = UNKNOWN
    """Prompt tokens that the server did not evaluate."""
    prompt_ms: float = math.nan
    """The server's own time for the prompt, and the next for the answer behind its first token."""
    answer_ms: float = math.nan
    drafted: int = UNKNOWN
    """Guesses that it made; a server that made none says nothing of them."""
    accepted: int = UNKNOWN
    starts: int = UNKNOWN
    """Which start of its server answered, from 1; -1 where that was not started here."""

    def __post_init__(self) -> None:
        _require(self.sent_ns <= self.first_ns <= self.last_ns <= self.finish_ns,
                 f"run {self.run}: the answer {self.stream} ends before it begins")  # fmt: skip
        _require(self.accepted <= self.drafted, f"run {self.run}: more guesses accepted than made")


def columns(record: type) -> list[str]:
    """Column names of a record class, in file order."""
    return [field.name for field in fields(record)]


TABLES = {"runs": Run, "rounds": Round, "ledger": Emit, "draws": Draw, "steps": Step, "counts": Count,
          "sharp": Sharp, "pieces": Piece, "launches": Launch, "served": Served}
