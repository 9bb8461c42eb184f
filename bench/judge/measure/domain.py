"""Acceptance on and off the domain of a tuned drafter, and whether a falling acceptance tells that an answer is off it.

A text that is hard to predict is accepted less by any drafter. So the same question is asked of the text alone (its
collision probability) and of what the tuned drafter accepts beyond that, or beyond a drafter without the tuning on the
same answers. It compares answers, never times, and knows nothing about what anybody claimed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure import roc
from bench.judge.measure.acceptance import certain, evidence
from bench.judge.measure.roc import CHANCE, Scores
from bench.judge.tables.domain import Domain
from bench.records.drawing import drawing

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

WINDOWS = (8, 16, 32)
"""Tested guesses after which a decision is tried; 0 stands for all of an answer."""
TOLERATED = 0.10
"""Mean of both error rates from which on a decision counts as usable; fixed before any run."""
STEADY = 0.9
"""A drafter that guesses in this share of its rounds guesses whatever the text: the rest are ends of answers."""
SIDES = ("on", "off")


@dataclass(frozen=True)
class Answers:
    """The tested guesses of one cell's answers, in the order in which they were tested."""

    about: Mapping[str, Any]
    """Columns that the arm's rows share."""
    tuned: bool
    """Whether the drafter was tuned on the domain, so that it is compared with those that were not."""
    steady: bool
    """Whether it guesses in every round."""
    domain: str
    like: str
    """What two cells must share for their answers to be the same texts, guessed at equally often."""
    keys: tuple[tuple[str, int], ...]
    """Prompt and seed of each answer; the seed is 0 where none was drawn with."""
    classes: tuple[str, ...]
    values: Mapping[str, tuple[np.ndarray, ...]] = field(repr=False)
    """`acceptance`: 1 for a guess that was right, else 0. `collision`, above temperature 0: sum of p(x)^2."""

    def scores(self, means: np.ndarray) -> Scores:
        """Scores, one an answer, with their prompts and sides."""
        names = np.array([prompt for prompt, _ in self.keys])
        return Scores(means, np.unique(names, return_inverse=True)[1], np.array(self.classes) == self.domain)


@dataclass(frozen=True)
class Signal:
    """One way of scoring answers: the mean over all of an answer, and over its first 1, 2, ... guesses."""

    name: str
    against: str
    whole: np.ndarray
    """(answers,)"""
    first: np.ndarray
    """(answers, guesses of the shortest answer)"""
    cells: tuple[str, ...] = ()

    def minus(self, other: Signal, against: str) -> Signal:
        """What is left of it when another signal of the same answers is taken out."""
        reach = min(self.first.shape[1], other.first.shape[1])
        left = self.first[:, :reach] - other.first[:, :reach]
        return Signal("excess", against, self.whole - other.whole, left, other.cells)


def answers_of(case: Case) -> Answers | None:
    """A contrast's answers; None where its prompts have no domain, or nothing was guessed for one answer at a time."""
    cell, table, arm, temperature = case.cell, case.runs, case.arm, case.temperature
    prompts = cell.config.get("prompts") or {}
    domain = prompts.get("domain")
    runs = np.flatnonzero(evidence(table, "treatment", temperature))
    runs = runs[np.isin(runs, table.draws["owner"])]
    if not domain or arm.independent or certain(case) or not len(runs):
        return None
    order = np.lexsort((table.draws["depth"], table.draws["round"], table.draws["owner"]))
    owner = table.draws["owner"][order]
    kept = {"acceptance": (table.draws["guess"] == table.draws["drawn"])[order].astype(float)}
    if temperature > 0:
        kept["collision"] = table.draws["collision"][order].astype(float)
    like = [cell.machine, (cell.env.get("engine") or {}).get("build"), (cell.facts.get("model") or {}).get("sha256"),
            prompts.get("name"), domain, temperature, cell.config.get("n_predict"), cell.config.get("engine"),
            drawing(cell.config), arm.parameters.get("draft")]  # fmt: skip
    return Answers(
        about=case.of_arm,
        tuned=arm.tuned,
        steady=float((table.turns["drafted"][np.isin(table.turns["owner"], runs)] > 0).mean()) >= STEADY,
        domain=domain,
        like=json.dumps(like, sort_keys=True, default=str),
        keys=tuple((str(table.prompt[run]), int(table.seed[run]) if temperature else 0) for run in runs),
        classes=tuple(table.prompt_class[runs].tolist()),
        values={name: tuple(column[owner == run] for run in runs) for name, column in kept.items()},
    )


def domain_rows(found: Sequence[Answers]) -> list[Domain]:
    """One row for each cell, signal and window, window 0 first."""
    rows: list[Domain] = []
    alike: dict[str, list[Answers]] = {}
    for answers in found:
        alike.setdefault(answers.like, []).append(answers)
    for answers in found:
        if not answers.scores(np.zeros(len(answers.keys))).enough:
            continue
        for signal in _signals(answers, alike[answers.like]):
            rows += [_row(answers, signal, window) for window in (0, *WINDOWS)]
    return rows


