"""Accounts, replays, builds, turns and decodes with round figures, each side of what decides."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.judge.invariants.account import time_is_told
from bench.judge.invariants.counted import times_make_sense
from bench.judge.invariants.grades import replays_fit
from bench.judge.invariants.inputs import builds_agree
from bench.judge.invariants.pieces import _as_long_as_asked
from tests.judge.judge_cells import MS, Cell, case_of, guess_cell


def counted() -> Cell:
    """A toy cell whose contexts counted what its rounds say."""
    cell = guess_cell()
    runs, per_run = cell.runs, cell.rounds.groupby("run")
    runs["draft_prefill_ns"] = 0
    runs["begin_ns"], runs["finish_ns"] = runs["start_ns"] - runs["prefill_ns"] - MS, runs["end_ns"] + MS
    runs["outside_decodes"], runs["outside_tokens"] = 1, runs["n_prompt"]
    runs["window_decodes"] = runs["run"].map(per_run.size())
    runs["window_tokens"] = runs["window_outputs"] = runs["run"].map(per_run["width"].sum())
    runs["beside_outside_tokens"] = runs["beside_window_decodes"] = runs["beside_window_tokens"] = 0
    return cell


@pytest.mark.parametrize(("later", "told"), [(1, False), (2, False), (99, True)])
def test_time_in_no_account_is_told_of_an_arm_that_takes_it_in_most_runs(later: int, told: bool) -> None:
    cell = counted()
    mine = cell.runs.index[cell.runs["arm"] == "treatment"][:later]
    cell.runs.loc[mine, "finish_ns"] += 1000 * MS
    assert (time_is_told(case_of(cell)) is not None) == told


def replayed(worst: float, own: float = 0.05, apart: int = 1) -> str | None:
    cell = guess_cell()
    row = {"arm": "treatment", "prompt": "p0", "seed": 2, "n": 41,
           "first_difference": {"position": 3, "gap_arm": own, "quantity": "logit_gap"},
           "teacher_forced": {"positions": 41, "disagreements": apart, "worst_gap": worst}}  # fmt: skip
    cell.facts["lossless"] = [row]
    return replays_fit(case_of(cell))


def test_a_replay_prefers_its_own_token_by_no_more_than_its_worst_gap() -> None:
    assert replayed(0.06) is None and replayed(0.05) is None
    assert replayed(0.04) == ("the answer to 'p0' (treatment, seed 2) has a replay that prefers the arm's token by "
                              "0.05, and disagrees nowhere so far")  # fmt: skip
    assert replayed(0.06, apart=0) and replayed(0.0) and replayed(0.0, own=0.0) is None


@pytest.mark.parametrize(("build", "commit", "fault"), [
    ("0.3-1234567-cpu", "abcdef0", True), ("0.3-abcdef0-cpu", "abcdef0", False),
    ("0.3-abcdef0-cpu", "abcdef012", False), ("0.3-1234567-cpu", "abcdef", False),
    ("llama-server-1234567", "abcdef0", False), ("stock", "abcdef0", False)])  # fmt: skip
def test_build_and_commit_are_one_where_both_tell(build: str, commit: str, fault: bool) -> None:
    cell = copy.deepcopy(guess_cell())
    cell.env["engine"] |= {"build": build, "llama_cpp_commit": commit}
    for facts in cell.facts["engine"].values():
        facts["build"] = commit
    assert (builds_agree(case_of(cell)) is not None) == fault


@pytest.mark.parametrize(("n_predict", "turns", "fault"), [
    (10, 1, True), (10, 2, False), (10, 3, False), (10, 4, True), (9, 1, False), (17, 2, False), (17, 1, True)])
def test_plain_turns_are_counted(n_predict: int, turns: int, fault: bool) -> None:
    table: Any = SimpleNamespace(of=lambda arm: np.array([arm == "baseline"]), n_predict=np.array([n_predict]),
                                 run=np.array([4]))  # fmt: skip
    pieces = {"turn": np.arange(turns), "owner": np.zeros(turns, dtype=np.int64)}
    told = _as_long_as_asked(table, pieces, 8)
    assert (told is not None) == fault
    assert not fault or told == (f"run 4 (baseline) has {turns} turns, and {n_predict} tokens in turns of 8 are "
                                 "2")  # fmt: skip


@pytest.mark.parametrize(("ns", "queued", "words"), [
    ([], [], "no times"), ([5, 6], [1], "not one each"), ([5, 0], [1, 0], "no times"), ([5], [6], "queued after"),
    ([5], [-1], "queued after"), ([5], [5], ""), ([1], [0], "")])  # fmt: skip
def test_decodes_without_a_profiler_take_time(ns: list[int], queued: list[int], words: str) -> None:
    case: Any = SimpleNamespace(cell=SimpleNamespace(facts={"decodes": [{"width": 3, "ns": ns, "queued_ns": queued}]}))
    told = times_make_sense(case) or ""
    assert (words in told and "width 3" in told) if words else not told
