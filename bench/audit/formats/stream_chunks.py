"""Chunks of a streamed answer as somebody logged them: a clock and the tokens that came, one object a line.

A chunk is not a token. The clock is read when a chunk arrives, so the first one's tokens have no time of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.numbers import NAN, count, finite
from bench.audit.trials import Trial

CLOCKS = {
    "t": 1.0,
    "time": 1.0,
    "ts": 1.0,
    "timestamp": 1.0,
    "elapsed": 1.0,
    "t_s": 1.0,
    "t_ms": 1e-3,
    "ms": 1e-3,
    "t_ns": 1e-9,
}
TOKENS = ("tokens", "token_ids", "n_tokens", "ids", "token_count")


def sniff(block: Block) -> bool:
    return (
        isinstance(block, JsonBlock)
        and len(block.rows) > 1
        and _clock(block.head) is not None
        and _tokens(block.head) is not None
    )


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    rows = [(line, _clock(row), _tokens(row)) for line, row in block.rows]
    known = [(line, moment, tokens) for line, moment, tokens in rows if moment is not None and tokens is not None]
    found = Found("chunks of a streamed answer")
    if len(known) < 2:
        return found
    first, last = known[0], known[-1]
    tokens = sum(row[2] for row in known)
    inside = tokens - first[2]
    found.trials.append(
        Trial(
            place=f"lines {first[0]}-{last[0]}",
            line=first[0],
            label="streamed answer",
            counted=inside,
            distinct=inside,
            first=first[2],
            seconds=last[1] - first[1] if last[1] > first[1] else NAN,
        )
    )
    found.notes.append(
        f"{len(known)} chunks with {tokens} tokens: a chunk is not a token, and the first one's have no time"
    )
    return found


def _clock(row: Mapping[str, Any]) -> float | None:
    return next((value * unit for key, unit in CLOCKS.items() if (value := finite(row.get(key))) is not None), None)


def _tokens(row: Mapping[str, Any]) -> int | None:
    for key in TOKENS:
        value = row.get(key)
        if isinstance(value, list):
            return len(value)
        if count(value) is not None:
            return count(value)
    return None
