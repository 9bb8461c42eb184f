"""One row a run of a contrast cell: its tokens, its windows, its rounds. Sums only; nothing is compared here.

It does not know which arm is meant to win, and it trusts no rate: tokens come from the ledger, seconds from the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.tokens import RunCounts, arrays, count_runs, owners, told_counts
from bench.judge.tables import SERVED
from bench.records.arms import PLAIN
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.records.cells import StoredCell

TIMES = ("draft_ns", "decode_ns", "sample_ns", "rollback_ns", "total_ns")
WHOLE = ("block", "order", "seed", "n_prompt", "n_prompt_evaluated", "n_predict", "start_ns")
COUNTERS = ("drafted", "verified", "accepted", "redecoded")


@dataclass(frozen=True)
class RunTable:
    """Arrays over the runs of a cell. Times in seconds."""

    run: np.ndarray
    block: np.ndarray
    order: np.ndarray
    arm: np.ndarray
    prompt: np.ndarray
    prompt_class: np.ndarray
    seed: np.ndarray
    n_prompt: np.ndarray
    n_prompt_evaluated: np.ndarray
    n_predict: np.ndarray
    clock_mhz: np.ndarray
    window: np.ndarray
    draft_prefill: np.ndarray
    """What drafters took to take in the prompt, before the window; nan where the record does not tell."""
    start_ns: np.ndarray
    tokens: RunCounts
    rounds: np.ndarray
    startup_rounds: np.ndarray
    startup_seconds: np.ndarray
    seconds: dict[str, np.ndarray]
    """Sums over rounds: draft, decode, sample, rollback, total."""
    rebuilt: np.ndarray
    """Draft seconds of rounds that decoded sequentially to make their guesses."""
    counters: dict[str, np.ndarray]
    emits: dict[str, np.ndarray]
    """Columns of the ledger; `owner`, here and below, is the index of the row's run in this table."""
    turns: dict[str, np.ndarray]
    """Columns of the rounds table."""
    draws: dict[str, np.ndarray]
    restored: np.ndarray
    """Prompt tokens whose state was restored: 0 where the records do not tell."""
    made: np.ndarray | None = None
    """Which set of contexts each run ran in, from 0; None where the records do not tell."""
    at_once: bool = False
    """Whether a plain arm, too, decodes its answers at the same time."""
    ends: frozenset[int] = frozenset()
    """Tokens that may end an answer; none where all answers have the length that was asked for."""

    @cached_property
    def context(self) -> np.ndarray:
        """(runs,) number of the set of contexts, 0 where there was one alone or the records do not tell."""
        return np.zeros(len(self.run), dtype=np.int64) if self.made is None else np.maximum(self.made, 0)

    @cached_property
    def concurrent(self) -> np.ndarray:
        """Answers that were decoded at the same time; their mean over the window where they end at different times.

        So the quotient of a rate over all answers and this is tokens by the time that their readers waited.
        """
        streams: np.ndarray = np.maximum(self.tokens.streams, 1)
        if self.at_once:
            return streams
        several: np.ndarray = np.where(self.any_of(PLAIN), 1, self._under_way() if self.ends else streams)
        return several

    @cached_property
    def said(self) -> np.ndarray:
        """(runs,) tokens of an answer with its first one, in the mean over a run's answers."""
        made: np.ndarray = (self.tokens.distinct + self.tokens.first) / np.maximum(self.tokens.streams, 1)
        return made

    def lengths(self, mask: np.ndarray) -> dict[str, float]:
        """Tokens of an answer of both arms, in the mean over runs under a mask; nothing where all have one length."""
        if not self.ends:
            return {}
        mine, base = (float(self.said[mask & self.of(arm)].mean()) for arm in ("treatment", "baseline"))
        return {"answer_tokens": mine, "baseline_answer_tokens": base}

    def _under_way(self) -> np.ndarray:
        """(runs,) seconds from the window's opening to the end of each answer, in sum, over the window's."""
        owner, stream, at = self.emits["owner"], self.emits["stream"].astype(np.int64), self.emits["t_ns"]
        most = int(stream.max()) + 1
        last = np.zeros((len(self.run), most))
        np.maximum.at(last, (owner, stream), (at - self.start_ns[owner]) * 1e-9)
        under: np.ndarray = np.maximum(last, 0).sum(axis=1) / self.window
        clipped: np.ndarray = np.clip(under, 1, np.maximum(self.tokens.streams, 1))
        return clipped

    @cached_property
    def rate(self) -> np.ndarray:
        """Distinct tokens per second, all streams, start-up inside."""
        return _ratio(self.tokens.distinct, self.window)

    @cached_property
    def steady_rate(self) -> np.ndarray:
        """Distinct tokens per second without the start-up rounds and the tokens that came out of them."""
        return _ratio(self.tokens.distinct - self.tokens.startup, self.window - self.startup_seconds)

    @cached_property
    def prompted_rate(self) -> np.ndarray:
        """Distinct tokens per second of the window and of what drafters took to take in the prompt before it."""
        return _ratio(self.tokens.distinct, self.window + self.draft_prefill)

    @cached_property
    def counted_rate(self) -> np.ndarray:
        """Emit calls per second: what the published loop printed."""
        return _ratio(self.tokens.counted, self.window)

    @cached_property
    def host(self) -> np.ndarray:
        """Share of the window that was spent outside `llama_decode`, sequential decodes of a rebuild included in it."""
        return 1.0 - _ratio(self.seconds["decode"] + self.rebuilt, self.window)

    @cached_property
    def sampled(self) -> np.ndarray:
        """Share of the window that went into drawing the model's own tokens and comparing guesses with them."""
        share: np.ndarray = self.seconds["sample"] / self.window
        return share

    @cached_property
    def unsampled_rate(self) -> np.ndarray:
        """Distinct tokens per second, start-up inside, as if drawing took no time."""
        return _ratio(self.tokens.distinct, self.window - self.seconds["sample"])

    @cached_property
    def _arms(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(dict.fromkeys(self.arm.tolist()))}

    @cached_property
    def arm_code(self) -> np.ndarray:
        """The arms as whole numbers, which compare much faster than words."""
        return np.array([self._arms[name] for name in self.arm.tolist()])

    @cached_property
    def prompt_code(self) -> np.ndarray:
        """The prompts as whole numbers in the order of their names."""
        return np.unique(self.prompt, return_inverse=True)[1]

    @cached_property
    def text_code(self) -> np.ndarray:
        """The texts that say something independent of each other: groups that share a prompt are one of them."""
        codes, groups = self.prompt_code, [set(name.split("+")) for name in np.unique(self.prompt).tolist()]
        if all(len(group) == 1 for group in groups):
            return codes
        one = list(range(len(groups)))
        for place, group in enumerate(groups):
            joined = {one[other] for other in range(place) if groups[other] & group}
            one = [place if code in joined else code for code in one]
        texts: np.ndarray = np.unique(np.array(one), return_inverse=True)[1][codes]
        return texts

    @cached_property
    def _masks(self) -> dict[str, np.ndarray]:
        return {name: self.arm_code == code for name, code in self._arms.items()}

    @cached_property
    def confirmed(self) -> np.ndarray:
        """Which emits the model stands behind; a method may emit what nothing confirmed."""
        confirmed: np.ndarray = self.emits["source"] != "unverified"
        return confirmed

    def code_of(self, arm: str) -> int:
        """The number of an arm in `arm_code`, -1 when no run is of it."""
        return self._arms.get(arm, -1)

    def any_of(self, arms: Iterable[str]) -> np.ndarray:
        """Mask of the runs of some arms."""
        found: np.ndarray = np.logical_or.reduce([self.of(arm) for arm in arms])
        return found

    def of(self, arm: str) -> np.ndarray:
        """Mask of an arm's runs, not to be written to."""
        mask = self._masks.get(arm)
        return np.zeros(len(self.run), dtype=bool) if mask is None else mask


