"""The list of kernels, what each can take, and why it cannot run where it cannot. Knows no timing and no result.

A kernel of one's own is one line in VARIANTS (and a launcher in src/). Int8 activations are quantised before the
kernel, as llama.cpp does it, with one float scale for 32 values; the time is the kernel's alone, for the peer too.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels import reference
from kernels.layouts import FORMATS, TILE_COLS, TILE_ROWS

K_FORMATS = ("Q8_0", "Q6_K", "Q5_K")
PACKED_FORMATS = (*K_FORMATS, "Q4_K")
STREAMS = (1, 2, 3, 4, 5, 6, 7, 8)


@dataclass(frozen=True, slots=True)
class Variant:
    """`launcher` and `kind`: the C function and the kernel in its family. `weights`, `activations`: the operands' form.

    weights: file (blocks as GGUF has them), packed (src/packed.h), planes (src/planes.h), flat (a plane of int8, one of
    scales), ssq, keys, none. activations: float, interleaved, plain, sixteens and chunks (int8), twins, none.
    """

    name: str
    launcher: str
    kind: int
    formats: tuple[str, ...]
    streams: tuple[int, ...]
    weights: str
    activations: str
    tolerance: float
    needs_matrix_units: bool = False

    @property
    def layout(self) -> str:
        """`file` where the weights are read as a model file has them, else `repacked`."""
        return "file" if self.weights in ("file", "ssq", "keys", "none") else "repacked"


@dataclass(frozen=True, slots=True)
class Case:
    """One question: this variant on this matrix with so many activation vectors."""

    variant: Variant
    format: str
    streams: int
    rows: int
    cols: int


def _flat(name: str, kind: int, streams: tuple[int, ...], activations: str = "float") -> Variant:
    tolerance = reference.INT8_TOLERANCE if activations == "plain" else reference.FLOAT_TOLERANCE
    return Variant(name, "flat", kind, ("Q8_0",), streams, "flat", activations, tolerance)


VARIANTS = (
    Variant("stream_read", "read", 8, PACKED_FORMATS, (1,), "file", "none", 0.0),
    _flat("weight_only", 4, (1,), "none"),
    _flat("flat_scalar", 0, (1, 2, 3, 4)),
    _flat("flat_vector", 1, (1, 2, 3, 4)),
    _flat("flat_tiled", 2, (1, 2, 3, 4)),
    _flat("flat_interleaved", 3, (4,), "interleaved"),
    _flat("flat_dp4a", 5, (1, 2, 3, 4, 8), "plain"),
    Variant("ssq_twin", "ssq", 0, ("SSQ",), (2,), "ssq", "twins", reference.FLOAT_TOLERANCE),
    Variant("native_dp4a", "native", 0, K_FORMATS, STREAMS, "file", "plain", reference.INT8_TOLERANCE),
    Variant("planes_dp4a", "planes", 0, PACKED_FORMATS, STREAMS, "planes", "sixteens", reference.INT8_TOLERANCE),
    Variant("packed_mma", "packed", 0, PACKED_FORMATS, STREAMS, "packed", "chunks", reference.INT8_TOLERANCE, True),
    Variant("twin_scores", "decode", 0, ("F16",), (2,), "keys", "twins", reference.FLOAT_TOLERANCE),
    Variant("softmax", "decode", 1, ("F32",), STREAMS, "none", "float", reference.FLOAT_TOLERANCE),
    Variant("verify", "decode", 2, ("F32",), STREAMS, "none", "float", 0.0),
)
BY_NAME = {variant.name: variant for variant in VARIANTS}


def can_run(case: Case, arch: str) -> str | None:
    """Why the case cannot run on `arch` (sm_90, gfx906, ...), as a sentence, or None."""
    v = case.variant
    if v.needs_matrix_units and not (arch.startswith("sm_") and int(arch[3:]) >= 80):
        return f"{v.name} needs int8 matrix units (sm_80 or later); {arch} has none that it knows."
    if case.format not in v.formats:
        return f"{v.name} has no kernel for {case.format}; it takes {', '.join(v.formats)}."
    if case.streams not in v.streams:
        return f"{v.name} takes {_listed(v.streams)} activation vectors, not {case.streams}."
    rows, cols = steps(v)
    if case.rows % rows or case.cols % cols or case.rows < 1 or case.cols < 1:
        return (
            f"{v.name} needs rows that are a multiple of {rows} and columns of {cols}, not {case.rows} x {case.cols}."
        )
    return None


def steps(v: Variant) -> tuple[int, int]:
    """Of which numbers rows and columns must be multiples."""
    known = {"packed": (TILE_ROWS, TILE_COLS), "file": (2, 256), "planes": (8, 256), "flat": (4, 32), "ssq": (2, 32),
             "keys": (1, 2)}  # fmt: skip
    return known.get(v.weights, (1, 1))


def _listed(streams: tuple[int, ...]) -> str:
    if len(streams) > 1 and streams == tuple(range(streams[0], streams[-1] + 1)):
        return f"{streams[0]} to {streams[-1]}"
    return " or ".join(map(str, streams))


def warps(case: Case, multiprocessors: int) -> int:
    """Warps a block of threads of the packed kernel, so that all blocks run at once where the chip holds them.

    Measured on an H200 (NOTES.md): the kernel's 80 to 96 registers let a multiprocessor hold 20 warps. Of the numbers
    that give no warp more superblocks than the most allowed does, the smallest.
    """
    held = 20
    blocks = -(-(case.rows // TILE_ROWS) // multiprocessors)
    most, superblocks = min(max(held // blocks, 2), 10), case.cols // TILE_COLS
    return -(-superblocks // -(-superblocks // most))


def weight_bytes(name: str, rows: int, cols: int) -> int:
    """Bytes of the weights of one matrix; of SSQ, of both models; of keys, of both streams."""
    if name in FORMATS:
        return rows * FORMATS[name].row_bytes(cols)
    return {"SSQ": rows * cols // 32 * 68, "F16": 2 * rows * cols * 2, "F32": 0}[name]


def activation_bytes(v: Variant, cols: int, streams: int) -> int:
    """Bytes of the activations that the kernel must read once."""
    padded = streams if streams <= 2 else 4 if streams <= 4 else 8
    chunks = cols // 256 * (256 * padded + 64 * max(padded, 2))
    plain = streams * (cols + cols // 32 * 8)
    sixteens = streams * (cols + cols // 32 * 12)
    known = {"none": 0, "chunks": chunks, "plain": plain, "sixteens": sixteens}
    return known.get(v.activations, streams * cols * 4)
