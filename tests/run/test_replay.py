"""Replays of one text in several shapes: each is decoded once, whoever asks for it, and says the same rows as ever."""

import numpy as np
import pytest

from bench.run.replay import KeptRows, Shape, replay
from pti_loop.engine import ContextSpec
from pti_loop.fake import FakeModel

PROMPT, TEXT, OTHER = [1, 2, 3], [4, 5, 6, 7, 8], [4, 5, 6, 7, 9]
SHAPES = (Shape(1, "sequences"), Shape(2, "sequences"), Shape(3, "tokens"), Shape(3, "tokens", phase=1))


class Counting:
    """A context that counts its decodes."""

    def __init__(self):
        self.inner = FakeModel(step_ns=lambda width: 1_000_000).context(ContextSpec(n_ctx=64, n_seq_max=4))
        self.decodes = 0

    def decode(self, *words, **named):
        self.decodes += 1
        return self.inner.decode(*words, **named)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_kept_rows_are_those_of_a_replay_and_are_decoded_once(shape):
    plain, ctx, rows = Counting(), Counting(), KeptRows()
    expected = list(replay(plain, PROMPT, TEXT, shape))
    for _ in range(3):
        assert np.array_equal(list(rows.replay(ctx, PROMPT, TEXT, shape)), expected)
    assert ctx.decodes == plain.decodes


def test_another_text_takes_the_place_of_the_one_before():
    ctx, rows = Counting(), KeptRows()
    first = list(rows.replay(ctx, PROMPT, TEXT, SHAPES[0]))
    once = ctx.decodes
    list(rows.replay(ctx, PROMPT, OTHER, SHAPES[0]))
    assert np.array_equal(list(rows.replay(ctx, PROMPT, TEXT, SHAPES[0])), first)
    assert ctx.decodes == 3 * once


def test_contexts_and_shapes_are_told_apart():
    one, two, rows = Counting(), Counting(), KeptRows()
    for shape in SHAPES:
        list(rows.replay(one, PROMPT, TEXT, shape))
    assert not two.decodes
    list(rows.replay(two, PROMPT, TEXT, SHAPES[0]))
    assert two.decodes


def test_what_does_not_fit_is_decoded_each_time():
    ctx, rows = Counting(), KeptRows(most=0)
    left = list(rows.replay(ctx, PROMPT, TEXT, SHAPES[2]))
    once = ctx.decodes
    assert np.array_equal(list(rows.replay(ctx, PROMPT, TEXT, SHAPES[2])), left)
    assert ctx.decodes == 2 * once
