"""Tables to print: the main ones of the report as LaTeX with booktabs and as Markdown, one file a table and kind.

A table is about one machine, build and model, and its caption has the conditions and the cells. Computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.plain_text import markdown
from bench.report.tables import verdicts
from bench.report.tables.arms import describe, is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex, condition, grouped
from bench.report.tables.csv_files import Ordered
from bench.report.tables.files import open_folder, write_file
from bench.report.tables.latex import NEEDS, tabular
from bench.report.tables.values import (
    MISSING,
    MOST_IDS,
    Row,
    all_cells,
    cells_of,
    figure,
    fixed,
    get,
    line,
    listed_ids,
    number,
)

FOLDER = "tables"
PAGE_LINES, FIRST_COLUMN = 34, 28
"""Lines of rows, and letters of a first column that is broken, that fit a page of an article beside a caption."""


@dataclass(frozen=True)
class Printed:
    """One table: words, and under which conditions they hold."""

    title: str
    condition: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    rests_on: tuple[tuple[str, ...], ...]
    """The cells of each row."""

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(sorted({cell for cells in self.rests_on for cell in cells}))

    def caption(self, most_ids: int) -> str:
        """Title, conditions and cells; of many of these the first ones and how many more there are."""
        return f"{self.title}. Conditions: {self.condition}. Cells: {listed_ids(self.cells, most_ids)}."

    def pages(self) -> Iterator[Printed]:
        """The table in parts that fit a page each, every one with its own cells."""
        place = 0
        while place < len(self.rows) or not place:
            height, end = 0, place
            while end < len(self.rows) and (end == place or height + _height(self.rows[end]) <= PAGE_LINES):
                height += _height(self.rows[end])
                end += 1
            title = f"{self.title}, continued" if place else self.title
            yield replace(self, title=title, rows=self.rows[place:end], rests_on=self.rests_on[place:end])
            place = max(end, 1)


def _height(row: Sequence[str]) -> int:
    """Lines that a row may take in a narrow page, its first column broken."""
    return -(-len(row[0]) // FIRST_COLUMN) or 1


Column = tuple[str, Callable[[Row], str]]


def with_ends(row: Row, name: str, decimals: int = 2) -> str:
    """`0.33 [0.32, 0.34]`"""
    ends = [fixed(row.get(end), decimals) for end in ("ci_low", "ci_high")]
    told = fixed(row.get(name), decimals)
    return told if MISSING in ends else f"{told} [{ends[0]}, {ends[1]}]"


def printed(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> dict[str, list[Printed]]:
    """The tables by the name of their file."""
    speedups = [row for row in of_all_prompts(tables.rows("speedup")) if not is_void(row) and not get(row, "plain")]
    pooled = [row for row in of_all_prompts(tables.rows("acceptance")) if not is_void(row) and not figure(row, "depth")]
    costs = [row for row in tables.rows("step_cost") if not is_void(row)]
    judged = [claim for claim in verdicts.ordered(claims) if get(claim, "judged_by") in ("records", None)]
    return {
        "speedup": _by_group("Speed-up over plain decoding", speedups, index, [
            ("arm", lambda row: describe(row, index)), ("speed-up [95 %]", lambda row: with_ends(row, "speedup")),
            ("every emit counted", lambda row: fixed(row.get("counted_speedup"), 2)),
            ("tokens a round", lambda row: fixed(row.get("tokens_per_round"), 2)),
            ("output", lambda row: line(get(row, "lossless"))),
        ]),
        "acceptance": _by_group("Guesses accepted, of those tested", pooled, index, [
            ("arm", lambda row: describe(row, index)), ("accepted [95 %]", lambda row: with_ends(row, "rate")),
            ("tested", lambda row: number(row.get("tested"))),
            ("collision", lambda row: fixed(row.get("collision_mean"), 2)),
        ]),
        "step_cost": _by_group("Cost of a step over that of width 1", costs, index, [
            ("width", lambda row: number(row.get("width"))), ("tokens of", lambda row: line(get(row, "layout"))),
            ("ms", lambda row: number(row.get("step_ms"))),
            ("cost [95 %]", lambda row: with_ends(row, "relative_cost")),
        ]),
        "claims": _by_place(judged, index),
    }  # fmt: skip


def _by_group(title: str, rows: Sequence[Row], index: CellIndex, columns: Sequence[Column]) -> list[Printed]:
    return [_table(title, members, condition(members, index), columns) for _, members in grouped(rows, index)]


def _by_place(claims: Sequence[Row], index: CellIndex) -> list[Printed]:
    """Verdicts that rest on cells, a table a machine and build."""
    places: dict[tuple[str, str], list[Row]] = {}
    for claim in claims:
        if all_cells([claim]) and claim.get("ci_low") is not None and figure(claim, "ci_low") is not None:
            places.setdefault((line(get(claim, "machine")), line(get(claim, "build"))), []).append(claim)
    columns: list[Column] = [
        ("claim", lambda claim: line(get(claim, "claim_id"))), ("verdict", verdicts.verdict_of),
        ("published", verdicts.published), ("measured [95 %]", lambda claim: with_ends(claim, "measured")),
    ]  # fmt: skip
    return [_table("Claims judged by records", rows, condition(rows, index), columns)
            for _, rows in sorted(places.items())]  # fmt: skip


def _table(title: str, rows: Sequence[Row], told: str, columns: Sequence[Column]) -> Printed:
    body = tuple(tuple(text(row) for _, text in columns) for row in rows)
    return Printed(title, told, tuple(name for name, _ in columns), body, tuple(tuple(cells_of(row)) for row in rows))


def write_printed(tables: Ordered, claims: Sequence[Row], index: CellIndex, out: Path) -> list[Path]:
    """Writes the tables into `out`/tables, which it makes; returns the paths. Raises UserError when it cannot."""
    folder = out / FOLDER
    open_folder(folder)
    written = []
    for name, parts in printed(tables, claims, index).items():
        written.append(write_file(folder / f"{name}.tex", latex_text(name, parts)))
        written.append(write_file(folder / f"{name}.md", markdown_text(parts)))
    return written


def latex_text(name: str, parts: Sequence[Printed]) -> str:
    """A table environment for each page of each."""
    made = [NEEDS]
    for place, one in enumerate(page for part in parts for page in part.pages()):
        if len(one.cells) > MOST_IDS:
            made.append(f"% All cells: {line(' '.join(one.cells))}\n")
        made.append(tabular(one.header, one.rows, one.caption(MOST_IDS), f"tab:{name}-{place + 1}"))
    return "\n".join(made)


def markdown_text(parts: Sequence[Printed]) -> str:
    return "\n".join(markdown_table(one.header, one.rows, one.caption(len(one.cells))) for one in parts)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """The caption, and the table below it."""
    lines = [" | ".join(_cell(word) for word in row) for row in rows]
    rule = " | ".join("---" for _ in header)
    return "\n".join(
        [markdown(caption), "", f"| {' | '.join(header)} |", f"| {rule} |", *(f"| {one} |" for one in lines), ""]
    )


def _cell(word: str) -> str:
    return markdown(word).replace("|", "\\|")
