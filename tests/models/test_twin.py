"""The twin's adapter as it ships, adapters in the engine against numpy, and the split of the twin's text."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics as help_topics

import gguf
import numpy as np
import pytest
from scipy.special import log_softmax

from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from models import twin_measure
from models.twin_data import held_out, split, topics
from pti_loop.engine import ContextSpec, EngineError
from pti_loop.llama.model import LlamaModel
from tests.models.numpy_qwen35 import NumpyQwen35

FILE = Path(__file__).resolve().parents[2] / "models" / "smollm2-135m-pydoc" / "smollm2-135m-pydoc.lora.F16.gguf"
TOKENS = [50, 60, 70, 80, 90, 100]


def context(model, size):
    return model.context(ContextSpec(n_ctx=size, n_seq_max=1, n_outputs=size))


def loss(ctx, tokens) -> float:
    said = log_softmax(twin_measure.scores(ctx, tokens)[:-1].astype(np.float64), axis=1)
    return float(-said[np.arange(len(tokens) - 1), tokens[1:]].mean())


@pytest.fixture(scope="module")
def tokens(model):
    """A held-out topic, as whatever Python runs the tests has it."""
    name = next(name for name in sorted(help_topics) if held_out(name) and len(help_topics[name]) > 1200)
    return model.tokenize(help_topics[name])[:80]


def test_the_adapter_is_small_and_says_what_it_is():
    assert FILE.stat().st_size <= 4_000_000
    fields = {name: field.contents() for name, field in gguf.GGUFReader(FILE).fields.items()}
    assert fields["general.type"] == "adapter"
    assert fields["general.license"] == "PSF-2.0"


def test_the_twin_knows_its_domain_better_and_scale_0_is_the_base(model, tokens):
    ctx, adapter = context(model, len(tokens)), model.adapter(FILE)
    base = loss(ctx, tokens)
    ctx.attach(adapter)
    assert loss(ctx, tokens) < base - 0.05
    ctx.attach(adapter, 0)
    assert loss(ctx, tokens) == base
    ctx.close()


def test_an_adapter_acts_as_w_plus_b_a(tmp_path):
    """On a small model, whose adapted matrices numpy can multiply out."""
    path, rng = model_path(compose_points(["model=pti-tiny"])[0]), np.random.default_rng(0)
    other = NumpyQwen35(path)
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "qwen35")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 6.0)
    for name in ("blk.0.ffn_down.weight", "blk.3.attn_q.weight"):
        rows, columns = other.w[name].shape
        a, b = (rng.normal(0, 0.15, shape).astype(np.float32) for shape in ((2, columns), (rows, 2)))
        writer.add_tensor(name + ".lora_a", a)
        writer.add_tensor(name + ".lora_b", b)
        other.w[name] = other.w[name] + 0.5 * (6.0 / 2) * (b.astype(float) @ a)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = LlamaModel(path, n_gpu_layers=0)
    ctx = context(model, len(TOKENS))
    plain = twin_measure.scores(ctx, TOKENS)[:, 1:]
    ctx.attach(model.adapter(tmp_path / "a.gguf"), 0.5)
    adapted = twin_measure.scores(ctx, TOKENS)[:, 1:]
    wanted = np.array([other.scores(other.token(t, i)) for i, t in enumerate(TOKENS)])[:, 1:]
    error = np.linalg.norm(adapted - wanted) / np.linalg.norm(wanted)
    assert error < 0.03 < np.linalg.norm(plain - wanted) / np.linalg.norm(wanted)
    ctx.close()
    model.close()


def test_a_file_that_is_no_adapter_is_refused(model, tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"GGUF nonsense")
    with pytest.raises(EngineError, match="does not load the adapter"):
        model.adapter(tmp_path / "x.gguf")


def test_a_base_accepts_everything_that_it_drafts_itself(model, tokens, monkeypatch):
    monkeypatch.setattr(twin_measure, "PROMPT", 12)
    monkeypatch.setattr(twin_measure, "N_PREDICT", 6)
    one, two = context(model, 18), context(model, 18)
    same = twin_measure.domain(one, two, [tokens[:30]])
    assert (same["drafted"], same["rate"], same["answers_changed"]) == (6, 1.0, 0)
    assert same["expected_at_temperature_1"] == pytest.approx(1)
    assert same["loss_base"] == same["loss_twin"]
    two.attach(model.adapter(FILE), 4.0)
    other = twin_measure.domain(one, two, [tokens[:30]])
    assert other["expected_at_temperature_1"] < 0.9
    assert other["loss_base"] == same["loss_base"] != other["loss_twin"]
    one.close()
    two.close()


def test_no_paragraph_is_trained_on_and_held_out():
    train, kept = split(dict(help_topics))
    assert set(train) | set(kept) == set(help_topics)
    assert len(kept) >= 5
    closed = {p.strip() for text in kept.values() for p in text.split("\n\n") if p.strip()}
    assert not closed & {p.strip() for text in train.values() for p in text.split("\n\n")}


def test_topics_of_another_version_are_refused(tmp_path):
    (tmp_path / "pydoc_data").mkdir()
    (tmp_path / "pydoc_data" / "topics.py").write_text("topics = {}")
    with pytest.raises(ValueError, match="not that of CPython"):
        topics(tmp_path)
