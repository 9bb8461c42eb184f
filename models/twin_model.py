"""A Llama in PyTorch from a GGUF file, with a low-rank adapter on its matrices; writes the adapter as GGUF.

The base weights are the file's, dequantized, and stay as they are: the adapter is trained on what llama.cpp will run.
Source of the adapter's layout: llama.cpp's `convert_lora_to_gguf.py`. Knows no data and no loss.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import torch
import torch.nn.functional as F
from torch import nn

ADAPTED = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


Rope: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of the rotation of each position, (time, channels / 2) each."""


def read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Numbers of the shape, and float32 tensors (rows, columns) by name, of a GGUF file of the architecture llama."""
    reader = gguf.GGUFReader(path)
    fields = {k.removeprefix("llama."): f.contents() for k, f in reader.fields.items() if k.startswith("llama.")}
    tensors = {t.name: torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type).copy()) for t in reader.tensors}
    return fields, tensors


class TwinModel(nn.Module):
    """Frozen base and trained adapter: each adapted matrix W acts as W + (alpha / rank) B A."""

    def __init__(self, path: Path, rank: int, alpha: float) -> None:
        super().__init__()
        self.fields, tensors = read(path)
        for name, value in tensors.items():
            self.register_buffer(name.replace(".", "_"), value)
        self.rank, self.alpha = rank, alpha
        self.a, self.b = nn.ParameterDict(), nn.ParameterDict()
        for layer in range(self.fields["block_count"]):
            for kind in ADAPTED:
                rows, columns = tensors[f"blk.{layer}.{kind}.weight"].shape
                key = f"blk_{layer}_{kind}"
                self.a[key] = nn.Parameter(torch.randn(rank, columns) / math.sqrt(columns))
                self.b[key] = nn.Parameter(torch.zeros(rows, rank))

    def _apply_matrix(self, x: torch.Tensor, key: str) -> torch.Tensor:
        y: torch.Tensor = F.linear(x, getattr(self, key + "_weight"))
        return y + F.linear(F.linear(x, self.a[key]), self.b[key]) * (self.alpha / self.rank)

    def _norm(self, x: torch.Tensor, key: str) -> torch.Tensor:
        return F.rms_norm(x, x.shape[-1:], getattr(self, key + "_weight"),
                          self.fields["attention.layer_norm_rms_epsilon"])  # fmt: skip

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, time) -> scores (batch, time, n_vocab)."""
        f, (b, t) = self.fields, tokens.shape
        heads, kv = f["attention.head_count"], f["attention.head_count_kv"]
        rope = self._angles(t, tokens.device)
        x = F.embedding(tokens, self.token_embd_weight)
        for layer in range(f["block_count"]):
            at = f"blk_{layer}_"
            y = self._norm(x, at + "attn_norm")
            q = rotate(self._apply_matrix(y, at + "attn_q").view(b, t, heads, -1).transpose(1, 2), rope)
            k = rotate(self._apply_matrix(y, at + "attn_k").view(b, t, kv, -1).transpose(1, 2), rope)
            v = self._apply_matrix(y, at + "attn_v").view(b, t, kv, -1).transpose(1, 2)
            k, v = (z.repeat_interleave(heads // kv, dim=1) for z in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1)
            x = x + self._apply_matrix(y, at + "attn_output")
            y = self._norm(x, at + "ffn_norm")
            gate, up = self._apply_matrix(y, at + "ffn_gate"), self._apply_matrix(y, at + "ffn_up")
            x = x + self._apply_matrix(F.silu(gate) * up, at + "ffn_down")
        return F.linear(self._norm(x, "output_norm"), self.token_embd_weight)

    def _angles(self, time: int, device: torch.device) -> Rope:
        size = self.fields["rope.dimension_count"]
        power = torch.arange(0, size, 2, device=device, dtype=torch.float32) / size
        turn = torch.outer(torch.arange(time, device=device).float(), self.fields["rope.freq_base"] ** -power)
        return turn.cos(), turn.sin()

    def write(self, target: Path, facts: dict[str, str]) -> None:
        """The adapter as a GGUF file of half-precision numbers."""
        writer = gguf.GGUFWriter(target, "llama")
        writer.add_type("adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", self.alpha)
        for key, value in facts.items():
            writer.add_string(f"general.{key}", value)
        for key in self.a:
            _, layer, kind = key.split("_", 2)
            for side, values in (("a", self.a), ("b", self.b)):
                name = f"blk.{layer}.{kind}.weight.lora_{side}"
                writer.add_tensor(name, values[key].detach().cpu().half().numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def rotate(x: torch.Tensor, rope: Rope) -> torch.Tensor:
    """Rotate channel pairs (2i, 2i + 1) of x (batch, heads, time, channels): the order of llama.cpp's llama files."""
    cos, sin = rope
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
