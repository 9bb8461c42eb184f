"""Which rows of a record are compared with which, and the ratio of each pair with its interval.

A row is compared with the row of the same test, depth, prompt and width; several answers at once that have no such row
are compared with one answer. It flags nothing and prints nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bench.audit.estimate import Estimate, paired, welch
from bench.audit.options import AuditOptions
from bench.audit.trials import CONTROL_ARMS, SOLO, Record, Trial, baseline_arm, of_arm, treatments

Key = tuple[str, int, str, int]
"""Test, depth, prompt, answers at once."""
USUAL_REPETITIONS = 5
"""What llama-bench runs where nothing else is said; its Markdown prints a spread and no number."""
ONE_RUN_DF = 30.0
"""Degrees of freedom taken for a spread of single runs whose number nobody says."""


@dataclass(frozen=True)
class Pair:
    """Rows of one key on both sides."""

    treated: tuple[Trial, ...]
    base: tuple[Trial, ...]
    estimate: Estimate
    """Ratio of one answer's rate."""
    total: float
    """Ratio of the sums of rates."""

    @property
    def prompt(self) -> str:
        return self.treated[0].prompt

    @property
    def category(self) -> str:
        return self.treated[0].category or self.treated[0].prompt

    @property
    def streams(self) -> int:
        return self.treated[0].streams


@dataclass(frozen=True)
class Comparison:
    """One side over another under one condition (test, depth, width): over all prompts, and each pair."""

    label: str
    condition: str
    kind: str
    """arm, against, run, width (several answers over one, in one run), baseline (a rate given by hand)."""
    estimate: Estimate
    total: float
    pairs: tuple[Pair, ...] = field(default=())

    @property
    def streams(self) -> int:
        return self.pairs[0].streams

    @property
    def wide(self) -> bool:
        """Whether several answers at once are compared with fewer."""
        return self.streams > self.pairs[0].base[0].streams

    @property
    def in_sum(self) -> bool:
        """Whether the ratio is one of sums, since no row says how many answers share them."""
        return self.pairs[0].treated[0].unshared

    @property
    def name(self) -> str:
        return f"{self.label}, {self.condition}" if self.condition else self.label

    @property
    def where(self) -> str:
        """Label and the lines of the first rows, for a sentence."""
        first = self.pairs[0]
        more = f" and {len(self.pairs) - 1} more rows" if len(self.pairs) > 1 else ""
        base = "the baseline's " * (self.kind == "against") + first.base[0].place
        return f"{self.name} ({first.treated[0].place} against {base}{more})"

    @property
    def worst(self) -> Pair:
        """The pair with the smallest ratio."""
        return min(self.pairs, key=lambda pair: pair.estimate.ratio)

    @property
    def by_class(self) -> dict[str, float]:
        """Ratio of each class of prompts that the record names, empty where it names none."""
        groups: dict[str, list[float]] = {}
        for pair in self.pairs:
            if pair.category:
                groups.setdefault(pair.category, []).append(pair.estimate.log_mean)
        return {name: math.exp(math.fsum(logs) / len(logs)) for name, logs in groups.items()} if len(groups) > 1 else {}


def comparisons(record: Record, options: AuditOptions, against: Record | None) -> list[Comparison]:
    """Every comparison that the record, or a baseline beside it, makes possible."""
    found: list[Comparison] = []
    if against is not None:
        found += _of_sides("this record over the baseline's", "against", decoded(record), decoded(against), False)
    base = baseline_arm(record)
    for arm in treatments(record):
        same = not _split_blocks(record)
        found += _of_sides(f"{arm} over {base}", "arm", of_arm(record, arm), of_arm(record, base or ""), same)
    if not found and options.baseline:
        found += _by_hand(record, options.baseline)
    if not found:
        found += _runs(record)
    blocks = _blocks(record)
    for number, block in enumerate(blocks.values(), 1):
        found += _widths(block, f"run {number}, " if len(blocks) > 1 else "")
    return found


def decoded(record: Record) -> list[Trial]:
    """Trials with a rate, controls left out."""
    return [trial for trial in record.trials if _positive(trial) and trial.arm not in (*CONTROL_ARMS, SOLO)]


def key_of(trial: Trial) -> Key:
    """Under which condition a row was taken."""
    return trial.test, trial.depth or 0, trial.prompt, trial.streams


