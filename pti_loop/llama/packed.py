"""What the packed kernels of kernels/ggml counted, where the loaded build has them. It packs and judges nothing."""

from __future__ import annotations

import ctypes

from pti_loop.engine import Facts
from pti_loop.llama.library import beside

_FUNCTION = b"ggml_backend_cuda_packed_counts"
COUNTED = ("columns_1", "columns_2_8", "columns_9_32", "wide", "tensors", "bytes")
"""Products of packed matrices by columns of the other factor (`wide`: more than 32), matrices packed, their bytes."""


class _Counts(ctypes.Structure):
    """The kernels' structure of the same name."""

    _fields_ = [(name, ctypes.c_uint64) for name in COUNTED]


def facts() -> Facts:
    """The counts of this process so far, each as `packed_NAME`; nothing where the build has no packed kernels.

    A product inside of a CUDA graph is counted when the graph is captured, not when it is launched again.
    """
    address = _address()
    if not address:
        return {}
    counts = _Counts()
    ctypes.CFUNCTYPE(None, ctypes.POINTER(_Counts))(address)(ctypes.byref(counts))
    return {f"packed_{name}": int(getattr(counts, name)) for name in COUNTED}


def _address() -> int | None:
    """Where the function is that tells them: the first backend that has one."""
    registry, base = ctypes.CDLL(str(beside("ggml"))), ctypes.CDLL(str(beside("ggml-base")))
    registry.ggml_backend_reg_count.restype = ctypes.c_size_t
    registry.ggml_backend_reg_get.argtypes, registry.ggml_backend_reg_get.restype = [ctypes.c_size_t], ctypes.c_void_p
    look_up = base.ggml_backend_reg_get_proc_address
    look_up.argtypes, look_up.restype = [ctypes.c_void_p, ctypes.c_char_p], ctypes.c_void_p
    for number in range(registry.ggml_backend_reg_count()):
        if found := look_up(registry.ggml_backend_reg_get(number), _FUNCTION):
            return int(found)
    return None
