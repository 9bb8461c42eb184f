"""The JSON of `vllm bench serve`, `vllm bench throughput` and SGLang's bench_serving (one object a line)."""

from __future__ import annotations

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.formats.serving import serving_trial, throughput_trial
from bench.audit.numbers import finite

SPECULATIVE = {
    "spec_decode_acceptance_length": "accept_length",
    "spec_decode_acceptance_rate": "acceptance_percent",
    "spec_decode_num_drafts": "num_drafts",
    "spec_decode_draft_tokens": "draft_tokens",
    "spec_decode_num_draft_tokens": "draft_tokens",
    "spec_decode_accepted_tokens": "accepted_tokens",
    "spec_decode_num_accepted_tokens": "accepted_tokens",
}


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and (
        block.has("output_throughput", "duration") or block.has("elapsed_time", "tokens_per_second")
    )


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    sglang = "random_output_len" in block.head or "total_output_tokens_retokenized" in block.head
    found = Found("SGLang's bench_serving" if sglang else "vLLM's benchmark")
    for number, (line, row) in enumerate(block.rows):
        values = {SPECULATIVE.get(key, key): value for key in row if (value := finite(row[key])) is not None}
        total = values.get("tokens_per_second")
        if "output_throughput" not in values and total:
            found.trials.append(throughput_trial(line, total, None))
            continue
        shares = row.get("spec_decode_per_position_acceptance_rates")
        for place, share in enumerate(shares[:64] if isinstance(shares, list) else []):
            if finite(share) is not None:
                values[f"position_{place}"] = float(share)
        found.trials += serving_trial(line, values, str(row.get("backend", ""))[:30], number)
    return found
