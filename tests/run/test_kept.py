"""Runs with a drafter that is kept, and contexts that decode no row alone, on the toy engine."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.run.arms import Prompt, Task
from bench.run.kept import ANSWER, MOST, foreign_task, run_kept
from bench.run.padded import Padded
from pti_loop.drafter import Source
from pti_loop.engine import ContextSpec, EngineError
from tests.pti_loop.loops import toy


class Keeps(Source):
    """Says what is asked of it."""

    remembers = True

    def __init__(self, asked: list[object]) -> None:
        self._asked = asked

    def keep(self, kept: bool) -> None:
        self._asked.append(kept)


MINE = Prompt("a", "prose", (1, 10, 11, 12))
OTHERS = [MINE, Prompt("b", "prose", (1, 20, 21)), Prompt("c", "code", (1, 30))]


def asked_of(source: Source | None) -> list[object]:
    asked: list[object] = source._asked if isinstance(source, Keeps) else []

    def run(arm: str, task: Task, seed: int, number: int, n_predict: int) -> None:
        asked.append((arm, task.prompts[0].id, number, n_predict))

    arms = SimpleNamespace(source=source, run=run, config=SimpleNamespace(engine=SimpleNamespace(n_ctx=200)))
    run_kept(arms, Task(3, (MINE,)), OTHERS, 8, asked.append)  # type: ignore[arg-type]
    return asked


def test_one_drafter_meets_the_prompt_twice_and_another_a_foreign_one_before():
    assert asked_of(Keeps([])) == [True, 0, 1, False, True, ("kept", "foreign to a", -1, ANSWER), 2, 3, False]


def test_a_drafter_that_keeps_nothing_and_a_method_without_one_are_not_asked():
    plain = Keeps([])
    plain.remembers = False
    assert asked_of(plain) == asked_of(None) == []


def test_a_drafter_is_let_go_when_a_run_fails():
    asked: list[object] = []

    def fails(order: int) -> None:
        raise EngineError("no room")

    arms = SimpleNamespace(source=Keeps(asked), run=None, config=None)
    with pytest.raises(EngineError):
        run_kept(arms, Task(3, (MINE,)), OTHERS, 8, fails)  # type: ignore[arg-type]
    assert asked == [True, False]


def test_a_foreign_prompt_is_longer_than_prompt_and_answer_has_none_of_its_words_and_fits():
    (found,) = foreign_task(Task(0, (MINE,)), OTHERS, 500, 100).prompts
    assert len(found.tokens) == 2 * (len(MINE.tokens) + 100)
    assert found.tokens[0] == 1 and set(found.tokens[1:]) == {20, 21, 30}
    (short,) = foreign_task(Task(0, (MINE,)), OTHERS, 60, 40).prompts
    assert len(short.tokens) == 60 - ANSWER - 1
    (longest,) = foreign_task(Task(0, (MINE,)), OTHERS, 10_000, 2000).prompts
    assert len(longest.tokens) == MOST
    (alone,) = foreign_task(Task(0, (MINE,)), [MINE], 500, 10).prompts
    assert alone.tokens[:4] == (1, 12, 11, 10)


def test_a_row_alone_gets_company_that_is_no_output_and_changes_nothing():
    model = toy()
    ctx, wide = Padded(model, ContextSpec(40, 1)), model.context(ContextSpec(40, 1))
    for one in (ctx, wide):
        one.decode([3, 4, 5], range(3), [0] * 3, [2])
    assert ctx.inner.length(1) == 0, "several rows need no company"
    tokens = [ctx.greedy(), wide.greedy()]
    for place in range(3, 20):
        for one in (ctx, wide):
            one.decode([tokens[0][-1]], [place], [0], None)
        tokens = [ctx.greedy(), wide.greedy()]
        assert tokens[0] == tokens[1] and len(ctx.logits()) == 1
    assert (ctx.length(0), ctx.inner.length(1)) == (20, 17)
    assert ctx.spec.n_seq_max == 1
    ctx.clear()
    assert ctx.inner.length(1) == 0


def test_company_begins_anew_where_its_sequence_is_full():
    ctx = Padded(toy(), ContextSpec(8, 1))
    for _ in range(4):
        ctx.drop(0)
        for place in range(6):
            ctx.decode([2], [place], [0], None)
    assert 0 < ctx.inner.length(1) < 8
