"""Which way of decoding to use on one model and machine, for which text, and what that is worth: from judged rows.

It measures and predicts nothing: speed-ups and predictions come from the findings. Void and divergent rows advise
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.judge.findings import MARK, Findings
from bench.judge.measure.step_cost import expected_tokens
from bench.judge.predict.cost_model import Prices, Terms, all_accepted, break_even
from bench.judge.predict.pooled import (
    apart,
    arm_of,
    fastest_settings,
    of_one_text,
    over_the_fastest,
    pooled,
    settings_of,
    together,
)
from bench.judge.tables.contrast import AGGREGATE, DIVERGENT
from bench.records.drawing import USUAL as DRAWN
from pti_loop.parameters import Spec, declared

Row = Mapping[str, Any]
"""Of the findings."""
USE, PERHAPS, PLAIN = "use", "perhaps", "plain decoding"
"""The interval lies above 1; only the estimate does; neither."""
MIXED = "mixed"
"""The class of a group of prompts of several classes: no kind of text."""
LENGTHS = (1, 2, 3, 5, 7, 15)
"""Draft lengths of the table for a drafter that was not measured."""
USUAL = 0.8
"""The acceptance at which the price that a guess may have is told."""
WORTH_TRYING = 1.05
"""Another draft length is proposed when it is predicted to be this much faster."""


@dataclass(frozen=True)
class Choice:
    """The best measured arm for one kind of text. `several` independent answers at once are another question."""

    temperature: float
    prompt_class: str
    several: bool
    verdict: str
    row: Row
    """Speed-up of the arm over all its cells: the best one, whether it is worth anything or not. Its interval holds
    together with those of all arms and kinds of text that were looked at."""
    prediction: Row | None
    settings: tuple[str, ...] = ()
    """Settings of the engine that belong to the advice, as overrides: others were measured too."""
    other_draft: Row | None = None
    """Speed-up of the same arm with the draft length that is predicted to be best, where that was measured."""


@dataclass(frozen=True)
class Rejected:
    """An arm that is slower than plain decoding over all its prompts, and why."""

    row: Row
    reason: str


@dataclass(frozen=True)
class Missing:
    """A measurement that would say more: what it would tell, and the overrides of the sweep that makes it."""

    what: str
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Drafter:
    """What guesses that cost nothing would bring with one draft length: the break-even acceptance and the ceiling."""

    length: int
    cost: float
    """Of the verifying decode, in plain steps."""
    break_even: float
    ceiling: float
    dearest: float
    """Plain steps that a guess may take when `USUAL` of the guesses are right; below 0 where that is too few."""


@dataclass(frozen=True)
class Advice:
    """All that the records of one model on one machine and engine build say."""

    machine: str
    build: str
    model: str
    cells: tuple[str, ...]
    void: int = 0
    """How many of the cells are void, so that they advise nothing."""
    choices: list[Choice] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    """Methods without a sound record."""
    unsupported: list[tuple[str, str]] = field(default_factory=list)
    drafters: list[Drafter] = field(default_factory=list)
    cliffs: list[int] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)


def _one_drawing(rows: Sequence[Row]) -> list[Row]:
    """Rows whose prompts are asked and whose tokens are drawn in one way: the usual one, else the most frequent.

    Plain decoding of another way is nothing that one could choose in its place.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name, usual) for name, usual in DRAWN.items()), []).append(row)
    return groups.get(tuple(DRAWN.values())) or max(groups.values(), key=len, default=[])


def advise(findings: Findings, model: str, machine: str, methods: Iterable[str]) -> Advice | None:
    """Advice on one model on one machine, from the engine build of its newest cell; None where it has no cell.

    `methods` are the ways of decoding that there are to choose from, each with what it declares.
    """
    names = (model, f"{model} {MARK}")
    mine = [row for row in findings.cells if row["model"] in names and row["machine"] == machine]
    done = [row for row in mine if row["state"] == "done"]
    if not done:
        return None
    build = max(done, key=lambda row: (str(row["time_utc"]), row["build"]))["build"]

    def here(rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row["model"] in names and (row["machine"], row["build"]) == (machine, build)]

    # Guesses of random weights are accepted or not for no reason of the text.
    blind = bool(done[0]["synthetic"])
    speedups = [row for row in _one_drawing(here(findings.speedup))
                if not row["void"] and not row["plain"] and not (blind and row["guesses"])]  # fmt: skip
    predictions = {_key(row): row for row in here(findings.predictions)
                   if row["arm"] == "treatment" and not row["void"]}  # fmt: skip
    sound = [row for row in speedups if row["lossless"] != DIVERGENT]
    unsupported = {row["method"]: row["reason"] for row in here(mine) if row["state"] == "unsupported"}
    seen = {row["method"] for row in sound} | set(unsupported)
    known = [declared()[name] for name in methods if name not in seen]
    unmeasured = [spec.name for spec in known if not is_plain(spec) and not (blind and spec.guesses)]
    prices = _prices(here(findings.step_cost))
    choices = _choices(sound, predictions)
    return Advice(
        machine=machine, build=build, model=done[0]["model"],
        cells=tuple(row["cell"] for row in here(done)),
        void=sum(bool(row["void"]) for row in here(done)),
        choices=choices,
        rejected=[Rejected(row, why_not(row, predictions.get(_key(row)))) for row in _slow(speedups)],
        unmeasured=unmeasured,
        unsupported=sorted(unsupported.items()),
        drafters=_drafters(prices),
        cliffs=prices.cliffs if prices else [],
        missing=_missing(choices, prices, unmeasured),
    )


