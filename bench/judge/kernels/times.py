"""Times of kernels as shares of what can be read, costs of further streams, and ratios to llama.cpp's own kernels.

It knows no source and no launch. A kernel whose check failed has no time here, and a time below that of a plain read of
the same bytes voids the row. Every ratio is paired inside a block, and its value is the median with the interval of a
median (`intervals.middle_of`), as for peers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bench.judge.measure.intervals import middle_of
from bench.judge.tables.kernels import Kernel

if TYPE_CHECKING:
    from bench.records.kernels import KernelRecords, Sample

NAN = float("nan")
READ = "stream_read"
"""The variant that is a plain read: its own ceiling."""
NO_PRODUCT = (READ, "weight_only", "softmax", "verify", "twin_scores")
"""Variants that multiply no matrix with activations, so that no stream's time is compared with theirs."""
CELL = "kernels"
"""What the rows rest on: the folder of that name beside the machine's cells."""

Key = tuple[Any, ...]


def origin(records: KernelRecords) -> dict[str, Any]:
    """Machine, llama.cpp's build and the folder: where a fact comes from."""
    env = records.env
    compiler = env.get("compiler", "")
    return {
        "machine": records.machine,
        "build": str(env.get("llama_cpp_commit") or "none"),
        "cells": [CELL],
        "gpu": env.get("gpu", ""),
        "compiler": " ".join(map(str, compiler)) if isinstance(compiler, list) else compiler,
        "source_hash": env.get("source_hash", ""),
    }


def _sources(env: Mapping[str, Any], variant: str) -> dict[str, str]:
    """The hash of the sources of a variant that was timed before they changed and not again since; else nothing."""
    earlier = env.get("earlier")
    if not isinstance(earlier, dict) or not isinstance(named := earlier.get("variants"), list) or variant not in named:
        return {}
    return {"source_hash": str(earlier.get("source_hash", ""))}


def kernel_rows(records: KernelRecords) -> list[Kernel]:
    """One row a case, in the order of the records."""
    cases = {key: _checked(samples) for key, samples in _cases(records.samples).items()}
    times = {key: _by_block(samples, lambda one: one.us) for key, samples in cases.items()}
    peers = {key: _by_block(samples, lambda one: one.peer_us) for key, samples in cases.items()}
    known = {key: {**_about(samples[0]), **_timed(samples, records.env)} for key, samples in cases.items()
             if samples[0].status == "ok"}  # fmt: skip
    void = {key for key, row in known.items() if _voided(row)["void"]}
    single = _fastest_single({key: blocks for key, blocks in times.items() if key not in void})
    rows = []
    for key, samples in cases.items():
        row = {**origin(records), **_about(samples[0]), **_sources(records.env, samples[0].variant)}
        if key in known:
            row |= known[key]
            row |= _relative("relative_cost", times[key], times.get(_single(key), {}))
            row |= _relative("cost_over_best_single", times[key], times.get(single.get(_matrix(key), ()), {}))
            row |= _relative("llama_cpp_relative_cost", peers[key], peers.get(_single(key), {}))
            row |= _voided(row)
        rows.append(row)
    best = fastest(rows)
    return [Kernel(**row, fastest=any(row is one for one in best)) for row in rows]


def is_sound(row: Mapping[str, Any]) -> bool:
    """Whether a row has a time that counts."""
    return row["status"] == "ok" and not row.get("void") and not math.isnan(row.get("us", NAN))


def is_product(row: Mapping[str, Any]) -> bool:
    """Whether a row multiplies a matrix: a plain read and the decode loop's helpers are measured for other ends."""
    return row["variant"] not in NO_PRODUCT


R = TypeVar("R", bound=Mapping[str, Any])


def fastest(rows: Iterable[R]) -> list[R]:
    """The fastest sound product for each machine, format, shape, cache and number of streams."""
    best: dict[Key, R] = {}
    for row in rows:
        key = tuple(row[name] for name in ("machine", "format", "rows", "cols", "cache", "streams"))
        if is_sound(row) and is_product(row) and (key not in best or row["us"] < best[key]["us"]):
            best[key] = row
    return list(best.values())


def _cases(samples: Iterable[Sample]) -> dict[Key, list[Sample]]:
    found: dict[Key, list[Sample]] = {}
    for one in samples:
        key = (one.variant, one.format, one.rows, one.cols, one.cache, one.layout, one.streams)
        found.setdefault(key, []).append(one)
    return found


def _single(key: Key) -> Key:
    """The same kernel with one stream."""
    return (*key[:-1], 1)


