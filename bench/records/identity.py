"""What a cell is called: a hash of what it measures. Knows nothing about planning, files or running."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

NOT_HASHED = ("machine", "schema", "declaration")
"""Where a cell ran, in which form it was written, and what its method says of itself, change nothing of what it is."""


def cell_id(config: Mapping[str, Any], build: str) -> str:
    """Twelve hex digits of the configuration as it is stored, weights' and files' hashes among it, and the build."""
    hashed = {key: value for key, value in config.items() if key not in NOT_HASHED}
    if isinstance(method := hashed.get("method"), Mapping):
        hashed["method"] = {key: value for key, value in method.items() if key not in NOT_HASHED}
    text = json.dumps(hashed | {"build": build}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
