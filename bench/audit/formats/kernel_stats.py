"""Summaries with a row a kernel: nsys stats (cuda_gpu_kern_sum), rocprof --stats, rocprofv3 --stats."""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, TableBlock, TableRow
from bench.audit.formats.profile_rows import MICROSECONDS, plain, short
from bench.audit.launches import Launches
from bench.audit.numbers import number
from bench.errors import UserError

NAMES = {
    "instances": "calls",
    "calls": "calls",
    "count": "calls",
    "name": "kernel",
    "kernelname": "kernel",
    "operation": "kernel",
    "avg": "us",
    "average": "us",
    "averagens": "us",
    "averagetime": "us",
    "min": "us_low",
    "minimum": "us_low",
    "minns": "us_low",
    "max": "us_high",
    "maximum": "us_high",
    "maxns": "us_high",
    "totaltime": "total",
    "totaldurationns": "total",
    "totalduration": "total",
    "percentage": "share",
    "time": "share",
}
_UNIT = re.compile(r"\((\w+|%)\)\s*$")


def sniff(block: Block) -> bool:
    if not isinstance(block, TableBlock):
        return False
    known = set(_columns(block).values())
    return {"kernel", "calls"} <= known and bool(known & {"us", "total"})


def _columns(block: TableBlock) -> dict[str, str]:
    """Columns by what they are."""
    found: dict[str, str] = {}
    for column in block.header:
        name = NAMES.get(plain(_UNIT.sub("", column)))
        if name and name not in found.values():
            found[column] = name
    return found


def read(block: Block) -> Found:
    assert isinstance(block, TableBlock)
    columns = _columns(block)
    found = Found("a profiler's summary of kernels", [], ["the times are means over all launches of a kernel"])
    found.launches = [_row(block, row, columns) for row in block.rows]
    if not found.launches:
        raise UserError(f"{block.name}, {block.cut or f'line {block.line}: a header and no kernel'}")
    return found


def _row(block: TableBlock, row: TableRow, columns: dict[str, str]) -> Launches:
    values: dict[str, float] = {}
    kernel = ""
    for column, name in columns.items():
        if name == "kernel":
            kernel = row.cells[column]
            continue
        value = number(row.cells[column])
        if value is None or value < 0:
            raise UserError(f"{block.name}, line {row.line}: {column} is '{row.cells[column][:60]}', expected a number")
        values[name] = value * (1.0 if name in ("calls", "share") else _micro(column))
    calls = int(values["calls"])
    us = values.get("us", values["total"] / calls if calls and "total" in values else None)
    return Launches(
        kernel=short(kernel),
        place=f"line {row.line}",
        calls=calls,
        us=us,
        us_low=values.get("us_low"),
        us_high=values.get("us_high"),
        share=values["share"] / 100 if "share" in values else None,
    )


def _micro(column: str) -> float:
    """Microseconds in one unit of a column: its name has it in brackets or at its end, else it is nanoseconds."""
    unit = _UNIT.search(column)
    return MICROSECONDS.get(unit[1].lower(), 1e-3) if unit else 1e-3
