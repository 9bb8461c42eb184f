"""The shape of a synthetic model: presets from `configs/synth/`, overrides by hand, and what has to divide what.

It knows sizes only: neither tensors' names (`bench.synth.tensors`) nor how weights are stored (`bench.synth.formats`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest

ROOT = Path(__file__).resolve().parents[2]
PRESETS = ROOT / "configs" / "synth"
ARCHITECTURES = ("llama", "qwen3", "qwen35")
BYTE_TOKENS, SPECIAL_TOKENS = 256, 2
ROW_MULTIPLE = 32
"""Smallest block of any format: every row of a matrix has to be a whole number of these."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a model. The fields after `norm_epsilon` belong to the hybrid architecture qwen35 alone."""

    architecture: str
    tokenizer: str
    """Name of the pre-tokenizer, as llama.cpp knows it."""
    layers: int
    """Layers that plain decoding runs."""
    embedding: int
    feed_forward: int
    vocabulary: int
    tied: bool
    """Whether the embedding table is the output matrix too."""
    context: int
    heads: int
    kv_heads: int
    head_size: int
    rope_dimensions: int
    rope_base: float
    norm_epsilon: float
    nextn: int = 0
    """Layers of the multi-token-prediction head, 0 or 1."""
    attention_every: int = 1
    """Every n-th layer has attention, the others a gated delta net."""
    delta_key_heads: int = 0
    delta_value_heads: int = 0
    delta_head_size: int = 0
    convolution: int = 0

    @property
    def hybrid(self) -> bool:
        """Whether some layers keep a recurrent state."""
        return self.architecture == "qwen35"

    @property
    def attention_interval(self) -> int:
        """Every n-th layer has attention; a model cut to fewer layers than that keeps it in its last one."""
        return min(self.attention_every, self.layers)

    @property
    def attention_width(self) -> int:
        """Values of all query heads together."""
        return self.heads * self.head_size

    @property
    def kv_width(self) -> int:
        """Values of all key heads together, and of all value heads."""
        return self.kv_heads * self.head_size

    @property
    def delta_width(self) -> int:
        """Values of all value heads of a delta-net layer."""
        return self.delta_value_heads * self.delta_head_size

    @property
    def convolved_width(self) -> int:
        """Queries, keys and values of a delta-net layer, which pass its short convolution together."""
        return 2 * self.delta_key_heads * self.delta_head_size + self.delta_width


_TYPES = {field.name: field.type for field in fields(Shape)}
_HYBRID_ONLY = ("nextn", "attention_every", "delta_key_heads", "delta_value_heads", "delta_head_size", "convolution")
OTHER_KEYS = ("format", "seed")
"""Keys of a command line that are no part of the shape."""


@dataclass(frozen=True)
class Order:
    """What somebody asked for: a shape, how to store it, and the seed that fixes the bytes."""

    preset: str
    shape: Shape
    format: str
    seed: int = 1


