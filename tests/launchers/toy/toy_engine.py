"""The toy engine of `pti_loop.fake` as a cell's process runs it: each cell that is written leaves a line in TOY_LOG."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from bench.run import worker
from pti_loop.fake import FakeModel

MS = 1_000_000
_write_cell = worker.write_cell


def written(folder: Path, **rest: Any) -> None:
    time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
    _write_cell(folder, **rest)
    if log := os.environ.get("TOY_LOG"):
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(descriptor, f"{folder.name} {rest['status']['state']} {os.getpid()}\n".encode())
        os.close(descriptor)


worker.write_cell = written
worker.read_speed = lambda *_, **__: {}  # a toy has no memory to read, and this one's takes half of a cell's time


def check_installed() -> None:
    pass


def build() -> dict[str, Any]:
    name = os.environ.get("TOY_BUILD", "toy-1")
    return {"build": name, "backends": ["CPU"], "libraries": {}, "llama_cpp_commit": "", "binding": "toy"}


def offloads() -> bool:
    return False


def load(config: Any, path: str) -> FakeModel:
    return FakeModel(step_ns=lambda width: (9 + width) * MS)


def sizes(model: Any, file: Any, config: Any) -> dict[str, Any]:
    return {"quantization": "toy", "tensor_bytes": 1_000_000, "step_bytes": 1_000_000, "kv_bytes_per_token": 8,
            "state_bytes_per_sequence": 0}  # fmt: skip


def kv_bytes_per_token(file: Any, config: Any) -> int:
    return 8


def weight_bytes(file: Any) -> int:
    return 0


def is_wide(file: Any) -> bool:
    return True


def wide_bytes(file: Any) -> int:
    return 0


def wide_file(path: str) -> Path:
    return Path(path)
