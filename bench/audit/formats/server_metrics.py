"""llama-server's /metrics: counters of all answers since it started, in Prometheus' text form. It judges nothing."""

from __future__ import annotations

import re
from typing import Any

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.numbers import NAN, number
from bench.audit.trials import Trial

_METRIC = re.compile(r"llamacpp:(\w+)(?:\{[^}]*\})? +(-?[\d.eE+]+)\s*$")
_NOTE = (
    "llama-server's /metrics: sums over all answers since it started, of every width, so no rate of one answer alone"
)


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("llama-server's /metrics")
    values: dict[str, float] = {}
    groups: list[tuple[int, dict[str, float]]] = []
    for line, metric in block.search(_METRIC):
        value = number(metric[2])
        if metric[1] in values:
            values = {}
        if not values:
            groups.append((line.number, values))
        if value is not None:
            values[metric[1]] = value
        found.used.add(line.number)
    found.trials = [trial for line, group in groups for trial in _trial(line, group)]
    found.notes = [_NOTE] if found.trials else []
    return found


def _trial(line: int, values: dict[str, float]) -> list[Trial]:
    tokens = values.get("tokens_predicted_total", values.get("n_tokens_predicted_total", NAN))
    seconds = values.get("tokens_predicted_seconds_total", NAN)
    rate = values.get("predicted_tokens_seconds", NAN)
    if not tokens > 0 and not rate > 0:
        return []
    names = {"drafted": ("n_drafted_total",), "accepted": ("n_drafted_accepted_total", "n_accepted_total")}
    guesses: dict[str, Any] = {
        name: int(values[key])
        for name, keys in names.items()
        for key in keys[:1] + keys[1:]
        if values.get(key, -1) >= 0
    }
    prompt = values.get("prompt_tokens_total", 0.0)
    return [
        Trial(
            place=f"line {line}",
            line=line,
            label="all answers since the start",
            counted=int(tokens if tokens > 0 else 0),
            distinct=int(tokens if tokens > 0 else 0),
            seconds=seconds if seconds > 0 else NAN,
            prompt_tokens=int(max(prompt, 0)),
            prefill_seconds=values.get("prompt_seconds_total", NAN) or NAN,
            printed={"tok_s": rate} if rate > 0 else {},
            **guesses,
        )
    ]
