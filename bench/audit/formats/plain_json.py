"""Flat JSON objects of somebody's own, one a run or step: read as the table that they would make."""

from __future__ import annotations

from bench.audit.blocks import Block, Found, JsonBlock, TableRow
from bench.audit.formats import plain

MOST_COLUMNS = 200


def sniff(block: Block) -> bool:
    if not isinstance(block, JsonBlock) or not block.head:
        return False
    header = _header(block)
    return 1 < len(header) <= MOST_COLUMNS and plain.sniff(plain.table_of(block, header, [], block.first))


def read(block: Block) -> Found:
    assert isinstance(block, JsonBlock)
    header = _header(block)
    rows = [TableRow(line, {name: _cell(row.get(name)) for name in header}) for line, row in block.rows]
    found = plain.read(plain.table_of(block, header, rows, block.first))
    found.name = "JSON rows"
    return found


def _header(block: JsonBlock) -> list[str]:
    return [
        name
        for name, value in block.head.items()
        if not isinstance(value, dict)
        and not (isinstance(value, list) and any(isinstance(one, list | dict) for one in value))
    ]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, float):
        return repr(value)
    return str(value)
