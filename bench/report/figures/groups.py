"""Rows of the findings as panels take them: by machine, build and model, each once, with a heading that fits.

Every group is a panel: none is left out for want of room. Knows nothing about what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.report.figures.marks import Mark, Panel
from bench.report.tables.conditions import CellIndex, Group, grouped
from bench.report.tables.values import MISSING, Row, cells_of, figure, sort_key

MOST_ROWS = 48
"""Of one panel: about as many as a page has room for. What is beyond goes on in the next one."""


def one_each(rows: Sequence[Row], index: CellIndex, names: Sequence[str]) -> list[Row]:
    """One row for each combination of `names`: that of most blocks, then the first cell."""
    chosen: dict[Any, Row] = {}
    keys = {id(row): sort_key({name: index.find(row, name) for name in names}, names) for row in rows}
    for row in sorted(rows, key=lambda row: (keys[id(row)], -(figure(row, "n_blocks") or 0.0), cells_of(row))):
        chosen.setdefault(keys[id(row)], row)
    return list(chosen.values())


def titled(rows: Iterable[Row], index: CellIndex) -> list[tuple[str, str, list[Row]]]:
    """Title in full, heading on paper, and rows of each group; groups in alphabetical order."""
    groups = grouped(rows, index)
    start = shared_start([group[1] for group, _ in groups])
    return [(_title(group), _heading(group, start), members) for group, members in groups]


def _title(group: Group) -> str:
    machine, build, _, _ = group
    return f"{_model(group)} on {machine}, engine {build}"


def _heading(group: Group, start: str) -> str:
    machine, build, _, _ = group
    return f"{_model(group)}\non {machine}, {build.removeprefix(start)}"


def _model(group: Group) -> str:
    _, _, model, quantization = group
    return model if quantization == MISSING else f"{model} {quantization}"


def shared_start(builds: Sequence[str]) -> str:
    """What all builds begin with, up to a hyphen: the version and commit of llama.cpp, which the caption has."""
    different = sorted(set(builds))
    if not different:
        return ""
    length = next((place for place, letters in enumerate(zip(different[0], different[-1], strict=False))
                   if letters[0] != letters[1]), min(len(different[0]), len(different[-1])))  # fmt: skip
    return different[0][: different[0].rfind("-", 0, length) + 1]


def in_rows(title: str, heading: str, rows: Sequence[tuple[str, Sequence[Mark]]]) -> list[Panel]:
    """Panels with a labelled row for each pair of a name and its marks, `MOST_ROWS` in one at most."""
    parts = [rows[start : start + MOST_ROWS] for start in range(0, len(rows), MOST_ROWS)]
    made = []
    for place, part in enumerate(parts):
        more = f" ({place + 1} of {len(parts)})" if len(parts) > 1 else ""
        marks = tuple(mark for _, own in part for mark in own)
        made.append(Panel(title + more, marks, heading + more, labels=tuple(label for label, _ in part)))
    return made


def places_of(panel: Panel, places: Sequence[float], marks: Sequence[Mark]) -> list[float]:
    """Where the rows of some marks are."""
    at = dict(zip(panel.labels, places, strict=True))
    return [at[mark.label] for mark in marks]
