"""The loops on a model whose memory is recurrent: the same text as plain decoding, and what its state cannot do."""

from __future__ import annotations

import pytest

from bench.config import compose_points
from bench.plan import model_path
from pti_loop.engine import ContextSpec, Unsupported, prefill
from pti_loop.llama import LlamaModel
from tests.pti_loop.loops import acceptance, run

PROMPTS = ("class TestQueue(unittest.TestCase):\n    def test_put(self):\n", "for name in names:\n    if ",
           "def read(self, size=-1):\n")  # fmt: skip


@pytest.fixture(scope="module")
def tiny():
    loaded = LlamaModel(model_path(compose_points(["model=pti-tiny"])[0]), n_gpu_layers=0)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def prompts(tiny):
    return [tuple(tiny.tokenize(text)) for text in PROMPTS]


@pytest.mark.parametrize(
    "settings",
    [{"emission": "published"}, {"emission": "distinct"}, {"emission": "distinct", "rebuild": "exact"}],
)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_stagger_says_what_plain_decoding_says(tiny, prompts, settings, temperature):
    common = {"prompts": prompts[:1], "n_predict": 24, "temperature": temperature, "n_ctx": 256}
    plain = run("autoregressive", tiny, **common).text()
    trace = run("stagger", tiny, streams=4, **common, **settings)
    verified = trace.text(verified_only=True)
    assert verified == plain[: len(verified)]
    assert len(verified) >= 24 - 3
    assert len(set(plain)) > 3, "a text of one token would be the same whatever went wrong"


@pytest.mark.parametrize("unified", [False, True])
def test_packed_answers_are_those_of_each_prompt_alone(tiny, prompts, unified):
    alone = run("autoregressive", tiny, prompts=prompts, n_predict=24, n_ctx=256)
    packed = run("packed", tiny, streams=3, prompts=prompts, n_predict=24, n_ctx=256, kv_unified=unified)
    assert [packed.text(i) for i in range(3)] == [alone.text(i) for i in range(3)]
    assert alone.text(0) != alone.text(1) != alone.text(2)


def test_controls_hold(tiny, prompts):
    common = {"prompts": prompts[:1], "n_predict": 16, "n_ctx": 256, "streams": 3, "rebuild": "exact"}
    answer = run("autoregressive", tiny, prompts=prompts[:1], n_predict=20, n_ctx=256).text()
    assert acceptance(run("stagger", tiny, control="oracle", answer=answer, **common)) == 1
    sabotaged = run("stagger", tiny, control="sabotage", answer=answer, **common)
    assert acceptance(sabotaged) == 0
    verified = sabotaged.text(verified_only=True)
    assert verified == answer[: len(verified)]


def test_the_state_cannot_rewind_so_jacobi_is_refused(tiny, prompts):
    assert (tiny.hybrid, tiny.n_nextn) == (True, 1)
    with pytest.raises(Unsupported, match="cannot rewind"):
        run("jacobi", tiny, streams=3, prompts=prompts[:1], n_predict=8, n_ctx=256)
    ctx = tiny.context(ContextSpec(n_ctx=256, n_seq_max=1))
    prefill(ctx, prompts[0], 0)
    assert not ctx.rewind(0, len(prompts[0]) - 2)
    ctx.close()


def test_a_copied_sequence_goes_on_as_its_source(tiny, prompts):
    ctx = tiny.context(ContextSpec(n_ctx=256, n_seq_max=2))
    prefill(ctx, prompts[0], 0)
    ctx.copy(0, 1)
    at = len(prompts[0])
    ctx.decode([7, 7], [at, at], [0, 1], None)
    first, second = ctx.logits()
    assert (first.argmax(), ctx.length(0)) == (second.argmax(), ctx.length(1))
    ctx.decode([8, 9], [at + 1, at + 1], [0, 1], None)
    first, second = ctx.logits()[:, 1:]
    assert abs(first - second).max() > 0.1, "from here on they are two sequences"
    ctx.close()
