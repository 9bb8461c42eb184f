"""What a machine is called that nobody named: its parts; and one of several hosts of a make. Asks no device."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_HOST = re.compile(r" \(host ([0-9a-z]+)\)$")
_DIGITS = 6
"""Of a host's key: enough to part some hundred hosts of one make."""


def of_host(machine: str, host: str) -> str:
    """What is said of one host alone, where the make's name stands for others: `mi50 (host 1f09c4)`."""
    return f"{machine} (host {host[:_DIGITS] or 'unknown'})"


def make_of(machine: str) -> str:
    """A machine's name without its host."""
    return _HOST.sub("", machine)


def machine_id(cpu: str, cores: int, gpu_list: Sequence[Mapping[str, Any]]) -> str:
    """A name for folders: `amd-epyc-2c`, `mi50-...`: the GPU when there is one, the CPU, the usable cores.

    Two machines of the same make share it; whether their records count together is for the judge to find.
    """
    parts = [gpu_list[0]["name"]] if gpu_list else []
    words = "-".join([*parts, re.sub(r"\((R|TM)\)|\bCPU\b|\bProcessor\b|@.*", "", cpu), f"{cores}c"])
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
