"""The arms of a contrast of servers: what `bench.run.contrast.Trial` asks for, as far as a server can be asked.

A run is a request, or several at once. Its window opens with the first token of any answer and closes with the last of
all. What a server does inside has no rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from bench.plan.settings import Config
from bench.records.rows import UNKNOWN, Piece, Run, Served
from bench.run.arms import Task
from bench.run.replay import Shape
from bench.run.run_rows import AROUND
from bench.run.served.answers import Answer
from bench.run.served.side import Side
from bench.run.sides import BASELINE, TREATMENT, side_of
from pti_loop.ledger import Trace
from pti_loop.methods import METHODS
from pti_loop.settings import Settings


class ServedTrace(Trace):
    """What one run did, told by the times at which its tokens came."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._now = answers[0].sent_ns
        super().__init__(0, lambda: self._now)
        self.answers = answers
        self.begin_ns = min(one.sent_ns for one in answers)
        opened = min(one.first_ns for one in answers)
        for stream, one in enumerate(answers):
            for when, token in list(zip(one.times, one.ids, strict=True))[:1]:
                self._say(stream, 0, token, "prefill", when)
        self._now = opened
        self.open_window()
        rows = [(when, stream, place, token) for stream, one in enumerate(answers)
                for place, (when, token) in enumerate(zip(one.times, one.ids, strict=True)) if place]  # fmt: skip
        for when, stream, place, token in sorted(rows, key=lambda row: row[:3]):
            self._say(stream, place, token, "verified", when)
        self._now = max(one.last_ns for one in answers)
        self.close_window()
        self.prefill_ns = opened - self.begin_ns
        self._now = max(one.finish_ns for one in answers)
        self.finish()

    def _say(self, stream: int, place: int, token: int | None, source: str, when: int) -> None:
        assert token is not None, "ids that a stream left out are filled in before"
        self._now = when
        self.emit(stream, place, token, source)

    @property
    def n_distinct(self) -> int:
        """Tokens behind the first ones, by ids or as the server counts them."""
        return sum(one.tokens - 1 for one in self.answers)