def run_table(cell: StoredCell) -> RunTable:
    """Sum up every run of a cell. Raises RecordError when a run has no window, no round or no token after its first."""
    runs = arrays(cell.runs)
    ids, size = runs["run"].astype(np.int64), len(runs["run"])
    turns, emits, draws = (
        {**columns, "owner": owners(ids, columns["run"])}
        for columns in map(arrays, (cell.rounds, cell.ledger, cell.draws))
    )
    owner = turns["owner"]
    started = turns["phase"] == "startup"

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(owner, weights=values, minlength=size)

    startup, seconds, rebuilt = totals(turns, size)
    served = cell.config.get("kind") == SERVED
    counts = count_runs(emits, ids, (turns["run"][started], turns["round"][started]))
    if served and not len(emits["run"]):
        counts = told_counts(cell, ids)
    table = RunTable(
        run=ids,
        **{name: runs[name].astype(str) for name in ("arm", "prompt", "prompt_class")},
        **{name: runs[name].astype(np.int64) for name in WHOLE},
        clock_mhz=runs["clock_mhz"].astype(float),
        window=runs["decode_window_ns"] * 1e-9,
        draft_prefill=_known_seconds(runs.get("draft_prefill_ns"), size),
        tokens=counts,
        rounds=np.bincount(owner, minlength=size),
        startup_rounds=np.bincount(owner[started], minlength=size),
        startup_seconds=startup,
        seconds=seconds,
        rebuilt=rebuilt,
        counters={name: total(turns[name]).astype(np.int64) for name in COUNTERS},
        emits=emits,
        turns=turns,
        draws=draws,
        restored=known_counts(runs.get("n_prompt_restored"), size),
        made=runs["context"].astype(np.int64) if "context" in runs else None,
        at_once=served,
        ends=frozenset(map(int, cell.facts.get("ends") or ())),
    )
    _check(table, served)
    return table


