"""What the judge says of a stored cell that is audited: the checks that void it. It knows no other format."""

from __future__ import annotations

import os

from bench.audit.trials import Flag, Record

NEEDED = ("cell.yaml", "env.json", "facts.json", "status.json")
"""Files without which a folder is audited by its ledger alone."""


def stored_flags(record: Record) -> list[Flag]:
    """A flag for every check that voids the cell, and one for a cell that cannot be read."""
    if record.format != "cell" or not all(os.path.lexists(record.path / name) for name in NEEDED):
        return []
    from bench.judge.damage import judge_whole
    from bench.records.cells import read_cell

    findings = judge_whole(read_cell(record.path.resolve()), []).findings
    flags = [Flag("VOID", f"{row.control}: {row.sentence}") for row in findings.controls if not row.ok]
    damaged = [Flag("DAMAGED", cell.reason) for cell in findings.cells if cell.state == "damaged"]
    return flags + damaged