def rates(trials: Iterable[Trial], per: str = "answer") -> list[float]:
    """Rates above 0."""
    values = [trial.aggregate if per == "aggregate" else trial.compared for trial in trials]
    return [value for value in values if math.isfinite(value) and value > 0]


def level(trials: Iterable[Trial], per: str = "answer") -> float:
    """Geometric mean of the rates; nan where there is none."""
    logs = [math.log(value) for value in rates(trials, per)]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan


def _positive(trial: Trial) -> bool:
    return math.isfinite(trial.compared) and trial.compared > 0


def _blocks(record: Record) -> dict[int, list[Trial]]:
    blocks: dict[int, list[Trial]] = {}
    for trial in decoded(record):
        blocks.setdefault(trial.block, []).append(trial)
    return blocks


def _split_blocks(record: Record) -> bool:
    return len({trial.block for trial in record.trials}) > 1


def _of_sides(
    label: str, kind: str, treated: Sequence[Trial], base: Sequence[Trial], together: bool
) -> list[Comparison]:
    """Pairs of rows by key, then all prompts of a condition as one comparison.

    `together` says that the rows of both sides are runs of one session in their order, so that they pair one by one.
    """
    sides = [_by_key(side, treated, base) for side in (treated, base)]
    conditions: dict[tuple[str, int, int, str], list[Pair]] = {}
    for key, rows in sides[0].items():
        partners = sides[1].get(key) or sides[1].get((*key[:3], 1, key[4]))
        if partners:
            pair = Pair(
                tuple(rows),
                tuple(partners),
                _estimate(rows, partners, together),
                level(rows, "aggregate") / level(partners, "aggregate"),
            )
            conditions.setdefault((key[0], key[1], key[3], key[4]), []).append(pair)
    found = []
    several = len({key[0] for key in conditions}) > 1
    for (test, depth, streams, arm), pairs in conditions.items():
        words = [arm, test if several else "", f"depth {depth}" if depth or _deep(conditions) else ""]
        wide = len({key[2] for key in conditions}) > 1
        words.append(f"{streams} answers at once" if wide and streams > 1 else "one answer at a time" if wide else "")
        condition = ", ".join(word for word in words if word)
        estimate = (
            pairs[0].estimate if len(pairs) == 1 else paired([pair.estimate.log_mean for pair in pairs], "prompts")
        )
        total = math.exp(math.fsum(math.log(pair.total) for pair in pairs) / len(pairs))
        found.append(Comparison(label, condition, kind, estimate, total, tuple(pairs)))
    return found


def _deep(conditions: Iterable[tuple[str, int, int, str]]) -> bool:
    return len({key[1] for key in conditions}) > 1


def _by_key(
    side: Sequence[Trial], left: Sequence[Trial], right: Sequence[Trial]
) -> dict[tuple[str, int, str, int, str], list[Trial]]:
    """Rows by key, and by what else tells the rows of a side apart where both sides have it: arms, or settings."""
    names = [{trial.arm for trial in rows} for rows in (left, right)]
    shared = names[0] & names[1] if len(names[0] | names[1]) > 1 else set()
    swept = _swept(left) | _swept(right)
    variants = [{_variant(trial, swept) for trial in rows} for rows in (left, right)]
    both = variants[0] & variants[1] if swept else set()
    found: dict[tuple[str, int, str, int, str], list[Trial]] = {}
    for trial in side:
        if _positive(trial) and trial.test != "overall":
            arm = trial.arm if trial.arm in shared else ""
            variant = _variant(trial, swept) if both else ""
            key = (*key_of(trial), ", ".join(word for word in (arm, variant) if word))
            found.setdefault(key, []).append(trial)
    return found


def _swept(side: Sequence[Trial]) -> frozenset[str]:
    """Settings that one text varies for the same test: a table with rows for -fa 0 and -fa 1."""
    values: dict[tuple[str, Key, int], set[str]] = {}
    for trial in side:
        for name, value in trial.settings.items():
            if not trial.arm and not name.endswith("*"):
                values.setdefault((name, key_of(trial), trial.block), set()).add(value)
    return frozenset(name for (name, _, _), found in values.items() if len(found) > 1)


def _variant(trial: Trial, swept: frozenset[str]) -> str:
    return ", ".join(f"{name} {trial.settings[name]}" for name in sorted(swept) if name in trial.settings)