def presets() -> list[str]:
    """Names of the presets: one a file."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def order(preset: str, overrides: Sequence[str] = ()) -> Order:
    """A preset with `key=value` overrides, checked. Raises `UserError` naming the nearest preset or key."""
    import yaml

    path = PRESETS / f"{preset}.yaml"
    if preset not in presets():
        raise UserError(f"there is no preset '{preset}' in configs/synth; {nearest(preset, presets())}")
    values: dict[str, Any] = yaml.safe_load(path.read_text())
    for key in values:
        _check_key(key, f"{path.name}: ")
    for word in overrides:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise UserError(f"'{word}' is no override; write key=value, such as layers=2")
        _check_key(key)
        values[key] = value
    typed = {key: _typed(key, value) for key, value in values.items()}
    name, seed = typed.pop("format", None), typed.pop("seed", 1)
    missing = [field.name for field in fields(Shape) if field.name not in typed and field.default is MISSING]
    if missing or name is None:
        raise UserError(f"{path} lacks {', '.join(missing or ['format'])}; see the other files beside it")
    if not 0 <= seed < 2**64:
        raise UserError(f"seed={seed} is not a whole number from 0 to 2^64 - 1; give another")
    shape = Shape(**typed)
    check(shape)
    return Order(preset, shape, name, seed)


def keys() -> list[str]:
    """Names of the fields, each of which can be overridden."""
    return list(_TYPES)


def _check_key(key: str, where: str = "") -> None:
    known = [*_TYPES, *OTHER_KEYS]
    if key not in known:
        raise UserError(f"{where}unknown key '{key}'; {nearest(key, known)}")


def _typed(key: str, value: Any) -> Any:
    """A value as its field takes it; text from a command line, anything from a file."""
    kind = {"format": "str", "seed": "int"}.get(key) or str(_TYPES[key])  # a text: annotations are not evaluated here
    text = str(value)
    try:
        if kind == "bool":
            return {"true": True, "false": False}[text.lower()]
        return {"int": int, "float": float, "str": str}[kind](text)
    except (ValueError, KeyError):
        what = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind]
        raise UserError(f"{key}={value} cannot be read; write {what}") from None


def check(shape: Shape) -> None:
    """Raise `UserError` with one sentence for a shape that llama.cpp could not run."""
    _check_words(shape)
    _check_sizes(shape)
    _check_divisions(shape)


def _check_words(shape: Shape) -> None:
    if shape.architecture not in ARCHITECTURES:
        raise UserError(
            f"architecture={shape.architecture} is none that synth makes; {nearest(shape.architecture, ARCHITECTURES)}"
        )
    if shape.hybrid:
        return
    defaults = {field.name: field.default for field in fields(Shape)}
    for key in _HYBRID_ONLY:
        if getattr(shape, key) != defaults[key]:
            raise UserError(
                f"{key}={getattr(shape, key)} is of the hybrid architecture qwen35, this one is {shape.architecture}; "
                f"leave {key} out"
            )


def _check_sizes(shape: Shape) -> None:
    sizes = ["layers", "embedding", "feed_forward", "context", "heads", "kv_heads", "head_size", "rope_dimensions"]
    sizes += ["attention_every", "delta_key_heads", "delta_value_heads", "delta_head_size"] if shape.hybrid else []
    for key in sizes:
        if getattr(shape, key) < 1:
            raise UserError(f"{key}={getattr(shape, key)} is below 1; give a larger value")
    for key in ("rope_base", "norm_epsilon"):
        if not 0 < getattr(shape, key) < float("inf"):
            raise UserError(f"{key}={getattr(shape, key)} is not above 0; give a larger value")
    least = BYTE_TOKENS + SPECIAL_TOKENS
    if shape.vocabulary < least:
        raise UserError(f"vocabulary={shape.vocabulary} is below {least}, the bytes and two special tokens; raise it")
    if shape.hybrid and shape.convolution < 2:
        raise UserError(f"convolution={shape.convolution} is below 2 positions; llama.cpp needs at least 2")
    if not 0 <= shape.nextn <= 1:
        raise UserError(f"nextn={shape.nextn} is not 0 or 1; llama.cpp runs one layer of a prediction head")
    if shape.layers + shape.nextn > 512:
        raise UserError(f"layers={shape.layers} is more than llama.cpp's limit of 512 in all; lower layers")


def _check_divisions(shape: Shape) -> None:
    """One sentence for the first size that does not divide as it has to."""
    divisions = [("heads", shape.heads, "kv_heads", shape.kv_heads)]
    if shape.hybrid:
        divisions += [("delta_value_heads", shape.delta_value_heads, "delta_key_heads", shape.delta_key_heads)]
    for name, value, other, divisor in divisions:
        if value % divisor:
            raise UserError(f"{name}={value} is no multiple of {other}={divisor}; change one of them")
    rows = {"embedding": shape.embedding, "feed_forward": shape.feed_forward,
            "heads x head_size": shape.attention_width}  # fmt: skip
    if shape.hybrid:
        rows["delta_value_heads x delta_head_size"] = shape.delta_width
    for name, value in rows.items():
        if value % ROW_MULTIPLE:
            raise UserError(
                f"{name}={value} is no multiple of {ROW_MULTIPLE}, the smallest block of weights; the nearest are "
                f"{value // ROW_MULTIPLE * ROW_MULTIPLE} and {(value // ROW_MULTIPLE + 1) * ROW_MULTIPLE}"
            )
    if shape.rope_dimensions % 2 or shape.rope_dimensions > shape.head_size:
        raise UserError(
            f"rope_dimensions={shape.rope_dimensions} has to be even and at most head_size={shape.head_size}; change it"
        )
