"""Which program wrote a file, and what llama.cpp's two benchmark tools mean by their fields.

Field names are those of tools/llama-bench/llama-bench.cpp (`test::get_fields`, json and jsonl printers) and
tools/batched-bench/batched-bench.cpp (table and jsonl) of llama.cpp. It judges nothing.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from bench.audit.formats.own_ledger import read_cell, read_ledger
from bench.audit.formats.plain_csv import read_steps
from bench.audit.text import FORMATS, read_text
from bench.audit.trials import NAN, Record, Trial
from bench.errors import UserError, nearest

BENCH_SETTINGS = (
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
    "n_depth",
    "cpu_mask",
    "cpu_strict",
    "poll",
)
BATCHED_SETTINGS = (
    "n_kv_max",
    "n_batch",
    "n_ubatch",
    "flash_attn",
    "is_pp_shared",
    "n_gpu_layers",
    "n_threads",
    "n_threads_batch",
)
BATCHED_FIELDS = ("pp", "tg", "pl", "n_kv", "t_pp", "speed_pp", "t_tg", "speed_tg", "t", "speed")
TABLE_COLUMNS = ("PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s")
Pair = tuple[str, dict[str, Any]]


def read_record(path: Path, streams: int | None = None) -> Record:
    """A record in whichever form it has; UserError says what was expected where it is none.

    `streams` is what a reader says where the record has no stream column.
    """
    path = Path(path)
    if path.is_dir():
        return read_cell(path)
    text = read_text(path)
    head = text.lstrip()
    if head[0] in "[{":
        return _read_json(path, text)
    if _table_header(text) is not None:
        return _batched(path, "llama-batched-bench table", _table_rows(path, text))
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    if head[0] == "|" or "| test " in text:
        raise UserError(f"{path}: a Markdown table without raw times; run llama-bench again with: -o json")
    if "build_commit" in first and "avg_ts" in first:
        raise UserError(f"{path}: llama-bench's CSV leaves out the single repetitions; run it again with: -o json")
    if _looks_like_ledger(first):
        return read_ledger(path, text)
    return read_steps(path, text, streams)


def _looks_like_ledger(header: str) -> bool:
    names = {name.strip() for name in header.split(",")}
    return "source" in names or {"stream", "position", "t_ns"} <= names


def _read_json(path: Path, text: str) -> Record:
    pairs = _json_pairs(path, text)
    if not pairs:
        raise UserError(f"{path}: an empty list; expected {FORMATS}")
    keys = pairs[0][1]
    if "pl" in keys or "speed_tg" in keys:
        return _batched(path, "llama-batched-bench jsonl", pairs)
    if "avg_ts" in keys or "n_gen" in keys:
        return Record(path, "llama-bench", tuple(_bench_trial(path, place, row) for place, row in pairs))
    known = ("n_prompt", "n_gen", "avg_ts", *BATCHED_FIELDS)
    hints = [f"'{key}': {nearest(key, known)}" for key in list(keys)[:3]]
    raise UserError(
        f"{path}, {pairs[0][0]}: neither llama-bench's fields (n_prompt, n_gen, avg_ts) nor "
        f"llama-batched-bench's (pp, tg, pl); found {'; '.join(hints) or 'no field'}"
    )


def _json_pairs(path: Path, text: str) -> list[Pair]:
    """(place, row) for each object. C prints nan and inf, which JSON does not have."""
    mended = re.sub(r"(?<=: )-?(?:nan|inf)\b(?=[,}\n])", "NaN", text)
    pairs: list[Pair] = []
    if mended.lstrip()[0] == "[":
        try:
            rows = json.loads(mended)
        except ValueError as error:
            where = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
            raise UserError(
                f"{path}{where}: not JSON ({error}); a run that was cut off leaves no closing ']'"
            ) from error
        pairs = [(f"row {number}", row) for number, row in enumerate(rows, 1)]
    else:
        for number, line in enumerate(mended.splitlines(), 1):
            # llama.cpp's log shares the stream with the jsonl rows; a row always begins with a brace.
            if line.lstrip().startswith("{"):
                try:
                    pairs.append((f"line {number}", json.loads(line)))
                except ValueError as error:
                    raise UserError(
                        f"{path}, line {number}: not a JSON object ({error}); expected one a line"
                    ) from error
    for place, row in pairs:
        if not isinstance(row, dict):
            raise UserError(f"{path}, {place}: {type(row).__name__}, expected an object with named fields")
    return pairs


def _value(path: Path, place: str, row: dict[str, Any], key: str, low: float | None = 0) -> float:
    if key not in row:
        raise UserError(f"{path}, {place}: field '{key}' is missing; {nearest(key, row)}")
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{path}, {place}: {key} is {value!r}, expected a number")
    if low is not None and value < low:
        raise UserError(f"{path}, {place}: {key} is {value}, expected {low:g} or more")
    return value


def _whole(path: Path, place: str, row: dict[str, Any], key: str) -> int:
    value = _value(path, place, row, key)
    if not math.isfinite(value) or int(value) != value:
        raise UserError(f"{path}, {place}: {key} is {value}, expected a whole number")
    return int(value)


def _bench_trial(path: Path, place: str, row: dict[str, Any]) -> Trial:
    n_prompt, n_gen = _whole(path, place, row, "n_prompt"), _whole(path, place, row, "n_gen")
    if n_prompt + n_gen == 0:
        raise UserError(f"{path}, {place}: n_prompt and n_gen are both 0; expected one above")
    printed = _value(path, place, row, "avg_ts")
    samples = row.get("samples_ns", [])
    if not isinstance(samples, list) or any(
        isinstance(n, bool) or not isinstance(n, int | float) or n <= 0 for n in samples
    ):
        raise UserError(f"{path}, {place}: samples_ns is {str(samples)[:60]}, expected positive nanoseconds")
    seconds = tuple(n / 1e9 for n in samples)
    mean = sum(seconds) / len(seconds) if seconds else _value(path, place, row, "avg_ns") / 1e9
    depth = row.get("n_depth", 0)
    name = "".join(
        [f"pp{n_prompt}" if n_prompt else "", "+" if n_prompt and n_gen else "", f"tg{n_gen}" if n_gen else ""]
    )
    shared: dict[str, Any] = {
        "place": place,
        "label": f"{name} @ d{depth}" if depth else name,
        "streams_known": True,
        "samples": seconds,
        "settings": {"test": name, **{key: str(row[key]) for key in BENCH_SETTINGS if key in row}},
        "model_bytes": _model_bytes(row),
        "rounds": n_gen or None,
    }
    if n_prompt and n_gen:
        return Trial(**shared, mixed_tokens=n_prompt + n_gen, printed={"pg": printed}, prompt_tokens=n_prompt)
    if n_prompt:
        return Trial(**shared, prompt_tokens=n_prompt, prefill_seconds=mean, printed={"pp": printed})
    return Trial(**shared, counted=n_gen, distinct=n_gen, seconds=mean, printed={"tok_s": printed})


def _model_bytes(row: dict[str, Any]) -> float | None:
    """Bytes of all tensors; None for a mixture of experts, whose step reads only some of them."""
    name = str(row.get("model_type", ""))
    experts = re.search(r"moe|\bA\d+(\.\d+)?B\b|\d+x\d+", name, re.IGNORECASE)
    size = row.get("model_size")
    return float(size) if isinstance(size, int | float) and size > 0 and not experts else None


def _batched(path: Path, form: str, pairs: list[Pair]) -> Record:
    trials = tuple(_batched_trial(path, place, row) for place, row in pairs)
    if not trials:
        raise UserError(f"{path}: {form} has a header and no rows; raise -c so that one combination fits")
    notes = ("B answers decode at once: S_TG is their sum, and S has prompt tokens in it",)
    if any(row.get("is_tg_separate") for _, row in pairs):
        notes = ("is_tg_separate = 1: the answers took turns, so B says nothing about batching",)
    return Record(path, form, trials, notes)


def _batched_trial(path: Path, place: str, row: dict[str, Any]) -> Trial:
    pp, tg, pl = (_whole(path, place, row, key) for key in ("pp", "tg", "pl"))
    if pl < 1:
        raise UserError(f"{path}, {place}: {'B' if 'B' in row else 'pl'} is {pl}, expected 1 or more")
    t_pp, t_tg = _value(path, place, row, "t_pp"), _value(path, place, row, "t_tg")
    prompts = pp if row.get("is_pp_shared") else pp * pl
    turns = bool(row.get("is_tg_separate"))
    printed = {
        "S_PP": _value(path, place, row, "speed_pp", None),
        "S_TG": _value(path, place, row, "speed_tg", None),
        "S": _value(path, place, row, "speed", None),
    }
    return Trial(
        place=place,
        label=f"pp={pp} tg={tg} B={pl}",
        streams=1 if turns else pl,
        streams_known=True,
        counted=tg * pl,
        distinct=tg * pl,
        seconds=t_tg or NAN,
        prompt_tokens=prompts,
        prefill_seconds=t_pp or NAN,
        rounds=(tg * pl if turns else tg) or None,
        printed={key: value for key, value in printed.items() if math.isfinite(value)},
        settings={key: str(row[key]) for key in BATCHED_SETTINGS if key in row},
    )


def _table_header(text: str) -> int | None:
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.strip().startswith("|") and cells[:4] == list(TABLE_COLUMNS[:4]):
            return number
    return None


def _table_rows(path: Path, text: str) -> list[Pair]:
    """Rows of the Markdown table. The line of settings that the tool prints above it is kept with every row."""
    lines = text.splitlines()
    start = _table_header(text) or 0
    header = [cell.strip() for cell in lines[start - 1].strip().strip("|").split("|")]
    if header != list(TABLE_COLUMNS):
        odd = next((name for name in header if name not in TABLE_COLUMNS), header[-1])
        raise UserError(f"{path}, line {start}: column '{odd}', expected {' | '.join(TABLE_COLUMNS)}")
    above = {
        key: int(value)
        for line in lines[:start]
        if "n_kv_max = " in line
        for key, value in re.findall(r"(\w+) = (-?\d+)", line)
    }
    pairs: list[Pair] = []
    for number, line in enumerate(lines[start:], start + 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.strip().startswith("|") or set(line.strip()) <= set("|-: ") or cells == header:
            continue
        if len(cells) != len(BATCHED_FIELDS):
            raise UserError(
                f"{path}, line {number}: {len(cells)} fields, expected {len(BATCHED_FIELDS)} "
                f"({' | '.join(TABLE_COLUMNS)})"
            )
        try:
            values = {
                key: (int if key in ("pp", "tg", "pl", "n_kv") else float)(cell)
                for key, cell in zip(BATCHED_FIELDS, cells, strict=True)
            }
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}; expected a number in every field") from error
        pairs.append((f"line {number}", {**above, **values}))
    return pairs
