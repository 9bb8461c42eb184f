"""Edits of one cell that show beside others alone: what cells share of weights, memory and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.judge import judge
from bench.records.cells import read_cell
from tests.faults.consistent import LOOKUP_3, TWIN
from tests.faults.records import DRAWN, HONEST, LOOKUP, MTP, PACKED
from tests.faults.served import SERVED
from tests.faults.stored import Edit, Outcome, Record, record

OTHERS = (HONEST, LOOKUP, PACKED, SERVED)
"""Cells of one file of weights."""
WARMER = ("030254351d53", "d665a0862c8f", "c510667b66c0")
"""The same method on the same prompts, at temperature 0.6, 0.8 and 1.0."""
ALIKE = (LOOKUP_3, TWIN, "5aeb560b2ff8", "520f284d7101")
"""Cells that decode the same prompts plainly, at temperature 0."""
ON_A_CARD = ("fd81c21da16e", "c967e8cf76b2", "f42d4f69e942", "292140671148")
"""Of one host whose memory is read alike each time."""


@dataclass(frozen=True)
class TogetherFault:
    """Facts of a model that one cell tells otherwise than the others."""

    name: str
    cell: str
    facts: dict[str, Any] = field(default_factory=dict)
    check: str = "weights"
    others: Sequence[str] = OTHERS
    edit: Edit | None = None
    """What is changed beside the facts of the model."""

    def tried(self, folder: Path) -> Outcome:
        """What becomes of the edited cell; of the others nothing may."""
        edited = record(self.cell)
        if self.facts:
            edited.log = b""
            edited.facts["model"] |= self.facts
        if self.edit:
            self.edit(edited)
        folders = [edited.write(folder), *(record(cell).write(folder) for cell in self.others if cell != self.cell)]
        found = judge([read_cell(one) for one in folders])
        state = {row.cell: row.void for row in found.cells}
        own = edited.cell
        said = {row.control: row.sentence for row in found.controls if row.cell == own and row.severity == "void"}
        spoilt = [cell for cell, void in state.items() if void and cell != own]
        counts = [row for row in (*found.speedup, *found.trials) if row["cells"] == [own] and not row["void"]]
        if spoilt or counts:
            return Outcome("others", said)
        return Outcome("void" if state[own] else "sound", said)


def _less_certain(record: Record) -> None:
    """Collision probabilities as of a temperature twice as high, and the guesses that they let be right."""
    draws = record.tables["draws"]
    draws["collision"] = draws["collision"] ** 1.2


def _by_another_word(record: Record) -> None:
    """Every answer begins with another token, in all that is stored of it."""
    first = int(record.tables["ledger"]["token"].iloc[0])
    for name, columns in {"ledger": ("token",), "draws": ("guess", "drawn"), "sharp": ("token",)}.items():
        rows = record.tables[name]
        for column in columns:
            rows[column] = rows[column].replace({first: first + 1, first + 1: first})
    for grades in (record.facts["lossless"], record.facts["sharp"]["lossless"]):
        for row in grades:
            if found := row["first_difference"]:
                for key in ("token_baseline", "token_arm"):
                    found[key] = {first: first + 1, first + 1: first}.get(found[key], found[key])


def _quicker_memory(record: Record) -> None:
    speed = record.facts["bandwidth"]
    speed |= {name: 2 * speed[name] for name in ("read_gb_s", "median_gb_s")}
    speed["repeats"] = [2 * one for one in speed["repeats"]]


FAULTS = [
    TogetherFault("a vocabulary that no other cell of these weights has", LOOKUP, {"n_vocab": 60000}),
    TogetherFault("a file of other bytes than the same weights have elsewhere", HONEST, {"file_bytes": 98400000}),
    TogetherFault("a step of a server's model that reads less than it does elsewhere", SERVED,
                  {"step_bytes": 90000000}),
    TogetherFault("a step that reads less than the same weights do elsewhere", MTP, {"step_bytes": 10000000},
                  others=("0da9772b8122", "118ce0522bd5")),
    TogetherFault("weights that are random in this cell alone", SERVED, {"synthetic": True}, "configured"),
    TogetherFault("more weights than the same file has elsewhere", PACKED, {"n_params": 140_000_000}),
    TogetherFault("collision probabilities of a cold cell are below those of warmer ones", DRAWN, check="plain_text",
                  others=WARMER, edit=_less_certain),
    TogetherFault("plain decoding says another word for one, in all that is stored", LOOKUP_3, check="plain_text",
                  others=ALIKE, edit=_by_another_word),
    TogetherFault("the memory is twice as quick, each reading of it", "fd81c21da16e", check="read_speed",
                  others=ON_A_CARD, edit=_quicker_memory),
]  # fmt: skip
