"""A drafter that is kept, and answers where no row is decoded alone: what is told, and what voids a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from bench.judge.controls.drafters import WHEN, kept, kept_rows, padded
from bench.judge.findings import OK, VOID, WARNING
from bench.judge.invariants import plan
from tests.judge.judge_cells import Arm, Builder, Cell, case_of, guess_cell


def with_kept(per_round: Sequence[int], remembers: bool = True, orders: Sequence[int] = (0, 1, 2, 3)) -> Cell:
    """A cell whose carried prompt was decoded with a drafter that is kept, at so many tokens a round each time."""

    def add(builder: Builder) -> None:
        for arm, block, places in (("carry", 4, range(3)), ("kept", 5, orders)):
            for place, tokens in zip(places, per_round, strict=False):
                builder.arms[arm] = Arm(per_round=tokens, drafted=tokens - 1, accepted=tokens - 1)
                builder._run(block, place, arm, "p0", "code", 1, 1.0)
        builder.facts["drafter"] = {"remembers": remembers}

    return guess_cell(change=add)


def test_a_memory_is_told_in_both_directions_with_its_figures():
    case = case_of(with_kept((2, 8, 1, 1)))
    (control,) = kept(case)
    assert control.severity == OK
    assert "2.00 cold, 8.00 again, 1.00 after a foreign prompt, 1.00 again after it" in control.sentence
    assert "a replay is faster than an answer and what came before takes guesses away" in control.sentence
    assert control.value == pytest.approx(4)
    rows = kept_rows(case)
    assert [row.when for row in rows] == list(WHEN)
    assert [(row.tokens_per_round, row.over_cold) for row in rows] == [(2, 1), (8, 4), (1, 0.5), (1, 0.5)]
    assert rows[1].accepted == rows[1].drafted > rows[0].drafted


def test_no_memory_is_told_too():
    (control,) = kept(case_of(with_kept((2, 2, 2, 2))))
    assert control.sentence.endswith("no memory")


def test_a_cell_without_such_runs_has_no_such_check():
    assert kept(case_of(guess_cell())) == [] and kept_rows(case_of(guess_cell())) == []


def test_runs_that_a_drafter_which_remembers_must_have_are_missed():
    def fault(cell: Cell) -> str | None:
        return plan._kept(case_of(cell))

    assert fault(with_kept((2, 2, 2, 2))) is None
    assert fault(guess_cell()) is None
    assert "comes twice, and twice after a foreign one" in str(fault(with_kept((2, 2, 2), orders=(0, 1, 2))))
    assert "no run tells what that does" in str(fault(with_kept((2, 2, 2, 2), orders=())))
    assert "the drafter keeps nothing" in str(fault(with_kept((2, 2, 2, 2), remembers=False)))


def row(prompt: str, first: int | None, noise: float | None) -> dict:
    return {"prompt": prompt, "seed": 1, "n": 41, "widest": 9, "first_difference": first, "noise": noise}


@pytest.mark.parametrize(
    ("rows", "severity", "words"),
    [
        ([row("a", None, None), row("b", None, None)], OK, "2 of 2 answers are those of plain decoding padded"),
        ([row("a", None, None), row("b", 7, 0.0)], VOID, "1 of 2 answers leave .*'b' at 7.* moves no logit there"),
        ([row("a", 3, 0.2), row("b", None, None)], WARNING, "where the width itself moves logits by 0.2"),
        ([row("a", 3, 0.2), row("b", 5, 0.0)], VOID, "2 of 2 answers leave"),
    ],
)
def test_a_text_that_is_left_where_widths_round_alike_voids(rows, severity, words):
    cell = guess_cell()
    cell.facts["padded"] = rows
    (control,) = padded(case_of(cell))
    assert control.severity == severity
    assert re.search(words, control.sentence)


def test_a_record_without_such_answers_has_no_such_check():
    assert padded(case_of(guess_cell())) == []
