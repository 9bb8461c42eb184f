"""Overrides that make too many points, or none that can be: one sentence, at once."""

from __future__ import annotations

import time

import pytest

from bench.errors import UserError
from bench.plan.compose import compose_points, expand


@pytest.mark.parametrize(("words", "why"), [
    (["seed=range(0,1000000)"], "1000000 points"), (["seed=range(1,41e999)"], "cannot be swept"),
    (["seed=range(0,200)", "n_predict=range(1,200)"], "points of the sweep, at most 10000"),
    (["seed=range(1,5,0)"], "cannot be"), (["seed=interval(0,1)"], "cannot be swept"),
    (["engine.n_ctx=" + "1" * 5000], "cannot be"), (["x=" + "a," * 60_000], "letters"),
])  # fmt: skip
def test_a_sentence_at_once(words: list[str], why: str) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match=why):
        expand(words)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("words", [
    ["=true"], ["temperature=${oc.env:NOPE}"], ["prompts.items=[1]"], ["prompts.items=[{id: a}]"],
    ["prompts.items=[{id: a, class: [x], text: y}]"],
])  # fmt: skip
def test_values_of_another_kind_are_sentences(words: list[str]) -> None:
    with pytest.raises(UserError):
        compose_points(words)


def test_what_can_be_swept_is() -> None:
    assert len(expand(["seed=range(1,4)", "temperature=0,0.6"])) == 6
    assert expand(["seed=range(1,5,2)"]) == [["seed=1"], ["seed=3"]]
    assert expand(["seed=range(0,1,0.5)"]) == [["seed=0.0"], ["seed=0.5"]]
