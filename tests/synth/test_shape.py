"""Presets, overrides, and every bad input as one sentence with nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli import main
from bench.errors import UserError
from bench.synth.formats import FORMATS
from bench.synth.metadata import rope_sections
from bench.synth.shape import Order, order, presets
from bench.synth.tensors import tensors

PARAMETERS = {"qwen3.6-27b": 27.3e9, "llama-3-8b": 8.03e9, "qwen3-1.7b": 1.72e9, "smollm2-135m": 134.5e6}


def test_the_presets_are_those_that_the_help_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert presets() == ["dense-mini", "hybrid-mini", "llama-3-8b", "qwen3-1.7b", "qwen3.6-27b", "smollm2-135m"]
    assert main(["synth", "--help"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*presets(), *FORMATS, "layers", "seed", "--force"))


@pytest.mark.parametrize("preset", PARAMETERS)
def test_a_preset_has_the_parameters_of_its_model(preset: str) -> None:
    """Published counts of the models; the 27B one with its prediction layer of 0.4 billion."""
    count = sum(tensor.elements for tensor in tensors(order(preset)))
    assert count == pytest.approx(PARAMETERS[preset], rel=0.01)


def test_the_27b_layers_are_the_published_ones() -> None:
    found = {tensor.name: tensor.shape for tensor in tensors(order("qwen3.6-27b"))}
    assert found["blk.3.attn_q.weight"] == (5120, 2 * 24 * 256)
    assert found["blk.3.attn_v.weight"] == (5120, 4 * 256)
    assert found["blk.0.attn_qkv.weight"] == (5120, 2 * 16 * 128 + 48 * 128)
    assert found["blk.0.ssm_out.weight"] == (48 * 128, 5120)
    assert found["blk.0.ssm_conv1d.weight"] == (4, 2 * 16 * 128 + 48 * 128)
    assert found["blk.64.nextn.eh_proj.weight"] == (2 * 5120, 5120)
    attention = [layer for layer in range(65) if f"blk.{layer}.attn_q.weight" in found]
    assert attention == [*range(3, 64, 4), 64]
    assert found["output.weight"] == found["token_embd.weight"] == (5120, 248320)


def test_rope_sections_share_the_pairs() -> None:
    assert rope_sections(64) == [11, 11, 10, 0]
    assert rope_sections(16) == [3, 3, 2, 0]


def test_overrides_reach_the_shape() -> None:
    asked = order("llama-3-8b", ["layers=2", "seed=7", "format=F16", "tied=true", "rope_base=1e4"])
    assert asked == Order("llama-3-8b", asked.shape, "F16", 7)
    assert (asked.shape.layers, asked.shape.tied, asked.shape.rope_base, asked.shape.heads) == (2, True, 1e4, 32)


def test_a_hybrid_cut_short_keeps_an_attention_layer() -> None:
    names = {tensor.name for tensor in tensors(order("qwen3.6-27b", ["layers=2"]))}
    assert "blk.0.ssm_out.weight" in names
    assert {"blk.1.attn_q.weight", "blk.2.nextn.eh_proj.weight"} <= names


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["qwen3.6-28b"], "did you mean 'qwen3.6-27b'?"),
        (["llama-3-8b", "layer=2"], "did you mean 'layers'?"),
        (["llama-3-8b", "vocab=300"], "did you mean 'vocabulary'?"),
        (["llama-3-8b", "format=Q6K"], "did you mean 'Q6_K'?"),
        (["llama-3-8b", "layers=two"], "layers=two cannot be read; write a whole number"),
        (["llama-3-8b", "layers=0"], "layers=0 is below 1"),
        (["llama-3-8b", "kv_heads=5"], "heads=32 is no multiple of kv_heads=5"),
        (["llama-3-8b", "embedding=4100"], "the nearest are 4096 and 4128"),
        (["llama-3-8b", "feed_forward=100"], "feed_forward=100 is no multiple of 32"),
        (["llama-3-8b", "head_size=31"], "rope_dimensions=128 has to be even and at most head_size=31"),
        (["llama-3-8b", "vocabulary=257"], "vocabulary=257 is below 258"),
        (["llama-3-8b", "seed=-1"], "seed=-1 is not a whole number from 0"),
        (["llama-3-8b", "nextn=1"], "nextn=1 is of the hybrid architecture qwen35"),
        (["hybrid-mini", "nextn=2"], "nextn=2 is not 0 or 1"),
        (["hybrid-mini", "delta_value_heads=3"], "delta_value_heads=3 is no multiple of delta_key_heads=2"),
        (["hybrid-mini", "architecture=lama"], "did you mean 'llama'?"),
        (["hybrid-mini", "tied=maybe"], "tied=maybe cannot be read; write true or false"),
        (["hybrid-mini", "--fore"], "did you mean '--force'?"),
        (["hybrid-mini", "another"], "got 3 of them"),
    ],
)
def test_bad_input_is_one_sentence_and_no_file(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["synth", words[0], str(tmp_path / "x.gguf"), *words[1:]]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not list(tmp_path.iterdir())


def test_a_preset_file_with_a_slip_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.synth import shape

    text = (shape.PRESETS / "dense-mini.yaml").read_text()
    (tmp_path / "typo.yaml").write_text(text.replace("heads:", "heds:", 1))
    (tmp_path / "short.yaml").write_text(text.replace("context: 4096\n", ""))
    monkeypatch.setattr(shape, "PRESETS", tmp_path)
    with pytest.raises(UserError, match=r"typo\.yaml: unknown key 'heds'; did you mean 'heads'"):
        order("typo")
    with pytest.raises(UserError, match=r"short\.yaml lacks context"):
        order("short")
