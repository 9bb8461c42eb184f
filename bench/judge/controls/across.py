"""Checks over several cells: step-cost curves, what cells say of weights that they share and of a host's memory, and
what they say plainly; what becomes of a cell that fails one. What each checks is in its own module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.judge.columns import R, changed
from bench.judge.controls.curve import Checked, Costs, costs_of, curve_checks
from bench.judge.controls.read_speed import NAME as SPEED
from bench.judge.controls.read_speed import Read, read_checks, read_of
from bench.judge.controls.texts import NAME as TEXT
from bench.judge.controls.texts import Spoken, spoken_of, text_checks
from bench.judge.controls.weights import NAME as WEIGHTS
from bench.judge.controls.weights import Said, said_of, weight_checks
from bench.judge.findings import OK, Findings
from bench.judge.tables import TABLES
from bench.judge.tables.cell import ControlRow

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


@dataclass(frozen=True, slots=True)
class Share:
    """What one cell has to say to these checks."""

    costs: Costs | None
    said: Said | None
    spoken: Spoken | None
    read: Read | None


def share_of(case: Case) -> Share:
    """Of any cell."""
    return Share(costs_of(case), said_of(case), spoken_of(case), read_of(case))


def checks(found: Sequence[Share]) -> list[ControlRow]:
    """The checks of all cells together."""
    return [
        *curve_checks([one.costs for one in found if one.costs]),
        *weight_checks([one.said for one in found if one.said]),
        *text_checks([one.spoken for one in found if one.spoken]),
        *read_checks([one.read for one in found if one.read]),
    ]


class Withdrawn:
    """What failed checks take back in the rows of each cell."""

    def __init__(self, controls: Iterable[ControlRow]) -> None:
        controls = list(controls)
        self._curves = Checked(controls)
        self._told = sorted((row.machine, row.cell, row.control, row.severity, row.sentence) for row in controls
                            if row.severity != OK)  # fmt: skip
        self._why = {(row.machine, row.cell): f"{row.control}: {row.sentence}" for row in controls
                     if row.control in (WEIGHTS, TEXT, SPEED) and not row.ok}  # fmt: skip

    @property
    def digest(self) -> str:
        """Stands for all that is taken back."""
        return hashlib.sha256(repr(self._told).encode(errors="surrogateescape")).hexdigest()

    def finish(self, findings: Findings) -> None:
        """Void the costs of failed curves with what rests on them, and all rows of a cell in doubt."""
        self._curves.withdraw(findings)
        if not self._why:
            return
        for name in TABLES:
            rows = getattr(findings, name)
            rows[:] = [self._voided(row) for row in rows]

    def _voided(self, row: R) -> R:
        """A row of one cell, or a prediction by one; what rests on several cells has their median or most."""
        if "void" not in row.columns or len(row["cells"]) != 1:
            return row
        cells = (row["cells"][0], row.get("predicted_from"))
        why = next((self._why[row["machine"], cell] for cell in cells if (row["machine"], cell) in self._why), None)
        if why is None:
            return row
        if "void_reason" not in row.columns:
            return changed(row, void=True)
        return changed(row, void=True, void_reason="; ".join(filter(None, (row["void_reason"], why))))
