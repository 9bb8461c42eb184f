"""Which cells are asked for, by the names of their machine, model and method. It reads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.errors import UserError, nearest
from bench.judge.cell import JudgedCell
from bench.judge.claims.names import without_mark
from bench.judge.tables import PROFILE
from bench.judge.tables.cell import Cell
from bench.machine_name import make_of


@dataclass(frozen=True, slots=True)
class Chosen:
    """Names that are asked for; empty asks for all. Asked for a method, profiles stay."""

    machine: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    method: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """What is asked for, as it is typed; empty for everything."""
        return " ".join(f"{name}={','.join(wanted)}" for name, wanted in self._asked() if wanted)

    def of(self, cells: Sequence[JudgedCell]) -> list[JudgedCell]:
        """The cells that are asked for. Raises `UserError` for a name that no cell has."""
        self.check(row for cell in cells for row in cell.findings.cells)
        return [cell for cell in cells if all(map(self.keeps, cell.findings.cells))]

    def check(self, rows: Iterable[Cell]) -> None:
        """Raise `UserError` for a name that none of some cells has."""
        if not any(wanted for _, wanted in self._asked()):
            return
        told = [tuple(_name(row, name) for name, _ in self._asked()) for row in rows]
        for place, (name, wanted) in enumerate(self._asked()):
            known = {names[place] for names in told} - {""}
            for word in wanted:
                if word not in known:
                    raise UserError(f"no stored cell has the {name} '{word}'; {nearest(word, known)}")

    def keeps(self, row: Cell) -> bool:
        """Whether a cell is asked for."""
        return all(not wanted or _name(row, name) in wanted or (name == "method" and row.kind == PROFILE)
                   for name, wanted in self._asked())  # fmt: skip

    def _asked(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("machine", self.machine), ("model", self.model), ("method", self.method)


EVERYTHING = Chosen()


def _name(row: Cell, name: str) -> str:
    return make_of(without_mark(str(row.get(name))))
