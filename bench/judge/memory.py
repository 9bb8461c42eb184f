"""Bytes that one more sequence costs: attention cache and recurrent state, computed from the shape of a model.

It does not read model files (`pti_loop.model_memory` does), and it knows neither what an allocator adds nor sliding
windows: it is the arithmetic that a measurement is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, nearest
from bench.judge.findings import Row, origin, settings
from bench.judge.synthetic import about_model

if TYPE_CHECKING:
    from bench.store import StoredCell

BLOCK_BYTES = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "q8_0": (32, 34), "q5_1": (32, 24), "q5_0": (32, 22),
    "q4_1": (32, 20), "q4_0": (32, 18), "iq4_nl": (32, 18),
}  # fmt: skip
"""ggml type -> elements and bytes of a block (ggml-common.h)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a model's shape the memory of a sequence depends on."""

    attention_layers: int
    kv_heads: int
    key_length: int
    value_length: int
    recurrent_layers: int = 0
    state_elements: int = 0
    """Recurrent state of one layer and sequence, in f32 elements."""
    conv_elements: int = 0
    """Convolution state of one layer and sequence, in f32 elements."""

    def kv_bytes_per_token(self, type_k: str = "f16", type_v: str = "f16") -> float:
        """Attention cache of one token, keys and values of all layers."""
        rows = self.attention_layers * self.kv_heads
        return rows * (self.key_length * element_bytes(type_k) + self.value_length * element_bytes(type_v))

    def state_bytes(self) -> int:
        """Recurrent and convolution state of one sequence, all layers."""
        return self.recurrent_layers * 4 * (self.state_elements + self.conv_elements)

    def sequence_bytes(self, n_ctx: int, type_k: str = "f16", type_v: str = "f16") -> float:
        """What one more sequence of `n_ctx` cells costs."""
        return n_ctx * self.kv_bytes_per_token(type_k, type_v) + self.state_bytes()


def element_bytes(name: str) -> float:
    """Bytes of one element of a ggml type. Raises UserError for a type that no cache can have."""
    if name not in BLOCK_BYTES:
        raise UserError(f"cache type '{name}' is unknown, {nearest(name, BLOCK_BYTES)}")
    elements, size = BLOCK_BYTES[name]
    return size / elements


def delta_net_state(value_heads: int, key_dim: int, value_dim: int) -> int:
    """Elements of a gated delta-net layer's state: one key_dim x value_dim matrix a value head."""
    return value_heads * key_dim * value_dim


def conv_state(kernel: int, key_heads: int, key_dim: int, value_heads: int, value_dim: int) -> int:
    """Elements of the causal convolution's window over queries, keys and values: kernel - 1 past columns."""
    return (kernel - 1) * (2 * key_heads * key_dim + value_heads * value_dim)


def memory_rows(cell: StoredCell) -> list[Row]:
    """Memory by number of streams: from a profile's series, or from the contexts of a contrast."""
    common = {**origin(cell), **settings(cell), **about_model(cell)}
    series = cell.facts.get("memory_by_streams") or []
    rows = [{**common, "source": "profile", "arm": "", **row} for row in series]
    for arm in ("baseline", "treatment"):
        measured = (cell.facts.get("memory") or {}).get(arm)
        if measured:
            rows.append({**common, "source": "contrast", "arm": arm, **_contrast_row(cell, arm, measured)})
    for row in rows:
        row["kv_ratio"] = _quotient(row.get("kv_bytes"), row.get("computed_kv_bytes"))
        row["state_ratio"] = _quotient(row.get("state_bytes"), row.get("computed_state_bytes"))
    return rows


def _contrast_row(cell: StoredCell, arm: str, measured: Mapping[str, Any]) -> Row:
    engine = (cell.facts.get("engine") or {}).get(arm) or {}
    model = cell.facts.get("model") or {}
    streams = int(engine.get("n_seq_max") or 1)
    cells_held = float(engine.get("n_ctx_seq") or float(engine.get("n_ctx") or 0) / streams) * streams
    kv, state = float(measured.get("kv_bytes") or 0), float(measured.get("state_bytes") or 0)
    per_token, per_sequence = model.get("kv_bytes_per_token"), model.get("state_bytes_per_sequence")
    known = per_token is not None and cells_held
    return {
        "streams": streams,
        "kv_bytes": kv,
        "state_bytes": state,
        "computed_kv_bytes": float(per_token) * cells_held if known else float("nan"),
        "computed_state_bytes": float(per_sequence) * streams if per_sequence is not None else float("nan"),
        "measured_bytes": kv + state,
        "compute_bytes": measured.get("compute_bytes"),
        "per_stream_bytes": (kv + state) / streams,
    }


def _quotient(measured: Any, computed: Any) -> float:
    if not computed or measured is None:
        return float("nan")
    return float(measured) / float(computed)
