"""What a summary lacks: cells that are not there or count for nothing, and entries of sheets that cannot be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.judge.findings import Findings
from bench.judge.tables.cell import DAMAGED, Cell

NO_CELLS, DAMAGE, FAILED, UNSUPPORTED, VOIDED, SHEET, HOSTS, LEFT_OUT = KINDS = (
    "no cells", "damaged", "failed", "unsupported", "void", "sheet", "hosts", "left out",
)  # fmt: skip
TO_MEND = (NO_CELLS, DAMAGE, SHEET)
"""Kinds that make a report incomplete; the others are what a sweep may well end with."""


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that is missing, in a sentence."""

    kind: str
    """One of `KINDS`."""
    sentence: str
    count: int = 1
    cells: tuple[str, ...] = ()


def missing(findings: Findings, faults: Sequence[str]) -> tuple[Missing, ...]:
    """What is missing, the gravest first."""
    found = [Missing(SHEET, fault) for fault in faults]
    if not findings.cells and not findings.kernels:
        found.insert(0, Missing(NO_CELLS, "There are no finished cells; `make bench` measures the default ones."))
    groups: tuple[tuple[str, list[Cell], str], ...] = (
        (DAMAGE, [row for row in findings.cells if row.state == DAMAGED], "cannot be read or judged"),
        (FAILED, [row for row in findings.cells if row.state == "failed"], "failed; the same sweep runs them anew"),
        (UNSUPPORTED, [row for row in findings.cells if row.state == "unsupported"], "cannot run here"),
        (VOIDED, [row for row in findings.cells if row.void], "are void, for a control failed"),
    )
    for kind, rows, words in groups:
        if rows:
            sentence = f"{len(rows)} of {len(findings.cells)} cells {words}."
            found.append(Missing(kind, sentence, len(rows), tuple(row.cell for row in rows)))
    if apart := [row for row in findings.hosts if not row.pooled]:
        makes = ", ".join(dict.fromkeys(row.machine for row in apart))
        sentence = f"{len(apart)} of {len(findings.hosts)} hosts of {makes} stand apart: they do not agree with others."
        found.append(Missing(HOSTS, sentence, len(apart)))
    return tuple(found)
