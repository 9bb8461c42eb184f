"""Which part of a decode a kernel is: by the names that llama.cpp's kernels and the GPU libraries' have.

One list, the first that fits; a new kernel is a word in it. It knows no figure.
"""

from __future__ import annotations

import re

GEMV, GEMM = "matrix times vectors (GEMV)", "matrix times matrix (GEMM)"
ATTENTION, STATE = "attention", "recurrent state"
QUANTISED, COPIES, SMALL = "activations quantised", "copies", "norms and other small kernels"
CLASSES = (GEMV, GEMM, ATTENTION, STATE, QUANTISED, COPIES, SMALL)
"""In the order in which they are shown."""
_WORDS = (
    (QUANTISED, r"quanti[sz]e"),
    # A kernel that reads a weight once for all vectors of the decode, whatever unit it multiplies with.
    (GEMV, r"mul_mat_vec|mul_mat_packed|gemv"),
    (GEMM, r"mul_mat_q|mul_mat_f|mmq|gemm|cutlass|nvjet|xmma|Cijk_|dequantize|convert_unary"),
    (ATTENTION, r"flash_attn|fattn|soft_?max|rope"),
    (STATE, r"gated_delta|delta_net|ssm_|gated_linear|rwkv|cumsum|solve_tri"),
    (COPIES, r"cpy|copy|concat|get_rows|set_rows|memset|memcpy|fill|pack_|transpose"),
)
_FOUND = tuple((name, re.compile(words, re.IGNORECASE)) for name, words in _WORDS)


def class_of(kernel: str) -> str:
    """The class of a kernel by its name; what no word fits is small."""
    head = kernel.split("<")[0]  # template arguments name other kernels' operations
    return next((name for name, words in _FOUND if words.search(head)), SMALL)
