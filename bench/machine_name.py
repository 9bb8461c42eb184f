"""What a machine is called that nobody named: its parts. Asks no device, and knows nothing about records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any


def machine_id(cpu: str, cores: int, gpu_list: Sequence[Mapping[str, Any]]) -> str:
    """A name for folders: `amd-epyc-2c`, `mi50-...`: the GPU when there is one, the CPU, the usable cores.

    Two machines of the same make share it, and should: their records are comparable. Set `machine=NAME` to part them.
    """
    parts = [gpu_list[0]["name"]] if gpu_list else []
    words = "-".join([*parts, re.sub(r"\((R|TM)\)|\bCPU\b|\bProcessor\b|@.*", "", cpu), f"{cores}c"])
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
