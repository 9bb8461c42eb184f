"""Whether a machine was quiet while it measured: by what stalls took, by A/A, and by what else ran beside.

Fixed before any run. It is about the machine, not about a verdict: stalls are outside every estimate, and a wide A/A is
in every interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from bench.judge.findings import OK, VOID, WARNING, Findings
from bench.judge.measure.stalls import MATTERS
from bench.judge.tables.cell import Cell

QUIET, DISTURBED, UNKNOWN = WORDS = ("quiet", "disturbed", "cannot tell")
BUSY, STOLEN = 0.25, 0.05
"""CPUs' worth of time from which on everything else, and the hypervisor, are said to have disturbed the runs."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """One machine. Shares are of 1, CPUs are seconds a second; nan where no record tells."""

    machine: str
    verdict: str
    """One of `WORDS`."""
    sentence: str
    """Why, with the figures."""
    contrasts: int
    """Finished cells that compare two arms."""
    held_up: int
    """Of them, those with a run that a stall took 5 % of."""
    stalled: float
    """Share of the time of their runs that stalls took, mean over cells."""
    again_ok: int
    """Of them, those whose two equal baselines were equally fast."""
    again_wide: int
    """Those where that cannot be told."""
    again_off: int
    """Those where they were not, which makes them void."""
    other_cpus: float
    """CPUs that everything else took, median over the cells that tell."""
    steal: float
    """CPUs that the hypervisor gave to others, median over the cells that tell."""
    told: int
    """Cells that tell of either."""


def quiet(findings: Findings) -> tuple[Quiet, ...]:
    """Every machine with a finished contrast, in alphabetical order."""
    cells: dict[str, list[Cell]] = {}
    for row in findings.cells:
        if not math.isnan(row.stalled):
            cells.setdefault(row.machine, []).append(row)
    return tuple(_machine(name, cells[name], findings) for name in sorted(cells))


def _machine(name: str, cells: Sequence[Cell], findings: Findings) -> Quiet:
    ids = {row.cell for row in cells}
    checks = [row for row in findings.controls if row.machine == name and row.cell in ids]
    again = [row.severity for row in checks if row.control == "again"]
    held_up = sum(row.control == "stall" and row.severity != OK for row in checks)
    stalled = fmean(row.stalled for row in cells)
    others, steal = (_median([row[key] for row in cells]) for key in ("other_cpus", "steal"))
    told = sum(not math.isnan(row.other_cpus) or not math.isnan(row.steal) for row in cells)
    counts = {word: again.count(word) for word in (OK, WARNING, VOID)}
    disturbed = stalled >= MATTERS or counts[VOID] or others >= BUSY or steal >= STOLEN
    verdict = DISTURBED if disturbed else QUIET if 2 * counts[OK] > len(cells) else UNKNOWN
    sentence = "; ".join((_stalls(held_up, len(cells), stalled), _again(counts, len(cells)),
                          _load(others, steal, told, len(cells))))  # fmt: skip
    return Quiet(name, verdict, sentence, len(cells), held_up, stalled, counts[OK], counts[WARNING], counts[VOID],
                 others, steal, told)  # fmt: skip


def _median(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return median(known) if known else math.nan


def _stalls(held_up: int, cells: int, stalled: float) -> str:
    outside = " (in no estimate)" if held_up else ""
    return f"stalls in {held_up} of {cells} cells took {100 * stalled:.2g} % of the time{outside}"


def _again(counts: dict[str, int], cells: int) -> str:
    """What A/A says, in counts."""
    told = [f"agrees in {counts[OK]} of {cells}"]
    told += [f"is too wide to tell in {counts[WARNING]}"] if counts[WARNING] else []
    told += [f"is off in {counts[VOID]} (void)"] if counts[VOID] else []
    return f"A/A {', '.join(told)}" if sum(counts.values()) else "no cell has A/A"


def _load(others: float, steal: float, told: int, cells: int) -> str:
    if not told:
        return "no cell recorded what else ran"
    known = [f"all else took {others:.2f} CPUs"] if not math.isnan(others) else []
    known += [f"the hypervisor took {steal:.2f} CPUs"] if steal >= STOLEN or not known else []
    return " and ".join(known) + (f" in the {told} cells that tell" if told < cells else "")
