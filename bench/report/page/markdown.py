"""The whole report: CSV files, figures and the Markdown page, from the judge's findings and claim rows.

Knows nothing about records: where a cell's files lie, or how a number was obtained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.children import children
from bench.judge.columns import changed
from bench.judge.summary import Summary
from bench.judge.tables.claims import MEANINGS, Verdict
from bench.plain_text import markdown
from bench.report.figures.drawing import load_drawing, started
from bench.report.html.page import Place, write_page
from bench.report.html.panels import hold, packed_panels
from bench.report.page.kernel_sections import kernel_sections
from bench.report.page.screen import screen
from bench.report.page.section import Section
from bench.report.page.sections import all_sections
from bench.report.page.verdict_tables import CLAIMS_INTRO, verdict_tables
from bench.report.tables import verdicts
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import FILES, Ordered, write_tables
from bench.report.tables.files import open_folder, write_file
from bench.report.tables.printed import write_printed
from bench.report.tables.values import Row

TEMPLATES = Path(__file__).parent
PAGE = "report.md"
MOST_PROCESSES = 3
"""There are a dozen figures, and the parent has its own work."""
MOST_IDS = 1000
"""Of the cells that a verdict rests on, where there are so many that no page has them all."""
ENOUGH_ROWS = 2000
"""With fewer, the tables are written before a child process has begun."""


def write_report(
    findings: Any, claims: Sequence[Row], out: Path, figures: bool = True, processes: int = 1,
    summary: Summary | None = None, results: Path | None = None,
    csv: Callable[[Path], list[Path]] | None = None,
) -> list[Path]:  # fmt: skip
    """Writes the report into the folder `out`, making it, and returns the paths of all files written.

    `findings` has a list of rows a table of `bench.judge.tables`; one that is absent counts as empty. `claims` are the
    judged claims. With several `processes` at hand, some of them draw. Without figures, those of an earlier report stay
    as they are and the page does not show them. `summary` is what both pages begin with, `results` the folder of the
    records, to which `index.html` leads. `csv` writes the CSV files where `findings` has not all rows of them.
    Raises UserError when `out` cannot be written.
    """
    out = Path(out)
    open_folder(out)
    traces = getattr(findings, "traces", None) or []
    with _pool(findings, processes, partial(hold, traces)) if figures else nullcontext() as pool:
        tables = Ordered(findings)
        index = CellIndex.of(tables)
        drawings = started(tables, claims, index, out / "figures", pool) if figures else list
        panels = packed_panels(traces, pool)
        written = csv(out) if csv else write_tables(tables, claims, out)
        claims = [_of_few_cells(row) for row in claims] if csv else claims
        written += write_printed(tables, claims, index, out)
        contents = _contents(tables, claims, index, summary)
        whole = [one for one in written if one.suffix == ".csv" and one.parent == out and not csv]
        texts = {one.stem: one.read_text("utf-8") for one in whole}
        written.append(write_page(tables, claims, traces, out, Place.of(results, out), summary, texts, panels()))
        drawn: list[Path] = drawings()
    shown = {path.stem for path in drawn if path.suffix == ".svg" and path.parent == out / "figures"}
    page = write_file(out / PAGE, _rendered(contents, shown))
    return [page, *written, *drawn]


def _of_few_cells(row: Row) -> Row:
    """A verdict with no more ids of cells than a page can hold; the CSV file has all."""
    return changed(row, cells=row.cells[:MOST_IDS]) if isinstance(row, Verdict) and len(row.cells) > MOST_IDS else row


def _pool(findings: Any, processes: int, start: Callable[[], None]) -> AbstractContextManager[Executor | None]:
    """Child processes that draw and pack while the tables are written, where there are rows enough to gain by it."""
    processes = min(processes, MOST_PROCESSES)
    if processes < 2 or sum(len(getattr(findings, name, None) or []) for name in FILES) < ENOUGH_ROWS:
        return nullcontext()
    # Here, once: a process that is forked off has it too.
    load_drawing()
    return children(processes, start)


def _contents(tables: Ordered, claims: Sequence[Row], index: CellIndex, summary: Summary | None) -> dict[str, Any]:
    """What the page says, whichever figures there are."""
    return {
        "screen": screen(summary) if summary else None,
        "on_intervals": verdicts.on_intervals(claims),
        "claims_intro": CLAIMS_INTRO,
        "claims": verdict_tables(claims, index),
        "meaning": MEANINGS,
        "sections": [_inert(section) for section in (*all_sections(tables, claims, index), *kernel_sections(tables))],
    }


def _inert(section: Section) -> Section:
    """A section whose sentences hold nothing that acts, whatever a record's name in them says."""
    return replace(section, intro=markdown(section.intro), empty=markdown(section.empty), title=markdown(section.title))


def _rendered(contents: dict[str, Any], shown: set[str]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    text = environment.get_template(f"{PAGE}.j2").render(**contents, shown=shown)
    return text.rstrip() + "\n"
