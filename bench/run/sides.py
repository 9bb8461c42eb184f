"""The arms of a contrast whose two sides each have a process: two builds of the engine, or two ways to load a model.

The processes take turns. Whichever is not told to do something is stopped, so that no thread of it spins beside the
other, and what it used all the same is in each run's record. It measures nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.plan.settings import Config
from bench.records.rows import Piece, Run
from bench.run.arms import OF_BASELINE, REFERENCE, Task
from bench.run.beginnings import together
from bench.run.replay import Shape
from bench.run.side import Side
from bench.run.side_words import About, Opened
from bench.run.turns import take_turns
from pti_loop.ledger import Trace
from pti_loop.methods import METHODS

BASELINE, TREATMENT = "baseline", "treatment"
HELD = {BASELINE: OF_BASELINE, TREATMENT: (TREATMENT,)}
"""The arms that each side makes contexts for; all others of the treatment share its context."""


def side_of(arm: str) -> str:
    """Which side runs an arm."""
    return BASELINE if arm in (*OF_BASELINE, REFERENCE) else TREATMENT


class Elsewhere:
    """A run that is open in a side's process, and what the other side took while this one had its turns."""

    def __init__(self, sides: Sides, arm: str, begun: tuple[Any, ...]) -> None:
        self.arm, self.side, self.over = arm, sides.sides[side_of(arm)], False
        self._waiting = [one for one in sides.sides.values() if one is not self.side]
        self._begun = begun
        self.idle_s = self.busy_s = 0.0

    def prefill(self) -> None:
        """Up to where its window opens."""
        self.side.call("begin", self.arm, *self._begun)

    def take_turn(self, turn: int, tokens: int) -> None:
        """Go on until `tokens` of each answer are out."""
        before, began = sum(one.cpu_seconds() for one in self._waiting), time.monotonic()
        self.over = self.side.call("turn", self.arm, turn, tokens)
        self.busy_s += time.monotonic() - began
        self.idle_s += sum(one.cpu_seconds() for one in self._waiting) - before


