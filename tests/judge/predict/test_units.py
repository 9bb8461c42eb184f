"""What counts once when a drafter's hits are counted: a prompt, or a seed where one prompt was drawn several times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.judge.predict.rounds import _units


@pytest.mark.parametrize(
    ("prompts", "temperature", "units"),
    [
        ([0, 0, 0, 0], 0.0, [0, 0, 0, 0]), ([0, 0, 0, 0], 0.7, [0, 1, 2, 3]),
        ([0, 0, 1, 1], 0.0, [0, 0, 1, 1]), ([0, 0, 1, 1], 0.7, [0, 0, 1, 1]), ([0, 2, 1, 1], 0.7, [0, 2, 1, 1]),
    ],
)  # fmt: skip
def test_two_prompts_are_two_units_and_one_prompt_is_told_by_its_seeds(prompts: list[int], temperature: float,
                                                                       units: list[int]) -> None:  # fmt: skip
    table: Any = SimpleNamespace(run=np.arange(5), prompt_code=np.array([*prompts, 9]), seed=np.array([5, 6, 7, 8, 9]))
    assert _units(table, np.arange(4), temperature).tolist() == [*units, -1]
