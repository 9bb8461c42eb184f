"""The report that trtllm-bench --report_json writes (tensorrt_llm/bench/dataclasses/reporting.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock
from bench.audit.formats.serving import serving_trial
from bench.audit.formats.trtllm import finished
from bench.audit.numbers import finite

PATHS = {
    "output_throughput": ("performance", "system_output_throughput_tok_s"),
    "per_user": ("performance", "output_throughput_per_user_tok_s"),
    "total_ms": ("performance", "total_latency_ms"),
    "mean_e2e_latency_ms": ("performance", "avg_request_latency_ms"),
    "total_token_throughput": ("performance", "system_total_throughput_tok_s"),
    "mean_ttft_ms": ("streaming_metrics", "avg_ttft_ms"),
    "mean_tpot_ms": ("streaming_metrics", "avg_tpot_ms"),
    "concurrency": ("request_info", "avg_num_concurrent_requests"),
    "completed": ("request_info", "num_requests"),
    "length": ("request_info", "avg_output_length"),
    "accept_length": ("decoding_stats", "acceptance_length_percentiles", "average"),
    "acceptance": ("decoding_stats", "draft_acceptance_rate_percentiles", "average"),
}


def sniff(block: Block) -> bool:
    return isinstance(block, JsonBlock) and _at(block.head, PATHS["output_throughput"]) is not None


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    found = Found("TensorRT-LLM's report")
    for number, (line, report) in enumerate(block.rows):
        values = {name: value for name, path in PATHS.items() if (value := _at(report, path)) is not None}
        if "acceptance" in values:
            values["acceptance_percent"] = 100 * values["acceptance"]
        found.trials += serving_trial(line, finished(values), "trtllm", number)
    return found


def _at(report: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = report
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return finite(value)