def _estimate(treated: Sequence[Trial], base: Sequence[Trial], together: bool) -> Estimate:
    if together and len(treated) == len(base) > 1:
        logs = [math.log(one.compared / two.compared) for one, two in zip(treated, base, strict=True)]
        return paired(logs, "pairs of runs")
    left, right = spread_of(treated), spread_of(base)
    counts = " and ".join(f"{number:g}" for number in (left[3], right[3]))
    return welch(left[:3], right[:3], f"{counts} repetitions")


def spread_of(trials: Sequence[Trial]) -> tuple[float, float, float, int]:
    """Log mean of one answer's rate, its standard error, degrees of freedom, and the number of repetitions."""
    if len(trials) > 1:
        logs = [math.log(trial.compared) for trial in trials]
        one = paired(logs, "")
        return one.log_mean, one.log_se, one.df, len(logs)
    trial = trials[0]
    if len(trial.samples) > 1 and trial.distinct:
        one = paired([math.log(trial.distinct / trial.streams / seconds) for seconds in trial.samples], "")
        return one.log_mean, one.log_se, one.df, len(trial.samples)
    mean = math.log(trial.compared)
    if not (math.isfinite(trial.spread) and trial.spread >= 0) or trial.samples:
        return mean, math.inf, 0.0, 1
    share = trial.spread / max(trial.aggregate, trial.compared)
    count = trial.repetitions or (USUAL_REPETITIONS if "model_type" in trial.settings else 0)
    if count > 1:
        return mean, max(share / math.sqrt(count), 1e-6), count - 1.0, count
    return mean, max(share, 1e-6), ONE_RUN_DF, 1


def warmed(one: Comparison) -> Estimate | None:
    """The ratio with the first repetition of each side left out; None where a side has no single repetitions."""
    if len(one.pairs) != 1 or len(one.pairs[0].treated) != 1 or len(one.pairs[0].base) != 1:
        return None
    sides = [(trial, trial.samples[1:]) for trial in (one.pairs[0].treated[0], one.pairs[0].base[0])]
    if any(len(samples) < 2 or not trial.distinct for trial, samples in sides):
        return None
    left, right = (spread_of([replace(trial, samples=samples)]) for trial, samples in sides)
    return welch(left[:3], right[:3], f"{left[3]} and {right[3]} repetitions")


def _by_hand(record: Record, rate: float) -> list[Comparison]:
    """Rows over a rate that was given on the command line."""
    plain = Trial(place="--baseline", label="--baseline", printed={"tok_s": rate})
    found = []
    arms = record.arms or [""]
    for arm in arms:
        for trials in _by_key([trial for trial in decoded(record) if not arm or trial.arm == arm], [], []).values():
            left = spread_of(trials)
            # One figure given by hand has no spread of its own.
            estimate = Estimate(left[0] - math.log(rate), left[1], left[2], f"{left[3]} repetitions over a given rate")
            pair = Pair(tuple(trials), (plain,), estimate, level(trials, "aggregate") / rate)
            found.append(Comparison(arm or trials[0].label, "", "baseline", estimate, pair.total, (pair,)))
    return found


def _runs(record: Record) -> list[Comparison]:
    """Blocks of a pasted text over the plain one, or the first one."""
    blocks = _blocks(record)
    if len(blocks) < 2:
        return []
    plain = [number for number, trials in blocks.items() if not any(trial.guesses for trial in trials)]
    base = plain[0] if plain else min(blocks)
    order = list(blocks)
    found = []
    for number, trials in blocks.items():
        if number != base:
            label = f"run {order.index(number) + 1} over run {order.index(base) + 1}"
            found += _of_sides(label, "run", trials, blocks[base], False)
    return found


def _widths(trials: Sequence[Trial], prefix: str) -> list[Comparison]:
    """Several answers at once over one, in one run without arms."""
    if any(trial.arm for trial in trials):
        return []
    single = {key_of(trial)[:3]: trial for trial in trials if trial.streams == 1 and trial.aggregate > 0}
    found = []
    for trial in trials:
        base = single.get(key_of(trial)[:3])
        if trial.streams > 1 and base is not None:
            estimate = welch(spread_of([trial])[:3], spread_of([base])[:3], "repetitions")
            pair = Pair((trial,), (base,), estimate, trial.aggregate / base.aggregate)
            found.append(Comparison(prefix + trial.label, "", "width", estimate, pair.total, (pair,)))
    return found
