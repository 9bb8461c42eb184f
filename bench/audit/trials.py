"""The common form of every record that the audit reads: one `Trial` is one arm decoding once.

It knows what tokens and seconds a record states and how they divide, and nothing about file formats or about what a
reader may conclude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.audit.emits import Emits
    from bench.audit.launches import Launches

NAN = math.nan


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step, or one row that sums up several. nan or None where the record does not say."""

    line: int
    seconds: float = NAN
    width: int | None = None
    rounds: int = 1
    """Decode steps, or answers that emitted, that the row stands for."""
    drafted: int | None = None
    tested: int | None = None
    accepted: int | None = None
    emitted: int | None = None


@dataclass(frozen=True)
class Trial:
    """One timed decode, or one row of a tool's table. Times in seconds, sizes in bytes, rates in tokens per second."""

    place: str
    """Where it stands in the record: `run 3`, `line 4`."""
    label: str
    line: int = 0
    arm: str = ""
    prompt: str = ""
    category: str = ""
    """The class of prompts that it is one of, where the record has classes."""
    test: str = ""
    """What was timed, where a tool names it: tg128, pp512+tg128."""
    depth: int | None = None
    """Tokens that were in the context before it began."""
    block: int = 0
    """Which block of the pasted text it is from."""
    streams: int = 1
    """Answers that were decoded at the same time."""
    streams_known: bool = False
    """Whether the record itself says how many."""
    unshared: bool = False
    """Whether the rate is the sum of a number of answers that nobody says."""
    counted: int = 0
    """Emit calls inside the timed window, all streams."""
    distinct: int = 0
    """Different (stream, position) pairs among them that were not out before."""
    first: int = 0
    """Emit calls before the window opened: the tokens of the prefill."""
    seconds: float = NAN
    """Length of the window."""
    startup_distinct: int = 0
    startup_counted: int = 0
    startup_seconds: float = 0.0
    prompt_tokens: int = 0
    evaluated: int | None = None
    """Prompt tokens that went through the model."""
    prefill_seconds: float = NAN
    total_seconds: float = NAN
    """From the request to the end of the answer, as the record prints it."""
    mixed_tokens: int = 0
    """Prompt and generated tokens that share one time and cannot be told apart (llama-bench -pg)."""
    rounds: int | None = None
    """Decode steps inside the window."""
    drafted: int | None = None
    tested: int | None = None
    """Guesses compared with the model's own draw."""
    accepted: int | None = None
    emitted: int | None = None
    """Tokens the record says it emitted, where it has no token ids."""
    requested: int | None = None
    temperature: float | None = None
    printed: dict[str, float] = field(default_factory=dict)
    """Rates as the record prints them: tok_s (the sum), answer_tok_s (one answer's), acceptance, mean_length, pp, pg,
    S_PP, S_TG, S, speedup, peak."""
    samples: tuple[float, ...] = ()
    """Seconds of each repetition, in order."""
    spread: float = NAN
    """Standard deviation of the printed rate between repetitions."""
    repetitions: int | None = None
    draft_seconds: float = NAN
    """Time inside the window that the draft model took."""
    draft_runs: int | None = None
    """Decode calls of the draft model."""
    positions: tuple[float, ...] = ()
    """Acceptance of the first, second, .. guess of a step."""
    settings: dict[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    emits: Emits | None = None
    model_bytes: float | None = None
    """Bytes of the model's file."""
    step_bytes: float | None = None
    """Bytes that a decode step reads, where the record tells them."""
    clock_mhz: float | None = None

    @property
    def aggregate(self) -> float:
        """Distinct tokens of all streams over the window; the printed rate where there are no tokens or no time."""
        if self.seconds > 0 and self.distinct:
            return self.distinct / self.seconds
        if "tok_s" in self.printed and not self.repeats:
            return self.printed["tok_s"]
        return self.printed.get("answer_tok_s", NAN) * self.streams

    @property
    def per_answer(self) -> float:
        """What the reader of one answer sees; nan where a sum cannot be shared out."""
        if self.unshared:
            return self.printed.get("answer_tok_s", NAN)
        if "answer_tok_s" in self.printed and not (self.seconds > 0 and self.distinct and self.streams == 1):
            return self.printed["answer_tok_s"]
        return self.aggregate / self.streams

    @property
    def compared(self) -> float:
        """The rate that rows are compared by: one answer's, or a sum that cannot be shared out."""
        return self.aggregate if self.unshared and not math.isfinite(self.per_answer) else self.per_answer

    @property
    def repeats(self) -> bool:
        """Whether tokens are counted more than once, so that a printed rate may be one of counts."""
        return self.counted != self.distinct

    @property
    def emits_known(self) -> bool:
        """Whether tokens were counted, rather than only a rate printed."""
        return self.counted > 0 or self.emits is not None

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens a second."""
        if self.prefill_seconds > 0 and self.prompt_tokens:
            return self.prompt_tokens / self.prefill_seconds
        return self.printed.get("pp", NAN)

    @property
    def guesses(self) -> bool:
        """Whether the arm emits what it guessed."""
        return bool(self.drafted) or bool(self.accepted) or self.printed.get("acceptance", 0.0) > 0

    @property
    def answer_time(self) -> float:
        """Seconds that the reader of one answer waits from the request on; nan where the prefill is not known."""
        whole = self.seconds + self.prefill_seconds
        return self.total_seconds if math.isfinite(self.total_seconds) else whole

    @property
    def where(self) -> str:
        """Label and place, for a sentence."""
        return self.label if self.place in self.label else f"{self.label} ({self.place})"


@dataclass(frozen=True)
class Record:
    """A text, read. `format` names the tools that printed it."""

    path: Path
    format: str
    trials: tuple[Trial, ...]
    notes: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    """What the reader itself saw to be wrong: a block that is cut, a counter that was denied."""
    launches: tuple[Launches, ...] = ()
    """Kernels of a profiler's table."""

    @property
    def arms(self) -> list[str]:
        """Arms in the order of their first appearance."""
        return list(dict.fromkeys(trial.arm for trial in self.trials if trial.arm))


@dataclass(frozen=True)
class Flag:
    """One thing that a reader must know before quoting the record."""

    code: str
    sentence: str
    numbers: dict[str, float] = field(default_factory=dict)


BASELINE_NAMES = (
    "baseline",
    "base",
    "autoregressive",
    "none",
    "plain",
    "control",
    "ar",
    "vanilla",
    "off",
    "no-mtp",
    "no mtp",
    "no spec",
    "no draft",
    "stock",
    "target only",
    "a",
)
"""Names of a plain arm, in order of preference; of others the first that guesses nothing, or else the first arm."""
CONTROL_ARMS = ("again", "sabotage", "oracle", "carry", "kept")
SOLO = "solo"


def baseline_arm(record: Record) -> str | None:
    """The arm that the others are divided by, or None where there is none."""
    arms = [arm for arm in record.arms if arm not in CONTROL_ARMS and arm != SOLO]
    for name in BASELINE_NAMES:
        for arm in arms:
            if arm.lower() == name:
                return arm
    if len(arms) < 2:
        return None
    plain = [arm for arm in arms if not any(trial.guesses for trial in of_arm(record, arm))]
    guessing = len(plain) < len(arms)
    return plain[0] if plain and guessing else arms[0]


def treatments(record: Record) -> list[str]:
    """Arms that are compared with the baseline."""
    base = baseline_arm(record)
    return [arm for arm in record.arms if arm != base and arm != SOLO and arm not in CONTROL_ARMS] if base else []


def of_arm(record: Record, arm: str) -> list[Trial]:
    """Trials of an arm, in file order."""
    return [trial for trial in record.trials if trial.arm == arm]
