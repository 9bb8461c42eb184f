"""`pti-tiny` in PyTorch: modules named as the tensors of the GGUF file, heads in the order that llama.cpp reads.

Source of the formulas: llama.cpp's graph of the architecture qwen35 (src/models/qwen35.cpp). Knows no loss and no file.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import nn

from models.delta_rule import delta_rule
from models.tiny_shape import Shape

Rope: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of the rotation of each position, (time, 1, n_rot / 2) each."""


class Attention(nn.Module):
    """Full attention with normed queries and keys, partial rotation, and a gate on its output."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        s = self.shape = shape
        self.attn_q = nn.Linear(s.n_embd, 2 * s.n_head * s.head_dim, bias=False)
        self.attn_k = nn.Linear(s.n_embd, s.n_head_kv * s.head_dim, bias=False)
        self.attn_v = nn.Linear(s.n_embd, s.n_head_kv * s.head_dim, bias=False)
        self.attn_output = nn.Linear(s.n_head * s.head_dim, s.n_embd, bias=False)
        self.attn_q_norm = nn.RMSNorm(s.head_dim, eps=s.eps)
        self.attn_k_norm = nn.RMSNorm(s.head_dim, eps=s.eps)

    def mix(self, x: torch.Tensor, rope: Rope) -> torch.Tensor:
        """(batch, time, n_embd) -> the same shape."""
        s, (b, t, _) = self.shape, x.shape
        q, gate = self.attn_q(x).view(b, t, s.n_head, 2 * s.head_dim).split(s.head_dim, dim=-1)
        q = rotate(self.attn_q_norm(q), rope).transpose(1, 2)
        k = rotate(self.attn_k_norm(self.attn_k(x).view(b, t, s.n_head_kv, s.head_dim)), rope).transpose(1, 2)
        v = self.attn_v(x).view(b, t, s.n_head_kv, s.head_dim).transpose(1, 2)
        repeat = s.n_head // s.n_head_kv
        k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
        out = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True).transpose(1, 2)
        mixed: torch.Tensor = self.attn_output((out * gate.sigmoid()).reshape(b, t, -1))
        return mixed


class DeltaNet(nn.Module):
    """Gated delta net with a short causal convolution. Value head h reads key head h modulo the number of key heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        s = self.shape = shape
        self.attn_qkv = nn.Linear(s.n_embd, s.conv_dim, bias=False)
        self.attn_gate = nn.Linear(s.n_embd, s.value_dim, bias=False)
        self.ssm_alpha = nn.Linear(s.n_embd, s.n_value_heads, bias=False)
        self.ssm_beta = nn.Linear(s.n_embd, s.n_value_heads, bias=False)
        self.ssm_out = nn.Linear(s.value_dim, s.n_embd, bias=False)
        self.ssm_norm = nn.RMSNorm(s.state_dim, eps=s.eps)
        self.ssm_conv1d = nn.Parameter(torch.randn(s.conv_dim, s.n_conv) / math.sqrt(s.n_conv))
        # Decays spread from slow to fast, as in Mamba 2: exp(-A dt) with A in 1..16 and dt in 0.001..0.1.
        self.ssm_a_log = nn.Parameter(torch.empty(s.n_value_heads).uniform_(1, 16).log())
        dt = torch.exp(torch.empty(s.n_value_heads).uniform_(math.log(1e-3), math.log(1e-1)))
        self.ssm_dt = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))

    def mix(self, x: torch.Tensor, rope: Rope) -> torch.Tensor:
        """(batch, time, n_embd) -> the same shape, time a multiple of 64. The rotation is for the other kind of layer.
        """
        s, (b, t, _) = self.shape, x.shape
        padded = F.pad(self.attn_qkv(x), (0, 0, s.n_conv - 1, 0))
        # Shifted sums: the libraries' depthwise convolution is slow to differentiate in half precision.
        kernel = self.ssm_conv1d.to(padded.dtype)
        mixed = F.silu(sum(padded[:, i : i + t] * kernel[:, i] for i in range(s.n_conv)))
        with torch.autocast(x.device.type, enabled=False):
            q, k, v = mixed.float().split([s.key_dim, s.key_dim, s.value_dim], dim=2)
            q, k, v = (y.reshape(b, t, -1, s.state_dim).transpose(1, 2) for y in (q, k, v))
            repeat = s.n_value_heads // s.n_key_heads
            q, k = (unit(y, s.eps).repeat(1, repeat, 1, 1) for y in (q, k))
            q = q / math.sqrt(s.state_dim)
            rate = F.softplus(F.linear(x.float(), self.ssm_alpha.weight) + self.ssm_dt)
            g = -self.ssm_a_log.exp() * rate
            beta = F.linear(x.float(), self.ssm_beta.weight).sigmoid()
            out = delta_rule(q, k, v, g.transpose(1, 2), beta.transpose(1, 2))
            out = self.ssm_norm(out.transpose(1, 2))
        gate = F.silu(self.attn_gate(x)).view(b, t, s.n_value_heads, s.state_dim)
        read: torch.Tensor = self.ssm_out((out * gate).reshape(b, t, -1))
        return read


