"""TensorRT-LLM: trtllm-bench's report and gptManagerBenchmark's lines. It judges nothing."""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.formats.serving import serving_trial
from bench.audit.numbers import number

NAMES = {
    "total output throughput (tokens/sec)": "output_throughput",
    "output throughput (tokens/sec)": "output_throughput",
    "per user output throughput (tokens/sec/user)": "per_user",
    "per user output speed [w/ ctx] (tps/user)": "per_user",
    "total latency (ms)": "total_ms",
    "average request latency (ms)": "mean_e2e_latency_ms",
    "average time-to-first-token [ttft] (ms)": "mean_ttft_ms",
    "average time-per-output-token [tpot] (ms)": "mean_tpot_ms",
    "concurrency": "concurrency",
    "number of requests": "completed",
    "number of concurrent requests": "concurrency",
    "average output length (tokens)": "length",
    "num_samples": "completed",
    "token_throughput(token/sec)": "output_throughput",
    "total_latency(ms)": "total_ms",
    "avg_sequence_latency(ms)": "mean_e2e_latency_ms",
    "total token throughput (tokens/sec)": "total_token_throughput",
    "avg_time_to_first_token(ms)": "mean_ttft_ms",
    "avg_inter_token_latency(ms)": "mean_tpot_ms",
}
_REPORT = re.compile(r"^\W*([A-Za-z][^:]{3,60}?):\s+([\d.,]+)\s*$")
_LINE = re.compile(r"\[BENCHMARK\] +(\S+) +([\d.]+)")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("TensorRT-LLM's benchmark")
    values: dict[str, float] = {}
    start = 0
    for line in block.lines:
        pair = (_LINE.search(line.text) or _REPORT.match(line.text)) if len(line.text) < 300 else None
        key = NAMES.get(pair[1].strip().lower()) if pair else None
        value = number(pair[2]) if pair and key else None
        if key is None or value is None:
            continue
        if key in values:
            found.trials += serving_trial(start, finished(values), "trtllm", len(found.trials))
            values, start = {}, 0
        start = start or line.number
        values[key] = value
        found.used.add(line.number)
    found.trials += serving_trial(start, finished(values), "trtllm", len(found.trials))
    return found


def finished(values: dict[str, float]) -> dict[str, float]:
    """The names of a serving benchmark. A rate per user with the prefill inside stands for one without a TPOT."""
    values = dict(values)
    if values.get("per_user", 0) > 0 and "mean_tpot_ms" not in values:
        values["mean_tpot_ms"] = 1e3 / values["per_user"]
    if "total_ms" in values:
        values["duration"] = values["total_ms"] / 1e3
    if "length" in values and "completed" in values:
        values["total_output_tokens"] = values["length"] * values["completed"]
    return values
