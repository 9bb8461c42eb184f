"""The last object of Ollama's /api/generate and /api/chat: counts, and durations in nanoseconds."""

from __future__ import annotations

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.numbers import NAN, count, finite
from bench.audit.trials import Trial


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and any("eval_duration" in row for _, row in block.rows[-3:] + block.rows[:3])


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    found = Found("Ollama's API")
    for line, row in block.rows:
        tokens, spent = count(row.get("eval_count")), finite(row.get("eval_duration"))
        if not tokens or not spent or spent <= 0:
            continue
        prompt, total, load = (finite(row.get(f"{key}_duration")) for key in ("prompt_eval", "total", "load"))
        number = len(found.trials)
        model = row.get("model")
        found.trials.append(
            Trial(
                place=f"line {line}",
                line=line,
                label=f"answer {number + 1}",
                block=number,
                counted=tokens,
                distinct=tokens,
                seconds=spent / 1e9,
                prompt_tokens=count(row.get("prompt_eval_count")) or 0,
                prefill_seconds=prompt / 1e9 if prompt else NAN,
                total_seconds=(total - (load or 0.0)) / 1e9 if total else NAN,
                settings={"model": str(model)[:100]} if isinstance(model, str) else {},
            )
        )
    return found
