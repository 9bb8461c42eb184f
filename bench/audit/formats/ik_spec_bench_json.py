"""ik_llama.cpp's llama-spec-bench as JSON: rows of type `attempt`, one an answer; its summary repeats them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.numbers import NAN, count, finite
from bench.audit.trials import Trial


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and block.has("row_type", "timing", "tokens")


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    attempts = [(line, row) for line, row in block.rows if row.get("row_type") == "attempt"]
    return Found("llama-spec-bench's JSON", [trial for line, row in attempts for trial in _trial(line, row)])


def _trial(line: int, row: Mapping[str, Any]) -> list[Trial]:
    timing, tokens, guesses, variant = (_part(row, key) for key in ("timing", "tokens", "speculative", "variant"))
    generated, seconds = count(tokens.get("generated")), finite(timing.get("decode_s"))
    if not generated or not seconds:
        return []
    name = str(row.get("task_name", row.get("task_id", "task")))[:60]
    stages = variant.get("spec_types")
    drafted, rounds = count(guesses.get("draft_tokens")), count(guesses.get("num_drafts"))
    arm = "none" if variant.get("is_baseline") or not drafted else "+".join(map(str, stages or ["speculative"]))[:60]
    printed = {"tok_s": finite(timing.get("decode_tps"))}
    if drafted:
        printed |= {
            "acceptance": finite(guesses.get("acceptance_rate")),
            "mean_length": finite(guesses.get("acceptance_length")),
        }
    return [
        Trial(
            place=f"line {line}",
            line=line,
            label=f"{arm} {name}",
            arm=arm,
            prompt=name,
            category=str(row.get("task_category", name))[:60],
            counted=generated,
            distinct=generated,
            seconds=seconds,
            prompt_tokens=count(tokens.get("prompt")) or 0,
            prefill_seconds=finite(timing.get("prompt_s")) or NAN,
            total_seconds=finite(timing.get("total_s")) or NAN,
            temperature=finite(_part(row, "sampler").get("temp")),
            drafted=drafted or None,
            accepted=count(guesses.get("accepted_tokens")) if drafted else None,
            rounds=rounds if drafted else None,
            printed={key: value for key, value in printed.items() if value is not None},
            settings={key: str(value)[:100] for key, value in _part(row, "runtime").items() if key != "model_alias"},
        )
    ]


def _part(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key)
    return value if isinstance(value, dict) else {}
