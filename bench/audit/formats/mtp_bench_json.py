"""The JSON that mtp-bench.py saves: `results` (or `prompts`) of single prompts beside an `aggregate`."""

from __future__ import annotations

from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.formats.mtp_bench import prompt_trial
from bench.audit.numbers import count, finite


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and (bool(_rows(block.head)) or _is_row(block.head))


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    found = Found("mtp-bench's JSON")
    for run, (line, value) in enumerate(block.rows):
        for row in _rows(value) or [value]:
            tokens, rate = count(row.get("predicted_n")), finite(row.get("predicted_per_second"))
            if tokens is None or rate is None:
                continue
            name = next((str(row[key])[:60] for key in ("name", "prompt_name", "prompt", "id") if key in row), "prompt")
            drafted, accepted = count(row.get("draft_n")) or 0, count(row.get("draft_n_accepted")) or 0
            shared = run if _rows(value) else 0
            found.trials.append(
                prompt_trial(
                    line,
                    name,
                    tokens,
                    drafted,
                    accepted,
                    rate,
                    shared,
                    finite(row.get("accept_rate")),
                    str(row.get("category", ""))[:40],
                )
            )
    return found


def _rows(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, dict):
        return []
    for key in ("results", "prompts"):
        rows = value.get(key)
        if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows) and _is_row(rows[0]):
            return rows
    return []


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict) and "predicted_n" in row and "predicted_per_second" in row and "predicted_ms" not in row
    )
