"""Every preset loads and decodes in llama.cpp; the large ones cut to two layers and few words."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from bench.synth import writer
from bench.synth.formats import FORMATS
from bench.synth.shape import order, presets
from pti_loop.engine import ContextSpec, prefill
from pti_loop.llama.library import library
from pti_loop.llama.model import LlamaModel

CUT = {
    "qwen3.6-27b": ["layers=2", "vocabulary=2048", "format=Q4_K", "embedding=1024", "feed_forward=2048"],
    "llama-3-8b": ["layers=2", "vocabulary=2048", "feed_forward=2048"],
    "qwen3-1.7b": ["layers=2", "vocabulary=2048", "format=Q4_K"],
    "smollm2-135m": ["layers=8"],
}
TEXT = "def total(prices):\n    # the sum, naïvely: 合計 \U0001f600\n"


def logits_along(model: LlamaModel, tokens: list[int], steps: int = 8) -> tuple[np.ndarray, list[int]]:
    """Logits after the text and after each of some greedy tokens, and these tokens."""
    ctx = model.context(ContextSpec(n_ctx=len(tokens) + steps, n_seq_max=1, threads=1))
    try:
        prefill(ctx, tokens, 0)
        rows, said = [ctx.logits()[-1].copy()], []
        for step in range(steps):
            said.append(int(rows[-1].argmax()))
            ctx.decode([said[-1]], [len(tokens) + step], [0], None)
            rows.append(ctx.logits()[-1].copy())
        return np.array(rows), said
    finally:
        ctx.close()


def check(path: Path) -> LlamaModel:
    """Loads, encodes any text, and says finite, varied, far-apart things."""
    model = LlamaModel(path, n_gpu_layers=0)
    tokens = model.tokenize(TEXT)
    assert model.detokenize(tokens) == TEXT
    assert len(tokens) < len(TEXT.encode())
    rows, said = logits_along(model, tokens)
    assert model.end_tokens == [model.n_vocab - 1]
    assert (rows[:, -1] == -np.inf).all()
    words = rows[:, :-1]
    assert np.isfinite(words).all()
    assert (words.std(axis=1) > 2).all()
    assert (words.std(axis=1) < 8).all()
    assert len(set(said)) >= 3, "it says the same whatever went before"
    ordered = np.sort(words, axis=1)
    assert (ordered[:, -1] > ordered[:, -2]).all(), "two logits are equal by construction"
    return model


@pytest.mark.parametrize("preset", presets())
def test_each_preset_loads_and_decodes(preset: str, tmp_path: Path) -> None:
    path, asked = tmp_path / "x.gguf", order(preset, CUT.get(preset, []))
    writer.write(asked, path)
    model = check(path)
    try:
        assert model.n_vocab == asked.shape.vocabulary
        assert model.hybrid == asked.shape.hybrid
        assert model.n_nextn == asked.shape.nextn
        assert model.n_layer == asked.shape.layers
    finally:
        model.close()


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_decodes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    writer.write(order("hybrid-mini", [f"format={name}"]), path)
    check(path).close()


def test_the_prediction_layer_loads_and_drafts(tmp_path: Path) -> None:
    """Its context of its own is made, which llama.cpp refuses when a tensor of the layer is missing."""
    path, lib = tmp_path / "x.gguf", library()
    writer.write(order("hybrid-mini"), path)
    params = lib.llama_model_default_params()
    params.n_gpu_layers, params.load_mtp = 0, True
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    assert model
    try:
        assert lib.llama_model_n_layer_nextn(model) == 1
        wanted = lib.llama_context_default_params()
        wanted.n_ctx, wanted.n_threads, wanted.ctx_type = 64, 1, lib.LLAMA_CONTEXT_TYPE_MTP
        ctx = lib.llama_init_from_model(model, wanted)
        assert ctx
        try:
            logits = _draft(lib, ctx, lib.llama_model_n_embd(model))
            assert np.isfinite(logits).all()
            assert 2 < logits.std() < 8
        finally:
            lib.llama_free(ctx)
    finally:
        lib.llama_model_free(model)


def _draft(lib, ctx, width: int) -> np.ndarray:
    """Logits of the prediction layer for one token and a hidden state."""
    hidden = np.random.default_rng(1).standard_normal(width).astype(np.float32)
    batch = lib.llama_batch_init(1, 0, 1)
    batch.n_tokens, batch.token[0], batch.pos[0], batch.n_seq_id[0], batch.logits[0] = 1, 65, 0, 1, 1
    batch.seq_id[0][0] = 0
    batch.embd = hidden.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    code = lib.llama_decode(ctx, batch)
    batch.embd = None  # it is numpy's memory
    lib.llama_batch_free(batch)
    assert code == 0
    return np.ctypeslib.as_array(lib.llama_get_logits(ctx), shape=(1024,)).copy()
