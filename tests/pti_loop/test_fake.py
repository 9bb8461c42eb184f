"""The toy engine itself: its state, its clock and its faults are what they say."""

from __future__ import annotations

import pytest

from pti_loop.engine import ContextSpec, EngineError
from pti_loop.fake import advance
from tests.pti_loop.loops import MS, toy


def context(n_seq_max=2, **faults):
    return toy(**faults).context(ContextSpec(n_ctx=16, n_seq_max=n_seq_max))


def test_state_after_a_rejected_draft_is_that_of_the_accepted_tokens():
    """After 1, 2, a rejected 9, then 4 the state is that of 1, 2, 4: 19; without the rollback it would be 76."""
    assert advance(0, [1, 2, 4]) == 19
    assert advance(0, [1, 2, 9, 4]) == 76
    for lies, state in ((False, 19), (True, 76)):
        ctx = context(rollback_lies=lies)
        ctx.decode([1, 2], [0, 1], [0, 0])
        ctx.decode([9], [2], [0])
        assert ctx.rewind(0, 2)
        ctx.decode([4], [2], [0])
        assert (ctx.logits()[0] == ctx.model.table[state]).all()


def test_time_is_the_step_and_nothing_else():
    ctx = context(n_seq_max=4)
    before = ctx.clock()
    ctx.decode([1, 2], [0, 0], [0, 1])
    assert ctx.clock() - before == 13 * MS


def test_idle_sequences_can_cost():
    ctx = context(n_seq_max=4, idle_ns=MS)
    before = ctx.clock()
    ctx.decode([1], [0], [0])
    assert ctx.clock() - before == 13 * MS


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(([1], [3], [0]), "the batch puts one at 3"), (([1], [0], [5]), "beyond n_seq_max"),
     (([1] * 17, range(17), [0] * 17), "is full")],
)  # fmt: skip
def test_wrong_batches_are_errors(arguments, sentence):
    with pytest.raises(EngineError, match=sentence):
        context().decode(*arguments)
