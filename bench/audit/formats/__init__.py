"""The list of tools whose output the audit reads: a new one is a file beside this and a line here. It reads nothing.

A reader module has `sniff(block) -> bool`, which may look at a table's header and not at its rows, and
`read(block) -> Found`. It is loaded when its mark is found in a block. The first reader that sniffs a block has it;
the lines of a text belong to every reader that finds its own among them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Protocol, cast

from bench.audit.blocks import Block, Found, JsonBlock, LinesBlock, TableBlock


class Reader(Protocol):
    """What a module of this folder offers."""

    def sniff(self, block: Block) -> bool:
        """Whether a block is this tool's."""

    def read(self, block: Block) -> Found:
        """The trials, or launches, in it. UserError where it is damaged beyond reading."""


@dataclass(frozen=True)
class Format:
    """`module` in this folder, `kind` of block (json, table, lines), and what has to be somewhere in such a block."""

    module: str
    kind: str
    mark: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.mark, re.IGNORECASE)

    @cached_property
    def reader(self) -> Reader:
        return cast(Reader, import_module(f"{__name__}.{self.module}"))


FORMATS = (
    Format("own_ledger", "table", r"^run\b.*\bposition\b.*\bt_ns\b"),
    Format("llama_bench", "json", r"avg_ts|samples_ns"),
    Format("llama_bench", "table", r"avg_ts|\btest\b.*\bt/s"),
    Format("llama_bench_sql", "lines", r"INSERT INTO (llama_bench|test)\b"),
    Format("batched_bench", "json", r"speed_tg"),
    Format("batched_bench", "table", r"S_TG t/s"),
    Format("server_json", "json", r"predicted_n|predicted_ms|timings"),
    Format("server_log", "lines", r"eval time =|n_(gen|decoded) *=|draft acceptance"),
    Format("server_metrics", "lines", r"llamacpp:\w+"),
    Format("speculative", "lines", r"n_drafted +=|decoded +\d+ tokens in|\| *Generation: *[\d.]+ *t/s"),
    Format("mtp_bench", "lines", r"pred= *\d+ +draft= *\d+"),
    Format("mtp_bench_json", "json", r"aggregate_accept_rate|predicted_per_second"),
    Format("ik_spec_bench", "table", r"\bstage\b.*\ba\.len\b"),
    Format("ik_spec_bench_json", "json", r"row_type|acceptance_length"),
    Format("speed_bench", "table", r"avg_pred_t/s"),
    Format("speed_bench_json", "json", r"avg_pred_t_s"),
    Format("trtllm", "lines", r"Output Throughput \(tokens/sec|\[BENCHMARK\] "),
    Format("trtllm_json", "json", r"system_output_throughput_tok_s"),
    Format("serving", "lines", r"Output token throughput|Serving Benchmark Result|output tokens/s"),
    Format("serving_json", "json", r"output_throughput|tokens_per_second"),
    Format("vllm_log", "lines", r"SpecDecoding metrics|Speculative metrics|Avg generation throughput"),
    Format("sglang_log", "lines", r"gen throughput \(token/s\)"),
    Format("ollama", "lines", r"eval rate:|PROCESSOR +"),
    Format("ollama_json", "json", r"eval_duration"),
    Format("mlx_lm", "lines", r"tokens-per-sec|generation_tps="),
    Format("spec_bench", "json", r"wall_time"),
    Format("receipt", "json", r"decode_tokens|decode_ms|decode_seconds"),
    Format("stream_chunks", "json", r"\"?tokens\b|token_ids|delta"),
    Format("ncu", "table", r"Metric Name|__\w+\.(sum|avg|max|min|pct)|launch__"),
    Format("ncu_denied", "lines", r"ERR_NVGPUCTRPERM|==ERROR=="),
    Format("kernel_stats", "table", r"Instances|Calls"),
    Format("dispatches", "table", r"Kernel_?Name|CorrId|\bName\b.*(Start|Begin)"),
    Format("plain_json", "json", r"."),
    Format("plain", "table", r"."),
)
"""Own forms of a tool come before `plain`, which takes any table with a rate, a time or tokens."""


def reader_of(block: Block) -> Reader | None:
    """The first reader that knows a block of JSON or a table."""
    kind, text = _looks(block)
    for one in FORMATS:
        if one.kind == kind and one.pattern.search(text) and one.reader.sniff(block):
            return one.reader
    return None


def readers_of_lines(block: LinesBlock) -> list[Reader]:
    """Every reader that finds lines of its own."""
    return [one.reader for one in FORMATS if one.kind == "lines" and one.pattern.search(block.text)]


def _looks(block: Block) -> tuple[str, str]:
    """The kind of a block, and the words in it that marks are looked for in: keys, or a header."""
    if isinstance(block, TableBlock):
        return "table", ",".join(block.header)
    assert isinstance(block, JsonBlock)
    names = list(block.head)[:200]
    for value in list(block.head.values())[:200]:
        one = value[0] if isinstance(value, list) and value else value
        if isinstance(one, dict):
            names += list(one)[:200]
    return "json", ",".join(names)
