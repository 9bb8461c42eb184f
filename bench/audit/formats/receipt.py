"""What an engine of one's own writes for one run: tokens, their ids or number, and the time to decode them, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.numbers import NAN, count, finite
from bench.audit.trials import Flag, Trial

TIMES = {
    "decode_ms": 1e-3,
    "decode_time_ms": 1e-3,
    "generation_ms": 1e-3,
    "decode_s": 1.0,
    "decode_seconds": 1.0,
    "decode_time_s": 1.0,
    "generation_time": 1.0,
    "generation_seconds": 1.0,
    "decode_ns": 1e-9,
}
PREFILLS = {"prefill_ms": 1e-3, "prompt_ms": 1e-3, "prefill_s": 1.0, "prefill_seconds": 1.0, "prefill_ns": 1e-9}
COUNTED = ("decode_tokens", "generated_tokens", "n_decode", "n_generated", "completion_tokens", "tokens_generated")
LISTED = ("tokens_count", "n_tokens", "token_count", "output_tokens")
RATES = ("native_tok_s", "decode_tok_s", "tok_s", "tokens_per_second", "tok_per_s", "tps")


def sniff(block: Block) -> bool:
    if not isinstance(block, JsonBlock):
        return False
    flat = dict(_flat(block.head))
    return any(key in flat for key in TIMES) and any(key in flat for key in (*COUNTED, *LISTED, "tokens"))


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    found = Found("an engine's own record")
    for number, (line, row) in enumerate(block.rows, 1):
        flat = dict(_flat(row))
        spent = _first(flat, TIMES)
        told = next((value for key in COUNTED if (value := count(flat.get(key))) is not None), None)
        ids = flat.get("tokens", flat.get("token_ids"))
        listed = len(ids) if isinstance(ids, list) else count(ids)
        if listed is None:
            listed = next((value for key in LISTED if (value := count(flat.get(key))) is not None), None)
        tokens = listed if listed is not None else told
        if not tokens or spent is None:
            continue
        label = str(row.get("name", row.get("arm", f"run {number}")))[:60]
        rate = next((figure for key in RATES if (figure := finite(flat.get(key))) is not None), None)
        found.trials.append(
            Trial(
                place=f"line {line}",
                line=line,
                label=label,
                arm=str(row.get("arm", ""))[:60],
                counted=tokens,
                distinct=tokens,
                seconds=spent or NAN,
                prefill_seconds=_first(flat, PREFILLS) or NAN,
                printed={} if rate is None else {"tok_s": rate},
                temperature=finite(flat.get("temperature")),
            )
        )
        if told is not None and listed is not None and told != listed and spent:
            found.flags.append(
                Flag(
                    "INCONSISTENT",
                    f"{label} (line {line}): says {told} tokens and has {listed}; {listed / spent:.1f} tok/s, not "
                    f"{told / spent:.1f}",
                    {"printed": told / spent, "right": listed / spent},
                )
            )
    return found


def _flat(row: Mapping[str, Any], depth: int = 2) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and depth:
            yield from _flat(value, depth - 1)
        else:
            yield str(key).lower(), value


def _first(flat: Mapping[str, Any], names: Mapping[str, float]) -> float | None:
    return next(
        (value * unit for key, unit in names.items() if (value := finite(flat.get(key))) is not None and value > 0),
        None,
    )
