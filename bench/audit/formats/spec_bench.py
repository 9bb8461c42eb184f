"""Answers of Spec-Bench and EAGLE, one question a line. It judges nothing.

`new_tokens` and `wall_time` are lists over the turns, and so are `decoding_steps` (Spec-Bench) or `idxs` (EAGLE, from
0). The wall time has the prompt's evaluation in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.numbers import count, finite
from bench.audit.trials import Trial

NOTE = "Spec-Bench: the wall time of an answer has its prompt's evaluation inside"


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and "wall_time" in _choice(block.head)


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    trials = [trial for line, row in block.rows for trial in _trial(line, row)]
    return Found("Spec-Bench", trials, [NOTE] if trials else [])


def _choice(row: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = row.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else row
    return first if isinstance(first, dict) else {}


def _trial(line: int, row: Mapping[str, Any]) -> list[Trial]:
    choice = _choice(row)
    tokens, seconds = (_numbers(choice.get(key)) for key in ("new_tokens", "wall_time"))
    steps, lengths = _numbers(choice.get("decoding_steps")), _numbers(choice.get("accept_lengths"))
    if not steps:
        steps = [value + 1 for value in _numbers(choice.get("idxs"))]
    if not tokens or not sum(seconds) > 0:
        return []
    total, rounds = int(sum(tokens)), int(sum(steps)) or None
    name = str(row.get("question_id", line))[:60]
    several = rounds is not None and rounds < total
    return [
        Trial(
            place=f"line {line}",
            line=line,
            label=f"question {name}",
            prompt=name,
            category=str(row.get("category", ""))[:60],
            counted=total,
            distinct=total,
            seconds=sum(seconds),
            rounds=rounds,
            accepted=total - rounds if several and rounds else None,
            printed={"mean_length": sum(lengths) / len(lengths)} if lengths and several else {},
        )
    ]


def _numbers(value: object) -> list[float]:
    values = value if isinstance(value, list) else [value]
    return [
        found
        for one in values[:100_000]
        if (found := finite(one)) is not None and found >= 0 and count(int(found)) is not None
    ]
