"""The toy engine itself: its state, its clock and its faults are what they say, and it is as strict as a real one."""

from __future__ import annotations

import numpy as np
import pytest

from pti_loop.engine import ContextSpec, EngineError
from pti_loop.fake import END
from pti_loop.fake_memory import MODULUS, advance, parts, whole
from tests.pti_loop.loops import MS, run, toy


def context(n_seq_max=2, n_ctx=16, model=None, spec=None, **faults):
    return (model or toy(**faults)).context(ContextSpec(n_ctx, n_seq_max, **(spec or {})))


def test_no_two_texts_have_one_state():
    """Leading zeros show, and thousands of short texts are as many states, which survive as hidden states."""
    texts = [[0] * n + [t] for n in range(40) for t in range(50)]
    texts += [list(row) for row in np.random.default_rng(0).integers(0, 50, (3000, 4))]
    states = {advance(0, text) for text in texts}
    assert len(states) == len({tuple(text) for text in texts})
    assert 0 not in states
    assert all(whole(np.array(parts(state), dtype=np.float32)) == state for state in (*states, MODULUS - 1))


def test_state_after_a_rejected_draft_is_that_of_the_accepted_tokens():
    """After 1, 2, a rejected 9, then 4 the state is that of 1, 2, 4, or, where the rollback lies, of 1, 2, 9, 4."""
    for lies, text in ((False, [1, 2, 4]), (True, [1, 2, 9, 4])):
        ctx = context(rollback_lies=lies)
        ctx.decode([1, 2], [0, 1], [0, 0])
        ctx.decode([9], [2], [0])
        assert ctx.rewind(0, 2)
        ctx.decode([4], [2], [0])
        assert (ctx.logits()[0] == ctx.model.row(4, advance(0, text))).all()


def test_time_is_the_step_and_nothing_else():
    ctx = context(n_seq_max=4)
    before = ctx.clock()
    ctx.decode([1, 2], [0, 0], [0, 1])
    assert ctx.clock() - before == 13 * MS


def test_a_batch_beyond_n_ubatch_is_computed_in_parts():
    ctx = context(spec={"n_ubatch": 3})
    before = ctx.clock()
    ctx.decode([1] * 8, range(8), [0] * 8, [7])
    assert ctx.clock() - before == (16 + 16 + 13) * MS


def test_idle_sequences_can_cost():
    ctx = context(n_seq_max=4, idle_ns=MS)
    before = ctx.clock()
    ctx.decode([1], [0], [0])
    assert ctx.clock() - before == 13 * MS


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([1], [3], [0]), "the batch puts one at 3"),
        (([1], [0], [5]), "beyond n_seq_max"),
        (([1] * 17, range(17), [0] * 17, []), "is full"),
        (([1] * 33, range(33), [0] * 33, []), "a batch of 33 tokens is larger than n_batch 32"),
        (([1] * 9, range(9), [0] * 9), "asks for 9 rows of logits, and its context was made for n_outputs 8"),
        (([], [], []), "returned -1"),
    ],
)
def test_wrong_batches_are_errors_and_change_nothing(arguments, sentence):
    ctx = context(spec={"n_outputs": 8})
    ctx.decode([1, 2], [0, 1], [1, 1])
    with pytest.raises(EngineError, match=sentence):
        ctx.decode(*arguments)
    assert (ctx.length(0), ctx.length(1)) == (0, 2)


def test_a_batch_that_fails_in_its_last_row_changes_nothing():
    ctx = context()
    with pytest.raises(EngineError, match="the batch puts one at 2"):
        ctx.decode([1, 1], [0, 2], [0, 0])
    assert ctx.length(0) == 0


