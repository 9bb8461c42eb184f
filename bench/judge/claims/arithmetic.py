"""Recomputes published figures from the inputs that they were published with.

A small registry of named formulas: a sheet names one and gives its inputs, nothing in a sheet is evaluated as code.
Knows nothing about claims or records. Byte formulas return bytes; `in_unit` turns them into GB, MiB and so on. Those of
a sequence start from the numbers of a model card, apart from `pti_loop.gguf.model_memory`, which sizes a file: two ways
that have to agree.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from bench.errors import UserError, nearest
from bench.judge.claims.columns import BYTE_UNITS

BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Formula:
    """`unit` is what `function` returns; `text` is the formula for a reader."""

    function: Callable[..., float]
    unit: str
    text: str


def product(**factors: float) -> float:
    return math.prod(factors.values())


def distinct_tokens(rounds: float, streams: float) -> float:
    """A loop whose rounds of N tokens overlap in N-1: N tokens, one more for every further round, and the prefill's."""
    return rounds + streams


def counted_tokens(rounds: float, streams: float) -> float:
    return 1 + rounds * streams


def distinct_rate(counted_rate: float, rounds: float, streams: float) -> float:
    """The counter's rate times the share of its tokens that are distinct: same seconds, fewer tokens."""
    return counted_rate * distinct_tokens(rounds, streams) / counted_tokens(rounds, streams)


def expected_tokens(p: float, streams: float) -> float:
    """Tokens a round when each further position is accepted with probability p, given those before it."""
    return sum(p**depth for depth in range(int(streams)))


def gains(**rates: float) -> list[float]:
    """In per cent, one a pair `plain_NAME` and `flag_NAME`. Raises UserError for a rate without its other half."""
    names = {name.partition("_")[2] for name in rates}
    if lone := {*rates} ^ {f"{half}_{name}" for name in names for half in ("plain", "flag")}:
        raise UserError(f"the input '{min(lone)}' is no half of a pair; write plain_NAME and flag_NAME for each row")
    return [100 * (rates[f"flag_{name}"] / rates[f"plain_{name}"] - 1) for name in sorted(names)]


def delta_state_bytes(
    layers: float, value_heads: float, key_heads: float, head_size: float, convolution_width: float, value_bytes: float
) -> float:
    """State of one sequence in gated delta-net layers: a square a value head, and what the convolution keeps."""
    square = value_heads * head_size * head_size
    channels = 2 * key_heads * head_size + value_heads * head_size
    return layers * (square + (convolution_width - 1) * channels) * value_bytes


def kv_bytes(attention_layers: float, kv_heads: float, head_size: float, value_bytes: float, tokens: float) -> float:
    """Keys and values of `tokens` positions of one sequence."""
    return 2 * attention_layers * kv_heads * head_size * value_bytes * tokens


def sequence_bytes(
    attention_layers: float,
    kv_heads: float,
    head_size: float,
    kv_value_bytes: float,
    tokens: float,
    delta_layers: float,
    value_heads: float,
    key_heads: float,
    delta_head_size: float,
    convolution_width: float,
    state_value_bytes: float,
) -> float:
    """KV cache and recurrent state of one sequence of a hybrid model."""
    cache = kv_bytes(attention_layers, kv_heads, head_size, kv_value_bytes, tokens)
    state = delta_state_bytes(
        delta_layers, value_heads, key_heads, delta_head_size, convolution_width, state_value_bytes
    )
    return cache + state


def grown_increments(**costs: float) -> float:
    """How many of the increments between consecutive costs, in order of their names, exceed the one before."""
    ordered = [costs[name] for name in sorted(costs)]
    increments = [after - before for before, after in itertools.pairwise(ordered)]
    return float(sum(after > before + 1e-12 for before, after in itertools.pairwise(increments)))


