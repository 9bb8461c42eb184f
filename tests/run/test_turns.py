"""Arms that take turns: the same tokens and rounds as whole runs, pieces that add up, and records that lie are void."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bench.judge.invariants import invariants
from bench.judge.measure.case import Case
from bench.judge.measure.tokens import window_tok_s
from bench.records.cells import load_cell
from bench.run.contrast import Contrast
from bench.run.worker import config_of
from pti_loop.fake import FakeModel
from pti_loop.guessing import Guessing
from tests.run.test_contrast import MS, PROMPTS, config, everything, judged, toy, voids

METHODS_AND_STREAMS = [
    ("packed", 3, {}), ("packed", 2, {"drafter": "lookup", "draft": 3}), ("stagger", 4, {}),
    ("stagger", 3, {"emission": "distinct", "rebuild": "exact"}), ("stagger", 2, {"stop": "rounds"}), ("jacobi", 1, {}),
    ("lookup", 1, {"draft": 3}), ("mtp", 1, {"draft": 2}), ("draft", 1, {"draft": 2, "draft_model": "0"}),
]  # fmt: skip


def in_turns(method: str, streams: int, temperature: float = 0.0, chunk: int = 4, **parameters):
    settings = config(method, streams, temperature, **parameters)
    settings.measure.chunk, settings.measure.per_class = chunk, 1
    return settings


def measured(settings, model=None):
    return Contrast(model or toy(), settings, PROMPTS, "order", lambda: (0.0, 0.0), lambda *_: None).run()


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(("method", "streams", "parameters"), METHODS_AND_STREAMS)
def test_runs_in_turns_say_and_do_what_whole_runs_do(method, streams, parameters, temperature):
    said = {}
    for chunk in (0, 3):
        tables = measured(in_turns(method, streams, temperature, chunk, **parameters)).tables
        key = {run.run: (run.block, run.arm, run.seed, run.order if run.arm == "carry" else 0)
               for run in tables["runs"]}  # fmt: skip
        did = {run.run: (run.window_decodes, run.window_tokens, run.beside_window_tokens, run.outside_tokens)
               for run in tables["runs"]}  # fmt: skip
        said[chunk] = sorted(
            (key[run], did[run],
             [(e.stream, e.position, e.token, e.round) for e in tables["ledger"] if e.run == run],
             [(r.phase, r.width, r.drafted, r.verified, r.accepted) for r in tables["rounds"] if r.run == run])
            for run in key)  # fmt: skip
    assert said[3] == said[0]


@pytest.mark.parametrize(("method", "streams", "parameters"), METHODS_AND_STREAMS)
def test_a_cell_in_turns_is_sound_and_finds_the_same_ratio(tmp_path, method, streams, parameters):
    if "draft_model" in parameters:
        (tmp_path / "0").write_bytes(b"")
        parameters = parameters | {"draft_model": str(tmp_path / "0")}
    found = [judged(tmp_path / f"in {chunk}", toy(), in_turns(method, streams, 0.0, chunk, **parameters))
             for chunk in (0, 5)]  # fmt: skip
    assert not voids(found[1]), [one["sentence"] for one in found[1].controls]
    whole, turns = map(everything, found)
    assert turns["speedup"] == pytest.approx(whole["speedup"], rel=1e-6)
    assert turns["host_share"] == pytest.approx(whole["host_share"], abs=1e-9)


def slow_waves(period: float = 3.1) -> FakeModel:
    """The toy on a machine that gets slower and faster, more slowly than a run takes."""
    state = {"now": 0.0}

    def step(width: int) -> int:
        state["now"] += 0.01
        return int(10 * MS * (1 + 0.02 * (width - 1)) * (1 + 0.2 * math.sin(state["now"] / period)))

    return FakeModel(step_ns=step)


def test_what_slows_the_machine_for_a_while_slows_both_arms(tmp_path):
    halves = []
    for chunk in (0, 4):
        settings = in_turns("packed", 2, chunk=chunk)
        settings.measure.per_class = 3
        row = everything(judged(tmp_path / str(chunk), slow_waves(), settings))
        halves.append(math.log(row["noise_high"] / row["noise_low"]) / 2)
        assert math.exp(-0.02) < row["speedup"] * 1.02 < math.exp(0.02) or chunk == 0
    assert halves[1] < halves[0] / 2, halves


def test_a_method_with_a_run_of_its_own_runs_as_a_whole_and_the_record_says_so(monkeypatch, tmp_path):
    def whole(self, decoder, prompts):
        list(self.rounds(decoder, prompts))

    monkeypatch.setattr(Guessing, "run", whole, raising=False)
    settings = in_turns("jacobi", 1)
    result = measured(settings)
    assert result.facts["turns"] == {"chunk": 0, "arms": []} and not result.tables["pieces"]
    assert not voids(judged(tmp_path, toy(), settings))


def stored(tmp_path, change=lambda cell: None, chunk: int = 5):
    """The invariants that a cell in turns fails after a change of its columns."""
    judged(tmp_path, toy(), in_turns("packed", 3, chunk=chunk))
    (path,) = tmp_path.glob("*/*/status.json")
    cell = load_cell(path.parent)
    columns = {name: {key: values.copy() for key, values in getattr(cell, name).items()} for name in ("pieces", "runs")}
    copy = replace(cell, **columns)
    change(SimpleNamespace(pieces=columns["pieces"], runs=columns["runs"], facts=copy.facts, config=copy.config))
    return {one.control for one in invariants(Case(copy)) if one.severity == "void"}


def longer(cell):
    cell.pieces["end_ns"][2] += 3 * MS


def moved(cell):
    for name in ("start_ns", "end_ns"):
        cell.pieces[name][cell.pieces["run"] == cell.pieces["run"][0]] += 7 * MS


def swapped(cell):
    cell.pieces["turn"][:2] = cell.pieces["turn"][:2][::-1]


def gap(cell):
    """Every turn behind the first of the block comes a second later: time in which nothing is said to happen."""
    late = cell.pieces["start_ns"] > np.sort(cell.pieces["start_ns"])[3]
    for name in ("start_ns", "end_ns"):
        cell.pieces[name][late] += 1000 * MS


def halved(cell):
    mine = cell.pieces["run"] == cell.pieces["run"][0]
    length = cell.pieces["end_ns"] - cell.pieces["start_ns"]
    cell.pieces["end_ns"][mine] -= length[mine] // 2
    run = cell.runs["run"] == cell.pieces["run"][0]
    cell.runs["decode_window_ns"][run] = (length - length // 2)[mine].sum()
    cell.runs["end_ns"][run] = cell.runs["start_ns"][run] + cell.runs["decode_window_ns"][run]


def dropped(cell):
    for name in cell.pieces:
        cell.pieces[name] = np.delete(cell.pieces[name], 1)


def forgotten(cell):
    keep = cell.pieces["run"] != cell.pieces["run"][0]
    for name in cell.pieces:
        cell.pieces[name] = cell.pieces[name][keep]


def told_as_whole(cell):
    cell.facts["turns"] = {"chunk": 0, "arms": []}


def other_chunk(cell):
    cell.config["measure"]["chunk"] = 2
    cell.facts["turns"]["chunk"] = 2


def handed_over(cell):
    """Each turn comes 19 ms later than it did: what two processes may take to hand over on a busy machine."""
    rank = np.argsort(np.argsort(cell.pieces["start_ns"], kind="stable"))
    for name in ("start_ns", "end_ns"):
        cell.pieces[name] += 19 * MS * rank


def two_processes(change):
    """The same change of a cell whose sides each have a process."""

    def both(cell):
        cell.facts["sides"] = "together"
        change(cell)

    both.__name__ = f"{change.__name__}_of_two_processes"
    return both


LIES = [longer, moved, swapped, gap, halved, dropped, forgotten, told_as_whole, other_chunk,
        handed_over, two_processes(gap)]


@pytest.mark.parametrize("change", LIES)
def test_turns_that_cannot_have_been_so_are_void(tmp_path, change):
    assert "turns" in stored(tmp_path, change)


def test_two_processes_may_take_a_while_to_hand_over(tmp_path):
    assert "turns" not in stored(tmp_path, two_processes(handed_over))


@pytest.mark.parametrize("chunk", [1, 5, 23, 40])
def test_turns_of_any_length_are_sound(tmp_path, chunk):
    assert stored(tmp_path, chunk=chunk) == set()


def test_whole_runs_store_no_pieces(tmp_path):
    assert stored(tmp_path, chunk=0) == set()
    assert not list(tmp_path.glob("*/*/pieces.csv.gz"))


def rates(folder) -> dict[int, float]:
    """Distinct tokens a second of every run, as the audit of the ledger alone finds them."""
    emits = pd.read_csv(folder / "ledger.csv.gz")
    found = {}
    for run in emits["run"].unique():
        found[int(run)] = window_tok_s(emits[emits["run"] == run])
    return found


def test_the_ledger_alone_tells_the_rates_of_whole_runs(tmp_path):
    """An audit has nothing but the file: a clock that ran on during other arms' turns would halve every rate."""
    found = []
    for chunk in (0, 5):
        judged(tmp_path / str(chunk), toy(), in_turns("jacobi", 1, chunk=chunk))
        (path,) = (tmp_path / str(chunk)).glob("*/*/status.json")
        found.append(sorted(rates(path.parent).values()))
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_a_stored_configuration_runs_again_as_it_was(tmp_path):
    settings = in_turns("jacobi", 1, chunk=5)
    settings.measure.until, settings.measure.budget = 0.2, 3.0
    judged(tmp_path, toy(), settings)
    (path,) = tmp_path.glob("*/*/status.json")
    measure = config_of(load_cell(path.parent).config).measure
    assert (measure.chunk, measure.until, measure.budget) == (5, 0.2, 3.0)
    plain = {**load_cell(path.parent).config, "measure": {"per_class": 1}}
    assert config_of(plain).measure.chunk == config_of(plain).measure.until == 0, "records without the keys stay whole"
