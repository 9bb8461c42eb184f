"""Static bounds: what a loop's counts cost on a card, over the time in which its memory delivers the weights.

A bound is no time that was measured. One above 1 says that the kernel cannot follow memory; none above 1 says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernels.loops import Loop


@dataclass(frozen=True, slots=True)
class Card:
    """`units` compute units of four SIMDs with 16 lanes each; `gb_s` is the peak of the data sheet."""

    name: str
    units: int
    ghz: float
    gb_s: float


CARDS = {"gfx906": Card("mi50", 60, 1.725, 1024.0)}
"""AMD Instinct MI50 (AMD's data sheet: 60 compute units, 1725 MHz at most, 1024 GB/s)."""
LATENCY = 320
"""Clocks that a wait for loads takes here: 80 cycles of four clocks, what LLVM's model of GCN has for a load."""

BYTES_A_WEIGHT = {"Q8_0": 272 / 256, "Q6_K": 210 / 256, "Q5_K": 176 / 256, "Q4_K": 144 / 256, "int8": 1.0}
_OURS = {0: "Q8_0", 1: "Q6_K", 2: "Q5_K", 3: "Q4_K"}
_GGML = {8: "Q8_0", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K"}
_A_TURN = {"Q8_0": 8, "Q6_K": 8, "Q5_K": 16, "Q4_K": 16}
"""Weights of a row that a lane of llama.cpp's mul_mat_vec_q takes a turn (its `vdr` words of four or eight weights)."""
_PATTERNS = (
    (re.compile(r"gemv_native<(\d), (\d), \d>"), _OURS),
    (re.compile(r"gemv_planes<(\d), (\d), \d>"), _OURS),
)
_FLAT = re.compile(r"flat_dot4<(\d), \d>")
_STOCK = re.compile(r"mul_mat_vec_q<\(ggml_type\)(\d+), (\d+), false, false, false>")


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel multiplies: its format, how many vectors, and the weights of them that a lane takes a turn."""

    format: str
    streams: int
    weights: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Times over that of memory at the card's peak, a weight. `waits` is that of all waits shared by a SIMD's waves."""

    vector: float
    loads: float
    waits: float


def work_of(kernel: str, loop: Loop) -> Work | None:
    """What a kernel of ours or llama.cpp's multiplies, by its name as in the source; None for any other.

    Each product of four bytes is of four weights of ours with one vector; llama.cpp also makes sums with them.
    """
    for pattern, formats in _PATTERNS:
        if found := pattern.search(kernel):
            streams = int(found[2])
            return Work(formats[int(found[1])], streams, 4 * loop.dot4 // streams)
    if found := _FLAT.search(kernel):
        return Work("int8", int(found[1]), 4 * loop.dot4 // int(found[1]))
    if (found := _STOCK.search(kernel)) and int(found[1]) in _GGML:
        form, streams = _GGML[int(found[1])], int(found[2])
        return Work(form, streams, _A_TURN[form] * (1 if streams == 1 else 2))  # two rows from two vectors on
    return None


def bounds(arch: str, work: Work, loop: Loop, waves: int) -> Bounds | None:
    """The bounds on the card of an architecture; None where none is known, or the loop takes no weight."""
    card = CARDS.get(arch)
    if card is None or not work.weights:
        return None
    memory_ns = BYTES_A_WEIGHT[work.format] / card.gb_s
    lane_ns = 1 / (card.units * 64 * card.ghz)
    wave_ns = 1 / (card.units * card.ghz)
    return Bounds(
        loop.slots / work.weights * lane_ns / memory_ns,
        loop.load_clocks / (64 * work.weights) * wave_ns / memory_ns,
        loop.waits * LATENCY / (64 * work.weights * 4 * max(waves, 1)) * wave_ns / memory_ns,
    )
