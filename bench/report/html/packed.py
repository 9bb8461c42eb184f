"""Texts packed into the page: gzip as base64, which a browser unpacks when somebody looks at them. Knows no table."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

LEVEL = 6


def packed(text: str) -> str:
    """The text as base64 of its gzip form, the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), compresslevel=LEVEL, mtime=0)).decode("ascii")


def as_json(value: Mapping[str, Any]) -> str:
    """Compact JSON that every browser reads: numbers that are none become null."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
