"""A profile times both layouts in the steady state, and keeps what a change of width takes apart from it."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from bench.judge.measure.curve import curves
from bench.plan.settings import Config, EngineConfig
from bench.records.rows import Step
from bench.run import settling
from bench.run.step_times import step_costs
from pti_loop.fake import FakeModel, Faults
from tests.judge.judge_cells import frame

STEP = 16_000_000


class Graphs:
    """A device that captures a graph in the third decode of a width: 40, 16, 27.5, then 16 ms at every width."""

    def __init__(self) -> None:
        self.width, self.age = 0, 0

    def __call__(self, width: int) -> int:
        self.age = self.age + 1 if width == self.width else 0
        self.width = width
        return round(STEP * {0: 2.5, 2: 27.5 / 16}.get(self.age, 1.0))


def settings(widths: int = 4, passes: int = 2, n_ctx: int = 512) -> Config:
    made = Config(engine=EngineConfig(threads=1, n_ctx=n_ctx))
    made.measure.step_widths, made.measure.step_passes = widths, passes
    return made


def profile(step_ns: Callable[[int], int], config: Config | None = None, faults: Faults | None = None) -> list[Step]:
    model = FakeModel(step_ns=step_ns, faults=faults or Faults())
    return step_costs(model, config or settings(), "order", lambda *_: None)


def test_graphs_that_are_captured_in_the_third_decode_are_in_no_cost() -> None:
    steps = profile(Graphs())
    assert {step.decode_ns for step in steps if step.settled} == {STEP}
    wide = [step for step in steps if step.width == 4 and not step.settled]
    assert sum(step.decode_ns == 27_500_000 for step in wide) == 4, "once for each layout and pass"
    for curve in curves(frame("steps", steps)):
        assert curve.relative[4].ratio == pytest.approx(1.0)
        assert curve.change[4].extra_ms == pytest.approx(24.0 + 11.5)


def test_both_layouts_are_timed_and_width_1_in_both() -> None:
    steps = profile(lambda width: 1000 * width, settings(widths=16))
    widths = {name: {step.width for step in steps if step.layout == name} for name in ("sequences", "tokens")}
    assert widths["sequences"] == {*range(1, 9), 10, 12, 16}
    assert widths["tokens"] == {1, 2, 3, 4, 6, 8, 9, 12, 16}
    assert [step.order for step in steps] == list(range(len(steps)))
    for curve in curves(frame("steps", steps)):
        assert curve.relative[16].ratio == pytest.approx(16.0)


def test_a_window_is_decoded_at_one_depth_again_and_again() -> None:
    depths = {step.n_past for step in profile(lambda width: 1000) if step.layout == "tokens"}
    assert depths == {32}


def test_a_memory_that_does_not_rewind_says_how_deep_each_window_was() -> None:
    steps = [step for step in profile(lambda width: 1000, faults=Faults(no_rewind=True)) if step.layout == "tokens"]
    for width in (2, 4):
        depths = [step.n_past for step in steps if step.width == width]
        assert depths == 2 * [32 + width * place for place in range(len(depths) // 2)], "from a fresh text each time"


def test_no_sequence_is_idle() -> None:
    """An idle sequence would make each step dearer, whichever the layout."""
    steps = profile(lambda width: 1000, faults=Faults(idle_ns=7))
    assert {step.decode_ns for step in steps} == {1000}


@pytest.mark.parametrize("n_ctx", [8, 16, 40])
def test_a_short_context_is_not_overrun(n_ctx: int) -> None:
    for faults in (Faults(), Faults(no_rewind=True)):
        steps = profile(lambda width: 1000, settings(widths=12, n_ctx=n_ctx), faults)
        assert max(step.n_past + (step.width if step.layout == "tokens" else 1) for step in steps) <= n_ctx
        assert {step.width for step in steps if step.layout == "sequences" and step.settled} == {*range(1, 9), 10, 12}


def test_a_series_ends_when_it_is_flat_and_not_before() -> None:
    assert settling.done([40, 16, 16, 16, 16, 16], 2)
    assert not settling.done([40, 16, 16, 16, 16], 2)
    assert not settling.done([40, 16, 27, 16, 16, 16], 2), "one long decode is no noise of both halves"
    assert not settling.done([20, 19, 18, 17, 16, 15], 2)
    assert settling.done([20] * 2 + [19, 18, 17, 16, 15, 15, 15, 15], 2)


def test_a_series_that_never_becomes_flat_ends() -> None:
    times = [1.5**-place for place in range(100)]
    count = next(count for count in range(1, 100) if settling.done(times[:count], 2))
    assert count == settling.MOST + 4
    assert settling.first_settled(times[:count], 2) == settling.MOST


def test_noise_of_a_few_percent_costs_few_decodes_and_no_bias() -> None:
    """Waiting for chance agreement must not choose among the values: their mean stays that of the machine."""
    draw, lengths, kept = random.Random(1), [], []
    for _ in range(4000):
        times: list[float] = []
        while not settling.done(times, 2):
            times.append(draw.gauss(100, 7))
        lengths.append(len(times))
        kept += times[settling.first_settled(times, 2) :]
    assert np.mean(lengths) < 9
    assert np.mean(kept) == pytest.approx(100, rel=0.005)
