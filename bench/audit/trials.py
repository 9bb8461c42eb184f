"""The common form of every record that the audit reads: one `Trial` is one arm decoding once.

It knows what tokens and seconds a record states and how they divide, and nothing about file formats or about what a
reader may conclude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

NAN = math.nan


@dataclass(frozen=True)
class Trial:
    """One timed decode, or one row of a tool's table. Times in seconds, sizes in bytes, rates in tokens per second."""

    place: str
    """Where it stands in the record: `run 3`, `line 4`, `row 2`."""
    label: str
    arm: str = ""
    prompt: str = ""
    streams: int = 1
    """Answers that were decoded at the same time."""
    streams_known: bool = False
    """Whether the record itself says how many."""
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
    """Rates as the record prints them: tok_s, acceptance, pp, pg, S_PP, S_TG, S."""
    samples: tuple[float, ...] = ()
    """Seconds of each repetition, in order."""
    settings: dict[str, str] = field(default_factory=dict)
    steps: pd.DataFrame | None = None
    """line, width, seconds, drafted, tested, accepted, emitted: one row a decode step; nan where it is not said."""
    emits: pd.DataFrame | None = None
    """stream, position, token, round, source, t_ns: one row an emit call."""
    model_bytes: float | None = None
    clock_mhz: float | None = None

    @property
    def aggregate(self) -> float:
        """Distinct tokens of all streams over the window."""
        if self.seconds > 0 and self.distinct:
            return self.distinct / self.seconds
        return self.printed.get("tok_s", NAN) if not self.emits_known else NAN

    @property
    def per_answer(self) -> float:
        """What the reader of one answer sees."""
        return self.aggregate / self.streams

    @property
    def emits_known(self) -> bool:
        """Whether tokens were counted, rather than only a rate printed."""
        return self.counted > 0 or self.emits is not None

    @property
    def prefill_rate(self) -> float:
        """Prompt tokens a second."""
        if self.prefill_seconds > 0 and self.prompt_tokens:
            return self.prompt_tokens / self.prefill_seconds
        return NAN

    @property
    def guesses(self) -> bool:
        """Whether the arm emits what it guessed."""
        return bool(self.drafted) or bool(self.accepted) or "acceptance" in self.printed


@dataclass(frozen=True)
class Record:
    """A file, read."""

    path: Path
    format: str
    trials: tuple[Trial, ...]
    notes: tuple[str, ...] = ()

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


BASELINE_NAMES = ("baseline", "base", "autoregressive", "none", "plain", "control", "ar", "a")
"""Names of a plain arm, in order of preference; any other record takes its first arm."""
CONTROL_ARMS = ("again", "sabotage", "oracle", "carry")
SOLO = "solo"


def baseline_arm(record: Record) -> str | None:
    """The arm that the others are divided by, or None where there is none."""
    arms = [arm for arm in record.arms if arm not in CONTROL_ARMS and arm != SOLO]
    for name in BASELINE_NAMES:
        for arm in arms:
            if arm.lower() == name:
                return arm
    return arms[0] if len(arms) > 1 else None


def treatments(record: Record) -> list[str]:
    """Arms that are compared with the baseline."""
    base = baseline_arm(record)
    return [arm for arm in record.arms if arm != base and arm != SOLO and arm not in CONTROL_ARMS] if base else []


def of_arm(record: Record, arm: str) -> list[Trial]:
    """Trials of an arm, in file order."""
    return [trial for trial in record.trials if trial.arm == arm]
