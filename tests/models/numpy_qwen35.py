"""A second implementation of the architecture, token by token in float64 numpy, from a GGUF file's own tensors.

It shares no formula with the PyTorch module: the delta rule is the plain recurrence, attention one dot product a head.
"""

from __future__ import annotations

import gguf
import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


class NumpyQwen35:
    def __init__(self, path) -> None:
        reader = gguf.GGUFReader(path)
        self.w = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}
        self.f = {k.removeprefix("qwen35."): v.contents() for k, v in reader.fields.items() if k.startswith("qwen35.")}
        self.n_layer = self.f["block_count"] - self.f["nextn_predict_layers"]
        self.cache: dict = {}

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.f["attention.layer_norm_rms_epsilon"]) * self.w[name]

    def token(self, token: int, position: int) -> np.ndarray:
        """Trunk: hidden state (n_embd,) after the last norm."""
        x = self.w["token_embd.weight"][token]
        for layer in range(self.n_layer):
            x = self.block(x, layer, position)
        return self.norm(x, "output_norm.weight")

    def head(self, token: int, before: np.ndarray, position: int) -> np.ndarray:
        """Head: hidden state after its own norm, from a token and the trunk's state before it."""
        at = f"blk.{self.n_layer}.nextn."
        e = self.norm(self.w["token_embd.weight"][token], at + "enorm.weight")
        h = self.norm(before, at + "hnorm.weight")
        x = self.block(self.w[at + "eh_proj.weight"] @ np.concatenate([e, h]), self.n_layer, position)
        return self.norm(x, at + "shared_head_norm.weight")

    def scores(self, hidden: np.ndarray) -> np.ndarray:
        return self.w["token_embd.weight"] @ hidden

    def block(self, x, layer: int, position: int):
        at = f"blk.{layer}."
        recurrent = layer < self.n_layer and (layer + 1) % self.f["full_attention_interval"] != 0
        x = x + (self.delta if recurrent else self.attention)(self.norm(x, at + "attn_norm.weight"), at, position)
        y = self.norm(x, at + "post_attention_norm.weight")
        gate = silu(self.w[at + "ffn_gate.weight"] @ y) * (self.w[at + "ffn_up.weight"] @ y)
        return x + self.w[at + "ffn_down.weight"] @ gate

    def attention(self, y, at: str, position: int):
        heads, kv, size = (self.f[f"attention.{n}"] for n in ("head_count", "head_count_kv", "key_length"))
        joined = (self.w[at + "attn_q.weight"] @ y).reshape(heads, 2 * size)
        gate = joined[:, size:]
        q = self.turn(self.norm(joined[:, :size], at + "attn_q_norm.weight"), position)
        key = self.norm((self.w[at + "attn_k.weight"] @ y).reshape(kv, size), at + "attn_k_norm.weight")
        keys, values = self.cache.setdefault(at, ([], []))
        keys.append(self.turn(key, position))
        values.append((self.w[at + "attn_v.weight"] @ y).reshape(kv, size))
        out = []
        for head in range(heads):
            own = head * kv // heads
            score = np.array([k[own] @ q[head] for k in keys]) / np.sqrt(size)
            share = np.exp(score - score.max())
            out.append(sum(s * v[own] for s, v in zip(share / share.sum(), values, strict=True)) * sigmoid(gate[head]))
        return self.w[at + "attn_output.weight"] @ np.concatenate(out)

    def turn(self, x, position: int):
        n = self.f["rope.dimension_count"]
        angle = position * self.f["rope.freq_base"] ** (-np.arange(0, n, 2) / n)
        z = (x[:, : n // 2] + 1j * x[:, n // 2 : n]) * np.exp(1j * angle)
        return np.concatenate([z.real, z.imag, x[:, n:]], axis=1)

    def delta(self, y, at: str, position: int):
        size, n_key, n_value = (self.f[f"ssm.{n}"] for n in ("state_size", "group_count", "time_step_rank"))
        kernel = self.w[at + "ssm_conv1d.weight"]
        past, states = self.cache.setdefault(
            at, ([np.zeros(len(kernel))] * (kernel.shape[1] - 1), np.zeros((n_value, size, size))))  # fmt: skip
        past.append(self.w[at + "attn_qkv.weight"] @ y)
        mixed = silu(sum(kernel[:, i] * past[len(past) - kernel.shape[1] + i] for i in range(kernel.shape[1])))
        q, k, v = np.split(mixed, [n_key * size, 2 * n_key * size])
        q, k, v = (z.reshape(-1, size) for z in (q, k, v))
        q, k = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (q, k))
        rate = np.log1p(np.exp(self.w[at + "ssm_alpha.weight"] @ y + self.w[at + "ssm_dt.bias"]))
        keep, beta = np.exp(self.w[at + "ssm_a"] * rate), sigmoid(self.w[at + "ssm_beta.weight"] @ y)
        out = []
        for head in range(n_value):
            key, state = k[head % n_key], states[head] * keep[head]
            state += np.outer(key, beta[head] * (v[head] - key @ state))
            states[head] = state
            out.append(q[head % n_key] / np.sqrt(size) @ state)
        gate = silu(self.w[at + "attn_gate.weight"] @ y)
        return self.w[at + "ssm_out.weight"] @ (self.norm(np.array(out), at + "ssm_norm.weight").ravel() * gate)
