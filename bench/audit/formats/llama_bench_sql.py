"""llama-bench -o sql: one INSERT a row, what compare-llama-bench.py eats. It judges nothing."""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.formats.llama_bench import NAME, trial_of
from bench.audit.trials import Flag

_INSERT = re.compile(r"INSERT INTO \w+ \(([^)]*)\) VALUES \((.*)\);?\s*$", re.IGNORECASE)
_VALUE = re.compile(r"'((?:[^']|'')*)'|([^,\s]+)")
_TABLE = re.compile(r"CREATE TABLE|^\s+\w+ TEXT,?$|^\);$")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found(NAME)
    for line in block.lines:
        if _TABLE.search(line.text):
            found.used.add(line.number)
        if "INSERT INTO" not in line.text:
            continue
        statement = _INSERT.search(line.text)
        names = [name.strip() for name in statement[1].split(",")] if statement else []
        values = (
            [quoted.replace("''", "'") or plain for quoted, plain in _VALUE.findall(statement[2])] if statement else []
        )
        if not names or len(names) != len(values) or "avg_ts" not in names:
            found.flags.append(
                Flag(
                    "CUT",
                    f"{block.name}, line {line.number}: an INSERT with {len(values)} values for {len(names)} columns",
                )
            )
            continue
        found.trials.append(trial_of(block.name, line.number, dict(zip(names, values, strict=True))))
        found.used.add(line.number)
    return found
