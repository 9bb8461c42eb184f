"""llama.cpp, the usual engine, as the harness needs to know it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench.host import provenance
from bench.plan.settings import Config
from bench.run.specs import method_settings
from pti_loop.engine import Model
from pti_loop.gguf.file import GgufFile
from pti_loop.llama import library, twin_file
from pti_loop.methods import METHODS


def check_installed() -> None:
    """It is what set-up installs."""


def build() -> dict[str, Any]:
    """The build, for a record. Raises `EngineError`."""
    return provenance.engine()


def offloads() -> bool:
    """Whether the build has a GPU backend."""
    return library.build()["gpu_offload"]


def load(config: Config, path: str) -> Model:
    """The model, loaded. Raises `EngineError`, or `Unsupported` where llama.cpp cannot run it."""
    from pti_loop.llama.model import LlamaModel

    engine = config.engine
    uses_head = METHODS[config.method.name].uses_head(method_settings(config))
    return LlamaModel(path, engine.n_gpu_layers, load_mtp=uses_head, split_mode=engine.split_mode,
                      main_gpu=engine.main_gpu, tensor_split=engine.tensor_split, repack=engine.repack)  # fmt: skip


def sizes(model: Model | None, file: GgufFile, config: Config) -> dict[str, Any]:
    """What the weights and the memory of a sequence take, in bytes: as in the file."""
    return {
        "quantization": file.quantization, "tensor_bytes": file.tensor_bytes, "step_bytes": file.step_bytes,
        "kv_bytes_per_token": kv_bytes_per_token(file, config),
        "state_bytes_per_sequence": file.state_bytes_per_sequence(),
    }  # fmt: skip


def kv_bytes_per_token(file: GgufFile, config: Config) -> int:
    """Bytes that a token takes in the cache."""
    return file.kv_bytes_per_token(config.engine.type_k, config.engine.type_v)


def weight_bytes(file: GgufFile) -> int:
    """None: the file is mapped."""
    return 0


_WIDE = ("F32", "F16", "BF16", "F64")
"""Types whose products are made of the activations as they are; all others round these to eight bits first."""


def is_wide(file: GgufFile) -> bool:
    """Whether no tensor is quantised."""
    return all(tensor.type in _WIDE for tensor in file.tensors)


def wide_bytes(file: GgufFile) -> int:
    """Two a weight."""
    return twin_file.wide_bytes(file)


def wide_file(path: str) -> Path:
    """Made by llama.cpp's quantiser; what that takes is said on standard error."""
    return twin_file.widened(Path(path), say=lambda sentence: print(sentence, file=sys.stderr, flush=True))
