"""llama.cpp's speed-bench: one row a class of prompts, and its comparison of two runs. It judges nothing.

avg_pred_t/s is the mean of the answers' decode rates, avg_latency what a client waits for one answer.
"""

from __future__ import annotations

from bench.audit.blocks import Block, Found, TableBlock, TableRow
from bench.audit.numbers import NAN, number, whole
from bench.audit.trials import Trial

WHOLE = ("overall", "all", "total")


def sniff(block: Block) -> bool:
    return (
        isinstance(block, TableBlock)
        and block.has("category")
        and (block.has("avg_pred_t/s") or block.has("base_avg_pred_t/s", "spec_avg_pred_t/s"))
    )


def read(block: Block) -> Found:
    assert isinstance(block, TableBlock)
    found = Found("speed-bench")
    sides = [("", "")] if block.has("avg_pred_t/s") else [("base", "base_"), ("speculative", "spec_")]
    for row in block.rows:
        for arm, prefix in sides:
            found.trials += _trial(row, arm, prefix)
    return found


def _trial(row: TableRow, arm: str, prefix: str) -> list[Trial]:
    cells = row.cells
    rate = number(cells[f"{prefix}avg_pred_t/s"])
    if rate is None:
        return []
    return [
        category_trial(
            row.line,
            cells["category"],
            arm,
            rate,
            number(cells.get(f"{prefix}avg_latency", "")),
            None if prefix == "base_" else number(cells.get("accept_rate", "")),
            number(cells.get("avg_prompt_t/s", "")),
            whole(cells.get("samples", "")),
            number(cells.get("agg_pred_t/s", "")),
        )
    ]


def category_trial(
    line: int,
    category: str,
    arm: str,
    rate: float,
    latency: float | None,
    acceptance: float | None,
    prompt_rate: float | None,
    samples: int | None,
    total: float | None = None,
) -> Trial:
    """The mean of one class; the row over all classes is kept apart from them."""
    printed = {"answer_tok_s": rate, "acceptance": acceptance, "pp": prompt_rate, "tok_s": total}
    streams = max(1, round(total / rate)) if total and rate else 1
    return Trial(
        place=f"line {line}",
        line=line,
        label=f"{arm} {category}".strip(),
        arm=arm,
        prompt=category,
        category=category,
        test="overall" if category.lower() in WHOLE else "",
        repetitions=samples,
        streams=streams,
        total_seconds=latency if latency else NAN,
        printed={key: value for key, value in printed.items() if value is not None},
    )