FORMULAS: dict[str, Formula] = {
    "ratio": Formula(lambda numerator, denominator: numerator / denominator, "", "numerator / denominator"),
    "percent": Formula(lambda part, whole: 100 * part / whole, "%", "100 x part / whole"),
    "excess_percent": Formula(
        lambda larger, smaller: 100 * (larger / smaller - 1), "%", "100 x (larger / smaller - 1)"
    ),
    "shortfall_percent": Formula(
        lambda smaller, larger: 100 * (1 - smaller / larger), "%", "100 x (1 - smaller / larger)"
    ),
    "sum": Formula(lambda **parts: math.fsum(parts.values()), "", "sum of the inputs"),
    "difference": Formula(lambda larger, smaller: larger - smaller, "", "larger - smaller"),
    "least": Formula(lambda **values: min(values.values()), "", "the smallest of the inputs"),
    "greatest": Formula(lambda **values: max(values.values()), "", "the largest of the inputs"),
    "least_gain": Formula(lambda **rates: min(gains(**rates)), "%", "the smallest gain of the rows"),
    "greatest_gain": Formula(lambda **rates: max(gains(**rates)), "%", "the largest gain of the rows"),
    "product": Formula(product, "", "product of the inputs"),
    "byte_product": Formula(product, BYTES, "product of the inputs"),
    "quotient_per": Formula(lambda last, first, parts: (last - first) / parts, "", "(last - first) / parts"),
    "traffic_ratio": Formula(
        lambda blocks, streams, columns, value_bytes, rows, weight_bytes: (
            (blocks * streams * columns * value_bytes) / (rows * columns * weight_bytes)
        ),
        "",
        "blocks x streams x columns x value_bytes / (rows x columns x weight_bytes)",
    ),
    "tiles": Formula(lambda rows, rows_per_tile: float(math.ceil(rows / rows_per_tile)), "", "rows / rows_per_tile"),
    "expected_tokens": Formula(expected_tokens, "", "1 + p + p^2 + ... with as many terms as streams"),
    "counted_tokens": Formula(counted_tokens, "", "1 + rounds x streams"),
    "distinct_tokens": Formula(distinct_tokens, "", "rounds + streams"),
    "distinct_rate": Formula(distinct_rate, "", "counted_rate x (rounds + streams) / (1 + rounds x streams)"),
    "distinct_ratio": Formula(
        lambda counted_rate, rounds, streams, baseline: distinct_rate(counted_rate, rounds, streams) / baseline,
        "",
        "counted_rate x (rounds + streams) / (1 + rounds x streams) / baseline",
    ),
    "seconds": Formula(lambda tokens, rate: tokens / rate, "", "tokens / rate"),
    "rate_bound": Formula(lambda gb_s, gb: gb_s / gb, "", "bandwidth / bytes a token"),
    "read_ms": Formula(lambda gb, gb_s: 1000 * gb / gb_s, "", "1000 x bytes / bandwidth"),
    "read_rate": Formula(lambda gb, step_ms: 1000 * gb / step_ms, "", "1000 x bytes / step_ms"),
    "rate_at_step_cost": Formula(
        lambda streams, step_cost, baseline: streams / step_cost * baseline, "", "streams / step_cost x baseline"
    ),
    "step_cost": Formula(lambda streams, multiplier: streams / multiplier, "", "streams / multiplier"),
    "packed_block_bytes": Formula(
        lambda scales, scale_bytes, weights, slot_bytes: scales * scale_bytes + weights * slot_bytes,
        BYTES,
        "scales x scale_bytes + weights x slot_bytes",
    ),
    "kv_bytes": Formula(kv_bytes, BYTES, "2 x attention_layers x kv_heads x head_size x value_bytes x tokens"),
    "delta_state_bytes": Formula(
        delta_state_bytes,
        BYTES,
        "layers x (value_heads x head_size^2 + (convolution_width - 1) x (2 x key_heads + value_heads) x head_size) "
        "x value_bytes",
    ),
    "sequence_bytes": Formula(sequence_bytes, BYTES, "KV bytes of the tokens + delta-net state"),
    "line_bytes_gain": Formula(
        lambda line_bits, bits, other_bits: (
            100 * ((line_bits / bits * bits) / (line_bits / other_bits * other_bits) - 1)
        ),
        "%",
        "weights a line x bits a weight, over the same of the other format, less 1",
    ),
    "grown_increments": Formula(grown_increments, "", "how often the next increment is the larger one"),
}  # fmt: skip


def check_inputs(formula: str, names: Sequence[str], where: str) -> None:
    """Raises UserError for an unknown formula, an input it does not take, or one that it lacks."""
    if formula not in FORMULAS:
        raise UserError(f"{where} names the unknown formula '{formula}'; {nearest(formula, FORMULAS)}")
    parameters = inspect.signature(FORMULAS[formula].function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        if not names:
            raise UserError(f"{where}: formula '{formula}' has no inputs; name at least one")
        return
    for name in names:
        if name not in parameters:
            raise UserError(f"{where}: formula '{formula}' has no input '{name}'; {nearest(name, parameters)}")
    missing = [name for name in parameters if name not in names]
    if missing:
        raise UserError(f"{where}: formula '{formula}' lacks the input {', '.join(missing)}")


def recompute(formula: str, inputs: Mapping[str, float]) -> float:
    """The formula's value in its own unit. Raises ZeroDivisionError where the formula divides by a zero input."""
    return float(FORMULAS[formula].function(**inputs))


def reachable(formula: str, inputs: Mapping[str, float], rounding: Mapping[str, float]) -> tuple[float, float]:
    """Smallest and largest value over the corners of the inputs' own rounding; exact when monotone in each input."""
    names = list(rounding)
    values = []
    for signs in itertools.product((-1, 1), repeat=len(names)):
        moved = {name: inputs[name] + sign * rounding[name] for name, sign in zip(names, signs, strict=True)}
        values.append(recompute(formula, {**inputs, **moved}))
    return min(values), max(values)


def in_unit(formula: str, value: float, unit: str, where: str) -> float:
    """`value` in the unit of the claim. Raises UserError when a byte formula's claim has no unit of bytes."""
    if FORMULAS[formula].unit != BYTES:
        return value
    if unit not in BYTE_UNITS:
        raise UserError(
            f"{where}: formula '{formula}' gives bytes, but its unit is '{unit}'; {nearest(unit, BYTE_UNITS)}"
        )
    return value / BYTE_UNITS[unit]


def half_last_digit(printed: str) -> float:
    """Half a unit of the last printed digit: 0.005 for 1.36, 0.5 for 89."""
    exponent = Decimal(printed).as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"'{printed}' is not a number")
    return 0.5 * 10.0**exponent


def other_reading(value_bytes: float, published: float, tolerance: float, unit: str) -> str:
    """How the published byte figure comes about when its prefix is not the one printed; empty when it does not."""
    binary = unit[0] + "iB" if unit in ("KB", "MB", "GB") else ""
    if not binary:
        return ""
    if abs(value_bytes / BYTE_UNITS[binary] - published) <= tolerance:
        return f"it is the figure in {binary}"
    smaller = {"MB": "KiB", "GB": "MiB"}.get(unit)
    if smaller and abs(value_bytes / BYTE_UNITS[smaller] / 1000 - published) <= tolerance:
        return f"{value_bytes / BYTE_UNITS[smaller]:g} {smaller} over 1000 prints so, which mixes two kinds of prefix"
    return ""
