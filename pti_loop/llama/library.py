"""llama.cpp's library as the binding loads it: once a process, its log taken over. Knows no model and no context."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import ModuleType
from typing import TypedDict

from pti_loop.engine import EngineError
from pti_loop.llama import log as engine_log

_log = engine_log.EngineLog()
_library: ModuleType | None = None


class Build(TypedDict):
    """What the loaded library says of itself."""

    binding: str
    llama_cpp_commit: str
    """As short as the build has it, with `-dirty` behind it where that is what the build says of its sources."""
    system_info: str
    """Backends and CPU features, as llama.cpp prints them."""
    gpu_offload: bool


def library() -> ModuleType:
    """The binding's low-level module, imported once, its log taken over and its backend started.

    Raises `EngineError` when it does not load.
    """
    global _library
    if _library is None:
        try:
            from llama_cpp import llama_cpp as lib
        except (ImportError, OSError, RuntimeError) as error:
            raise EngineError(f"llama-cpp-python does not load ({error}); run `make setup`") from error
        _log.install(lib)
        lib.llama_backend_init()
        _library = lib
        _load_backends()
    return _library


def _load_backends() -> None:
    """A build whose backends are libraries of their own finds none by itself: those beside it are loaded."""
    if devices():
        return
    ggml = ctypes.CDLL(str(beside("ggml")))
    ggml.ggml_backend_load_all_from_path.argtypes = (ctypes.c_char_p,)
    ggml.ggml_backend_load_all_from_path(str(library_path().parent).encode())


def log() -> engine_log.EngineLog:
    """llama.cpp's log of this process."""
    return _log


def library_path() -> Path:
    """The library that was loaded, which an environment variable may decide. Raises `EngineError`."""
    return Path(library()._lib._name)  # noqa: SLF001 - the binding has no public name for what it loaded


def beside(name: str) -> Path:
    """Another library (`ggml-cpu`) of the build that was loaded. It may not exist. Raises `EngineError`."""
    loaded = library_path()
    return loaded.with_name(loaded.name.replace("llama", name))


def build() -> Build:
    """Version of the binding, llama.cpp's commit as the library itself reports it, and its CPU features.

    Raises `EngineError` when the library does not load.
    """
    lib = library()
    import llama_cpp

    base = ctypes.CDLL(str(beside("ggml-base")))
    base.ggml_commit.restype = ctypes.c_char_p
    return {
        "binding": f"llama-cpp-python {llama_cpp.__version__}",
        "llama_cpp_commit": base.ggml_commit().decode(),
        "system_info": lib.llama_print_system_info().decode().strip(" |"),
        "gpu_offload": bool(lib.llama_supports_gpu_offload()),
    }


def devices() -> list[str]:
    """Names of ggml's devices, such as CPU and CUDA0. Raises `EngineError` when the library does not load."""
    ggml, base = (ctypes.CDLL(str(beside(name))) for name in ("ggml", "ggml-base"))
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    ggml.ggml_backend_dev_get.argtypes, ggml.ggml_backend_dev_get.restype = (ctypes.c_size_t,), ctypes.c_void_p
    base.ggml_backend_dev_name.argtypes, base.ggml_backend_dev_name.restype = (ctypes.c_void_p,), ctypes.c_char_p
    return [
        base.ggml_backend_dev_name(ggml.ggml_backend_dev_get(index)).decode()
        for index in range(ggml.ggml_backend_dev_count())
    ]
