"""What stands beside a run, by hand: loads that fade, CPUs that there are, contexts made anew."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bench.judge.invariants.around import contexts_as_configured, load_is_the_runs, machine_around_is_one
from bench.records.contexts import anew, renewed, usual
from tests.judge.judge_cells import Cell, case_of, guess_cell

S = 10**9


def cell_with(**columns: Any) -> Cell:
    """A toy cell; a column is one value, or a function of (place, seconds of its end)."""
    cell = guess_cell()
    seconds = [2.0 * (place + 1) for place in range(len(cell.runs))]
    cell.runs["start_ns"], cell.runs["end_ns"] = ([int((one + more) * S) for one in seconds] for more in (-1.9, 0.0))
    for name, value in columns.items():
        cell.runs[name] = [float(value(at, when)) if callable(value) else value for at, when in enumerate(seconds)]
    cell.env["machine"]["cores_present"] = 4
    return cell


@pytest.mark.parametrize(("column", "value", "wrong"), [
    ("other_cpus", 5.5, False), ("other_cpus", 5.6, True), ("steal", -0.01, True), ("steal", 5.6, True),
    ("idle_cpus", 0.0, False), ("idle_cpus", -1.0, True), ("load", 90.0, False), ("load", -0.1, True)])  # fmt: skip
def test_others_take_no_more_cpus_than_there_are(column: str, value: float, wrong: bool) -> None:
    told = machine_around_is_one(case_of(cell_with(**{column: value})))
    assert (told is not None) == wrong
    assert not wrong or told == f"{column} is {value:.2f} beside a run, and the machine has 4 CPUs"


def test_a_machine_that_does_not_tell_its_cpus_is_asked_for_none() -> None:
    cell = cell_with(other_cpus=50.0)
    del cell.env["machine"]["cores_present"]
    assert machine_around_is_one(case_of(cell)) is None
    cell.env["machine"]["cores"] = 4
    assert machine_around_is_one(case_of(cell))


@pytest.mark.parametrize(("pace", "wrong"), [(60.0, False), (55.0, False), (20.0, True)])
def test_a_load_fades_as_a_mean_of_a_minute(pace: float, wrong: bool) -> None:
    told = machine_around_is_one(case_of(cell_with(load=lambda at, when: 8 * math.exp(-when / pace))))
    assert (told is not None) == wrong
    assert not wrong or "the machine's load is" in str(told)


def test_a_load_may_rise_at_once_and_is_held_against_its_highest() -> None:
    assert machine_around_is_one(case_of(cell_with(load=lambda at, when: 1 + at))) is None
    falls = cell_with(load=lambda at, when: 9.0 if at == 3 else 0.5)
    assert "leaves" in str(machine_around_is_one(case_of(falls)))


def test_a_machine_that_decodes_has_a_load() -> None:
    long = cell_with(load=0.0)
    seconds = (int(long.runs["end_ns"].max()) - int(long.runs["end_ns"].min())) / S - 5
    least = 0.5 * (1 - math.exp(-seconds / 60)) - 0.02
    assert least > 0.05
    told = load_is_the_runs(case_of(long))
    assert told == (f"the machine's load is 0.00 after {seconds:.0f} s of decoding, which alone make it {least:.2f}: "
                    "it was not read, or not here")  # fmt: skip
    assert load_is_the_runs(case_of(cell_with(load=least + 0.01))) is None
    assert load_is_the_runs(case_of(cell_with(load=least - 0.01))) is not None
    assert load_is_the_runs(case_of(cell_with(load=math.nan))) is None


@pytest.mark.parametrize(("taken", "wrong"), [(1.21, False), (1.2, True), (0.5, True)])
def test_what_was_measured_again_was_disturbed(taken: float, wrong: bool) -> None:
    cell = cell_with()
    cell.config["measure"] = {"repeats": 1.0}
    for one in ({"other_cpus": taken - 0.2, "steal": 0.2}, {"taken": taken}):
        cell.facts["repeated"] = {"share": 1.0, "free_cpus": 1, "attempts": [one]}
        assert (machine_around_is_one(case_of(cell)) is not None) == wrong
    cell.facts["repeated"] = {"share": 2.0, "free_cpus": 1, "attempts": []}
    told = machine_around_is_one(case_of(cell))
    assert told == "runs were measured again for 2.0 of the time, and 1.0 were configured"
    cell.facts["repeated"] = {"share": 1.0, "free_cpus": 4, "attempts": []}
    assert "4 CPUs are said to be free" in str(machine_around_is_one(case_of(cell)))


@pytest.mark.parametrize(("blocks", "contexts", "before"), [
    (6, 1, set()), (6, 3, {2, 4}), (3, 3, {1, 2}), (2, 3, {1}), (1, 3, set()), (12, 0, set())])
def test_contexts_are_made_anew_before_as_many_blocks_each(blocks: int, contexts: int, before: set[int]) -> None:
    assert anew(blocks, blocks, contexts) == before
    assert not contexts or renewed(blocks, contexts) == before


def test_a_further_pass_begins_with_new_contexts() -> None:
    assert anew(4, 12, 1) == {4, 8} and anew(4, 12, 2) == {2, 4, 6, 8, 10} and anew(4, 4, 1) == set()
    assert (usual(True), usual(False)) == (3, 1)


def test_each_run_is_of_the_contexts_of_its_block() -> None:
    cell = cell_with()
    cell.config.update(schema=2, measure={"contexts": 2})
    cell.runs["context"] = (cell.runs["block"] >= 2).astype(int)
    assert contexts_as_configured(case_of(cell)) is None
    cell.runs.loc[cell.runs["block"] == 3, "context"] = 0
    assert "made 0 times anew, and its block is of those made 1 times" in str(contexts_as_configured(case_of(cell)))
    cell.runs["context"] = -1
    assert contexts_as_configured(case_of(cell)) is None
