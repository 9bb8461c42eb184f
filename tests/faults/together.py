"""Edits of one cell that show beside others alone: facts of weights that cells share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.judge import judge
from bench.records.cells import read_cell
from tests.faults.records import HONEST, LOOKUP, MTP, PACKED
from tests.faults.served import SERVED
from tests.faults.stored import Outcome, record

OTHERS = (HONEST, LOOKUP, PACKED, SERVED)
"""Cells of one file of weights."""


@dataclass(frozen=True)
class TogetherFault:
    """Facts of a model that one cell tells otherwise than the others."""

    name: str
    cell: str
    facts: dict[str, Any]
    check: str = "weights"
    others: Sequence[str] = OTHERS

    def tried(self, folder: Path) -> Outcome:
        """What becomes of the edited cell; of the others nothing may."""
        edited = record(self.cell)
        edited.log = b""
        edited.facts["model"] |= self.facts
        folders = [edited.write(folder), *(record(cell).write(folder) for cell in self.others if cell != self.cell)]
        found = judge([read_cell(one) for one in folders])
        state = {row.cell: row.void for row in found.cells}
        said = {row.control: row.sentence for row in found.controls if row.cell == self.cell and row.severity == "void"}
        spoilt = [cell for cell, void in state.items() if void and cell != self.cell]
        counts = [row for row in (*found.speedup, *found.trials) if row["cells"] == [self.cell] and not row["void"]]
        if spoilt or counts:
            return Outcome("others", said)
        return Outcome("void" if state[self.cell] else "sound", said)


FAULTS = [
    TogetherFault("a vocabulary that no other cell of these weights has", LOOKUP, {"n_vocab": 60000}),
    TogetherFault("a file of other bytes than the same weights have elsewhere", HONEST, {"file_bytes": 98400000}),
    TogetherFault("a step of a server's model that reads less than it does elsewhere", SERVED,
                  {"step_bytes": 90000000}),
    TogetherFault("a step that reads less than the same weights do elsewhere", MTP, {"step_bytes": 10000000},
                  others=("0da9772b8122", "118ce0522bd5")),
    TogetherFault("weights that are random in this cell alone", SERVED, {"synthetic": True}, "configured"),
    TogetherFault("more weights than the same file has elsewhere", PACKED, {"n_params": 140_000_000}),
]  # fmt: skip
