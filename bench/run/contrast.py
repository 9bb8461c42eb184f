"""One contrast: balanced blocks of runs, then the untimed replays that say what differences were worth.

It runs on any model that keeps `pti_loop.engine`'s promises, a toy one too. It judges nothing and writes no file.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from bench.plan.settings import Config
from bench.plan.treatment import changes
from bench.records.arms import APART
from bench.records.contexts import anew
from bench.records.drawn import Drawn
from bench.records.stopping import FIXED
from bench.run.arms import Arms, Prompt, Task
from bench.run.differences import Differences, Texts
from bench.run.draw_counts import Distribution
from bench.run.kept import run_kept
from bench.run.padded import compare_padded
from bench.run.repeats import Kept, Repeats, free_cpus
from bench.run.result import Result
from bench.run.tasks import further, tasks, unlike
from bench.run.trial import Trial, here
from bench.run.until import Until, of_block
from pti_loop.engine import Model
from pti_loop.ledger import Trace

Progress = Callable[[float, str], None]
TURNING = ("baseline", "again", "treatment")
"""Arms with a context of their own; the others share the treatment's, in which one run can be open."""


class Contrast:
    """The runs of one cell. `sample` reads (clock MHz, temperature C); `progress` hears the share that is done.

    The arms are on `model`, in this process. Where they are elsewhere (`bench.run.sides`), `open_arms` opens them, once
    it is told a text that the method may be tried on.

    Prompts come in an order drawn from `name`, and so do the arms of each block, of which half begin with the baseline.
    One prompt is decoded before anything else has seen it, again, and once more in the end: what a method carries over
    from one run to the next shows there. All contexts are made `measure.contexts` times in the course of the blocks.
    With `measure.until` the blocks of the plan are followed by passes, each a block of every one of its tasks, until
    the rule says that they are enough.
    """

    def __init__(self, model: Model | None, config: Config, prompts: list[Prompt], name: str,
                 sample: Callable[[], tuple[float, ...]], progress: Progress,
                 open_arms: Callable[[Sequence[int]], Trial] | None = None) -> None:  # fmt: skip
        self.config, self.progress, self.prompts = config, progress, prompts
        self.drawn = Drawn(name)
        self.plan = self.planned(prompts)
        self.tasks: list[Task] = []
        self.anew: set[int] = set()
        self._plan_pass()
        self.carried = self.tasks[-1]
        unseen = (prompt for prompt in prompts if prompt not in self.carried.prompts)
        self.arms = (open_arms or here(model, config, sample))(
            next(unseen, unlike(prompts[0], config.depth)).tokens)
        self.repeats = Repeats(config.measure.repeats, free_cpus(config)) if self.repeatable else None
        takes = config.measure.chunk > 0 and self.arms.takes_turns()
        self.turning = TURNING if takes else ()
        self.result = Result()
        self.texts: Texts = {}

    def run(self, close: bool = True) -> Result:
        """Warm up, run the blocks, replay the differences. The contexts are freed in the end, unless they are kept."""
        try:
            self._warm_up()
            self._carry(0)
            self._carry(1)
            measure, blocks = self.config.measure, len(self.tasks)
            again = self.drawn.in_each_context(blocks, measure.again_blocks, self.anew)
            controlled = self.drawn.chosen(blocks, measure.control_blocks if self.arms.controls() else 0)
            facts = self.result.facts
            facts["stopping"] = self._blocks(again, controlled)
            facts |= {"repeated": self.repeats.facts()} if self.repeats else {}
            facts["untimed"] = self._untimed(further(self.prompts, self.config))
            self._carry(2)
            self._run_kept()
            self._carried_last()
            facts |= {"ends": list(self.arms.settings.ends)} if self.arms.settings.ends else {}
            facts["turns"] = {"chunk": self.config.measure.chunk if self.turning else 0, "arms": list(self.turning)}
            facts["engine"] = self.arms.facts()
            facts |= {"beginning": self.arms.beginnings} if self.config.depth else {}
            facts |= {"held": self.arms.memory} if self.arms.memory else {}
            facts["rollback"] = self.arms.rollback
            facts["drafter"] = self.arms.guessing
            facts["lossless"], facts["noise"] = self._replays()
            if isinstance(self.arms, Arms) and not changes(self.config):  # a changed setting is graded by its own rule
                facts["padded"] = compare_padded(self.arms, self._graded(controlled))
            if self.config.measure.distribution and self.config.temperature > 0:
                self._count_draws()
        finally:
            if close:
                self.arms.close()
        return self.result

    @property
    def repeatable(self) -> bool:
        """Whether runs that others disturbed are done again: where the other arm's process is not one of the others."""
        return self.config.measure.repeats > 0 and isinstance(self.arms, Arms)

    def planned(self, prompts: list[Prompt]) -> list[Task]:
        """Blocks of one pass."""
        return tasks(prompts, self.config, independent=self.config.method.spec.answers == "independent")

    def _plan_pass(self) -> None:
        """Another block of every task of the plan, in an order of its own. Of these half begin with the baseline."""
        first, count = len(self.tasks), len(self.plan)
        drawn = self.drawn.plan_pass(self.plan)
        self.tasks += [replace(task, block=first + place) for place, task in enumerate(drawn)]
        self.anew = anew(count, len(self.tasks), self.config.measure.contexts)

    def _blocks(self, again: set[int], controlled: set[int]) -> dict[str, Any]:
        """Run all blocks. Returns why there are no more of them, and what they took."""
        measure, began, done, why = self.config.measure, time.monotonic(), 0, FIXED
        rule = Until(measure.until, 60 * measure.budget, self.arms.answers) if measure.until else None
        if rule:
            rule.begin()
        while True:
            for task in self.tasks[done:]:
                self._block(task, task.block in again, task.block in controlled)
                done += 1
                if rule:
                    rule.block(*(of_block(self.texts, task.block, arm) for arm in ("treatment", "baseline")))
                share = rule.share(len(self.plan)) if rule else done / len(self.tasks)
                self.progress(0.05 + 0.8 * share, f"block {done}" + ("" if rule else f" of {len(self.tasks)}"))
            if rule is None or (why := rule.after_pass()):
                break
            self._plan_pass()
        return rule.facts(why) if rule else {"why": why, "seconds": time.monotonic() - began}

    def _untimed(self, prompts: Sequence[Prompt]) -> list[dict[str, Any]]:
        """What the treatment does with further prompts: tokens and rounds by their shape, and no time."""
        rows = []
        for place, prompt in enumerate(prompts):
            task = Task(len(self.tasks) + 1 + place, (prompt,))
            trace = self.arms.run("treatment", task, self._seed(task, 0), -1)
            shapes = Counter((row.width, row.redecoded) for row in trace.rounds())
            rows.append({"prompt": prompt.id, "class": prompt.kind, "tokens": trace.n_distinct, "rounds": [
                {"width": width, "redecoded": again, "count": count} for (width, again), count in sorted(shapes.items())
            ]})  # fmt: skip
        return rows

    def _carried_last(self) -> None:
        """The carried prompt's block is behind all others, whose number shows only in the end."""
        rows = self.result.tables["runs"]
        last = {arm: len(self.tasks) + place for place, arm in enumerate(APART)}
        rows[:] = [replace(row, block=last.get(row.arm, row.block)) for row in rows]

    def _count_draws(self) -> None:
        """The distribution test's runs, from the prefix that suits it best of those that the treatment came by."""
        assert isinstance(self.arms, Arms), "the plan refuses the test where each arm has a process of its own"
        found = [(self.tasks[block], trace) for (block, _, arm), trace in self.texts.items() if arm == "treatment"]
        test = Distribution(self.arms, self.config, found, self.progress)
        self.result.tables["counts"], self.result.facts["distribution"] = test.run()

    def _warm_up(self) -> None:
        """Every arm once, short, so that each width that will be timed has been decoded.

        A method may guess rarely; under sabotage it guesses in every round, and all widths come up towards the end.
        The text is none that the carried prompt will be decoded with.
        """
        length = max(self.config.measure.warmup_tokens, self.arms.method.width(self.arms.settings) + 1)
        for arm in ("baseline", "again", "treatment", *self.arms.controls()[:1]):
            self.arms.run(arm, self._other_task(), seed=0, number=-1, n_predict=length)

    def _other_task(self) -> Task:
        """A task without a prompt of the carried one."""
        carried = set(self.carried.prompts)
        others = (task for task in self.tasks if carried.isdisjoint(task.prompts))
        turned = tuple(unlike(prompt, self.config.depth) for prompt in self.carried.prompts)
        return next(others, replace(self.carried, prompts=turned))

    def _carry(self, order: int) -> None:
        """The carried prompt as any run of the treatment, in a block of its own behind all others."""
        if order == 2 and len(self.plan) == 1:  # nothing else came between
            self.arms.run("treatment", self._other_task(), seed=0, number=-1)
        task, seed = replace(self.carried, block=len(self.tasks)), self._seed(self.carried, 0)
        self._measure("carry", task, order, seed, self.config.n_predict)

    def _run_kept(self) -> None:
        if isinstance(self.arms, Arms):
            run_kept(self.arms, self.carried, self.prompts, self.config.n_predict, self._kept)

    def _kept(self, order: int) -> None:
        """The carried prompt, with whatever the method has kept."""
        self._measure("kept", self.carried, order, self._seed(self.carried, 0), self.config.n_predict)

    def _graded(self, blocks: Iterable[int]) -> list[tuple[Task, int]]:
        """Tasks of these blocks, each with the seed of its first turn."""
        return [(self.tasks[block], self._seed(self.tasks[block], 0)) for block in sorted(blocks)]

    def _measure(self, arm: str, task: Task, order: int, seed: int, length: int,
                 known: Sequence[Sequence[int]] = ((),)) -> Trace:  # fmt: skip
        """Run an arm once and keep it."""
        number = len(self.result.tables["runs"])
        held = "treatment" if arm in APART else arm

        def once() -> Kept:
            run, trace = self.arms.measure(held, task, order, seed, number, length, known, arm)
            return [(run, trace, ())]

        # What is about memory, of a text or of what came before, can be seen once.
        ((run, trace, _),) = self.repeats.runs(once) if self.repeats and arm not in APART else once()
        self.result.add(replace(run, context=self.arms.made - 1), trace)
        return trace

    def _in_turns(self, arms: Sequence[str], task: Task, first: int, seed: int) -> None:
        """Run some arms that take turns, from place `first` of the block on, and keep them."""
        number, length = len(self.result.tables["runs"]), self.config.n_predict

        def once() -> Kept:
            return self.arms.measure_turns(arms, task, first, seed, number, length, self.config.measure.chunk)

        for run, trace, pieces in self.repeats.runs(once) if self.repeats else once():
            self.result.add(replace(run, context=self.arms.made - 1), trace, pieces)
            self.texts[task.block, seed - self._seed(task, 0), run.arm] = trace

    def _block(self, task: Task, again: bool, controls: bool) -> None:
        if task.block in self.anew:
            self.arms.renew()
            self._warm_up()
        more = [*(["again"] if again else []), *(self.arms.controls() if controls else [])]
        arms = self.drawn.arms(task.block, more, self.turning)
        known = self._known(task) if controls and self.arms.guesses else {}
        turning = [arm for arm in arms if arm in self.turning]
        for replicate in (0, 1):
            seed, half = self._seed(task, replicate), -1 if replicate else 1
            # Those that take turns lie outside, so that a block is a palindrome of arms all the same.
            steps = [turning, *([arm] for arm in arms if arm not in turning)][::half]
            place = replicate * len(arms)
            for group in filter(None, steps):
                if group is turning:
                    self._in_turns(group[::half], task, place, seed)
                else:
                    known_here = known.get(replicate, ((),))
                    trace = self._measure(group[0], task, place, seed, self._length(group[0]), known_here)
                    self.texts[task.block, replicate, group[0]] = trace
                place += len(group)

    def _length(self, arm: str) -> int:
        """Tokens that an arm decodes; sabotage and oracle may be shorter, since what they show needs few."""
        full = self.config.n_predict
        short = self.config.measure.control_tokens or full
        return min(short, full) if arm in ("sabotage", "oracle") else full

    def _known(self, task: Task) -> dict[int, list[list[int]]]:
        """What oracle and sabotage know: the method's own verified answers, decoded untimed.

        It is longer than what they will say, since the last guesses of a run are never verified.
        """
        length = self._length("oracle") + self.arms.method.width(self.arms.settings)
        runs = {r: self.arms.run("treatment", task, self._seed(task, r), -1, n_predict=length) for r in range(2)}
        answers = range(len(task.prompts))
        return {r: [trace.text(answer, verified_only=True) for answer in answers] for r, trace in runs.items()}

    def _seed(self, task: Task, replicate: int) -> int:
        """Both arms of a replicate share it, so that they draw from the same random numbers."""
        return self.config.seed * 1_000_003 + 2 * task.block + replicate

    def _replays(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Facts about every pair of texts, and the noise measured on the way."""
        told = Differences(self.arms, self.config, self.tasks, self.texts, self._seed).told()
        self.progress(1.0, "replays")
        return told
