"""Where the texts of two arms first differ, and what replaying them says that the difference was worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.plan.settings import Config
from bench.plan.treatment import changes
from bench.run.arms import REFERENCE, Task, reference_shape
from bench.run.replay import Comparison, Shape, compare
from bench.run.result import forced, own_noise
from bench.run.specs import rule_of
from bench.run.trial import Trial
from pti_loop.ledger import Trace

SINGLE = Shape(1, "sequences")
Texts = dict[tuple[int, int, str], Trace]
"""What was said, by (block, replicate, arm)."""


class Differences:
    """The texts of a contrast's runs against the baseline's, replayed on its arms, which are still open.

    `tasks` are the blocks, `seed(task, replicate)` is what a run of one was drawn with.
    """

    def __init__(self, arms: Trial, config: Config, tasks: list[Task], texts: Texts,
                 seed: Callable[[Task, int], int]) -> None:  # fmt: skip
        self.arms, self.config, self.tasks, self.texts, self.seed = arms, config, tasks, texts, seed

    def told(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """(a row for every pair of texts, the noise measured on the way)."""
        compared: list[Comparison] = []
        noisy = min(self.config.measure.noise_prompts, len(self.tasks))
        for task in self.tasks[:noisy]:
            compared.append(self._compare(self.rounding, task, 0, 0))
        return self._rows(), {
            "logit_gap": max(max(item.logit_noise) for item in compared),
            "cdf": max((max(item.cdf_noise) for item in compared if item.cdf_noise), default=0.0),
            "positions": sum(len(item.logit_noise) for item in compared),
            "disagreements": sum(sum(item.disagrees) for item in compared),
            "widths": [1, self._shape(self.rounding).width], "of": self.rounding,
        }

    def _shape(self, arm: str) -> Shape:
        if arm in ("again", "solo"):
            return SINGLE
        return reference_shape(self.config) if arm == REFERENCE else self.arms.shape

    def _compare(self, arm: str, task: Task, replicate: int, answer: int,
                 first: tuple[int, int] | None = None, shape: Shape | None = None) -> Comparison:
        tokens = self.texts[task.block, replicate, "baseline"].text(answer)
        prompt = task.prompts[answer].tokens
        return compare(
            self.arms.replay("baseline", prompt, tokens, SINGLE),
            self.arms.replay(arm, prompt, tokens, shape or self._shape(arm)), prompt, tokens,
            sampler=rule_of(self.config, self.seed(task, replicate), self.arms.settings.ends), answer=answer,
            first=first,
        )  # fmt: skip

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each answer of each run, in the order of the runs.

        They are compared in the order of the baseline's texts, since a context decodes each of these once for all that
        is compared on it in succession: turns of a block, and blocks of one prompt, may say the same.
        """
        answers = [(key, answer) for key in self.texts if key[2] != "baseline"
                   for answer in range(len(self.tasks[key[0]].prompts))]  # fmt: skip
        place = {one: number for number, one in enumerate(answers)}

        def text(one: tuple[tuple[int, int, str], int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
            (block, replicate, _), answer = one
            said = self.texts[block, replicate, "baseline"].text(answer)
            return tuple(self.tasks[block].prompts[answer].tokens), tuple(said)

        rows = {place[one]: self._row(*one[0], one[1]) for one in sorted(answers, key=text)}
        return [rows[number] for number in range(len(answers))]

    def _row(self, block: int, replicate: int, arm: str, answer: int) -> dict[str, Any]:
        """Where an answer first differs from the baseline's, and what replaying says about it."""
        task = self.tasks[block]
        left = self.texts[block, replicate, "baseline"].text(answer)
        right = self.texts[block, replicate, arm].said(answer)
        row: dict[str, Any] = {
            "arm": arm, "prompt": task.prompts[answer].id, "stream": answer, "seed": self.seed(task, replicate),
            "n": min(len(left), len(right)), "first_difference": None, "teacher_forced": None,
        }  # fmt: skip
        first = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
        if first is not None:
            compared = self._phases(arm, task, replicate, answer, (first, right[first]))
            rounding = compared
            if self.rounding != "treatment" and arm != "again":
                rounding = self._phases(self.rounding, task, replicate, answer, (first, right[first]))
            row["own_noise"] = own_noise(rounding)
            self._follow(row, first, left, right, compared, rounding)
        return row

    def _phases(self, arm: str, task: Task, replicate: int, answer: int, first: tuple[int, int]) -> list[Comparison]:
        """An arm's replays, one for each row of its window that the first position may be; of the reference's four."""
        shapes = self._shape(arm).phases
        chosen = shapes[:: max(len(shapes) // 4, 1)] if arm == REFERENCE else shapes
        return [self._compare(arm, task, replicate, answer, first, shape) for shape in chosen]

    @property
    def rounding(self) -> str:
        """Whose decodes beside the baseline's are rounding: the treatment's own, unless a build or a setting is tried.

        What that moves is what the grade is about, and excuses nothing.
        """
        return REFERENCE if changes(self.config) else "treatment"

    def _follow(self, row: dict[str, Any], first: int, left: list[int], right: list[int],
                phases: list[Comparison], rounding: list[Comparison]) -> None:
        """The gaps and the noise of the position itself, from the phase that comes nearest to the arm's own token."""
        compared = max(phases, key=lambda one: one.arm_gap[first])
        noise = [one.cdf_noise if self.config.temperature else one.logit_noise for one in rounding]
        row["first_difference"] = {
            "position": first, "token_baseline": left[first], "token_arm": right[first],
            "gap_baseline": compared.baseline_gap[first], "gap_arm": compared.arm_gap[first],
            "noise": max(one[first] for one in noise),
            "quantity": "logit_gap" if self.config.temperature == 0 else "cdf_distance",
        }  # fmt: skip
        row["teacher_forced"] = forced(compared if rounding is phases else rounding[0])
        if rounding is not phases:
            row["arm_forced"] = forced(compared)
