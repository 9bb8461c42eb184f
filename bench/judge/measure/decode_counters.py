"""What the kernels of a decode read and how long they take, by class and in all, beside the decode without a profiler.

Sums over the launches of one decode, a mean where several were counted. It asks no profiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control
from bench.judge.measure.kernel_classes import CLASSES, GEMM, GEMV, class_of
from bench.judge.measure.tokens import arrays
from bench.judge.tables.kernels import Counter

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

DECODE = "decode"
"""What such a row is of."""
ALL = "all kernels"
ALONE, UNGRAPHED = "decode, no profiler", "decode, no profiler, no CUDA graphs"
QUEUED, BESIDE = "of it until the host has queued it", "of it beyond all kernels"
"""The host's part, and what is left of the decode without graphs once all kernels are taken from it: gaps. A profiler
runs each launch alone, which takes longer, so the rest may be below 0."""
PARTS = (*CLASSES, ALL, ALONE, QUEUED, UNGRAPHED, BESIDE)
"""Everything that a width has a row of, in the order in which it is shown."""
NAN = float("nan")
LEAST, MOST = 0.9, 4.0
"""Bytes from memory over those of the weights that a decode reads: below, counters missed some; far above, something
else is counted too."""
LARGE = 1 << 30
"""Weights that no cache holds a tenth of."""


def decode_counter_rows(case: Case) -> list[Counter]:
    """Rows of each width: classes of kernels, all of them, and the decode as it is without a profiler."""
    facts, config = case.cell.facts, case.cell.config
    gpus = (case.cell.env.get("machine") or {}).get("gpus") or []
    about = dict(case.of_model)
    about = {name: about[name] for name in ("machine", "build", "cells", "model", "conditions")} | {
        "of": DECODE, "variant": DECODE, "format": about["quantization"], "tool": str(facts.get("tool", "")),
        "gpu": ", ".join(str(gpu.get("name", "")) for gpu in gpus), "void": bool(case.void_reason),
        "void_reason": case.void_reason, "weight_bytes": (facts.get("model") or {}).get("step_bytes") or NAN,
    }  # fmt: skip
    copied = float((facts.get("bandwidth") or {}).get("read_gb_s") or NAN)
    timed = {(row["width"], bool(row["graphs"])): row for row in facts.get("decodes") or []}
    table, rows = case.once(_launches), []
    for width in (config.get("measure") or {}).get("counted_widths") or []:
        own = about | {"width": width, "streams": width}
        found = _sums(table, width, copied)
        rows += [Counter(**own, kernel=kernel, **values) for kernel, values in found.items()]
        rows += [Counter(**own, kernel=kernel, us=us) for kernel, us in _whole(timed, width, found).items()]
    return rows


def _launches(case: Case) -> Mapping[str, np.ndarray]:
    """The table of launches with the class of each."""
    table = arrays(case.cell.launches)
    names, place = np.unique(table["kernel"], return_inverse=True)
    classes = np.array([class_of(str(name)) for name in names], dtype=object)
    return {**table, "class": classes[place] if len(names) else np.zeros(0, dtype=object)}


def _sums(table: Mapping[str, np.ndarray], width: int, copied: float) -> dict[str, dict[str, Any]]:
    """Figures of each class and of all in one decode; none where the width was not counted."""
    mine = table["width"] == width
    if not mine.any():
        return {}
    decodes = len(np.unique(table["decode"][mine]))
    whole = float(table["us"][mine].sum()) / decodes
    products = {name: float(table["us"][mine & (table["class"] == name)].sum()) for name in (GEMV, GEMM)}
    multiplied = sum(products.values())
    found = {}
    for name in (*CLASSES, ALL):
        chosen = mine if name == ALL else mine & (table["class"] == name)
        if not chosen.any() and name not in products:
            continue  # that a decode has no product of a kind is worth a row
        values = _sum(table, chosen, decodes, width, copied)
        values["share_of_time"] = values["us"] / whole if whole else NAN
        if name in products and multiplied:
            values["share_of_products"] = products[name] / multiplied
        found[name] = values
    return found


def _sum(table: Mapping[str, np.ndarray], chosen: np.ndarray, decodes: int, width: int,
         copied: float) -> dict[str, Any]:  # fmt: skip
    def total(name: str) -> float:
        return float(table[name][chosen].sum()) / decodes  # nan where one launch has none

    us, read, through = total("us"), total("dram_bytes"), total("l2_bytes")
    moved = read + (0.0 if np.isnan(total("dram_write_bytes")) else total("dram_write_bytes"))
    rates, weights = table["l2_hit_rate"][chosen], table["l2_bytes"][chosen]
    known = ~np.isnan(rates)
    if known.any() and not np.isnan(weights[known]).any() and weights[known].sum():
        hits = float((rates[known] * weights[known]).sum() / weights[known].sum())
    else:  # without the bytes through it, each launch counts alike
        hits = float(rates[known].mean()) if known.any() else NAN
    return {
        "launches": round(int(chosen.sum()) / decodes), "us": us, "dram_bytes": read,
        "dram_write_bytes": total("dram_write_bytes"), "l2_bytes": through, "l2_hit_rate": hits,
        "dram_bytes_per_token": read / width, "l2_bytes_per_token": through / width,
        "gb_s": moved / us * 1e-3 if us else NAN, "share_of_copy": moved / us * 1e-3 / copied if us else NAN,
    }  # fmt: skip


def _whole(timed: Mapping[tuple[int, bool], Mapping[str, Any]], width: int,
           found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:  # fmt: skip
    """Medians of the decodes without a profiler, in microseconds, and what is left beyond the kernels."""
    rows: dict[str, float] = {}
    if usual := timed.get((width, True)):
        rows |= {ALONE: _median_us(usual["ns"]), QUEUED: _median_us(usual["queued_ns"])}
    if bare := timed.get((width, False)):
        rows[UNGRAPHED] = _median_us(bare["ns"])
        if ALL in found:
            rows[BESIDE] = rows[UNGRAPHED] - float(found[ALL]["us"])
    return rows


def _median_us(ns: Any) -> float:
    return float(np.median(ns)) / 1e3 if len(ns) else NAN


def traffic(case: Case) -> list[Control]:
    """Bytes from memory in one decode against those of the weights that it has to read."""
    step = float((case.cell.facts.get("model") or {}).get("step_bytes") or 0)
    table = case.once(_launches)
    widths = [int(width) for width in np.unique(table["width"])]
    read = {width: _sums(table, width, NAN)[ALL]["dram_bytes"] for width in widths}
    told = {width: bytes_ / step for width, bytes_ in read.items() if step and not np.isnan(bytes_)}
    if not told or step < LARGE:
        why = "nothing was counted of the memory" if not told else "the caches hold much of weights this small"
        return [Control("traffic", WARNING, f"{why}, so nothing says whether all bytes were counted")]
    width, worst = min(told.items(), key=lambda one: one[1])
    words = f"a decode of width {width} read {worst:.2f} times the {step / 1e9:.2f} GB of weights that it needs"
    if worst < LEAST:
        why = f"{words}, so the counters missed some: of a second port of the memory, or of a pass"
        return [Control("traffic", VOID, why, worst)]
    severity = OK if max(told.values()) <= MOST else WARNING
    return [Control("traffic", severity, words, worst)]
