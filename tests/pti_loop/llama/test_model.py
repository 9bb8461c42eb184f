"""The engine on llama.cpp with the real model: the same text whatever the shape, and the promises of the interface."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pti_loop.engine import ContextSpec, EngineError, prefill
from pti_loop.llama import model as llama
from pti_loop.llama.log import EngineLog, buffer_bytes, flash_attention, layers_offloaded
from tests.pti_loop.loops import acceptance, opened, run

ADAPTER = Path(__file__).resolve().parents[3] / "models" / "smollm2-135m-pydoc" / "smollm2-135m-pydoc.lora.F16.gguf"
TEXT = "The key to faster LLM inference is"


@pytest.fixture(scope="module")
def prompt(model):
    return tuple(model.tokenize(TEXT))


@pytest.fixture(scope="module")
def plain(model, prompt):
    """Text of plain decoding by temperature, each decoded once."""
    return cache(lambda temperature: run(
        "autoregressive", model, prompts=[prompt], n_predict=12, temperature=temperature, n_ctx=256
    ).text())  # fmt: skip


def context(model, **more):
    return model.context(ContextSpec(**{"n_ctx": 256, "n_seq_max": 1, "threads": 1} | more))


def test_greedy_text_is_what_the_high_level_binding_says(model, prompt, smollm2):
    """An oracle that shares the library but none of our code."""
    import llama_cpp

    other = llama_cpp.Llama(str(smollm2), n_ctx=256, n_threads=1, verbose=False, n_gpu_layers=0, flash_attn=True)
    banned = {token: -float("inf") for token in model.end_tokens}
    said = other.create_completion(list(prompt), max_tokens=16, temperature=0.0, logit_bias=banned, repeat_penalty=1.0)
    text = model.detokenize(run("autoregressive", model, prompts=[prompt], n_predict=16, n_ctx=256).text())
    assert said["choices"][0]["text"].split("<|")[0] in text


@pytest.mark.parametrize(
    ("name", "settings"),
    [("stagger", {"emission": "published"}), ("stagger", {"emission": "distinct", "rebuild": "exact"}), ("jacobi", {}),
     ("lookup", {"ngram": 1, "draft": 3}), ("lookup", {"ngram": 1, "draft": 3, "rollback": "checkpoint"}),
     ("twin", {"twin": "q2_k+q4_0", "draft": 2}), ("adapter", {"adapter": str(ADAPTER), "draft": 2})],
)
def test_methods_say_what_plain_decoding_says(model, prompt, plain, name, settings):
    common = {"streams": 3, "n_predict": 12, "n_ctx": 256, "sample": prompt}
    with opened(name, model, **common, **settings) as once:
        for temperature in (0.0, 0.3, 0.7, 1.0):
            trace = once([prompt], temperature)
            verified = trace.text(verified_only=True)
            assert verified == plain(temperature)[: len(verified)], temperature
            assert len(trace.text()) == 12


def test_packed_answers_are_those_of_each_prompt_alone(model, prompt):
    prompts = [prompt, tuple(model.tokenize("Once upon a time there was a bridge that")),
               tuple(model.tokenize("def median(values):"))]  # fmt: skip
    alone = run("autoregressive", model, prompts=prompts, n_predict=8, n_ctx=256)
    for unified in (False, True):
        packed = run("packed", model, streams=3, prompts=prompts, n_predict=8, n_ctx=256, kv_unified=unified)
        assert [packed.text(i) for i in range(3)] == [alone.text(i) for i in range(3)]


def test_controls_hold_on_the_real_engine(model, prompt):
    common = {"prompts": [prompt], "n_predict": 10, "n_ctx": 256, "streams": 3}
    answer = run("autoregressive", model, prompts=[prompt], n_predict=14, n_ctx=256).text()
    assert acceptance(run("jacobi", model, control="oracle", answer=answer, **common)) == 1
    sabotaged = run("jacobi", model, control="sabotage", answer=answer, **common)
    assert acceptance(sabotaged) == 0
    assert sabotaged.text() == answer[:10]


def test_backend_sampling_says_what_host_sampling_says(model, prompt):
    host = run("packed", model, streams=2, prompts=[prompt, prompt[:-1]], n_predict=8, n_ctx=256)
    backend = run("packed", model, streams=2, prompts=[prompt, prompt[:-1]], n_predict=8, n_ctx=256, sampler="backend")
    assert [host.text(0), host.text(1)] == [backend.text(0), backend.text(1)]


@pytest.mark.parametrize(("name", "settings"), [("lookup", {"ngram": 1, "draft": 3}), ("stagger", {"streams": 3})])
def test_the_engines_graph_samples_several_rows_of_a_decode(model, prompt, plain, name, settings):
    trace = run(name, model, prompts=[prompt], n_predict=12, n_ctx=256, sampler="backend", **settings)
    verified = trace.text(verified_only=True)
    assert verified == plain(0.0)[: len(verified)] and max(one.width for one in trace.rounds()) > 2


def test_logits_are_a_view_and_end_tokens_are_banned(model, prompt):
    ctx = context(model)
    prefill(ctx, prompt, 0)
    rows = ctx.logits()
    assert rows.shape == (1, model.n_vocab)
    assert not rows.flags.owndata
    assert np.isneginf(rows[0, model.end_tokens]).all()
    assert np.isfinite(np.delete(rows[0], model.end_tokens)).all()
    assert ctx.logits() is rows, "a second look costs nothing"
    ctx.decode([100, 200, 300], [len(prompt), len(prompt) + 1, len(prompt) + 2], [0] * 3)
    assert np.isneginf(ctx.logits()[:, model.end_tokens]).all() and len(ctx.logits()) == 3
    assert np.isfinite(np.delete(ctx.logits(), model.end_tokens, axis=1)).all()
    ctx.close()
    ctx.close()


def test_rewinding_restores_the_state_exactly(model, prompt):
    ctx = context(model)
    prefill(ctx, prompt, 0)
    ctx.decode([100], [len(prompt)], [0])
    fresh = ctx.logits().copy()
    ctx.decode([200, 300], [len(prompt) + 1, len(prompt) + 2], [0, 0], [1])
    assert ctx.rewind(0, len(prompt))
    assert ctx.length(0) == len(prompt)
    ctx.decode([100], [len(prompt)], [0])
    assert (ctx.logits() == fresh).all()
    ctx.close()


def test_a_prompt_longer_than_the_batch_goes_in_pieces(model):
    tokens = list(range(300, 340))
    rows = []
    for n_batch in (64, 16):
        ctx = context(model, n_batch=n_batch)
        prefill(ctx, tokens, 0)
        rows.append(ctx.logits()[0].copy())
        ctx.close()
    assert rows[0].argmax() == rows[1].argmax()


def test_refusals_are_errors_with_a_reason(model, tmp_path):
    ctx = context(model)
    with pytest.raises(EngineError, match="returned -1"):
        ctx.decode([1], [0], [5])
    with pytest.raises(EngineError, match="larger than n_batch 256"):
        ctx.decode([1] * 300, range(300), [0] * 300)
    ctx.close()
    (tmp_path / "x.gguf").write_bytes(b"GGUF nonsense")
    with pytest.raises(EngineError, match="does not load"):
        llama.LlamaModel(tmp_path / "x.gguf")


def test_a_full_context_is_an_error(model):
    ctx = context(model, n_ctx=256)
    ctx.decode([5] * 200, range(200), [0] * 200, [])
    with pytest.raises(EngineError, match="no room in the KV cache"):
        ctx.decode([5] * 100, range(200, 300), [0] * 100, [99])
    ctx.close()


def test_facts_are_read_back(model):
    ctx = context(model, n_seq_max=3, type_k="q8_0", type_v="q8_0", flash_attn="on")
    facts = ctx.facts()
    assert (facts["n_seq_max"], facts["n_ctx_seq"], facts["threads"]) == (3, 256, 1)
    assert facts["flash_attn"] == "on"
    assert context(model).facts()["flash_attn"] in ("enabled", "disabled"), "what auto became is read back"
    f16 = context(model, n_seq_max=3).facts()
    assert 0 < facts["kv_bytes"] < f16["kv_bytes"]
    assert facts["layers_offloaded"] == 0
    assert facts["repack"] and not any(name.startswith("packed_") for name in facts), "a build without the kernels"
    assert llama.build()["llama_cpp_commit"]
    ctx.close()


def test_the_log_is_kept_and_read():
    assert "llama_context" in llama.log().since()
    assert layers_offloaded("load_tensors: offloaded 20/31 layers to GPU") == (20, 31)
    assert layers_offloaded("nothing") is None
    assert flash_attention("llama_context: Flash Attention was auto, set to enabled") == "enabled"
    assert flash_attention("resolve_fused_ops: Flash Attention enabled") == "enabled"
    assert flash_attention("resolve_fused_ops: fused DeepSeek V4 HC pre enabled") is None
    text = "CUDA0 KV buffer size =  100.00 MiB\n CPU KV buffer size =   28.50 MiB\n CPU RS buffer size = 2.00 MiB\n"
    assert buffer_bytes(text)["kv_bytes"] == int(128.5 * 1024 * 1024)
    assert buffer_bytes(text)["state_bytes"] == 2 * 1024 * 1024
    assert EngineLog().last_error() == "llama.cpp printed nothing"


def test_a_context_that_samples_in_the_engine_has_no_logits(model, prompt):
    ctx = context(model, sampler="backend")
    prefill(ctx, prompt, 0)
    assert len(ctx.greedy()) == 1
    with pytest.raises(EngineError, match="samples on the backend"):
        ctx.logits()
    ctx.close()
