"""llama.cpp's own log, kept so that it travels with the cell, and the facts that only the log tells.

One callback for the whole process, since llama.cpp has one. Knows nothing about models or contexts.
"""

from __future__ import annotations

import re
from types import ModuleType

_MIB = 1024 * 1024
_DEBUG, _CONTINUED = 1, 5  # ggml_log_level; a continued line has the level of the line before
_SIZES = {
    "kv_bytes": re.compile(r"KV buffer size =\s*([\d.]+) MiB"),
    "state_bytes": re.compile(r"RS buffer size =\s*([\d.]+) MiB"),
    "compute_bytes": re.compile(r"compute buffer size =\s*([\d.]+) MiB"),
    "output_bytes": re.compile(r"output buffer size =\s*([\d.]+) MiB"),
}
_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
_FLASH = re.compile(r"(?:Flash Attention was auto, set to|resolve_fused_ops: Flash Attention) (\w+)")
"""Two versions of one sentence; llama.cpp changed it."""


class EngineLog:
    """Lines that llama.cpp printed, in order. `mark()` and `since(mark)` cut out one step."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._callback: object = None
        """Held, since llama.cpp does not."""

    def install(self, library: ModuleType) -> None:
        """Take over llama.cpp's log of this process. `library` is the binding's module `llama_cpp.llama_cpp`."""

        level_of_last = 0

        def keep(level: int, text: bytes, _user: object) -> None:
            nonlocal level_of_last
            if level != _CONTINUED:
                level_of_last = level
            if level_of_last > _DEBUG:
                self._pieces.append(text.decode("utf-8", "replace"))

        self._callback = library.llama_log_callback(keep)
        library.llama_log_set(self._callback, None)

    def mark(self) -> int:
        """A place in the log, for `since`."""
        return len(self._pieces)

    def since(self, mark: int = 0) -> str:
        """Text printed since the mark."""
        return "".join(self._pieces[mark:])

    def last_error(self, mark: int = 0) -> str:
        """The last few lines since the mark, on one line: what to tell a person when a call failed."""
        lines = [line.strip() for line in self.since(mark).splitlines() if line.strip(" .")]
        return " | ".join(lines[-3:]) or "llama.cpp printed nothing"


def buffer_bytes(text: str) -> dict[str, int]:
    """Bytes of the buffers that a context's log lines name, summed over devices; 0 where none is named."""
    return {
        name: int(sum(float(size) for size in pattern.findall(text)) * _MIB) for name, pattern in _SIZES.items()
    }


def layers_offloaded(text: str) -> tuple[int, int] | None:
    """(layers on the GPU, layers that could be) from a model's load log; None when the build has no such line."""
    match = _OFFLOADED.search(text)
    return (int(match[1]), int(match[2])) if match else None


def flash_attention(text: str) -> str | None:
    """What `auto` was resolved to, from a context's log; None when it was not automatic."""
    match = _FLASH.search(text)
    return match[1].lower() if match else None