class ServedArms:
    """Both sides, one of which has its turn at a time. `around` reads the sensors right after a run."""

    def __init__(self, sides: Mapping[str, Side], config: Config, around: Callable[[], tuple[float, ...]]) -> None:
        self.sides, self.config, self._around = sides, config, around
        self.method = METHODS[config.method.name]
        self.settings = Settings(config.streams, config.n_predict, "rewind", {})
        self.rollback: dict[str, Any] = {}
        self.rows: list[Served] = []
        self.made = 1
        self.memory: dict[str, dict[str, int]] = {}
        self.beginnings = {"tokens": config.depth, "restored": False, "arms": {},
                           "reason": "a server evaluates the whole prompt of each request"}  # fmt: skip
        self.guesses, self.answers = False, config.streams
        self.shape = Shape(1, "tokens")

    @property
    def guessing(self) -> dict[str, Any]:
        """Whether servers may remember: all do that are started here, and a kept one answers again."""
        return {"remembers": self.sides[TREATMENT].is_here}

    def takes_turns(self) -> bool:
        """False: a request is over before the next one is sent."""
        return False

    def renew(self) -> None:
        """Nothing: a fresh server is one for each run."""

    def controls(self) -> list[str]:
        """None: nobody can plant a guess in a server."""
        return []

    @contextmanager
    def alone(self, name: str) -> Iterator[Side]:
        """The side, while the other one stands still or is gone."""
        for other, side in self.sides.items():
            if other != name:
                side.rest()
        self.sides[name].wake()
        yield self.sides[name]

    def run(self, arm: str, task: Task, seed: int, number: int, answers: Sequence[Sequence[int]] = ((),),
            n_predict: int = 0) -> ServedTrace:  # fmt: skip
        """One run that nobody keeps a record of. Raises `EngineError`."""
        with self.alone(side_of(arm)) as side:
            trace = ServedTrace(side.ask(task.prompts, n_predict or self.settings.n_predict, seed))
        if not self.config.ignore_eos:
            self._note_ends(trace.answers)
        trace.run = number
        return trace

    def _note_ends(self, answers: Sequence[Answer]) -> None:
        """A server does not list the tokens that end an answer: those count that did."""
        seen = {int(one.ids[-1] or 0) for one in answers if one.ended and one.ids}
        self.settings = replace(self.settings, ends=tuple(sorted({*self.settings.ends, *seen})))

    def measure(self, arm: str, task: Task, order: int, seed: int, number: int, n_predict: int,
                answers: Sequence[Sequence[int]] = ((),), name: str = "") -> tuple[Run, Trace]:  # fmt: skip
        """One run with its record, and what its server says of it. Raises `EngineError`, `RecordError`."""
        others = [side for key, side in self.sides.items() if key != side_of(arm)]
        before, began = sum(side.cpu_seconds() for side in others), time.monotonic()
        trace = self.run(arm, task, seed, number, n_predict=n_predict)
        idle = (sum(side.cpu_seconds() for side in others) - before) / (time.monotonic() - began)
        starts = self.sides[side_of(arm)].starts
        self.rows += [served_row(number, stream, one, starts) for stream, one in enumerate(trace.answers)]
        return self._row(trace, name or arm, task, order, seed, n_predict, idle), trace

    def _row(self, trace: ServedTrace, arm: str, task: Task, order: int, seed: int, n_predict: int,
             idle: float) -> Run:  # fmt: skip
        clock_mhz, temp_c, *rest = self._around()
        around: dict[str, Any] = dict(zip(AROUND, rest, strict=False))
        prompt, cached = [one.n_prompt for one in trace.answers], [one.n_cached for one in trace.answers]
        known = None not in prompt and None not in cached
        n_prompt = sum(told if told is not None else len(one.tokens)
                       for told, one in zip(prompt, task.prompts, strict=True))  # fmt: skip
        return Run(
            run=trace.run, block=task.block, order=order, arm=arm, prompt=task.name, prompt_class=task.kind, seed=seed,
            n_prompt=n_prompt, n_prompt_evaluated=n_prompt - sum(filter(None, cached)) if known else UNKNOWN,
            n_predict=n_predict, prefill_ns=trace.prefill_ns, start_ns=trace.start_ns or 0, end_ns=trace.end_ns,
            decode_window_ns=trace.window_ns, clock_mhz=clock_mhz, temp_c=temp_c, begin_ns=trace.begin_ns,
            finish_ns=trace.finish_ns, idle_cpus=idle, **around,
        )  # fmt: skip

    def measure_turns(self, arms: Sequence[str], task: Task, order: int, seed: int, number: int, n_predict: int,
                      chunk: int) -> list[tuple[Run, Trace, list[Piece]]]:  # fmt: skip
        """Raises NotImplementedError: nobody asks for it where `takes_turns` says no."""
        raise NotImplementedError("servers take no turns")

    def replay(self, arm: str, prompt: Sequence[int], tokens: Sequence[int], shape: Shape) -> Iterator[np.ndarray]:
        """Raises NotImplementedError: a server tells no logits but those of its most likely tokens."""
        raise NotImplementedError("a server has no logits to give")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """One fresh server of the treatment's side for all runs inside."""
        with self.alone(TREATMENT) as side, side.held():
            yield

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the servers say of themselves, by arm."""
        return {arm: self.sides[side_of(arm)].facts for arm in (BASELINE, "again", TREATMENT)}

    def close(self) -> None:
        """End the servers."""
        for side in self.sides.values():
            side.close()


def served_row(run: int, stream: int, one: Answer, starts: int) -> Served:
    """What is kept of an answer."""
    times = one.timings

    def told(name: str, missing: float) -> float:
        return float(times[name]) if name in times else missing

    prompt, cached = (UNKNOWN if value is None else value for value in (one.n_prompt, one.n_cached))
    return Served(
        run, stream, one.sent_ns, one.first_ns, one.last_ns, one.finish_ns, len(one.arrived), int(one.told or 0),
        one.digest, prompt, cached,
        told("prompt_ms", float("nan")), told("predicted_ms", float("nan")), int(told("draft_n", UNKNOWN)),
        int(told("draft_n_accepted", UNKNOWN)), starts,
    )  # fmt: skip