def known_counts(values: np.ndarray | None, size: int) -> np.ndarray:
    """Counts or nanoseconds as whole numbers; 0 where they are unknown."""
    return np.zeros(size, np.int64) if values is None else np.maximum(np.asarray(values).astype(np.int64), 0)


def _known_seconds(values: np.ndarray | None, size: int) -> np.ndarray:
    """Nanoseconds as seconds; nan where they are unknown."""
    known = np.full(size, -1.0) if values is None else np.asarray(values, dtype=float)
    return np.where(known >= 0, known * 1e-9, np.nan)


def totals(turns: dict[str, np.ndarray], size: int) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Sums of the rounds' times over each of `size` runs: start-up rounds, every part, and drafting that decoded."""
    owner = turns["owner"]

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(owner, weights=values, minlength=size)

    seconds = {name.removesuffix("_ns"): total(turns[name] * 1e-9) for name in TIMES}
    startup = total(turns["total_ns"] * 1e-9 * (turns["phase"] == "startup"))
    return startup, seconds, total(turns["draft_ns"] * 1e-9 * (turns["redecoded"] > 0))


def _check(table: RunTable, served: bool) -> None:
    for arm in ("baseline", "treatment"):
        if not table.of(arm).any():
            raise RecordError(f"no run of arm '{arm}', so there is nothing to compare")
    silent = np.flatnonzero((table.tokens.distinct == 0) | (table.window <= 0))
    if len(silent):
        index = silent[0]
        raise RecordError(
            f"run {table.run[index]} ({table.arm[index]}) has {table.tokens.distinct[index]} tokens after the first in "
            f"{table.window[index]:g} s, so it has no rate; use n_predict of 2 or more"
        )
    idle = np.flatnonzero(table.rounds == 0)
    if len(idle) and not served:
        raise RecordError(f"run {table.run[idle[0]]} ({table.arm[idle[0]]}) has tokens, but no round that made them")


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Quotient, nan where the denominator or the result is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.asarray(above, dtype=float) / below
    return np.where((np.asarray(below) > 0) & (quotient > 0), quotient, np.nan)
