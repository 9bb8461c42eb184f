"""What is said of cells before any runs: those that lack a control, which will count for nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bench.run.prepared import _tell_uncontrolled


def cell(again: int | None, control: int | None, guesses: bool | None) -> Any:
    method = None if guesses is None else {"declaration": {"guesses": guesses}}
    measure = {"again_blocks": again, "control_blocks": control}
    config = {"measure": {name: value for name, value in measure.items() if value is not None}}
    return SimpleNamespace(config=config | ({"method": method} if method else {}))


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([cell(3, 1, True), cell(1, 1, False)], []),
        ([cell(3, 0, False)], []),
        ([cell(None, None, None)], []),
        ([cell(0, 1, False), cell(2, 1, False)], ["1 of 2 cells: measure.again_blocks=0"]),
        ([cell(0, 0, True), cell(2, 0, True), cell(2, 0, False)],
         ["1 of 3 cells: measure.again_blocks=0", "2 of 3 cells: measure.control_blocks=0"]),
    ],
)  # fmt: skip
def test_cells_that_lack_a_control_are_told_before_they_run(cells: list[Any], told: list[str], capsys: Any) -> None:
    _tell_uncontrolled(cells)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" leaves out")[0] for line in lines] == [f"void from the start, {one}" for one in told]
