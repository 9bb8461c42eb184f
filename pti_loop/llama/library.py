"""llama.cpp's library as the binding loads it: once a process, its log taken over. Knows no model and no context."""

from __future__ import annotations

import ctypes
from pathlib import Path

from pti_loop.engine import EngineError
from pti_loop.llama import log as engine_log

_log = engine_log.EngineLog()
_library = None


def library():
    """The binding's low-level module, imported once, its log taken over and its backend started."""
    global _library
    if _library is None:
        try:
            from llama_cpp import llama_cpp as lib
        except (ImportError, OSError, RuntimeError) as error:
            raise EngineError(f"llama-cpp-python does not load ({error}); run `make setup`") from error
        _log.install(lib)
        lib.llama_backend_init()
        _library = lib
    return _library


def log() -> engine_log.EngineLog:
    """llama.cpp's log of this process."""
    return _log


def build() -> dict[str, str]:
    """Version of the binding, llama.cpp's commit as the library itself reports it, and its CPU features."""
    lib = library()
    import llama_cpp

    base = ctypes.CDLL(str(beside(lib, "ggml-base")))
    base.ggml_commit.restype = ctypes.c_char_p
    return {
        "binding": f"llama-cpp-python {llama_cpp.__version__}",
        "llama_cpp_commit": base.ggml_commit().decode().removesuffix("-dirty"),
        "system_info": lib.llama_print_system_info().decode().strip(" |"),
        "gpu_offload": bool(lib.llama_supports_gpu_offload()),
    }


def beside(lib, name: str) -> Path:
    """Another library (`ggml-cpu`) of the build that was loaded, which an environment variable may decide."""
    loaded = Path(lib._lib._name)
    return loaded.with_name(loaded.name.replace("llama", name))
