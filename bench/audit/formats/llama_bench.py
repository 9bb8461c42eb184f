"""llama-bench: its Markdown table, CSV, JSON and JSONL. It judges nothing.

Field names are those of tools/llama-bench/llama-bench.cpp (`test::get_fields` and the printers). Its t/s is the mean of
the repetitions' rates, the figure behind ± their standard deviation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock, Line, TableBlock, TableRow
from bench.audit.numbers import NAN, count, finite, measured, number
from bench.audit.trials import Trial
from bench.errors import UserError

NAME = "llama-bench"
SETTINGS = (
    "build_commit",
    "build_number",
    "cpu_info",
    "gpu_info",
    "backends",
    "model_type",
    "model_size",
    "n_batch",
    "n_ubatch",
    "n_threads",
    "type_k",
    "type_v",
    "n_gpu_layers",
    "n_cpu_moe",
    "split_mode",
    "main_gpu",
    "no_kv_offload",
    "flash_attn",
    "devices",
    "tensor_split",
    "tensor_buft_overrides",
    "use_mmap",
    "load_mode",
    "lazy_mode",
    "embeddings",
    "no_op_offload",
    "no_host",
    "repack",
    "cpu_mask",
    "cpu_strict",
    "poll",
)
COLUMNS = {
    "model": "model_type",
    "size": "model_size",
    "backend": "backends",
    "ngl": "n_gpu_layers",
    "threads": "n_threads",
    "fa": "flash_attn",
    "sm": "split_mode",
    "mg": "main_gpu",
    "nkvo": "no_kv_offload",
    "ts": "tensor_split",
    "mmap": "use_mmap",
    "embd": "embeddings",
    "dev": "devices",
    "ncmoe": "n_cpu_moe",
    "ot": "tensor_buft_overrides",
}
"""Short names of the Markdown table."""
DEFAULT_REPETITIONS = 5
_TEST = re.compile(r"(?:pp(\d+))?\+?(?:tg(\d+))?(?: *@ *d(\d+))?", re.IGNORECASE)
_MOE = re.compile(r"moe|\bA\d+(\.\d+)?B\b|\d+x\d+", re.IGNORECASE)
_BUILD = re.compile(r"^\s*build: +(\w+) +\((\d+)\)")
_DEVICE = re.compile(r"^\s*Device \d+: ([^,]+)")
_UNITS = {"kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3, "tib": 1024.0**4, "gb": 1e9, "mb": 1e6}


def sniff(block: Block) -> bool:
    if isinstance(block, JsonBlock):
        return block.has("avg_ts") and block.has("n_gen")
    return isinstance(block, TableBlock) and (block.has("test", "t/s") or block.has("avg_ts", "n_gen"))


def read(block: Block) -> Found:
    if isinstance(block, JsonBlock):
        return Found(NAME, [trial_of(block.name, line, row) for line, row in block.rows])
    assert isinstance(block, TableBlock)
    found = Found(NAME)
    if block.has("test", "t/s"):
        shared = _around(block, found)
        found.trials = [trial for row in block.rows for trial in _markdown(block, row, shared)]
    else:
        found.trials = [trial_of(block.name, row.line, row.cells) for row in block.rows]
    if not found.trials:
        why = block.cut or f"line {block.line}: has a header and no row"
        raise UserError(
            f"{block.name}, {why}; no rate is left of llama-bench's output. If only the CSV is cut, run: llama-bench "
            "-o json"
        )
    if any(trial.samples == () for trial in found.trials):
        found.notes.append(
            "llama-bench: mean and spread without single repetitions; the usual five are assumed where it prints no "
            "number"
        )
    return found


def trial_of(name: str, line: int, row: Mapping[str, Any]) -> Trial:
    """A row of JSON, CSV or SQL; values of the latter two are text."""
    n_prompt, n_gen = _whole(name, line, row, "n_prompt"), _whole(name, line, row, "n_gen")
    if n_prompt + n_gen == 0:
        raise UserError(f"{name}, line {line}: n_prompt and n_gen are both 0; expected one above")
    rate = _number(name, line, row, "avg_ts")
    raw = row.get("samples_ns", [])
    samples = [finite(value) for value in raw] if isinstance(raw, list) else [None]
    # Below one, it is no time of a decode, and its seconds may be none at all.
    if any(value is None or value < 1 for value in samples):
        raise UserError(f"{name}, line {line}: samples_ns is {str(raw)[:60]}, expected positive nanoseconds")
    seconds = tuple(value / 1e9 for value in samples if value is not None)
    mean = sum(seconds) / len(seconds) if seconds else _number(name, line, row, "avg_ns") / 1e9
    settings = {key: _word(row[key]) for key in SETTINGS if key in row}
    settings |= {"build": settings["build_commit"]} if "build_commit" in settings else {}
    spread = NAN if seconds else _optional(row, "stddev_ts")
    made = _trial(line, n_prompt, n_gen, count(_optional(row, "n_depth")) or 0, rate, spread, mean, seconds, settings)
    return replace(made, printed={**made.printed, **_beside(row)}) if seconds else made


def _beside(row: Mapping[str, Any]) -> dict[str, float]:
    """What a row with its repetitions prints of them, too: mean time, spread of the rates, mean of their own list."""
    own = [value for value in map(finite, row.get("samples_ts") or []) if value is not None]
    found = {"mean_s": _optional(row, "avg_ns") / 1e9, "sd": _optional(row, "stddev_ts")}
    found |= {"samples": sum(own) / len(own)} if own else {}
    return {name: value for name, value in found.items() if value == value}


def _trial(
    line: int,
    n_prompt: int,
    n_gen: int,
    depth: int,
    rate: float,
    spread: float,
    mean: float,
    samples: tuple[float, ...],
    settings: dict[str, str],
) -> Trial:
    name = "+".join([f"pp{n_prompt}"] * bool(n_prompt) + [f"tg{n_gen}"] * bool(n_gen))
    size = number(settings.get("model_size", ""))
    shared: dict[str, Any] = {
        "place": f"line {line}",
        "line": line,
        "label": f"{name} @ d{depth}" if depth else name,
        "test": name,
        "depth": depth,
        "streams_known": True,
        "samples": samples,
        "settings": settings,
        "spread": spread,
        "repetitions": len(samples) or None,
        "rounds": n_gen or None,
        # A mixture of experts reads only some of its weights in a step.
        "model_bytes": size if size and not _MOE.search(settings.get("model_type", "")) else None,
    }
    if n_prompt and n_gen:
        return Trial(**shared, mixed_tokens=n_prompt + n_gen, printed={"pg": rate}, prompt_tokens=n_prompt)
    if n_prompt:
        return Trial(**shared, prompt_tokens=n_prompt, prefill_seconds=mean, printed={"pp": rate})
    return Trial(**shared, counted=n_gen, distinct=n_gen, seconds=mean, printed={"tok_s": rate})


def _around(block: TableBlock, found: Found) -> dict[str, str]:
    """Settings that the tool prints beside its table: the devices above it, the build below."""
    shared: dict[str, str] = {}
    devices: list[str] = []

    def note(line: Line) -> None:
        build, device = _BUILD.match(line.text), _DEVICE.match(line.text)
        if build:
            shared.update(build=build[1], build_number=build[2])
        if device:
            devices.append(device[1].strip())
        if build or device or line.text.startswith("ggml_"):
            found.used.add(line.number)

    for line in [*block.above, *block.below]:
        note(line)
    return shared | ({"gpu_info": ", ".join(devices)} if devices else {})


def _markdown(block: TableBlock, row: TableRow, shared: dict[str, str]) -> list[Trial]:
    """A row of the Markdown table; none for one whose test is no llama-bench test."""
    test = _TEST.fullmatch(row.cells["test"].strip("` "))
    rate = measured(row.cells["t/s"], block.comma)
    if test is None or rate is None or not (test[1] or test[2]):
        raise UserError(
            f"{block.name}, line {row.line}: test '{row.cells['test'][:40]}' with t/s '{row.cells['t/s'][:40]}', "
            "expected "
            "a row such as tg128 | 71.40 ± 0.12"
        )
    settings = dict(shared)
    for column, cell in row.cells.items():
        if column not in ("test", "t/s", "params"):
            settings[COLUMNS.get(column, column)] = cell
    size = measured(settings.get("model_size", ""), block.comma)
    if size:
        settings["model_size"] = str(int(size.value * _UNITS.get(size.unit.lower(), 1.0)))
    pp, tg = int(test[1] or 0), int(test[2] or 0)
    mean = (pp + tg) / rate.value if rate.value > 0 else NAN
    return [_trial(row.line, pp, tg, int(test[3] or 0), rate.value, rate.spread, mean, (), settings)]


def _word(value: object) -> str:
    return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)[:200]


def _optional(row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    found = number(value) if isinstance(value, str) else finite(value)
    return NAN if found is None else found


def _number(name: str, line: int, row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    found = number(value) if isinstance(value, str) else finite(value)
    if found is None or found < 0:
        told = "is missing" if key not in row else f"is {value!r}"[:80]
        raise UserError(f"{name}, line {line}: {key} {told}, expected a number of 0 or more")
    return found


def _whole(name: str, line: int, row: Mapping[str, Any], key: str) -> int:
    value = count(_number(name, line, row, key))
    if value is None:
        raise UserError(f"{name}, line {line}: {key} is {row[key]!r}, expected a whole number")
    return value