class Block(nn.Module):
    """One layer: a mixer and a SwiGLU, each on a normed input and added to the stream."""

    def __init__(self, shape: Shape, recurrent: bool, dropout: float) -> None:
        super().__init__()
        s = shape
        self.attn_norm = nn.RMSNorm(s.n_embd, eps=s.eps)
        self.post_attention_norm = nn.RMSNorm(s.n_embd, eps=s.eps)
        self.mixer: DeltaNet | Attention = DeltaNet(s) if recurrent else Attention(s)
        self.ffn_gate = nn.Linear(s.n_embd, s.n_ff, bias=False)
        self.ffn_up = nn.Linear(s.n_embd, s.n_ff, bias=False)
        self.ffn_down = nn.Linear(s.n_ff, s.n_embd, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, rope: Rope) -> torch.Tensor:
        """(batch, time, n_embd) -> the same shape."""
        x = x + self.drop(self.mixer.mix(self.attn_norm(x), rope))
        y = self.post_attention_norm(x)
        return x + self.drop(self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y)))


class Nextn(nn.Module):
    """What joins the trunk's hidden state with the embedding of the token that followed it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.enorm = nn.RMSNorm(shape.n_embd, eps=shape.eps)
        self.hnorm = nn.RMSNorm(shape.n_embd, eps=shape.eps)
        self.eh_proj = nn.Linear(2 * shape.n_embd, shape.n_embd, bias=False)
        self.shared_head_norm = nn.RMSNorm(shape.n_embd, eps=shape.eps)


class TinyModel(nn.Module):
    """Trunk and nextn head; the embedding is also the output matrix of both."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.n_vocab, shape.n_embd)
        self.blk = nn.ModuleList(Block(shape, shape.recurrent(i), dropout) for i in range(shape.n_layer))
        self.blk.append(Block(shape, False, dropout))
        self.nextn = Nextn(shape)
        self.output_norm = nn.RMSNorm(shape.n_embd, eps=shape.eps)
        self.drop = nn.Dropout(dropout)
        self.apply(self._init)

    def _init(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, Block):
            mixer = module.mixer
            for last in (module.ffn_down, mixer.attn_output if isinstance(mixer, Attention) else mixer.ssm_out):
                nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * self.shape.n_layer))

    def hidden(self, tokens: torch.Tensor) -> torch.Tensor:
        """Trunk: (batch, time) -> (batch, time, n_embd) after the last norm, which is what the head is given."""
        rope = angles(self.shape, tokens.shape[1], tokens.device)
        x = self.drop(self.token_embd(tokens))
        for block in self.blk[: self.shape.n_layer]:
            x = block(x, rope)
        normed: torch.Tensor = self.output_norm(x)
        return normed

    def head(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Head: trunk (batch, time, n_embd) and tokens (batch, time) -> (batch, time, n_embd).

        Row t joins the trunk's state of t - 1 (zeros before the window) and token t.
        """
        before = F.pad(hidden[:, :-1], (0, 0, 1, 0))
        joined = torch.cat([self.nextn.enorm(self.token_embd(tokens)), self.nextn.hnorm(before)], dim=-1)
        rope = angles(self.shape, tokens.shape[1], tokens.device)
        normed: torch.Tensor = self.nextn.shared_head_norm(self.blk[-1](self.nextn.eh_proj(joined), rope))
        return normed

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Scores (batch, time, n_vocab) for hidden states (batch, time, n_embd) of the trunk or the head."""
        return F.linear(hidden, self.token_embd.weight)


def unit(x: torch.Tensor, eps: float) -> torch.Tensor:
    """x (.., channels) over its length, as llama.cpp computes it."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)


def angles(shape: Shape, time: int, device: torch.device) -> Rope:
    """Cosines and sines (time, 1, n_rot / 2) of the rotation of each position."""
    power = torch.arange(0, shape.n_rot, 2, device=device, dtype=torch.float32) / shape.n_rot
    turn = torch.outer(torch.arange(time, device=device, dtype=torch.float32), shape.rope_base**-power)
    return turn.cos().unsqueeze(1), turn.sin().unsqueeze(1)


def rotate(x: torch.Tensor, rope: Rope) -> torch.Tensor:
    """Rotate the first n_rot channels of x (batch, time, heads, head_dim); channel i pairs with i + n_rot / 2."""
    cos, sin = rope
    half = cos.shape[-1]
    a, b, rest = x.float().split([half, half, x.shape[-1] - 2 * half], dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], dim=-1)
