"""What terminal and page say alike of a comparison: what is counted, what changed, and how a row is told.

Decides nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bench.judge.compare.rows import by_chance, compared
from bench.judge.tables.compare import NOT_COMPARABLE, ONLY, OUTCOMES, WORSE, Comparison
from bench.report.tables.values import MISSING, fixed, interval, line, number

HEADINGS = ("arm", "figure", "base", "compared", "ratio", "95 %", "outcome")
MOST_CHANGES = 20
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T[\d:]+")


def title(rows: Sequence[Comparison]) -> str:
    """Which folders."""
    return f"{rows[0].folder} compared with {rows[0].base_folder}"


def counts(rows: Sequence[Comparison]) -> str:
    """`97 figures compared: 1 worse, 96 no difference seen`"""
    found = Counter(row.outcome for row in rows)
    told = [f"{found[name]} {name}" for name in OUTCOMES if name not in (NOT_COMPARABLE, ONLY) and found[name]]
    cells = [f"{found[name]} {name}" for name in (NOT_COMPARABLE, ONLY) if found[name]]
    return "; ".join(filter(None, (f"{len(compared(rows))} figures compared: {', '.join(told) or 'none'}",
                                   ", ".join(cells))))  # fmt: skip


def chance(rows: Sequence[Comparison]) -> str:
    """What so many intervals leave to chance; empty where that is nothing."""
    expected = by_chance(rows)
    found = sum(row.outcome == WORSE and row.gates for row in rows)
    if not expected or not found:
        return ""
    return f"Had nothing changed, about {fixed(expected, 1)} of so many ratios would look worse by chance."


def changes(rows: Sequence[Comparison]) -> list[str]:
    """What is not as it was, the most frequent first, each with the number of pairs of cells that it is true of."""
    pairs = {(row.base_machine, row.base_cell, row.machine, row.cell): row.changed for row in rows if row.changed}
    found = Counter(_by_day(one) for told in pairs.values() for one in told.split("; "))
    more = [f"{len(found) - MOST_CHANGES} more, in the column `changed`"] if len(found) > MOST_CHANGES else []
    return [f"{one} ({count} of {len(pairs)} pairs)" for one, count in found.most_common(MOST_CHANGES)] + more


def _by_day(told: str) -> str:
    """A change of the date by its days alone: cells are measured one after another."""
    return _MOMENT.sub(r"\1", told) if told.startswith("date ") else told


def arm(row: Comparison) -> str:
    """Model and arm; of a profile the model alone."""
    about = [" ".join(filter(None, (row.model, row.quantization))), row.short]
    about += [f"T={number(row.temperature)}"] if row.temperature else []
    return line(", ".join(filter(None, about)))


def cells(row: Comparison) -> tuple[str, ...]:
    """What `HEADINGS` name."""
    figure = line(", ".join(filter(None, (row.figure, row.part))))
    if row.grade or row.base_grade:
        return arm(row), figure, row.base_grade, row.grade, "", "", row.outcome
    numbers = (number(row.base), number(row.value), fixed(row.ratio, 3), interval(row.ci_low, row.ci_high, 3))
    return arm(row), figure, *("" if one == MISSING else one for one in numbers), row.outcome


def reasons(rows: Sequence[Comparison], outcome: str) -> list[str]:
    """Which cells, and why there is no ratio of them: a line a cell or pair, whatever many figures it is true of."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if row.outcome == outcome:
            ids = " and ".join(dict.fromkeys(filter(None, (row.base_cell, row.cell))))
            found.setdefault((arm(row), ids, row.figure, line(row.reason)), []).append(row.part)
    return [f"{', '.join(filter(None, (what, _several(figure, parts))))} ({ids}): {why}"
            for (what, ids, figure, why), parts in found.items()]  # fmt: skip


def _several(figure: str, parts: Sequence[str]) -> str:
    return f"{figure}, {len(parts)} of them" if len(parts) > 1 else ", ".join(filter(None, (figure, *parts)))
