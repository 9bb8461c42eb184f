"""Rows of kernels as tables and figures take them: by machine, with their conditions on one line."""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.tables import columns_of
from bench.report.tables.values import MISSING, Row, get, line, number

COLD = "cold"
"""Nothing of the weights is in the cache before: what is shown, others are in the file."""
MAIN_SHAPES = ((17408, 5120), (5120, 17408))
"""The two that PTI's own table is about."""
CONDITIONS = ("machine", "gpu", "compiler", "build", "source_hash")


def by_machine(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Rows by machine, in alphabetical order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(line(get(row, "machine")), []).append(row)
    return sorted(found.items())


def conditions(rows: Sequence[Row], *more: str) -> str:
    """The conditions of kernel rows: what a model's cells have (prompts, threads) says nothing here."""
    headings = {name: columns_of("kernels")[name].heading for name in CONDITIONS} | {"build": "llama.cpp"}
    values = {headings[name]: sorted({line(get(row, name)) for row in rows} - {MISSING}) for name in CONDITIONS}
    blocks = sorted({number(get(row, "blocks")) for row in rows} - {MISSING})
    parts = [f"{name} {', '.join(found)}" for name, found in values.items() if found]
    parts += [f"blocks {', '.join(blocks)}"] if blocks else []
    return "; ".join([*parts, *more])
