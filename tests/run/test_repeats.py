"""Runs that others took CPU time from are done again, by what ran beside and not by what they took, within a budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from bench.judge import judge
from bench.plan.settings import Config
from bench.records.cells import load_cell, write_cell
from bench.run import contrast
from bench.run.contrast import Contrast
from bench.run.repeats import LASTING, SPARE_S, Repeats, free_cpus
from bench.run.step_times import step_costs
from pti_loop.fake import FakeModel
from tests.judge.judge_cells import frame
from tests.run.test_contrast import MS, PROMPTS, config, everything, judged, toy, voids

BURST = 3.0
"""How much slower everything is while somebody else has the CPU."""


class Machine:
    """A toy whose sensors say what runs beside, and whose decodes are slow meanwhile. `busy` tells it of a moment."""

    def __init__(self, busy: Sequence[bool] | itertools.cycle) -> None:
        self.busy = iter(busy)
        self.now = next(self.busy)
        self.model = FakeModel(step_ns=lambda width: int(
            10 * MS * (1 + 0.3 * (width - 1)) * (BURST if self.now else 1.0)))  # fmt: skip

    def sample(self) -> tuple[float, ...]:
        """Read right after a run; the machine may be another before the next one."""
        around = (0.0, 0.0, 1.0, 0.8 if self.now else 0.02, 0.0)
        self.now = next(self.busy, False)
        return around

    def repeats(self, share: float, free: float) -> Repeats:
        return Repeats(share, free, self.look, sleep=lambda _: None)

    def look(self) -> float:
        return 0.0


def measured(machine: Machine, monkeypatch, settings: Config | None = None):
    monkeypatch.setattr(contrast, "Repeats", machine.repeats)
    monkeypatch.setattr(contrast, "free_cpus", lambda _: 0.0)
    settings = settings or config("packed", 2)
    return Contrast(machine.model, settings, PROMPTS, "order", machine.sample, lambda *_: None).run()


def every(count: int) -> itertools.cycle:
    return itertools.cycle([False] * (count - 1) + [True])


@pytest.mark.parametrize("chunk", [0, 4])
def test_disturbed_runs_are_done_again_and_the_ratio_is_the_quiet_machines(monkeypatch, tmp_path, chunk):
    settings = config("packed", 2)
    settings.measure.chunk = chunk
    found = {}
    for name, busy in (("quiet", itertools.repeat(False)), ("bursts", every(5))):
        machine = Machine(busy)
        monkeypatch.setattr(contrast, "Repeats", machine.repeats)
        monkeypatch.setattr(contrast, "free_cpus", lambda _: 0.0)
        found[name] = judged(tmp_path / name, machine.model, settings, machine.sample)
    quiet, bursts = map(everything, found.values())
    assert not voids(found["bursts"]), [one["sentence"] for one in found["bursts"].controls]
    assert bursts["speedup"] == pytest.approx(quiet["speedup"], rel=1e-6)
    assert bursts["noise_high"] / bursts["noise_low"] == pytest.approx(quiet["noise_high"] / quiet["noise_low"])
    (told,) = [one for one in found["bursts"].controls if one["control"] == "repeated"]
    assert told["severity"] == "ok" and "0.80 CPUs" in told["sentence"] and told["value"] >= 3


def test_what_was_not_kept_is_listed_with_its_rounds(monkeypatch):
    result = measured(Machine(every(4)), monkeypatch)
    told = result.facts["repeated"]
    assert told["attempts"] and not told["lasting"]
    for one in told["attempts"]:
        assert one["other_cpus"] == 0.8 and len(one["rounds_ns"]) > 20
        (kept,) = [run for run in result.tables["runs"] if (run.block, run.order) == (one["block"], one["order"])
                   and run.arm == one["arm"]]  # fmt: skip
        assert one["window_ns"] > 2 * kept.decode_window_ns and kept.other_cpus == 0.02


def test_a_load_that_lasts_is_not_waited_for(monkeypatch):
    result = measured(Machine(itertools.repeat(True)), monkeypatch)
    told = result.facts["repeated"]
    assert told["lasting"] and len(told["attempts"]) == LASTING - 1


def test_runs_that_are_slow_by_themselves_are_kept(monkeypatch):
    """What a run takes decides nothing: else the slower half of all noise would go, of one arm more than of another."""
    steps = itertools.cycle([1.0, 1.0, 1.0, 4.0])
    machine = Machine(itertools.repeat(False))
    machine.model = FakeModel(step_ns=lambda width: int(10 * MS * next(steps)))
    assert measured(machine, monkeypatch).facts["repeated"]["attempts"] == []


def test_the_budget_is_seconds_of_what_is_kept(monkeypatch):
    """Every other attempt is disturbed and takes 30 s, the others 10 s: the first may be repeated, and then one in so
    many as their seconds pay for."""
    clock, found = [0.0], []
    repeats = Repeats(0.5, 0.0, lambda: 0.0, lambda _: None, lambda: clock[0])
    disturbed = itertools.cycle([True, False])
    for _ in range(200):
        def once(busy: bool) -> bool:
            clock[0] += SPARE_S / 2 if busy else SPARE_S
            return busy
        found.append(repeats._quiet(lambda: once(next(disturbed)), lambda busy: busy, lambda _: [{}]))
    spent, kept = repeats.spent_s, repeats.kept_s
    assert SPARE_S < spent <= SPARE_S + 0.5 * kept
    assert not any(found), "half of what is kept pays for as many repeats of half its length"
    dear = Repeats(0.1, 0.0, lambda: 0.0, lambda _: None, lambda: clock[0])
    found = [dear._quiet(lambda: once(next(disturbed)), lambda busy: busy, lambda _: [{}]) for _ in range(200)]
    assert 100 < sum(not one for one in found) < 160 and dear.spent_s <= SPARE_S + 0.1 * dear.kept_s


def test_none_are_repeated_where_nobody_asked(monkeypatch):
    settings = config("packed", 2)
    settings.measure.repeats = 0.0
    result = measured(Machine(every(2)), monkeypatch, settings)
    assert "repeated" not in result.facts


def test_a_kept_run_that_others_disturbed_is_named(tmp_path):
    folder = judged(tmp_path, toy(), config("packed", 2)) and next(tmp_path.glob("*/*/status.json")).parent
    cell = load_cell(folder)
    runs = {name: values.copy() for name, values in cell.runs.items()}
    runs["other_cpus"][:] = 0.7
    runs["steal"][:] = 0.1
    cell.facts["repeated"] = {"share": 0.5, "free_cpus": 0.0, "lasting": True, "attempts": []}
    found = judge([type(cell)(**{**{name: getattr(cell, name) for name in cell.__dataclass_fields__}, "runs": runs})])
    (told,) = [one for one in found.controls if one["control"] == "repeated"]
    assert told["severity"] == "warning" and "the load lasted" in told["sentence"] and "0.80 CPUs" in told["sentence"]


def test_cpus_that_a_decode_leaves_free_are_no_loss(monkeypatch):
    settings = config("packed", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    settings.engine.threads, settings.engine.n_gpu_layers = 12, 0
    assert free_cpus(settings) == 4


def test_waiting_ends_when_the_machine_is_quiet_or_patience_does():
    slept: list[float] = []
    looks = iter([9.0, 0.9, 0.9, 0.05])
    waiting = Repeats(0.5, 0.0, lambda: next(looks), slept.append)
    waiting._wait()
    assert len(slept) == 3
    slept.clear()
    Repeats(0.5, 0.0, lambda: 0.9, slept.append)._wait()
    assert math.isclose(sum(slept), 4.0)
    slept.clear()
    Repeats(0.5, 0.0, lambda: math.nan, slept.append)._wait()
    assert len(slept) == 1, "where nobody knows, there is nothing to wait for"


def test_series_of_a_profile_are_repeated_too():
    state = {"calls": 0, "busy": False}

    def look() -> float:
        """Asked before and after each series, and while it waits."""
        state["calls"] += 1
        was = state["busy"]
        state["busy"] = state["calls"] % 9 == 0
        return 0.9 if was else 0.0

    settings = Config()
    settings.engine.threads, settings.measure.step_widths, settings.measure.step_passes = 1, 4, 2
    model = FakeModel(step_ns=lambda width: 16_000_000 * (4 if state["busy"] else 1))
    repeats = Repeats(0.5, 0.0, look, lambda _: None)
    steps = step_costs(model, settings, "order", lambda *_: None, repeats)
    assert {step.decode_ns for step in steps} == {16_000_000}
    assert repeats.rows and np.mean(repeats.rows[0]["decode_ns"]) > 16_000_000
    assert len(frame("steps", steps)) and {"layout", "width", "taken"} <= set(repeats.rows[0])


def test_write_cell_takes_what_a_record_tells_of_repeats(monkeypatch, tmp_path):
    result = measured(Machine(every(4)), monkeypatch)
    write_cell(tmp_path / "m" / "c", config={"schema": 3}, env={}, status={"state": "failed", "reason": "x"},
               facts={"repeated": result.facts["repeated"]}, tables={})  # fmt: skip
    assert load_cell(tmp_path / "m" / "c").facts["repeated"]["attempts"]
