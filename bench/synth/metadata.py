"""The keys of a synthetic file: the shape as llama.cpp reads it, a vocabulary that encodes any text, and the mark.

It knows no weights. The mark is what keeps such a file from being taken for evidence.
"""

from __future__ import annotations

from itertools import islice, product

from gguf import GGUFWriter, TokenType

from bench.synth.formats import file_type
from bench.synth.shape import BYTE_TOKENS, SPECIAL_TOKENS, Order, Shape
from pti_loop.gguf.file import SYNTHETIC
from pti_loop.gguf.words import byte_alphabet

_SPACE = "\u0120"
"""A blank, in the alphabet in which GPT-2's vocabulary writes bytes."""
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_SECTIONS = 3


def describe(writer: GGUFWriter, order: Order) -> None:
    """Put all keys into the writer."""
    shape = order.shape
    writer.add_type("model")
    writer.add_name(f"{order.preset} (synthetic)")
    writer.add_description("Random weights of this shape. What it says means nothing.")
    writer.add_bool(SYNTHETIC, True)
    writer.add_string(f"{SYNTHETIC}.preset", order.preset)
    writer.add_string(f"{SYNTHETIC}.format", order.format)
    writer.add_uint64(f"{SYNTHETIC}.seed", order.seed)
    writer.add_file_type(file_type(order.format))
    writer.add_quantization_version(2)
    writer.add_block_count(shape.layers + shape.nextn)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.embedding)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_rope_dimension_count(shape.rope_dimensions)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_vocab_size(shape.vocabulary)
    if shape.hybrid:
        _describe_hybrid(writer, shape)
    _describe_vocabulary(writer, shape)


def _describe_hybrid(writer: GGUFWriter, shape: Shape) -> None:
    writer.add_rope_dimension_sections(rope_sections(shape.rope_dimensions))
    writer.add_full_attention_interval(shape.attention_interval)
    writer.add_ssm_conv_kernel(shape.convolution)
    writer.add_ssm_state_size(shape.delta_head_size)
    writer.add_ssm_group_count(shape.delta_key_heads)
    writer.add_ssm_time_step_rank(shape.delta_value_heads)
    writer.add_ssm_inner_size(shape.delta_width)
    if shape.nextn:
        writer.add_nextn_predict_layers(shape.nextn)


def rope_sections(dimensions: int) -> list[int]:
    """Pairs of values for time, height and width, as even as they go, and a fourth that is not used: 64 -> 11 11 10."""
    pairs = dimensions // 2
    return [pairs // _SECTIONS + (part < pairs % _SECTIONS) for part in range(_SECTIONS)] + [0]


def _describe_vocabulary(writer: GGUFWriter, shape: Shape) -> None:
    tokens, types, merges = vocabulary(shape.vocabulary)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(shape.tokenizer)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(shape.vocabulary - 2)
    writer.add_eos_token_id(shape.vocabulary - 1)
    writer.add_add_bos_token(False)


def vocabulary(size: int) -> tuple[list[str], list[int], list[str]]:
    """Tokens, their types and the merges: every byte, pairs of letters, filler, and two special tokens at the end.

    The pairs keep prompts at about half of their length in bytes. Filler is never made by merging, so that a prompt
    does not use it; a model may say it.
    """
    alphabet = byte_alphabet()
    room = size - BYTE_TOKENS - SPECIAL_TOKENS
    pairs = list(islice(((a, b) for a, b in product(_SPACE + _LETTERS, _LETTERS)), max(room, 1)))
    tokens = [*alphabet, *(a + b for a, b in pairs[:room])]
    tokens += [f"{_SPACE}#{number}" for number in range(size - SPECIAL_TOKENS - len(tokens))]
    types = [TokenType.NORMAL] * len(tokens) + [TokenType.CONTROL] * SPECIAL_TOKENS
    return [*tokens, "<|begin|>", "<|end|>"], [int(kind) for kind in types], [f"{a} {b}" for a, b in pairs]
