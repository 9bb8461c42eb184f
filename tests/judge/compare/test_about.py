"""What two cells are matched by: each part of the key tells cells apart, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bench.judge.compare.about import KEY, about
from tests.judge.judge_cells import Cell, guess_cell


def key(change: Callable[[Cell], Any] = lambda cell: None, **config: Any) -> list[Any]:
    cell = guess_cell(**config)
    change(cell)
    return json.loads(about(cell)[KEY])  # type: ignore[arg-type]


def test_the_key_has_the_cells_own_values() -> None:
    found = key(temperature=0.7, n_predict=41, depth=1024, streams=1, prompts={"name": "short"})
    assert found == ["contrast", "toy", "jacobi", found[3], 1, 0.7, 41, "short", 1024, None, None]


@pytest.mark.parametrize(
    ("one", "other"),
    [({"temperature": 0.7}, {"temperature": 0.8}), ({"n_predict": 41}, {"n_predict": 40}), ({"depth": 1}, {"depth": 2}),
     ({"prompts": {"name": "a"}}, {"prompts": {"name": "b"}}), ({"model": {"name": "a"}}, {"model": {"name": "b"}})],
)  # fmt: skip
def test_another_value_is_another_key(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert key(**one) != key(**other) and key(**one) == key(**one)


def test_machine_and_seed_are_no_part_of_it() -> None:
    assert key(lambda cell: cell.config.update(seed=9, machine="other")) == key()