def test_rows_of_logits_are_gone_with_the_next_decode():
    ctx = context(spec={"hidden": True})
    ctx.decode([1, 2], [0, 1], [0, 0])
    kept, row, own, states = ctx.logits(), ctx.logits()[1], ctx.logits()[1].copy(), ctx.hidden()
    seen = np.asarray(row)
    assert (own == row).all() and own.argmax() == row.argmax() == ctx.greedy()[1]
    ctx.decode([3], [2], [0])
    for read in (lambda: kept[0], lambda: row + 1, lambda: row.argmax(), lambda: list(kept), lambda: len(kept),
                 lambda: np.argsort(row), lambda: states[0], lambda: np.multiply(row, 2)):  # fmt: skip
        with pytest.raises(EngineError, match="belong to an earlier decode"):
            read()
    assert np.isnan(seen).all(), "what numpy made of them before is spoilt"
    assert np.isfinite(own).any(), "and a copy is not"


def test_a_decode_that_asked_for_nothing_has_nothing():
    ctx = context()
    ctx.decode([1], [0], [0], [])
    for read in (ctx.logits, ctx.greedy):
        with pytest.raises(EngineError, match="left no logits"):
            read()


def test_end_tokens_are_never_said():
    assert np.isneginf(toy().row(1, 1)[END])
    texts = [run("autoregressive", temperature=2.0, seed=seed, n_predict=80).text() for seed in range(5)]
    assert len({token for text in texts for token in text}) > 40
    assert all(END not in text for text in texts)


def test_a_cache_of_each_sequence_and_one_of_all():
    """Twice 16 cells: apart, 20 tokens do not fit one sequence; together they do, and 16 more in the other do not."""
    shared = context(spec={"kv_unified": True})
    shared.decode([1] * 20, range(20), [0] * 20, [])
    with pytest.raises(EngineError, match="the cache of all sequences is full at 32 tokens"):
        shared.decode([1] * 13, range(13), [1] * 13, [])
    shared.copy(0, 1)
    assert (shared.length(1), shared._memory.used()) == (20, 20), "a copy of a shared cache takes no room"
    shared.decode([1] * 12, range(20, 32), [1] * 12, [])


@pytest.mark.parametrize(
    ("count", "last", "sound"), [(2, 3, True), (3, 3, False), (2, 2, False), (1, 1, False), (1, 2, True)]
)
def test_states_are_kept_behind_the_tokens_of_the_newest_decode_only(count, last, sound):
    """As in llama.cpp: it says yes to any rollback within its snapshots, and the state is right for some of them."""
    ctx = context(n_ctx=40, spec={"snapshots": 4}, no_rewind=True)
    text = list(range(4, 10))
    ctx.decode(text[: 6 - last], range(6 - last), [0] * (6 - last), [])
    ctx.decode(text[6 - last :], range(6 - last, 6), [0] * last, [])
    assert ctx.rewind(0, 6 - count)
    assert not ctx.rewind(0, 5 - count), "one rollback is pending"
    ctx.decode([20], [6 - count], [0])
    right = ctx.model.row(20, advance(0, [*text[: 6 - count], 20]))
    assert (ctx.logits()[0] == right).all() == sound


def test_snapshots_need_room_in_a_ubatch():
    with pytest.raises(EngineError, match=r"7 snapshots of a recurrent state need engine\.n_ubatch=9 or more"):
        context(spec={"snapshots": 7, "n_ubatch": 8}, no_rewind=True)
    context(spec={"snapshots": 7, "n_ubatch": 9}, no_rewind=True)
    context(spec={"snapshots": 7, "n_ubatch": 8}), "attention keeps no snapshots"


def test_a_missing_wait_shows_in_the_parts_of_a_round_and_not_in_their_sum():
    """An engine that returns too early: its decodes cost nothing and its draws cost everything."""
    kept, early = (run("autoregressive", toy(asynchronous=late), n_predict=20) for late in (False, True))
    assert kept.window_ns == early.window_ns
    assert {r.decode_ns for r in kept.rounds()} == {10 * MS}
    assert {(r.decode_ns, r.sample_ns) for r in early.rounds()} == {(0, 10 * MS)}
    assert kept.text() == early.text()
