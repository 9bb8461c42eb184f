"""All faults in one list: what is wrong, what must catch it, what the verdict must be, and how to try it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.faults import cheating, counted, foreign, records, sheets, together
from tests.faults.edited import FAULTS as EDITED
from tests.faults.stored import Outcome, judged, record

Try = Callable[[Path], Outcome]


@dataclass(frozen=True)
class Fault:
    """One way to be wrong."""

    kind: str
    name: str
    check: str
    """The control, flag or word that must be among what is said."""
    verdict: str
    attempt: Try
    """Tries it in an empty folder."""

    def fails(self, folder: Path) -> str:
        """Why it was not caught, as a sentence; empty when it was."""
        found = self.attempt(folder)
        if found.verdict != self.verdict:
            return f"the verdict is {found.verdict}, not {self.verdict} ({found.said})"
        loose = self.kind in ("sheet", "file")  # a part of a sentence; else the name of a control
        said = [*found.said, *(found.said.values() if loose else ())]
        if not any(self.check == one or (loose and self.check in one) for one in said):
            return f"{self.check} is not among what is said ({found.said})"
        return ""


def _edited(fault: records.RecordFault, folder: Path) -> Outcome:
    copy = record(fault.cell)
    fault.edit(copy)
    return judged(copy.write(folder))


def _method(fault: cheating.MethodFault, folder: Path) -> Outcome:
    return cheating.judged_method(fault)


def catalogue() -> list[Fault]:
    """Every fault, in the order of their kinds."""
    found = [Fault("method", one.name, one.check, one.verdict, partial(_method, one)) for one in cheating.FAULTS]
    found += [Fault("record", one.name, one.check, one.verdict, partial(_edited, one)) for one in EDITED]
    found += [Fault("record", one.name, one.check, "void", one.tried) for one in counted.FAULTS]
    found += [Fault("record", one.name, one.check, "void", one.tried) for one in together.FAULTS]
    found += [Fault("sheet", one.name, one.says, "refused", one.tried) for one in sheets.FAULTS]
    return found + [Fault("file", one.name, one.flag, "flagged", one.tried) for one in foreign.FAULTS]