def is_plain(spec: Spec) -> bool:
    """Whether it is plain decoding: one answer, and no guess."""
    return spec.answers == "one" and not spec.guesses


def _key(row: Row) -> tuple[Any, ...]:
    return row["cells"][0], row["prompt_class"]


def _prices(rows: list[Row]) -> Prices | None:
    """The curve for several tokens of one sequence, or the other one where that was not timed."""
    rows = [row for row in rows if not row["void"]]
    layouts = {row["layout"] for row in rows}
    if not layouts:
        return None
    chosen = "tokens" if "tokens" in layouts else sorted(layouts)[0]
    costs = {row["width"]: row["relative_cost"] for row in rows if row["layout"] == chosen}
    return Prices({width: cost for width, cost in sorted(costs.items()) if np.isfinite(cost)})


def _choices(rows: list[Any], predictions: dict[tuple[Any, ...], Row]) -> list[Choice]:
    """The best arm by temperature and prompt class, one answer at a time and in sum over streams apart."""
    groups: dict[tuple[bool, float, str], list[Any]] = {}
    for row in pooled(rows):
        several = row["scope"] == AGGREGATE
        # What one of several answers gets is no speed of one answer: nobody decodes several to get one.
        if several or row["concurrent"] == 1:
            groups.setdefault((several, row["temperature"], row["prompt_class"]), []).append(row)
    groups = {group: members for group, members in groups.items() if group[2] != MIXED}
    looked_at: Counter[tuple[bool, float]] = Counter()
    for (several, temperature, _), members in groups.items():
        looked_at[several, temperature] += len(members)
    named, found = apart(rows), []
    for (several, temperature, name), members in sorted(groups.items(), key=lambda item: _order(item[0])):
        # The best of many looks better than it is, so what is used has to hold together with all that was looked at.
        held = [together(row, looked_at[several, temperature]) for row in over_the_fastest(members)]
        best = max(held, key=lambda row: (_shown(row), row["speedup"]))
        verdict = USE if _shown(best) else PERHAPS if best["speedup"] > 1 else PLAIN
        told = predictions.get(_key(best))
        under = fastest_settings(members) if verdict == PLAIN else dict(settings_of(best))
        settings = tuple(f"{setting}={under[setting]}" for setting in named)
        draft = _measured_draft(held, best, told)
        found.append(Choice(temperature, name, several, verdict, best, told, settings, draft))
    return found


def _shown(row: Row) -> bool:
    """Whether a row shows a gain. One text does not, however often it was run."""
    return bool(row["ci_low"] > 1) and not of_one_text(row)


def _measured_draft(rows: Sequence[Row], best: Row, told: Row | None) -> Row | None:
    """The same arm with the draft length that is predicted to be best, where a cell has it."""
    if told is None or not np.isfinite(told["best_draft"]):
        return None
    wanted = {**best["parameters"], "draft": int(told["best_draft"])}
    return next((row for row in rows if row["method"] == best["method"] and row["parameters"] == wanted), None)


def _order(group: tuple[bool, float, str]) -> tuple[Any, ...]:
    several, temperature, name = group
    return several, temperature, name != "all", name


def _slow(rows: list[Any]) -> list[Row]:
    """One row an arm that is slower than plain decoding in every scope and at every temperature: its best one."""
    by_arm: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        if row["prompt_class"] == "all":
            by_arm.setdefault(arm_of(row), []).append(row)
    best = [max(pooled(members), key=lambda row: row["speedup"]) for members in by_arm.values()]
    slow = [row for row in best if row["speedup"] < 1 or row["lossless"] == DIVERGENT]
    return sorted(slow, key=lambda row: -row["speedup"])


