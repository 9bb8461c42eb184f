"""transformers, an optional extra, as the harness needs to know it. It is imported when a model is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.host import provenance
from bench.plan.settings import Config
from pti_loop.engine import EngineError, Model
from pti_loop.gguf.file import GgufFile
from pti_loop.hf import load as hf_load


def check_installed() -> None:
    """Raise `UserError` with the command to type when the extra's packages are not installed."""
    try:
        hf_load.require()
    except EngineError as error:
        raise UserError(str(error)) from error


def build() -> dict[str, Any]:
    """The build, for a record. Raises `EngineError`."""
    facts = hf_load.build()
    return {**facts, "backends": ["CUDA", "CPU"] if facts["gpu_offload"] else ["CPU"]}


def offloads() -> bool:
    """Whether torch has a GPU backend and a GPU is there."""
    return bool(build()["gpu_offload"] and provenance.gpus())


def load(config: Config, path: str) -> Model:
    """The model, loaded. Raises `EngineError`, or `Unsupported` where transformers cannot run it."""
    from pti_loop.hf.model import HfModel

    return HfModel(path, config.engine.n_gpu_layers)


def sizes(model: Model, file: GgufFile, config: Config) -> dict[str, Any]:
    """What the weights and the memory of a sequence take, in bytes: what a GGUF file holds is widened."""
    from pti_loop.hf.model import HfModel

    assert isinstance(model, HfModel)
    return {"quantization": f"{file.quantization} as {model.type_name.upper()}", **model.byte_facts()}


def kv_bytes_per_token(file: GgufFile, config: Config) -> int:
    """Bytes that a token takes in the cache: float32 on a CPU."""
    return file.kv_bytes_per_token("f32", "f32")


def weight_bytes(file: GgufFile) -> int:
    """Bytes of the weights in float32, of which nothing is mapped."""
    return 4 * file.n_params


def is_wide(file: GgufFile) -> bool:
    """Always: what a file holds is widened before it is computed with."""
    return True


def wide_bytes(file: GgufFile) -> int:
    """As loaded."""
    return weight_bytes(file)


def wide_file(path: str) -> Path:
    """The file itself."""
    return Path(path)
