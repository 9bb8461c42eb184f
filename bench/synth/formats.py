"""Which type each matrix is stored in: one type throughout, as llama-quantize would write it, or a mix by role.

It knows roles of matrices and lengths of rows, not what is in them. Anything that is no matrix stays F32.
"""

from __future__ import annotations

from typing import TypeAlias

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType

from bench.errors import UserError, nearest
from bench.synth.shape import ROW_MULTIPLE

Type: TypeAlias = GGMLQuantizationType
_BASE = {
    "F16": (Type.F16, LlamaFileType.MOSTLY_F16),
    "Q8_0": (Type.Q8_0, LlamaFileType.MOSTLY_Q8_0),
    "Q4_1": (Type.Q4_1, LlamaFileType.MOSTLY_Q4_1),
    "Q4_K": (Type.Q4_K, LlamaFileType.MOSTLY_Q4_K_S),
    "Q5_K": (Type.Q5_K, LlamaFileType.MOSTLY_Q5_K_S),
    "Q6_K": (Type.Q6_K, LlamaFileType.MOSTLY_Q6_K),
}
_MIXES = {
    # In the manner of Unsloth's dynamic files: what is read often or small is kept at 8 bits. Which tensors a published
    # file keeps is its maker's choice and differs; this one has the published file's size to about a per cent.
    "UD-Q6_K_XL": (
        {"feed_forward": Type.Q6_K, "other": Type.Q8_0},
        LlamaFileType.MOSTLY_Q6_K,
    ),
}
FORMATS = (*_BASE, *_MIXES)
_HEAD_AT_LEAST = Type.Q6_K
"""llama-quantize keeps the output matrix at 6 bits or more."""
_SHORT_ROWS = {Type.Q4_K: Type.Q5_0, Type.Q5_K: Type.Q5_1, Type.Q6_K: Type.Q8_0}
"""What llama-quantize takes where a row is no multiple of a block of 256."""


def check_format(name: str) -> None:
    """Raise `UserError` with the nearest name when there is no such format."""
    if name not in FORMATS:
        raise UserError(f"format={name} is none that synth writes; {nearest(name, FORMATS)}")


def file_type(name: str) -> int:
    """`general.file_type` of a format."""
    return int((_BASE.get(name) or _MIXES[name])[1])


def type_of(name: str, role: str, row: int) -> Type:
    """Type of a matrix with rows of `row` weights. Roles: `feed_forward`, `head` (the output matrix) and `other`."""
    if name in _MIXES:
        mix = _MIXES[name][0]
        chosen = mix.get(role, mix["other"])
    else:
        chosen = _BASE[name][0]
        if role == "head" and bits(chosen) < bits(_HEAD_AT_LEAST):
            chosen = _HEAD_AT_LEAST
    return chosen if row % unit(chosen)[0] == 0 else _SHORT_ROWS[chosen]


def bits(kind: Type) -> float:
    """Bits a weight."""
    block, size = GGML_QUANT_SIZES[kind]
    return 8 * size / block


def unit(kind: Type) -> tuple[int, int]:
    """Smallest piece of a file, in weights and bytes: a block, or as many plain numbers as the smallest block has."""
    block, size = GGML_QUANT_SIZES[kind]
    return (block, size) if block > 1 else (ROW_MULTIPLE, ROW_MULTIPLE * size)