class Sides:
    """The arms of a contrast, of which each side has its own process: what `bench.run.contrast.Trial` asks for.

    `together`: both stay loaded; else each is loaded again whenever its turn comes, and warmed up.
    """

    def __init__(self, sides: Mapping[str, Side], config: Config, job: dict[str, Any], together: bool) -> None:
        self.sides, self.config, self._job, self._together = sides, config, job, together
        self.method = METHODS[config.method.name]
        self._text: Sequence[int] | None = None
        self._warm: dict[str, tuple[Any, ...]] = {}
        self._logs: dict[str, str] = {}
        self.about: dict[str, About] = {}
        self._opened: dict[str, Opened] = {}
        self._evaluates = ""
        """Why both sides evaluate what all prompts begin with, since one has to."""
        self._facts: dict[str, dict[str, Any]] = {}
        self.made = 0

    def load(self) -> About:
        """Load both sides, or the first to see that it loads. Returns what the baseline's says of its model."""
        for name in self.sides:
            self._side(name)
        return self.about[BASELINE]

    def open(self, text: Sequence[int]) -> Sides:
        """Make the contexts of all arms. `text` is what the method may be tried on. Raises `EngineError`."""
        self._text = text
        for name in self.sides:
            self._side(name)
            if name not in self._opened:
                self._open(name)
        found = self._opened[TREATMENT]
        self.settings, self.rollback = found.settings, found.rollback
        self.made += 1
        return self

    def renew(self) -> None:
        """All contexts anew; one side alone has them so whenever it is loaded again."""
        assert self._text is not None, "the arms are opened first"
        for name, side in self.sides.items():
            if side.is_open:
                self._open(name)
        self.made += 1

    def _open(self, name: str) -> None:
        """Make a side's contexts. Where one side has to evaluate what all prompts begin with, the other does, too."""
        self._opened[name] = found = self.sides[name].call("open", self._text, HELD[name])
        self._evaluates = self._evaluates or found.evaluates
        if self._evaluates:
            for side in self.sides.values():
                if side.is_open:
                    side.call("evaluate_beginnings", self._evaluates)

    def _side(self, name: str) -> Side:
        """A side, loaded; the other one goes where memory is short. One that comes back is warmed up."""
        side = self.sides[name]
        if side.is_open:
            return side
        if not self._together:
            for other in self.sides:
                self._leave(other)
        side.start()
        self.about[name] = side.call("load", self._job | {"side": name})
        if self._text is not None:
            self._open(name)
        for arm, arguments in self._warm.items():
            if side_of(arm) == name:
                side.call("run", arm, *arguments)
        return side

    def _leave(self, name: str) -> None:
        if self.sides[name].is_open:
            if name in self._opened:
                self._facts[name] = self.sides[name].call("told")
            self.sides[name].close()

    @property
    def guesses(self) -> bool:
        """Whether the method proposes tokens that may be wrong."""
        return self.method.guesses(self.settings)

    @property
    def guessing(self) -> dict[str, Any]:
        """What the drafter says of itself."""
        found: dict[str, Any] = self.told(TREATMENT)["drafter"]
        return found

    @property
    def shape(self) -> Shape:
        """How the treatment decodes."""
        return Shape(self.method.width(self.settings), self.method.layout(self.settings))

    @property
    def answers(self) -> int:
        """Answers that the method decodes at once."""
        return self.method.answers(self.settings)

    def takes_turns(self) -> bool:
        """Whether runs of both sides may be open at once: where both stay loaded."""
        return self._together and self.method.takes_turns

    def measure_turns(self, arms: Sequence[str], task: Task, order: int, seed: int, number: int, n_predict: int,
                      chunk: int) -> list[tuple[Run, Trace, list[Piece]]]:
        """Some runs that take turns of `chunk` tokens, each in its side's process while the other one stands still."""
        began, before = time.monotonic(), self._used()
        runs = [Elsewhere(self, arm, (task, seed, number + place, n_predict)) for place, arm in enumerate(arms)]
        take_turns(runs, chunk)
        took = {name: used - before[name] for name, used in self._used().items()}
        span, found = time.monotonic() - began, []
        # The system tells CPU time in hundredths of a second, so that one run's turns are too short for it.
        idle = sum(run.idle_s for run in runs) / sum(run.busy_s for run in runs)
        for place, run in enumerate(runs):
            row, trace, pieces = run.side.call("end", run.arm, task, order + place, seed, n_predict)
            of_others = sum(used for name, used in took.items() if name != run.side.name) / span
            others = max(row.other_cpus - of_others, 0.0)  # a side takes all of the other's turns for a neighbour's
            found.append((replace(row, other_cpus=others, idle_cpus=idle), trace, pieces))
        return found

    def _used(self) -> dict[str, float]:
        """CPU time of each side's process."""
        return {name: side.cpu_seconds() for name, side in self.sides.items()}

    def controls(self) -> list[str]:
        """Arms that only the control blocks run."""
        return list(self._opened[TREATMENT].controls)

    def run(self, arm: str, task: Task, seed: int, number: int, answers: Sequence[Sequence[int]] = ((),),
            n_predict: int = 0) -> Trace:
        """One run of an arm that nobody keeps a record of."""
        found: Trace = self._side(side_of(arm)).call("run", arm, task, seed, number, answers, n_predict)
        self._warm.setdefault(arm, (task, seed, number, answers, n_predict))
        return found

    def measure(self, arm: str, task: Task, order: int, seed: int, number: int, n_predict: int,
                answers: Sequence[Sequence[int]] = ((),), name: str = "") -> tuple[Run, Trace]:
        """One run with its record, and in it the CPU time that the other side's process took meanwhile."""
        side = self._side(side_of(arm))
        others = [one for one in self.sides.values() if one is not side and one.is_open]
        before, began = sum(one.cpu_seconds() for one in others), time.monotonic()
        run, trace = side.call("measure", arm, task, order, seed, number, n_predict, answers, name)
        idle = (sum(one.cpu_seconds() for one in others) - before) / (time.monotonic() - began)
        return replace(run, idle_cpus=idle), trace

    def replay(self, arm: str, prompt: Sequence[int], tokens: Sequence[int], shape: Shape) -> Iterator[np.ndarray]:
        """Logits before each token of an answer, decoded on the arm's context in this shape."""
        side = self._side(side_of(arm))
        rows = (np.frombuffer(row, dtype=np.float32) for row in side.rows("rows", arm, prompt, tokens, shape))
        # The other replay that this is compared with may need the memory, or is of the very same process.
        return rows if self._together and arm == TREATMENT else iter(list(rows))

    def read_speed(self, step_bytes: int, repeats: int) -> dict[str, Any]:
        """Read bandwidth of the memory that holds the weights, by the baseline's side."""
        found: dict[str, Any] = self._side(BASELINE).call("speed", step_bytes, repeats)
        return found

    def told(self, name: str) -> dict[str, Any]:
        """What a side says of itself: engine, drafter, process, log."""
        if not self.sides[name].is_open and name in self._facts:
            return self._facts[name]
        found: dict[str, Any] = self._side(name).call("told")
        return found

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the engine made of each arm's context."""
        return {arm: facts for name in self.sides for arm, facts in self.told(name)["engine"].items()}

    @property
    def memory(self) -> dict[str, dict[str, int]]:
        """What each arm took of its side's process and of the cards."""
        return {arm: held for name in self.sides for arm, held in self.told(name)["memory"].items()}

    @property
    def beginnings(self) -> dict[str, Any]:
        """Of what all prompts begin with: how each side evaluated it."""
        return together([self.told(name)["beginning"] for name in self.sides])

    def close(self) -> None:
        """Keep what the sides say of themselves, and end their processes."""
        try:
            for name in self.sides:
                self._leave(name)
        finally:
            for side in self.sides.values():
                side.close()

    def kept(self) -> dict[str, dict[str, Any]]:
        """What each side said of itself in the end."""
        return self._facts
