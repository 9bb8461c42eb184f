"""The judge of records: stored cells in, findings out. Pure: it opens no file, asks no device and keeps no state.

It does not know what anybody claimed (`bench.judge.claims`) nor how findings are printed (`bench.report`). What a cell
says by itself is in `bench.judge.cell`; `bench.stored` judges a folder of cells in several processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench.judge.cell import JudgedCell, Profiles
from bench.judge.controls.across import Withdrawn
from bench.judge.damage import judge_curves, judge_whole
from bench.judge.findings import Findings, engine_build
from bench.judge.hosts import Hosts, Origin, part
from bench.judge.measure.case import host_of
from bench.judge.measure.contexts import Widening, with_contexts
from bench.judge.tables import TABLES, named
from bench.records.cells import DamagedCell

if TYPE_CHECKING:
    from bench.records.cells import StoredCell

__all__ = ["Across", "Findings", "join", "judge", "merge"]


def judge(cells: Sequence[StoredCell | DamagedCell]) -> Findings:
    """Judge every cell. A cell whose records contradict themselves is listed as void with the reason, and no more.

    A damaged one is a row of the table of cells and takes nothing else with it.
    """
    first = [judge_curves(cell) for cell in cells]
    hosts = part(map(origin_of, cells), [profile for _, profile in first if profile is not None])
    called = [_called(cell, hosts) for cell in cells]
    first = [judge_curves(cell) if cell is not before else known
             for cell, before, known in zip(called, cells, first, strict=True)]  # fmt: skip
    profiles = Profiles(profile for _, profile in first if profile is not None)
    return merge((one or judge_whole(cell, profiles) for cell, (one, _) in zip(called, first, strict=True)), hosts)


def origin_of(cell: StoredCell | DamagedCell) -> Origin:
    """Where a cell was measured. Of a damaged one nothing but its machine is believed."""
    if isinstance(cell, DamagedCell):
        return Origin(cell.machine, "")
    return Origin(cell.machine, engine_build(cell), host_of(cell))


def _called(cell: StoredCell | DamagedCell, hosts: Hosts) -> StoredCell | DamagedCell:
    """The cell under the name of its host, where that is not pooled with others of its make."""
    name = hosts.names.get(origin_of(cell))
    return replace(cell, machine=name) if name else cell


def merge(cells: Iterable[JudgedCell], hosts: Hosts | None = None) -> Findings:
    """The findings of all cells from those of each, in the order of the cells."""
    cells = list(cells)
    joined = join({name: [cell.gathered[name] for cell in cells if name in cell.gathered] for name in TABLES})
    findings = Findings(hosts=hosts.rows if hosts else ())
    for name in TABLES:
        rows = getattr(findings, name)
        for cell in cells:
            rows += getattr(cell.findings, name)
        rows += getattr(joined, name)
    findings.traces += [cell.traces for cell in cells if cell.traces is not None]
    Across(joined).finish(findings)
    return findings


def join(gathered: Mapping[str, list[Any]]) -> Findings:
    """The rows over several cells, of what each had to say in them, by table."""
    findings = Findings()
    for name, table in TABLES.items():
        if table.joined_by:
            getattr(findings, name).extend(named(table.joined_by)(gathered.get(name, [])))
    return findings


class Across:
    """What the rows over several cells change in those of each."""

    WIDENED = ("speedup", "trials")
    """Tables in whose intervals the spread between contexts is."""

    def __init__(self, joined: Findings) -> None:
        self.widening, self._withdrawn = Widening(joined.contexts), Withdrawn(joined.controls)

    @property
    def digest(self) -> str:
        """Stands for all that is taken back, and so for all that changes but in the tables of `WIDENED`."""
        return self._withdrawn.digest

    def withdraw(self, findings: Findings) -> None:
        """Take back what failed checks take back, and leave the intervals."""
        self._withdrawn.finish(findings)

    def finish(self, findings: Findings) -> None:
        """Put it into rows of some cells, or of all."""
        findings.speedup[:] = with_contexts(findings.speedup, self.widening)
        findings.trials[:] = with_contexts(findings.trials, self.widening)
        self.withdraw(findings)