def why_not(row: Row, prediction: Row | None) -> str:
    """Why an arm is not worth it, in words: the first of its factors that alone makes it slower."""
    if row["lossless"] == DIVERGENT:
        return "its output differs from plain decoding, so its speed counts for nothing"
    factors = f"{row['tokens_per_round']:.2f} new tokens a round at {row['relative_round_cost']:.2f} plain steps"
    if prediction is None or not np.isfinite(prediction["predicted"]):
        return factors
    if not np.isfinite(prediction["acceptance"]):
        return f"step cost too steep: {factors}"
    if not prediction["keeps"]:
        return f"an accepted guess is said again, not kept: {factors}"
    if not np.isfinite(prediction["free_break_even"]):
        return "step cost too steep: even guesses that are free and always right would be no gain"
    if not np.isfinite(prediction["break_even"]):
        return (f"guesses too dear: {prediction['draft_cost']:.2f} plain steps a round, so not even right ones pay; "
                f"free ones would from an acceptance of {prediction['free_break_even']:.2f}")  # fmt: skip
    if prediction["acceptance"] < prediction["break_even"]:
        return f"acceptance too low: {prediction['acceptance']:.2f}, it pays from {prediction['break_even']:.2f}"
    return f"another draft length would do better, or a gate: {factors}"


def _drafters(prices: Prices | None) -> list[Drafter]:
    """Free guesses by draft length; lengths whose width was not timed are left out."""
    if prices is None or len(prices.cost) < 2:
        return []
    costs, found = prices.array(), []
    for length in LENGTHS:
        if length + 1 not in prices.cost:
            continue
        alone = np.full(length + 2, np.nan)
        alone[[1, length + 1]] = costs[[1, length + 1]]
        needed, _ = break_even(alone, Terms(), length)
        cost, dearest = float(costs[length + 1]), (expected_tokens(USUAL, length) - costs[length + 1]) / length
        found.append(Drafter(length, cost, needed, all_accepted(costs, Terms(), length), float(dearest)))
    return found


def _missing(choices: list[Choice], prices: Prices | None, unmeasured: list[str]) -> list[Missing]:
    """What to measure next, the most telling first."""
    found = []
    if prices is None:
        found.append(Missing("the step-cost curve, which every prediction rests on", ()))
    unsure: dict[tuple[Any, ...], list[Choice]] = {}
    for one in choices:
        if one.verdict == PERHAPS:
            unsure.setdefault(arm_of(one.row), []).append(one)
    for these in unsure.values():
        texts = ", ".join(dict.fromkeys(one.prompt_class for one in these))
        found.append(Missing(f"whether {these[0].row['method']} is faster on {texts}: the interval spans 1",
                             (*sweep_words(these[0].row), "measure=thorough")))  # fmt: skip
    found += _longer(choices)
    found += [Missing(f"{name}: never measured here", (f"method={name}",)) for name in unmeasured]
    greedy = {one.row["method"]: one.row for one in reversed(choices) if one.verdict != PLAIN and one.temperature == 0}
    warm = {one.row["method"] for one in choices if one.temperature > 0}
    for method in sorted(set(greedy) - warm):
        words = [word for word in sweep_words(greedy[method]) if not word.startswith("temperature=")]
        found.append(Missing(f"{method} above temperature 0", (*words, "temperature=0.3,0.7,1.0")))
    return found


def _longer(choices: list[Choice]) -> list[Missing]:
    """Another draft length, where the model expects more of it and the arm has one to set."""
    found: dict[tuple[str, ...], Missing] = {}
    for one in choices:
        told = one.prediction
        if told is None or one.prompt_class != "all" or not np.isfinite(told["best_draft"]) or "draft" not in one.row:
            continue
        if told["best_draft"] != told["own_length"] and told["best_speedup"] > WORTH_TRYING * told["from_draws"]:
            parameters = one.row["parameters"] | {"draft": int(told["best_draft"])}
            parameters |= {"adaptive": False} if "adaptive" in parameters else {}
            words = sweep_words(one.row, parameters)
            found[words] = Missing(_predicted(told), words)
    return list(found.values())


def _predicted(told: Row) -> str:
    """A draft length with what is predicted of it."""
    return (f"draft {int(told['best_draft'])}, predicted {told['best_speedup']:.2f} "
            f"({told['best_low']:.2f} to {told['best_high']:.2f})")  # fmt: skip


def sweep_words(row: Row, parameters: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Overrides of the sweep that measures an arm, without the model; with other `parameters` where there are any."""
    own = row["parameters"] if parameters is None else parameters
    words = [f"method={row['method']}", *(f"method.{name}={_word(value)}" for name, value in own.items())]
    words += [f"streams={row['streams']}"] if row["streams"] != 1 else []
    return (*words, f"temperature={row['temperature']:g}")


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
