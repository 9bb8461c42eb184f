"""`vllm bench serve`, SGLang's bench_serving (text) and `vllm bench throughput`. It judges nothing.

Output token throughput is the sum over all requests, queueing and prefill inside. One reader's decode rate, once the
answer runs, is 1000 / TPOT. A peak over a second counts chunks in some versions, not tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.numbers import NAN, number, real
from bench.audit.trials import Trial

NAMES = {
    "successful requests": "completed",
    "failed requests": "failed",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "output token throughput (tok/s)": "output_throughput",
    "request throughput (req/s)": "request_throughput",
    "peak output token throughput (tok/s)": "max_output_tokens_per_s",
    "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate",
    "peak concurrent requests": "max_concurrent_requests",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "concurrency": "concurrency",
    "mean ttft (ms)": "mean_ttft_ms",
    "mean tpot (ms)": "mean_tpot_ms",
    "median tpot (ms)": "median_tpot_ms",
    "mean itl (ms)": "mean_itl_ms",
    "mean e2e latency (ms)": "mean_e2e_latency_ms",
    "mean e2el (ms)": "mean_e2e_latency_ms",
    "accept length": "accept_length",
    "acceptance length": "accept_length",
    "acceptance rate (%)": "acceptance_percent",
    "drafts": "num_drafts",
    "draft tokens": "draft_tokens",
    "accepted tokens": "accepted_tokens",
    "total token throughput (tok/s)": "total_token_throughput",
}
_LINE = re.compile(r"^\W*([A-Za-z][^:]{2,50}?):\s+([-\d.,]+)\s*$")
_TITLE = re.compile(r"Serving Benchmark Result|Result of.*enchmark")
_THROUGHPUT = re.compile(
    r"Throughput: *([\d.]+) requests/s, *([\d.]+) (?:total )?tokens/s(?:, *([\d.]+) output tokens/s)?"
)
_POSITION = re.compile(r"^\s*Position (\d{1,2}): +([\d.]+)")
_BACKEND = re.compile(r"^\s*Backend: +(\S+)")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("a serving benchmark")
    values: dict[str, float] = {}
    start, backend = 0, ""
    for line in block.lines:
        throughput = _THROUGHPUT.search(line.text) if len(line.text) < 500 else None
        pair = _LINE.match(line.text) if len(line.text) < 200 else None
        key = NAMES.get(pair[1].strip().lower()) if pair else None
        title = bool(_TITLE.search(line.text))
        if title or (key and key in values):
            found.trials += serving_trial(start, values, backend, len(found.trials))
            values, start, backend = {}, line.number, ""
        if throughput:
            found.trials.append(
                throughput_trial(line.number, real(throughput[2]), real(throughput[3]) if throughput[3] else None)
            )
        elif key and pair:
            start = start or line.number
            value = number(pair[2])
            values |= {} if value is None else {key: value}
        elif _BACKEND.match(line.text):
            backend = line.text.split()[1][:30]
        elif values and (share := _POSITION.match(line.text)):
            values[f"position_{share[1]}"] = real(share[2]) / 100
        elif not (
            title
            or (
                values
                and re.match(
                    r"^[-=]{5}|^(Request rate|Traffic|Median|P\d+|Std|Max|Mean|Per-position|Total generated)", line.text
                )
            )
        ):
            continue
        found.used.add(line.number)
    found.trials += serving_trial(start, values, backend, len(found.trials))
    return found


def throughput_trial(line: int, total: float, output: float | None) -> Trial:
    """`vllm bench throughput`: all requests at once; the first figure has the prompts' tokens in it."""
    printed = {"pg": total} | ({"tok_s": output} if output else {})
    return Trial(
        place=f"line {line}",
        line=line,
        label="offline throughput",
        test="throughput",
        unshared=True,
        mixed_tokens=1,
        printed=printed,
    )


def serving_trial(line: int, values: Mapping[str, float], backend: str = "", block: int = 0) -> list[Trial]:
    """The trial of a benchmark's figures; none where there is no output rate."""
    rate, tokens, duration = (values.get(key, NAN) for key in ("output_throughput", "total_output_tokens", "duration"))
    if not rate > 0 and not (tokens > 0 and duration > 0):
        return []
    tpot, ttft = values.get("mean_tpot_ms", NAN), values.get("mean_ttft_ms", NAN)
    requests = int(values.get("completed", 0))
    streams = _streams(values, rate, tpot, requests)
    printed = {
        "tok_s": rate,
        "answer_tok_s": 1e3 / tpot if tpot > 0 else NAN,
        "peak": values.get("max_output_tokens_per_s", NAN),
        "mean_length": values.get("accept_length", NAN),
        "acceptance": values.get("acceptance_percent", NAN) / 100,
        "total": values.get("total_token_throughput", NAN),
    }
    names = {"drafted": "draft_tokens", "accepted": "accepted_tokens", "rounds": "num_drafts"}
    counts: dict[str, Any] = {name: int(values[key]) for name, key in names.items() if values.get(key, -1.0) >= 0}
    e2e = values.get("mean_e2e_latency_ms", NAN)
    length = tokens / requests if requests and tokens > 0 else NAN
    wait = e2e / 1e3 if e2e > 0 else (ttft + tpot * (length - 1)) / 1e3
    positions = tuple(values[f"position_{k}"] for k in range(64) if f"position_{k}" in values)
    settings = {"requests": f"{requests}"} | ({"backend": backend} if backend else {})
    settings |= {key: f"{values[key]:g}" for key in ("request_rate", "max_concurrency") if key in values}
    return [
        Trial(
            place=f"line {line}",
            line=line,
            label=f"{requests} requests" if requests else "serving",
            test="serving",
            block=block,
            streams=streams or 1,
            unshared=not streams,
            streams_known=bool(streams),
            counted=int(tokens) if tokens > 0 else 0,
            distinct=int(tokens) if tokens > 0 else 0,
            seconds=duration if duration > 0 else NAN,
            prompt_tokens=0,
            total_seconds=wait,
            printed={key: value for key, value in printed.items() if value == value},
            settings=settings,
            positions=positions,
            **counts,
        )
    ]


def _streams(values: Mapping[str, float], rate: float, tpot: float, requests: int) -> int:
    """Answers at a time: as printed, or the limit that was set, or the most that there were."""
    for key in ("concurrency", "max_concurrency", "max_concurrent_requests"):
        if values.get(key, 0) > 0:
            return max(1, min(round(values[key]), requests or round(values[key])))
    e2e, duration = values.get("mean_e2e_latency_ms", NAN), values.get("duration", NAN)
    if requests and e2e > 0 and duration > 0:  # Little's law
        return max(1, round(requests * e2e / 1e3 / duration))
    if requests == 1:
        return 1
    return max(2, round(rate * tpot / 1e3)) if rate > 0 and tpot > 0 else 0
