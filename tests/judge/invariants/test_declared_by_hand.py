"""Declarations, lengths of guesses, drafters and collision probabilities by hand, each side of what decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.judge.invariants.collisions import collisions_are_the_draws, collisions_fit
from bench.judge.invariants.declared import (
    called_as_known,
    declared_as_known,
    drafter_is_configured,
    guesses_as_far,
    says_again,
)
from pti_loop.parameters import keeps, longest
from tests.judge.judge_cells import Cell, case_of, guess_cell, method_of


def cell_of(name: str = "jacobi", schema: int | None = 1, **parameters: Any) -> Cell:
    cell = guess_cell()
    cell.config["method"] = method_of(name, **parameters)
    if schema:
        cell.config["schema"] = schema
    return cell


@pytest.mark.parametrize(("name", "values", "lengths"), [
    ("mtp", {}, (1,)), ("mtp", {"draft": 5}, (5,)), ("jacobi", {"window": 4}, (3,)), ("lookup", {"draft": 7}, (7,)),
    ("lookup", {"draft": 7, "adaptive": True}, ()), ("lookup_mtp", {"draft": 7, "head_draft": 2}, (7, 2)),
    ("native", {"type": "ngram-mod"}, ()), ("native", {"type": "ngram-mod", "m": 8}, (8, 3)),
    ("native", {"type": "ngram-cache", "m": 8}, ()), ("packed", {}, ()), ("packed", {"drafter": "mtp"}, (1,)),
    ("autoregressive", {}, ())])  # fmt: skip
def test_lengths_are_those_that_parameters_bound(name: str, values: dict[str, Any], lengths: tuple[int, ...]) -> None:
    assert longest(name, values) == lengths


@pytest.mark.parametrize(("name", "values", "kept"), [
    ("native", {"type": "ngram-simple"}, False), ("native", {"type": "ngram-mod"}, True),
    ("native", {"type": "draft-mtp+ngram-mod"}, True), ("native", {"type": "draft-mtp"}, False), ("lookup", {}, False)])
def test_a_chain_is_kept_where_one_of_it_learns(name: str, values: dict[str, Any], kept: bool) -> None:
    assert keeps(name, values) is kept


@pytest.mark.parametrize(("key", "value", "by"), [
    ("answers", "copies", "declared"), ("layout", "sequences", "declared"), ("guesses", False, "declared"),
    ("repeats", True, "declared"), ("by_rounds", True, "declared"), ("tuned", True, "declared"),
    ("label", "x", "called"), ("short", "x", "called")])  # fmt: skip
def test_each_part_of_a_declaration_is_held_against_its_file(key: str, value: Any, by: str) -> None:
    cell = cell_of()
    case = case_of(cell)
    assert declared_as_known(case) is None and called_as_known(case) is None
    cell.config["method"]["declaration"][key] = value
    case = case_of(cell)
    assert (declared_as_known(case) is not None) == (by == "declared")
    assert (called_as_known(case) is not None) == (by == "called")
    del cell.config["schema"]
    assert declared_as_known(case_of(cell)) is None and called_as_known(case_of(cell)) is None


def test_an_unknown_method_or_parameter_is_told() -> None:
    cell = cell_of()
    cell.config["method"]["parameters"]["luck"] = 3
    assert "has no parameter 'luck'" in str(called_as_known(case_of(cell))) and declared_as_known(case_of(cell)) is None
    cell.config["method"]["name"] = "wonder"
    assert "there is no method 'wonder'" in str(called_as_known(case_of(cell)))


@pytest.mark.parametrize(("window", "fault"), [
    (2, "a round guesses 2 tokens of an answer, and its method's parameters let it guess 1"), (3, None),
    (4, "controls, which guess as far as they may, guess 2 tokens a round, and its parameters say 3")])  # fmt: skip
def test_rounds_guess_as_far_as_parameters_say(window: int, fault: str | None) -> None:
    assert guesses_as_far(case_of(cell_of(window=window))) == fault
    assert guesses_as_far(case_of(cell_of(schema=None, window=window))) is None


def test_controls_that_are_short_guess_to_their_end() -> None:
    cell = cell_of(window=9)
    planted = cell.runs["arm"].isin(("sabotage", "oracle"))
    cell.runs.loc[planted, "n_predict"] = 4
    assert guesses_as_far(case_of(cell)) is None
    cell.runs.loc[planted, "n_predict"] = 5
    assert guesses_as_far(case_of(cell)) is not None


@pytest.mark.parametrize(("streams", "fault"), [(2, True), (3, False), (4, True)])
def test_copies_guess_for_all_but_one(streams: int, fault: bool) -> None:
    cell = cell_of()
    cell.config["method"] = method_of("stagger", streams, emission="distinct", rebuild="exact")
    cell.config["streams"] = streams
    steady = cell.rounds["run"].isin(cell.runs["run"][~cell.runs["arm"].isin(("baseline", "again", "solo"))])
    cell.rounds.loc[steady, "drafted"] = 2
    assert (guesses_as_far(case_of(cell)) is not None) == fault


@pytest.mark.parametrize(("facts", "parameters", "words"), [
    ({"drafter": {"twin": "q2_k"}}, {"twin": "q2_k"}, ""),
    ({"drafter": {"twin": "q4_0"}}, {"twin": "q2_k"}, "twin is q4_0"),
    ({"rollback": {"strategy": "rewind"}}, {"rollback": "auto"}, ""),
    ({"rollback": {"strategy": "rewind"}}, {"rollback": "rewind"}, ""),
    ({"rollback": {"strategy": "rewind"}}, {"rollback": "checkpoint"}, "forgotten by rewind"),
    ({"drafter": {"rollback": "x"}}, {"rollback": "auto"}, "")])  # fmt: skip
def test_a_drafter_is_what_parameters_say(facts: dict[str, Any], parameters: dict[str, Any], words: str) -> None:
    cell = cell_of()
    cell.config["method"]["parameters"] |= parameters
    cell.facts.update(facts)
    told = drafter_is_configured(case_of(cell)) or ""
    assert words in told and bool(words) == bool(told)


@pytest.mark.parametrize(("told", "values", "words"), [
    ({"types": ["ngram-mod"], "most": 64, "remembers": True}, {"type": "ngram-mod"}, ""),
    ({"types": ["ngram-mod"], "most": 8, "remembers": True}, {"type": "ngram-mod", "m": 8}, ""),
    ({"types": ["ngram-mod"], "most": 9, "remembers": True}, {"type": "ngram-mod", "m": 8}, "makes 9 guesses at most"),
    ({"types": ["ngram-mod"], "remembers": False}, {"type": "ngram-mod"}, "keeps nothing from answer to answer"),
    ({"types": ["ngram-simple"], "remembers": True}, {"type": "ngram-simple"}, "could be kept from answer to answer"),
    ({"types": ["ngram-mod", "draft-mtp"]}, {"type": "draft-mtp+ngram-mod"}, ""),
    ({"types": ["ngram-mod"]}, {"type": "ngram-cache"}, "is made of ngram-mod")])  # fmt: skip
def test_a_chain_is_what_its_type_says(told: dict[str, Any], values: dict[str, Any], words: str) -> None:
    cell = cell_of("native", **values)
    cell.facts["drafter"] = told
    found = drafter_is_configured(case_of(cell)) or ""
    assert words in found and bool(words) == bool(found)


def test_a_method_that_says_tokens_again_does() -> None:
    cell = cell_of()
    cell.config["method"]["declaration"]["repeats"] = True
    assert says_again(case_of(cell)) == "its method declares that it says tokens again, and no run of it does"
    mine = cell.ledger["run"].isin(cell.runs["run"][cell.runs["arm"] == "treatment"])
    cell.ledger.loc[cell.ledger.index[mine][5], "source"] = "unverified"
    assert says_again(case_of(cell)) is None


# Draws: `hits` of `n` guesses right, each behind a text of its own, with one collision probability.


def drawn(hits: int, n: int, chance: float, kind: str = "independent", answers: str = "copies",
          **config: Any) -> str | None:  # fmt: skip
    one, places = np.zeros(n, dtype=int), np.arange(n)
    draws = {"owner": one, "run": one, "round": places, "depth": one + 1, "position": places + 1,
             "guess": np.r_[np.full(hits, 7), np.full(n - hits, 8)], "drawn": one + 7, "collision": one + chance}
    table: Any = SimpleNamespace(
        draws=draws, run=np.array([0]), of=lambda arm: np.array([arm == "treatment"]), prompt=np.array(["p"]),
        seed=np.array([1]), tokens=SimpleNamespace(streams=np.array([2])))  # fmt: skip
    case: Any = SimpleNamespace(
        temperature=0.7, runs=table, arm=SimpleNamespace(answers=answers, parameters={"draws": kind}),
        cell=SimpleNamespace(config=config, facts={}), once=lambda what: [None] * n)  # fmt: skip
    return collisions_are_the_draws(case)


@pytest.mark.parametrize(("hits", "kind", "answers", "fault"), [
    (200, "independent", "copies", False), (249, "independent", "copies", False), (251, "independent", "copies", True),
    (151, "independent", "copies", False), (149, "independent", "copies", True),
    (400, "coupled", "copies", False), (215, "coupled", "copies", False), (205, "coupled", "copies", True),
    (205, "coupled", "one", False), (149, "greedy", "one", False), (330, "greedy", "one", False),
    (340, "greedy", "one", True), (340, "coupled", "one", False)])  # fmt: skip
def test_hits_follow_the_collision_probabilities(hits: int, kind: str, answers: str, fault: bool) -> None:
    """400 guesses at one half: 200 of independent draws, within 5 times 10; at most 283 of any, and 50."""
    told = drawn(hits, 400, 0.5, kind, answers)
    assert (told is not None) == fault
    assert not fault or f"{hits} of 400 guesses" in str(told)


@pytest.mark.parametrize(("chance", "k", "fault"), [(0.5, 2, False), (0.47, 2, True), (0.99, 1, False), (0.9, 1, True)])
def test_of_k_tokens_none_is_less_likely_than_all_alike(chance: float, k: int, fault: bool) -> None:
    told = drawn(round(20 * chance), 20, chance, top_k=k)
    assert (told is not None) == fault
    assert not fault or "has a collision probability of" in str(told)


def test_what_draws_is_told_with_its_temperature() -> None:
    cell = guess_cell()
    cell.facts["process"] = {"draws": "numpy"}
    assert collisions_fit(case_of(cell)) == "tokens were drawn by 'numpy', and the temperature is 0"
    cell.facts["process"] = {"draws": "argmax"}
    assert collisions_fit(case_of(cell)) is None
