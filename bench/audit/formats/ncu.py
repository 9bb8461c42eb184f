"""NVIDIA's ncu as CSV: a row a metric, or `--page raw` with a column a metric and a row of units below the header."""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, TableBlock, TableRow
from bench.audit.formats.profile_rows import BYTES, MICROSECONDS, NOTHING, Values, gathered
from bench.audit.numbers import decimal_comma, number
from bench.errors import UserError

_METRIC = re.compile(r"__")


def sniff(block: Block) -> bool:
    return (
        isinstance(block, TableBlock)
        and block.has("Kernel Name")
        and (block.has("Metric Name", "Metric Value") or any(_METRIC.search(name) for name in block.header))
    )


def read(block: Block) -> Found:
    assert isinstance(block, TableBlock)
    found = Found("ncu")
    rows = _long(block) if block.has("Metric Name") else _raw(block)
    found.launches = gathered(rows)
    if not found.launches:
        raise UserError(
            f"{block.name}, line {block.line}: ncu's header and no launch; was the kernel's name filtered out?"
        )
    return found


def _comma(block: TableBlock, values: list[str]) -> bool:
    """The locale of ncu's numbers. Between semicolons a comma is the decimal sign unless a value says otherwise."""
    plain = any(re.search(r"\d\.\d{1,2}(?!\d)|\d\.\d{4,}", value) for value in values)
    return decimal_comma(values) or (block.delimiter == ";" and not plain)


def _value(block: TableBlock, line: int, name: str, text: str, unit: str, comma: bool) -> float | None:
    if text.strip().lower() in NOTHING:
        return None
    value = number(text, comma)
    if value is None:
        raise UserError(f"{block.name}, line {line}: {name} is '{text[:60]}', which is no number in this file's locale")
    unit = unit.strip().lower()
    return value * BYTES.get(unit, MICROSECONDS.get(unit, 1.0))


def _long(block: TableBlock) -> list[tuple[str, str, int, Values]]:
    comma = _comma(block, [row.cells["Metric Value"] for row in block.rows])
    launches: dict[tuple[str, str], tuple[str, str, int, Values]] = {}
    for row in block.rows:
        kernel, dispatch = row.cells["Kernel Name"], row.cells.get("ID", "")
        name, unit = row.cells["Metric Name"].strip(), row.cells.get("Metric Unit", "")
        if not name:
            continue  # a rule's row
        values = launches.setdefault((kernel, dispatch), (kernel, dispatch, row.line, {}))[3]
        try:
            value = _value(block, row.line, name, row.cells["Metric Value"], unit, comma)
        except UserError:
            if re.fullmatch(r"[A-Za-z_ .]+", row.cells["Metric Value"]):
                continue  # a metric in words, such as a cache's configuration
            raise
        if values.get(name) is None:
            values[name] = value
    return list(launches.values())


def _raw(block: TableBlock) -> list[tuple[str, str, int, Values]]:
    metrics = [name for name in block.header if _METRIC.search(name)]
    rows: list[TableRow] = list(block.rows)
    units: dict[str, str] = {}
    if rows and not rows[0].cells["Kernel Name"].strip():
        units = rows.pop(0).cells
    comma = _comma(block, [row.cells[name] for row in rows for name in metrics])
    return [
        (
            row.cells["Kernel Name"],
            row.cells.get("ID", str(row.line)),
            row.line,
            {
                name: _value(block, row.line, name, row.cells[name], units.get(name, ""), comma)
                for name in metrics
                if not re.fullmatch(r"\s*[A-Za-z][\w .]*", row.cells[name])
            },
        )
        for row in rows
    ]
