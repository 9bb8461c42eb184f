"""Loads llama.cpp's library before anything else does its own: call it before numpy is imported.

A build that exports the C++ standard library's symbols crashes where another copy of them was loaded first. It imports
nothing of this project, since almost all of it imports numpy, and says nothing of a library that does not load: whoever
needs it does (`pti_loop.llama.library`).
"""

from __future__ import annotations

from contextlib import suppress


def load_first() -> None:
    """The binding imports its library first, and numpy after it."""
    with suppress(ImportError, OSError, RuntimeError):
        import llama_cpp  # noqa: F401