def _matrix(key: Key) -> Key:
    """What a kernel is measured on, whichever kernel it is: format, rows, columns, cache."""
    return key[1:5]


def _fastest_single(times: dict[Key, dict[int, float]]) -> dict[Key, Key]:
    """The fastest kernel with one stream on each matrix."""
    best: dict[Key, Key] = {}
    for key, blocks in times.items():
        if key[-1] != 1 or key[0] in NO_PRODUCT or not blocks:
            continue
        matrix = _matrix(key)
        if matrix not in best or _median(blocks.values()) < _median(times[best[matrix]].values()):
            best[matrix] = key
    return best


def _checked(samples: list[Sample]) -> list[Sample]:
    """The samples with times, where the kernel's result was checked and right; else one without any."""
    bad = [one for one in samples if one.status != "ok"]
    wrong = [one for one in samples if not one.max_rel_err <= one.tolerance]  # nan is no passed check
    if not bad and not wrong:
        return samples
    told = bad[0] if bad else wrong[0]
    reason = told.reason
    if not bad:
        measured = "no error was recorded" if math.isnan(told.max_rel_err) else f"the error is {told.max_rel_err:.2g}"
        reason = f"its result was not found right: {measured}, the tolerance {told.tolerance:.2g}"
    return [replace(told, status=told.status if bad else "failed", reason=reason, us=NAN, ceiling_us=NAN, peer_us=NAN)]


def _about(one: Sample) -> dict[str, Any]:
    names = ("variant", "format", "streams", "rows", "cols", "cache", "layout", "bytes_per_weight", "status", "reason")
    row = {name: getattr(one, name) for name in names}
    useful = one.streams * one.rows * one.cols
    return row | {
        "weight_bytes": one.weight_bytes,
        "bytes_read": one.bytes_read,
        "bytes_per_multiply": one.weight_bytes / useful if useful else NAN,
        "max_rel_err": one.max_rel_err,
        "tolerance": one.tolerance,
    }


def _timed(samples: Sequence[Sample], env: dict[str, Any]) -> dict[str, Any]:
    us = _median(one.us for one in samples)
    ceiling = _median(one.ceiling_us for one in samples)
    size = samples[0].bytes_read
    gb_s = size / us * 1e-3
    peak = float(env.get("peak_gb_s") or NAN)
    return {
        "blocks": len(samples),
        "us": us,
        "gb_s": gb_s,
        "read_gb_s": (samples[0].weight_bytes or size) / ceiling * 1e-3,
        "copy_gb_s": _median(one.copy_gb_s for one in samples),
        "share_of_chip_peak": gb_s / peak,
        "gflop_s": 2 * samples[0].streams * samples[0].rows * samples[0].cols / us * 1e-3,
        "peer_us": _median(one.peer_us for one in samples),
        **_ratio("share_of_read_peak", [one.ceiling_us / one.us for one in samples]),
        **_ratio("ratio_to_llama_cpp", [one.peer_us / one.us for one in samples]),
        **_ratio("llama_cpp_share", [one.ceiling_us / one.peer_us for one in samples]),
    }


def _by_block(samples: Sequence[Sample], of: Callable[[Sample], float]) -> dict[int, float]:
    return {one.block: of(one) for one in samples if not math.isnan(of(one))}


def _relative(name: str, times: dict[int, float], single: dict[int, float]) -> dict[str, Any]:
    """Time over that with one stream, in the blocks that both were timed in."""
    return _ratio(name, [times[block] / single[block] for block in times if block in single])


def _ratio(name: str, values: Sequence[float]) -> dict[str, Any]:
    """A ratio's median and interval; nan where no block has it."""
    middle, low, high = middle_of(np.array([value for value in values if not math.isnan(value)]))
    return {name: middle, f"{name}_low": low, f"{name}_high": high}


def _median(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else NAN


def _voided(row: Mapping[str, Any]) -> dict[str, Any]:
    """A value over 100 % of its ceiling voids the ceiling, and the row with it."""
    reasons = []
    if row["share_of_read_peak_low"] > 1 and row["variant"] != READ:
        reasons.append(
            f"impossible: {100 * row['share_of_read_peak']:.1f} % of the time that a plain read of the same bytes takes"
        )
    if row["cache"] == "cold" and row["share_of_chip_peak"] > 1:
        share = f"{100 * row['share_of_chip_peak']:.0f} % of the chip's peak"
        reasons.append(f"impossible: {row['gb_s']:.0f} GB/s from memory, {share}")
    return {"void": bool(reasons), "void_reason": "; ".join(reasons)}
