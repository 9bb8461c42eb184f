"""The shape of `pti-tiny`, in the terms of llama.cpp's architecture qwen35. Knows neither PyTorch nor files."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Shape:
    """Sizes; every row that is quantized to Q8_0 has to be a multiple of 32 long. Raises `ValueError` when one is not.
    """

    n_vocab: int = 6144
    n_embd: int = 320
    n_layer: int = 8
    """Layers of the trunk; the nextn head is one more block after them."""
    full_attention_interval: int = 4
    n_ff: int = 896
    n_head: int = 4
    n_head_kv: int = 2
    head_dim: int = 64
    n_rot: int = 32
    rope_base: float = 10000.0
    n_key_heads: int = 4
    n_value_heads: int = 8
    state_dim: int = 64
    """Length of a key and of a value head of the delta rule; the kernels of llama.cpp take 16, 32, 64 and 128."""
    n_conv: int = 4
    eps: float = 1e-6
    n_ctx: int = 1024
    """Tokens that a window of the training held."""

    def __post_init__(self) -> None:
        for name in ("n_embd", "n_ff", "head_dim", "state_dim"):
            if getattr(self, name) % 32:
                raise ValueError(f"{name}={getattr(self, name)} is not a multiple of 32, which Q8_0 needs")
        if self.n_value_heads % self.n_key_heads or self.n_head % self.n_head_kv:
            raise ValueError("value heads must be a multiple of key heads, and heads of their KV heads")

    @property
    def key_dim(self) -> int:
        """Channels of all keys of a delta layer."""
        return self.n_key_heads * self.state_dim

    @property
    def value_dim(self) -> int:
        """Channels of all values of a delta layer."""
        return self.n_value_heads * self.state_dim

    @property
    def conv_dim(self) -> int:
        """Channels that go through the convolution: queries, keys, values."""
        return 2 * self.key_dim + self.value_dim

    @property
    def rope_sections(self) -> tuple[int, int, int, int]:
        """Pairs of rotated channels per position axis. Text has one axis, so any split gives the same angles."""
        pairs = self.n_rot // 2
        side = pairs // 3
        return pairs - 2 * side, side, side, 0

    def recurrent(self, layer: int) -> bool:
        """Whether a layer of the trunk is a gated delta net."""
        return (layer + 1) % self.full_attention_interval != 0

    def as_dict(self) -> dict[str, int | float]:
        """Plain values, for a checkpoint."""
        return asdict(self)
