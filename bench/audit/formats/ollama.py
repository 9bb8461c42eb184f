"""`ollama run --verbose` and `ollama ps`: counts, durations as Go prints them, and where the model runs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.numbers import NAN, number, seconds
from bench.audit.trials import Trial

_LINE = re.compile(r"^\W*(total duration|load duration|(?:prompt )?eval (?:count|duration|rate)): +(\S+)")
_PLACE = re.compile(r"(?<!\d)(\d+%(?:/\d+%)? (?:CPU/GPU|GPU|CPU))")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("Ollama")
    values: dict[str, str] = {}
    start, placement = 0, ""
    for line in block.lines:
        pair = _LINE.match(line.text) if len(line.text) < 300 else None
        place = _PLACE.search(line.text) if len(line.text) < 300 and pair is None else None
        if place:
            placement = place[1]
            found.trials = [replace(one, settings={"placement": placement} | one.settings) for one in found.trials]
        elif pair:
            if pair[1] in values:
                found.trials += _trial(start, values, len(found.trials), placement)
                values, start = {}, 0
            start = start or line.number
            values[pair[1]] = pair[2]
        elif not ("PROCESSOR" in line.text and "SIZE" in line.text):
            continue
        found.used.add(line.number)
    found.trials += _trial(start, values, len(found.trials), placement)
    return found


def _trial(line: int, values: dict[str, str], block: int, placement: str) -> list[Trial]:
    tokens, rate = number(values.get("eval count", "")), number(values.get("eval rate", ""))
    spent = seconds(values.get("eval duration", ""))
    if rate is None and not (tokens and spent):
        return []
    prompt = seconds(values.get("prompt eval duration", ""))
    total, load = seconds(values.get("total duration", "")), seconds(values.get("load duration", ""))
    shared: dict[str, Any] = {"settings": {"placement": placement}} if placement else {}
    return [
        Trial(
            place=f"line {line}",
            line=line,
            label=f"answer {block + 1}",
            block=block,
            counted=int(tokens or 0),
            distinct=int(tokens or 0),
            seconds=spent or NAN,
            prompt_tokens=int(number(values.get("prompt eval count", "")) or 0),
            prefill_seconds=prompt or NAN,
            total_seconds=NAN if total is None else total - (load or 0.0),
            printed={} if rate is None else {"tok_s": rate},
            **shared,
        )
    ]
