"""The tensors of a shape, in the order of the file: names, sizes, types, and how their values spread.

Names and sizes are those that llama.cpp's loaders of llama, qwen3 and qwen35 ask for (src/models of the pinned build).
It knows no bytes (`bench.synth.blocks`) and no file (`bench.synth.writer`).

Spreads keep activations finite and logits apart. A matrix of n inputs has the standard deviation gain / sqrt(n), so
that inputs of size 1, which every normalisation gives, come out with the size of the gain. What the layers add to the
stream makes it grow like the root of their number. Attention adds little of it: it averages over positions, and where
that is much of the stream, all positions of a deep stack end up saying the same. The normalisation before the output
matrix has weights around 4, which makes the logits as far apart as a trained model's. It is not the matrix that has
them: as the embedding table of a tied model it has to stay small beside what the layers add, or the model would say its
own input again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gguf.constants import GGMLQuantizationType

from bench.synth.formats import type_of, unit
from bench.synth.shape import Order, Shape

LOGIT_SPREAD = 4.0
ATTENTION_GAIN, FEED_FORWARD_GAIN = 0.25, 1.0


@dataclass(frozen=True)
class Tensor:
    """`shape` as GGUF has it, the length of a row first. Values are around `centre`, `spread` is their deviation."""

    name: str
    shape: tuple[int, ...]
    type: GGMLQuantizationType
    centre: float
    spread: float

    @property
    def elements(self) -> int:
        """Weights."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes in the file, without padding."""
        weights, size = unit(self.type)
        if self.elements % weights:  # only plain numbers have rows that are no whole pieces
            return self.elements * size // weights
        return self.elements // weights * size

    @property
    def rows(self) -> int:
        """Rows of a matrix; 1 for a vector."""
        return self.elements // self.shape[0]


def tensors(order: Order) -> list[Tensor]:
    """All tensors of a model."""
    return list(_Plan(order).all())


class _Plan:
    def __init__(self, order: Order) -> None:
        self.shape: Shape = order.shape
        self.format = order.format

    def matrix(self, name: str, inputs: int, outputs: int, gain: float = 1.0, role: str = "other") -> Tensor:
        kind = type_of(self.format, role, inputs)
        return Tensor(f"{name}.weight", (inputs, outputs), kind, 0.0, gain / math.sqrt(inputs))

    def plain(self, name: str, shape: tuple[int, ...], centre: float, spread: float) -> Tensor:
        return Tensor(name, shape, GGMLQuantizationType.F32, centre, spread)

    def norm(self, name: str, width: int, size: float = 1.0) -> Tensor:
        return self.plain(f"{name}.weight", (width,), size, size / 10)

    def all(self) -> Iterator[Tensor]:
        shape = self.shape
        role = "head" if shape.tied else "other"
        yield self.matrix("token_embd", shape.embedding, shape.vocabulary, role=role)
        for layer in range(shape.layers + shape.nextn):
            yield from self.layer(layer)
        yield self.norm("output_norm", shape.embedding, LOGIT_SPREAD)
        if not shape.tied:
            yield self.matrix("output", shape.embedding, shape.vocabulary, role="head")

    def layer(self, layer: int) -> Iterator[Tensor]:
        shape, at = self.shape, f"blk.{layer}."
        predicts = layer >= shape.layers
        yield self.norm(f"{at}attn_norm", shape.embedding)
        if shape.hybrid and not predicts and (layer + 1) % shape.attention_interval:
            yield from self.delta_net(at)
        else:
            yield from self.attention(at)
        yield self.norm(f"{at}{'post_attention_norm' if shape.hybrid else 'ffn_norm'}", shape.embedding)
        for name in ("ffn_gate", "ffn_up"):
            yield self.matrix(at + name, shape.embedding, shape.feed_forward, role="feed_forward")
        yield self.matrix(f"{at}ffn_down", shape.feed_forward, shape.embedding, FEED_FORWARD_GAIN, "feed_forward")
        if predicts:
            yield self.matrix(f"{at}nextn.eh_proj", 2 * shape.embedding, shape.embedding)
            for name in ("enorm", "hnorm"):
                yield self.norm(f"{at}nextn.{name}", shape.embedding)
            yield self.norm(f"{at}nextn.shared_head_norm", shape.embedding, LOGIT_SPREAD)

    def attention(self, at: str) -> Iterator[Tensor]:
        shape = self.shape
        # In the hybrid architecture the query's matrix also gives the gate of the output.
        queries = shape.attention_width * (2 if shape.hybrid else 1)
        yield self.matrix(f"{at}attn_q", shape.embedding, queries)
        yield self.matrix(f"{at}attn_k", shape.embedding, shape.kv_width)
        yield self.matrix(f"{at}attn_v", shape.embedding, shape.kv_width)
        if shape.architecture != "llama":
            yield self.norm(f"{at}attn_q_norm", shape.head_size)
            yield self.norm(f"{at}attn_k_norm", shape.head_size)
        yield self.matrix(f"{at}attn_output", shape.attention_width, shape.embedding, ATTENTION_GAIN)

    def delta_net(self, at: str) -> Iterator[Tensor]:
        shape, heads = self.shape, self.shape.delta_value_heads
        yield self.matrix(f"{at}attn_qkv", shape.embedding, shape.convolved_width)
        yield self.matrix(f"{at}attn_gate", shape.embedding, shape.delta_width)
        yield self.plain(f"{at}ssm_conv1d.weight", (shape.convolution, shape.convolved_width), 0.0, 0.5)
        # The state fades by exp(a * softplus(input + dt)) a token; a below 0 keeps it from growing.
        yield self.plain(f"{at}ssm_dt.bias", (heads,), 0.0, 0.1)
        yield self.plain(f"{at}ssm_a", (heads,), -0.5, 0.25)
        yield self.matrix(f"{at}ssm_beta", shape.embedding, heads)
        yield self.matrix(f"{at}ssm_alpha", shape.embedding, heads)
        yield self.norm(f"{at}ssm_norm", shape.delta_head_size)
        yield self.matrix(f"{at}ssm_out", shape.delta_width, shape.embedding, ATTENTION_GAIN)
