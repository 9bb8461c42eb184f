"""The JSON that llama.cpp's speed_bench.py saves: `summary` rows by class of prompts."""

from __future__ import annotations

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.formats.speed_bench import category_trial
from bench.audit.numbers import count, finite


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and (block.has("summary", "results") or block.has("category", "avg_pred_t_s"))


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    found = Found("speed-bench's JSON")
    for line, value in block.rows:
        summary = value.get("summary", [value])
        for row in summary if isinstance(summary, list) else []:
            rate = finite(row.get("avg_pred_t_s")) if isinstance(row, dict) else None
            if rate is not None:
                found.trials.append(
                    category_trial(
                        line,
                        str(row.get("category", "overall"))[:60],
                        "",
                        rate,
                        finite(row.get("avg_latency")),
                        finite(row.get("accept_rate")),
                        finite(row.get("avg_prompt_t_s")),
                        count(row.get("requests")),
                    )
                )
    return found
