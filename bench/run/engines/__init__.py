"""Which engine decodes a configuration's model (`model.engine`), and what the harness must know of it.

Nothing of an engine is imported before it is asked for. It knows nothing about cells, methods or records.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from bench.plan.engines import ENGINES
from bench.plan.settings import Config
from pti_loop.engine import Model
from pti_loop.gguf.file import GgufFile


class Engine(Protocol):
    """The functions of an engine's module."""

    def check_installed(self) -> None:
        """Raise `UserError` with the command to type when the engine's packages are not installed."""

    def build(self) -> dict[str, Any]:
        """The build, for a record: `build` is what two comparable records share. Raises `EngineError`."""

    def offloads(self) -> bool:
        """Whether a model that may go to a GPU does."""

    def load(self, config: Config, path: str) -> Model:
        """The model, loaded. Raises `EngineError`, or `Unsupported` where the engine cannot run it."""

    def sizes(self, model: Model, file: GgufFile, config: Config) -> dict[str, Any]:
        """What the weights and the memory of a sequence take, as loaded: bytes, and the name of the quantization."""

    def kv_bytes_per_token(self, file: GgufFile, config: Config) -> int:
        """Bytes that a token takes in the cache, told before anything is loaded."""

    def weight_bytes(self, file: GgufFile) -> int:
        """Bytes of memory that the weights take beyond the file's own, which the system can page in and out."""

    def is_wide(self, file: GgufFile) -> bool:
        """Whether the weights are computed with in 16 bits or more as they are."""

    def wide_bytes(self, file: GgufFile) -> int:
        """Bytes of `wide_file`, told before it is made."""

    def wide_file(self, path: str) -> Path:
        """A file of the same weights in F16, kept once it is made. Raises `EngineError` where it cannot be made."""


def engine(name: str) -> Engine:
    """The engine of a name of `bench.plan.engines.ENGINES`."""
    return cast(Engine, import_module(ENGINES[name].module))


def offloads(config: Config) -> bool:
    """Whether the model goes to a GPU, so that the cell needs the GPU and not the CPU for itself."""
    return config.engine.n_gpu_layers != 0 and engine(config.model.engine).offloads()
