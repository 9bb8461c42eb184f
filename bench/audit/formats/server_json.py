"""The body of llama-server's /completion or /v1/chat/completions, or its `timings` alone (`jq .timings`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.formats.llama_timings import from_json
from bench.audit.numbers import count, finite

NAMES = ("n_ctx", "seed", "top_k", "top_p", "min_p", "samplers", "n_predict", "speculative.types", "speculative.n_max")
"""Generation settings that are kept; those of speculation are what is compared."""


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and ("predicted_n" in _timings(block.head))


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    found = Found("llama-server's timings")
    for number, (line, body) in enumerate(block.rows, 1):
        timing = from_json(line, _timings(body))
        if timing is None:
            continue
        settings = body.get("generation_settings")
        settings = settings if isinstance(settings, dict) else {}
        temperature = finite(settings.get("temperature"))
        requested = count(settings.get("n_predict"))
        timing.values |= {"temperature": temperature, "requested": requested or None}
        model = body.get("model")
        timing.values["settings"] = {"model": str(model)[:100]} if isinstance(model, str) else {}
        found.trials.append(timing.trial(f"answer {number}"))
    return found


def _timings(body: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = body.get("timings")
    return inner if isinstance(inner, dict) else body
