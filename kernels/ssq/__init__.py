"""SSQ, side-by-side quantization: two models' int8 weights in one array of 16-bit words.

32 weights of two streams take 68 bytes: scale A (f16), scale B (f16), 32 words with stream A in the high byte. The
layout of a block is that of packed-twin-inference's README (its "mode 16"); the file around it (`container`) is this
project's own. It does not know how a kernel reads a block, and it never looks at what a model says.
"""

from __future__ import annotations

from kernels.ssq.container import Container, open_container
from kernels.ssq.packing import pack
from kernels.ssq.unpacking import unpack

__all__ = ["Container", "open_container", "pack", "unpack"]