def _signals(answers: Answers, others: Iterable[Answers]) -> Iterator[Signal]:
    accepted = _signal(answers, "acceptance")
    yield accepted
    if "collision" in answers.values:
        text = _signal(answers, "collision")
        yield text
        yield accepted.minus(text, "collision")
    if answers.tuned:
        for name, reference in _references(answers, others).items():
            yield accepted.minus(_signal(reference, "acceptance"), name)


def _signal(answers: Answers, name: str) -> Signal:
    columns = answers.values[name]
    reach = min(map(len, columns))
    first = np.cumsum([column[:reach] for column in columns], axis=1) / np.arange(1, reach + 1)
    return Signal(name, "none", np.array([column.mean() for column in columns]), first, tuple(answers.about["cells"]))


def _references(answers: Answers, others: Iterable[Answers]) -> dict[str, Answers]:
    """Drafters without tuning that guessed at the same answers, by name, in the order of these answers.

    `others` are those of equal conditions.
    """
    found: dict[str, Answers] = {}
    for other in others:
        known = {key: place for place, key in enumerate(other.keys)}
        if other.tuned or not other.steady or not known.keys() >= {*answers.keys}:
            continue
        places = [known[key] for key in answers.keys]
        values = {key: tuple(columns[place] for place in places) for key, columns in other.values.items()}
        same_answers = replace(other, keys=answers.keys, classes=answers.classes, values=values)
        found.setdefault(other.about["short"], same_answers)
    return found


def _row(answers: Answers, signal: Signal, window: int) -> Domain:
    """How one signal separates the sides after `window` guesses."""
    reach = signal.first.shape[1]
    about = {
        **answers.about, "cells": sorted({*answers.about["cells"], *signal.cells}), "domain": answers.domain,
        "signal": signal.name, "against": signal.against, "window": window, "reach": reach,
    }  # fmt: skip
    if window > reach:
        why = f"The shortest answer tested {reach} guesses; raise n_predict."
        return Domain(**about, tells="n/a", sentence=why)
    scores = answers.scores(signal.first[:, window - 1] if window else signal.whole)
    whole = {} if window else _whole(answers, signal)
    return Domain(**about, **_figures(answers, scores), **_verdict(signal, scores), **whole)


def _figures(answers: Answers, scores: Scores) -> dict[str, Any]:
    """Both sides' means, the drop between them, and the threshold with its errors."""
    row: dict[str, Any] = {"answers": len(scores.score)}
    for side, mean in zip(SIDES, (roc.side_mean(scores, on) for on in (True, False)), strict=True):
        row |= {f"{side}_prompts": len(scores.means(side == "on")), f"{side}_mean": mean.value,
                f"{side}_low": mean.low, f"{side}_high": mean.high}  # fmt: skip
    false_alarm, miss = roc.errors(scores)
    shares = {"drop": roc.drop(scores), "auc": roc.area(scores), "false_alarm": false_alarm, "miss": miss}
    for name, share in shares.items():
        row |= {name: share.value, f"{name}_low": share.low, f"{name}_high": share.high}
    names = np.array(answers.classes)
    means = {name: float(scores.score[names == name].mean()) for name in sorted(set(answers.classes))}
    row["by_class"] = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
    return row | {"threshold": roc.threshold(scores)}


def _verdict(signal: Signal, scores: Scores) -> dict[str, Any]:
    """Whether the signal tells anything, in a word and in a sentence."""
    area = roc.area(scores)
    tells = "yes" if area.low > CHANCE else "reversed" if area.high < CHANCE else "no better than chance"
    what = {
        "acceptance": "A lower acceptance",
        "collision": "A text that is harder to predict, whatever the drafter,",
        "excess": f"What is accepted less than {_beyond(signal.against)}",
    }[signal.name]
    words = {"yes": "tells answers off the domain", "reversed": "marks answers on the domain, not off it",
             "no better than chance": "tells answers off the domain no better than chance"}[tells]  # fmt: skip
    shown = f"AUC {area.value:.2f}, 95 % interval {area.low:.2f} to {area.high:.2f}"
    return {"tells": tells, "sentence": f"{what} {words} ({shown})."}


def _beyond(against: str) -> str:
    return "the text's collision probability" if against == "collision" else f"by {against} on the same answers"


def _whole(answers: Answers, signal: Signal) -> dict[str, Any]:
    """Raw counts of both sides, and after how many guesses a decision is good enough."""
    on = np.array(answers.classes) == answers.domain
    row: dict[str, Any] = {"needed": needed(answers, signal)}
    for side, mine in zip(SIDES, (on, ~on), strict=True):
        hits = [column for column, wanted in zip(answers.values["acceptance"], mine, strict=True) if wanted]
        row |= {f"{side}_tested": sum(map(len, hits)), f"{side}_accepted": int(sum(column.sum() for column in hits))}
    return row


def needed(answers: Answers, signal: Signal) -> int | None:
    """The fewest guesses from which on the mean of both error rates stays at `TOLERATED` or below, as far as measured.

    None when it never comes to stay. It is read off one set of prompts, and so it is no promise for another.
    """
    rates = [sum(share.value for share in roc.errors(answers.scores(column))) / 2 for column in signal.first.T]
    above = [place for place, rate in enumerate(rates) if rate > TOLERATED]
    start = above[-1] + 1 if above else 0
    return start + 1 if start < len(rates) else None
