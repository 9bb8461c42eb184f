"""Where the headers of one llama.cpp are kept, for what is compiled against it. Standard library only, for set-up."""

from __future__ import annotations

from pathlib import Path

from pti_loop.user_cache import user_cache

FOLDERS = ("common", "include", "ggml/include")
"""Folders of llama.cpp's source, kept under their own names."""


def headers(commit: str) -> Path:
    """Folder of one commit's headers, which may not exist."""
    return user_cache() / "pti-bench" / "llama.cpp" / commit


def kept(commit: str) -> bool:
    """Whether they are there."""
    return (headers(commit) / "common" / "speculative.h").is_file()
