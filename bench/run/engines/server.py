"""Servers, as the harness needs to know them: what reads a model here is llama.cpp's, and nothing is loaded."""

from __future__ import annotations

from typing import Any

from bench.host import provenance
from bench.plan.settings import Config
from bench.run.engines import llama
from pti_loop.engine import EngineError, Model
from pti_loop.gguf.file import GgufFile

kv_bytes_per_token, weight_bytes = llama.kv_bytes_per_token, llama.weight_bytes
is_wide, wide_bytes, wide_file = llama.is_wide, llama.wide_bytes, llama.wide_file


def check_installed() -> None:
    """A server is what its configuration says."""


def build() -> dict[str, Any]:
    """Raises `EngineError`: each server has a build of its own."""
    raise EngineError("a server's build is asked of itself")


def offloads() -> bool:
    """Whether there is a GPU that a server may use; what it does use it does not tell."""
    return bool(provenance.gpus())


def load(config: Config, path: str) -> Model:
    """Raises `EngineError`: a server loads its model itself."""
    raise EngineError("a server loads its model itself")


def sizes(model: Model | None, file: GgufFile, config: Config) -> dict[str, Any]:
    """What the weights and the memory of a sequence take, in bytes: as in the file."""
    return llama.sizes(model, file, config)
