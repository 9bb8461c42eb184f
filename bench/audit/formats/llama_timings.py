"""What several programs of llama.cpp print alike: a prompt's time, an answer's time, and the guesses. No format alone.

`eval time = 27600.00 ms / 896 runs` (llama_print_timings, llama_perf_context_print, common_perf_print) counts decode
calls, which the answer's first token is none of: it comes from the prompt's logits. `/ 200 tokens` (llama-server)
counts tokens. llama-server's `mean len` is 1 + accepted / verifying steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.audit.numbers import NAN, count, finite, real
from bench.audit.trials import Trial

PROMPT = re.compile(r"prompt eval time *= *([\d.]+) *ms */ *(\d+) *tokens")
EVAL = re.compile(r"(?<!prompt )eval time *= *([\d.]+) *ms */ *(\d+) *(?:tokens|runs)")
TOTAL = re.compile(r"total time *= *([\d.]+) *ms(?: */ *(\d+) *tokens)?")
ACCEPTANCE = re.compile(
    r"draft acceptance(?: rate)? *= *([\d.]+) *\( *(\d+) accepted */ *(\d+) generated\)"
    r"(?:,? *mean (?:acceptance )?len(?:gth)? *= *([\d.]+))?(?:.*per position *= *\(([\d., ]*)\))?"
)
POSITIONS = re.compile(r"acc per pos *= *\(([\d., ]*)\)")
SLOT = re.compile(r"\bid +(\d+) +\| +task +(-?\d+)")


@dataclass
class Timing:
    """Values of one answer as they are collected from lines."""

    line: int
    values: dict[str, Any] = field(default_factory=dict)
    printed: dict[str, float] = field(default_factory=dict)
    lines: set[int] = field(default_factory=set)

    def trial(self, label: str, arm: str = "", block: int = 0) -> Trial:
        """The trial that the values come to."""
        return Trial(
            place=f"line {self.line}",
            line=self.line,
            label=label,
            arm=arm,
            block=block,
            printed=self.printed,
            **self.values,
        )

    @property
    def ended(self) -> bool:
        """Whether the answer's own time is there."""
        return "seconds" in self.values


def note_line(timing: Timing, text: str) -> bool:
    """Take what a line says into a timing; False where it says nothing of it."""
    values, taken = timing.values, False
    found = PROMPT.search(text)
    if found:
        values |= {"prefill_seconds": _ms(found[1]), "prompt_tokens": int(found[2][:15])}
        return True
    found = EVAL.search(text)
    if found:
        tokens = int(found[2][:15])
        values |= {"seconds": _ms(found[1]) or NAN, "counted": tokens, "distinct": tokens}
        return True
    found = TOTAL.search(text)
    if found:
        values["total_seconds"] = _ms(found[1])
        taken = True
    found = ACCEPTANCE.search(text)
    if found:
        note_guesses(timing, int(found[3][:15]), int(found[2][:15]), _float(found[4]))
        timing.printed["acceptance"] = real(found[1])
        if found[5]:
            values["positions"] = positions(found[5])
        taken = True
    found = POSITIONS.search(text)
    if found:
        values["positions"] = positions(found[1])
        taken = True
    return taken


def note_guesses(timing: Timing, drafted: int, accepted: int, mean_length: float | None = None) -> None:
    """Counts of guesses; the number of steps follows from the mean length where that is printed."""
    timing.values |= {"drafted": drafted, "accepted": accepted}
    if mean_length is not None and mean_length > 1 and accepted:
        timing.values["rounds"] = max(1, round(accepted / (mean_length - 1)))
        timing.printed["mean_length"] = mean_length


def from_json(line: int, timings: Mapping[str, Any]) -> Timing | None:
    """The `timings` object of llama-server; None where it has no answer's time."""
    predicted, ms = count(timings.get("predicted_n")), finite(timings.get("predicted_ms"))
    rate = finite(timings.get("predicted_per_second"))
    if predicted is None or (ms is None and rate is None):
        return None
    ms = 1e3 * predicted / rate if ms is None and rate else ms
    timing = Timing(line)
    timing.values = {"seconds": (ms or 0.0) / 1e3 or NAN, "counted": predicted, "distinct": predicted}
    if rate is not None:
        timing.printed["tok_s"] = rate
    evaluated, cached = count(timings.get("prompt_n")), count(timings.get("cache_n"))
    prompt_ms = finite(timings.get("prompt_ms"))
    if evaluated is not None:
        timing.values |= {"prompt_tokens": evaluated, "prefill_seconds": prompt_ms / 1e3 if prompt_ms else NAN}
    if evaluated is not None and cached:
        timing.values |= {"prompt_tokens": evaluated + cached, "evaluated": evaluated}
    drafted, accepted = count(timings.get("draft_n")), count(timings.get("draft_n_accepted"))
    if drafted is not None and accepted is not None:
        note_guesses(timing, drafted, accepted)
        if drafted and accepted <= predicted:
            timing.values["rounds"] = predicted - accepted  # each step gives its own token and what it accepted
    return timing


def positions(text: str) -> tuple[float, ...]:
    """`0.804, 0.701`, at most 64 of them."""
    return tuple(value for part in re.split(r"[ ,]+", text.strip())[:64] if (value := _float(part)) is not None)


def _ms(text: str) -> float:
    return (_float(text) or 0.0) / 1e3


def _float(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) < 1e18 else None
