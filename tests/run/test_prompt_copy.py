"""A recalled prompt is the prompt: the same text, the same logits, on attention and on a hybrid memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.run.prompt_copy import Recall
from pti_loop.engine import ContextSpec, prefill
from pti_loop.ledger import Trace
from pti_loop.llama.model import LlamaModel
from pti_loop.loop import Decoder
from pti_loop.methods import METHODS
from pti_loop.sampling import Sampler
from pti_loop.settings import settings_of
from tests.pti_loop.loops import toy

TINY = Path(__file__).resolve().parents[2] / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"


@pytest.fixture(scope="module")
def hybrid():
    model = LlamaModel(TINY, n_gpu_layers=0)
    yield model
    model.close()


def text(model, ctx, name: str, prompt, seed: int, **settings) -> list[int]:
    trace = Trace(0, ctx.clock)
    sampler = Sampler(model.n_vocab, 0.8, seed, model.weigh)
    METHODS[name].run(Decoder(ctx, sampler, trace, settings_of(name, **settings)), [prompt])
    return trace.text()


@pytest.mark.parametrize("name", ["autoregressive", "stagger"])
def test_runs_behind_a_recalled_prompt_say_what_fresh_ones_say(hybrid, name):
    prompt = tuple(hybrid.tokenize("def add(first, second):\n    return first +"))
    own = {"emission": "distinct", "rebuild": "exact"} if name == "stagger" else {}
    settings = {"streams": 3, "n_predict": 6, **own}
    spec = ContextSpec(n_ctx=64, n_seq_max=METHODS[name].sequences(settings_of(name, **settings)))
    recall = Recall(hybrid, spec)
    try:
        for seed in range(6):
            fresh = hybrid.context(spec)
            said = text(hybrid, fresh, name, prompt, seed, **settings)
            fresh.close()
            assert text(hybrid, recall, name, prompt, seed, **settings) == said
    finally:
        recall.close()


def test_a_prompt_is_evaluated_once_and_another_one_takes_its_place():
    model = toy()
    recall = Recall(model, ContextSpec(n_ctx=50, n_seq_max=1))
    decodes = []
    evaluate = recall.inner.decode
    recall.inner.decode = lambda *args: decodes.append(list(args[0])) or evaluate(*args)
    for _ in range(3):
        recall.clear()
        prefill(recall, [1, 2, 3], 0)
    assert decodes == [[1, 2, 3]]
    assert recall.length(0) == 3
    recall.clear()
    prefill(recall, [1, 2, 4], 0)
    assert decodes == [[1, 2, 3], [1, 2, 4]]
    fresh = model.context(ContextSpec(n_ctx=50, n_seq_max=1))
    prefill(fresh, [1, 2, 4], 0)
    assert np.array_equal(recall.logits(), fresh.logits())
    assert recall.greedy() == fresh.greedy()
    recall.decode([5], [3], [0], None)
    fresh.decode([5], [3], [0], None)
    assert np.array_equal(recall.logits(), fresh.logits())


def test_what_a_copy_does_not_bring_is_computed_after_all():
    model = toy()
    recall = Recall(model, ContextSpec(n_ctx=50, n_seq_max=1))
    recall.inner.hidden = lambda: recall.inner._decodes
    for _ in range(2):
        recall.clear()
        prefill(recall, [1, 2, 3], 0)
    assert recall.inner._decodes == 1
    assert recall.hidden() == 2
    assert recall.length(0) == 3
    recall.decode([5], [3], [0], None)
    assert recall.hidden() == 3
