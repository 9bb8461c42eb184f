"""llama-batched-bench and ik_llama.cpp's llama-sweep-bench: tables and JSONL. It judges nothing.

Names are those of tools/batched-bench/batched-bench.cpp and examples/sweep-bench/sweep-bench.cpp. Batched: B answers
decode at once, S_TG is their sum, S has prompt tokens in it. Sweep: one answer, N_KV tokens in the context before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bench.audit.blocks import Block, Found, JsonBlock, TableBlock
from bench.audit.numbers import NAN, count, finite, number
from bench.audit.trials import Trial
from bench.errors import UserError

BATCHED, SWEEP = "llama-batched-bench", "llama-sweep-bench"
SETTINGS = (
    "n_kv_max",
    "n_batch",
    "n_ubatch",
    "flash_attn",
    "is_pp_shared",
    "is_tg_separate",
    "n_gpu_layers",
    "n_threads",
    "n_threads_batch",
)
FIELDS = {
    "PP": "pp",
    "TG": "tg",
    "B": "pl",
    "N_KV": "n_kv",
    "T_PP s": "t_pp",
    "S_PP t/s": "speed_pp",
    "T_TG s": "t_tg",
    "S_TG t/s": "speed_tg",
    "T s": "t",
    "S t/s": "speed",
}
NOTE = "llama-batched-bench: B answers decode at once, S_TG is their sum, and S has prompt tokens in it"
TURNS = "is_tg_separate = 1: the answers took turns, so B says nothing about batching"
_PAIRS = re.compile(r"\b(\w+) = (-?\d+)")


def sniff(block: Block) -> bool:
    if isinstance(block, JsonBlock):
        return block.has("pp", "tg", "t_tg", "speed_tg")
    return isinstance(block, TableBlock) and block.has("PP", "TG", "T_TG s")


def read(block: Block) -> Found:
    found = Found(BATCHED)
    if isinstance(block, JsonBlock):
        rows: list[tuple[int, Mapping[str, Any]]] = list(block.rows)
    else:
        assert isinstance(block, TableBlock)
        rows = _rows(block, found)
    odd = next((line for line, row in rows if ("pl" in row) != ("pl" in rows[0][1])), None)
    if odd is not None:
        raise UserError(f"{block.name}, line {odd}: field 'pl' is missing here or in the rows before")
    found.trials = [_trial(block.name, line, row) for line, row in rows]
    if not found.trials:
        assert isinstance(block, TableBlock)
        raise UserError(
            f"{block.name}, {block.cut or f'line {block.line}: has a header and no row'}; "
            "raise -c so that one combination fits"
        )
    sweep = all("pl" not in row for _, row in rows)
    found.name = SWEEP if sweep else BATCHED
    found.notes += [] if sweep else [TURNS if any(row.get("is_tg_separate") for _, row in rows) else NOTE]
    return found


def _rows(block: TableBlock, found: Found) -> list[tuple[int, Mapping[str, Any]]]:
    """Rows of a table, each with the line of settings that the tool printed above this very table."""
    above: dict[str, Any] = {}
    for line in block.above:
        if "n_kv_max = " in line.text:
            above = {key: int(value[:18]) for key, value in _PAIRS.findall(line.text)}
            found.used.add(line.number)
    rows: list[tuple[int, Mapping[str, Any]]] = []
    for row in block.rows:
        values: dict[str, Any] = {}
        for name, cell in row.cells.items():
            value = number(cell)
            if name in FIELDS and value is None and cell.strip("-").lower() not in ("nan", "inf"):
                raise UserError(
                    f"{block.name}, line {row.line}: {name} is '{cell[:40]}', expected a number in every field"
                )
            values |= {FIELDS[name]: value} if name in FIELDS else {}
        rows.append((row.line, above | values))
    return rows


def _trial(name: str, line: int, row: Mapping[str, Any]) -> Trial:
    pp, tg = _whole(name, line, row, "pp"), _whole(name, line, row, "tg")
    pl = _whole(name, line, row, "pl") if "pl" in row else 1
    if pl < 1:
        raise UserError(f"{name}, line {line}: B (pl) is {pl}, expected 1 or more")
    t_pp, t_tg = _seconds(name, line, row, "t_pp"), _seconds(name, line, row, "t_tg")
    turns = bool(row.get("is_tg_separate"))
    depth = _whole(name, line, row, "n_kv") if "pl" not in row and "n_kv" in row else None
    printed = {"S_PP": finite(row.get("speed_pp")), "S_TG": finite(row.get("speed_tg")), "S": finite(row.get("speed"))}
    return Trial(
        place=f"line {line}",
        line=line,
        label=f"pp={pp} tg={tg} B={pl}" if "pl" in row else f"pp{pp} tg{tg} at {depth}",
        test=f"pp{pp} tg{tg}",
        depth=depth,
        streams=1 if turns else pl,
        streams_known=True,
        counted=tg * pl,
        distinct=tg * pl,
        seconds=t_tg or NAN,
        prompt_tokens=pp if row.get("is_pp_shared") else pp * pl,
        prefill_seconds=t_pp or NAN,
        rounds=(tg * pl if turns else tg) or None,
        printed={key: value for key, value in printed.items() if value is not None},
        settings={key: str(row[key]) for key in SETTINGS if key in row},
    )


def _whole(name: str, line: int, row: Mapping[str, Any], key: str) -> int:
    value = count(row.get(key))
    if value is None:
        raise UserError(f"{name}, line {line}: {key} is {str(row.get(key))[:40]}, expected a whole number of 0 or more")
    return value


def _seconds(name: str, line: int, row: Mapping[str, Any], key: str) -> float:
    value = finite(row.get(key))
    if value is None or value < 0:
        raise UserError(f"{name}, line {line}: {key} is {str(row.get(key))[:40]}, expected seconds")
    return value
