"""Tables with a row a launch, or a row a launch and counter: rocprof v1, v2 and v3, rocpd's CSV, nsys' trace.

Long tables name the counter in a column; wide ones have a column for each. It knows which columns say of what launch a
row is, and takes every other for something that was measured.
"""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, TableBlock, TableRow
from bench.audit.formats.profile_rows import MICROSECONDS, NOTHING, Values, gathered, plain
from bench.audit.numbers import number
from bench.errors import UserError

KERNEL = ("kernelname", "name", "kernel")
DISPATCH = ("dispatchid", "id", "index", "corrid", "correlationid")
BEGIN = ("starttimestamp", "beginns", "start", "startns", "begin")
END = ("endtimestamp", "endns", "end")
LENGTH = ("duration", "durationns")
LABELS = frozenset(
    (
        "id",
        "kind",
        "guid",
        "agentid",
        "queueid",
        "streamid",
        "threadid",
        "dispatchid",
        "kernelid",
        "kernelname",
        "name",
        "kernel",
        "correlationid",
        "corrid",
        "processid",
        "pid",
        "tid",
        "gpuid",
        "queueindex",
        "index",
        "grd",
        "wgr",
        "wgp",
        "sig",
        "obj",
        "workgroupsize",
        "workgroupsizex",
        "workgroupsizey",
        "workgroupsizez",
        "gridsize",
        "gridsizex",
        "gridsizey",
        "gridsizez",
        "grdx",
        "grdy",
        "grdz",
        "blkx",
        "blky",
        "blkz",
        "device",
        "ctx",
        "strm",
        "greenctx",
        "countername",
        "countervalue",
        "wavesize",
        "dispatchns",
        "completens",
        "stackid",
        "parentstackid",
        "nid",
        "category",
        "region",
        "context",
        "stream",
        "regtrd",
    )
)
RENAMED = {
    "vgprcount": "VGPR_Count",
    "archvgpr": "arch_vgpr",
    "vgpr": "vgpr",
    "fetchsize": "FETCH_SIZE",
    "writesize": "WRITE_SIZE",
}
"""Names under which the harness knows a column, whatever its case."""
_UNIT = re.compile(r"\((\w+)\)\s*$")


def sniff(block: Block) -> bool:
    if not isinstance(block, TableBlock):
        return False
    names = {plain(_UNIT.sub("", column)) for column in block.header}
    if not names & set(KERNEL):
        return False
    timed = bool(names & set(BEGIN) and names & set(END)) or bool(
        names & set(LENGTH) and names & {"corrid", "dispatchid", "start"}
    )
    counted = {"countername", "countervalue"} <= names or bool(names & {"gpuid", "agentid", "queueid", "index"})
    return timed or counted


def read(block: Block) -> Found:
    assert isinstance(block, TableBlock)
    columns = {column: plain(_UNIT.sub("", column)) for column in block.header}
    long = {"countername", "countervalue"} <= set(columns.values())
    launches: dict[tuple[str, str], tuple[str, str, int, Values]] = {}
    for row in block.rows:
        by_name = {name: row.cells[column] for column, name in columns.items()}
        kernel = next((by_name[name] for name in KERNEL if by_name.get(name)), "")
        dispatch = next((by_name[name] for name in DISPATCH if by_name.get(name)), str(row.line))
        if not long and (kernel, dispatch) in launches:
            dispatch = f"{dispatch} of line {row.line}"
        values = launches.setdefault((kernel, dispatch), (kernel, dispatch, row.line, {}))[3]
        _time(block, row, columns, values)
        if long:
            values[by_name["countername"].strip()] = _value(block, row, by_name["countername"], by_name["countervalue"])
        _others(block, row, columns, values)
    if not launches:
        raise UserError(f"{block.name}, {block.cut or f'line {block.line}: a header and no launch'}")
    counters = long or any(_is_counter(name) for name in columns.values())
    return Found("a profiler's counters" if counters else "a trace of kernels", launches=gathered(launches.values()))


def _is_counter(name: str) -> bool:
    return name not in LABELS and name not in (*BEGIN, *END, *LENGTH) and not re.search(r"vgpr|sgpr|lds|scr", name)


def _others(block: TableBlock, row: TableRow, columns: dict[str, str], values: Values) -> None:
    for column, name in columns.items():
        if name in LABELS or name in (*BEGIN, *END, *LENGTH):
            continue
        values[RENAMED.get(name, column)] = _value(block, row, column, row.cells[column])


def _time(block: TableBlock, row: TableRow, columns: dict[str, str], values: Values) -> None:
    """The launch's length under the name that the harness knows, `DurationNs`."""
    found: dict[str, float] = {}
    for column, name in columns.items():
        for kind, names in (("begin", BEGIN), ("end", END), ("length", LENGTH)):
            value = _value(block, row, column, row.cells[column]) if name in names else None
            if value is not None:
                unit = _UNIT.search(column)
                found[kind] = value * (MICROSECONDS.get(unit[1].lower(), 1e-3) * 1e3 if unit else 1.0)
    length = found.get("length")
    if length is None and "begin" in found and "end" in found:
        length = found["end"] - found["begin"]
    if length is not None and length < 0:
        raise UserError(f"{block.name}, line {row.line}: the launch ends {-length:g} ns before it begins")
    if length is not None:
        values["DurationNs"] = length


def _value(block: TableBlock, row: TableRow, name: str, text: str) -> float | None:
    if text.strip().lower() in NOTHING:
        return None
    value = number(text)
    if value is None:
        if re.fullmatch(r"[\"']?[A-Za-z_][\w .:/<>,-]*[\"']?|0x[0-9a-fA-F]+", text.strip()):
            return None  # a column of words
        raise UserError(f"{block.name}, line {row.line}: {name} is '{text[:60]}', which is no number")
    return value
