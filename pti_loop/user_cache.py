"""Where a user's caches lie. Knows nothing about what is kept there; standard library only, since set-up needs it."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """`XDG_CACHE_HOME`, or `~/.cache` where that is not set or, as the XDG specification has it, not absolute."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".cache")
