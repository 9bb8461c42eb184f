"""`index.html`: the summary, the claims and every table of the report in one file that asks nothing of a network.

The tables are the CSV files themselves, packed; so is each cell's own record. It knows nothing about how a number was
obtained, and runs nothing: what the page can do is in the scripts beside this module.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from bench.judge.summary import Summary
from bench.judge.tables import TABLES, columns_of, written
from bench.judge.tables.claims import MEANINGS
from bench.judge.traces import Traces
from bench.plain_text import plain_text
from bench.report.html.packed import as_json, packed
from bench.report.html.panels import packed_panels
from bench.report.html.screen import screen
from bench.report.html.views import Part, parts
from bench.report.summary import few
from bench.report.tables import verdicts
from bench.report.tables.csv_files import FILES, Ordered, table_text
from bench.report.tables.damaged import damaged_rows
from bench.report.tables.files import write_file
from bench.report.tables.values import Row, get, line

NAME = "index.html"
HERE = Path(__file__).parent
KNOWN = (Path("results"), Path("results/reference"))
"""Where `rerun` looks by itself, so that a cell's id is enough."""
SCRIPTS = ("core", "grid", "charts", "reel", "cell", "claims", "main")
"""In this order: each uses what those before it declare."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the records lie: as links lead there from the page, and as a command names them; both may be empty."""

    link: str = ""
    command: str = ""

    @classmethod
    def of(cls, results: Path | None, out: Path) -> Place:
        """The folder `results`, for a page in `out`."""
        if results is None:
            return cls()
        with suppress(ValueError):  # another drive
            link = quote(Path(os.path.relpath(results, out)).as_posix())
            return cls(link, "" if results in KNOWN else plain_text(str(results)))
        return cls()


def write_page(tables: Ordered, claims: Sequence[Row], traces: Sequence[Traces], out: Path,
               place: Place | None = None, summary: Summary | None = None,
               texts: Mapping[str, str] | None = None, panels: Sequence[str] | None = None) -> Path:  # fmt: skip
    """Writes the page into the folder `out`, which must exist, and returns its path.

    `traces` are what there is to see of each cell's records, `summary` is what the page begins with, `texts` are CSV
    files by table where they are made already, `panels` those of the cells, packed. Raises UserError when it cannot be
    written.
    """
    return write_file(Path(out) / NAME, page_html(tables, claims, traces, place or Place(), summary, texts, panels))


def page_html(tables: Ordered, claims: Sequence[Row], traces: Sequence[Traces], place: Place,
              summary: Summary | None = None, texts: Mapping[str, str] | None = None,
              panels: Sequence[str] | None = None) -> str:  # fmt: skip
    """The page as text: the same for the same input."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    filled = {name: rows for name in FILES if (rows := claims if name == "claims" else tables.rows(name))}
    made = texts or {}
    blocks = {f"table-{name}": packed(made.get(name) or table_text(name, rows)) for name, rows in filled.items()}
    shown = {f"{plain_text(one.machine)}/{plain_text(one.cell)}": place for place, one in enumerate(traces)}
    panels = packed_panels(traces)() if panels is None else panels
    blocks |= {f"panel-{number}": panels[place] for number, place in enumerate(shown.values())}
    data = {
        "columns": {name: _columns(name) for name in filled}, "verdicts": MEANINGS, "records": place.link,
        "command": place.command, "panels": {name: number for number, name in enumerate(shown)},
    }  # fmt: skip
    style, script = (HERE / "style.css").read_text(), "\n".join((HERE / f"{name}.js").read_text() for name in SCRIPTS)
    script = f'"use strict";\n{script}'
    environment = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True, keep_trailing_newline=True, autoescape=True)  # fmt: skip
    environment.filters["coded"] = _coded
    return environment.get_template("index.html.j2").render(
        style=style, script=script, policy=_policy(style, script), meanings=MEANINGS, files=sorted(filled),
        parts=[_part(part, filled) for part in parts({name: written(name) for name in TABLES if name in filled})],
        counts=_counts(claims), cells=_cells(tables),
        damaged=[_damaged(row) for row in damaged_rows(tables.rows("cells"))], summary=summary and screen(summary),
        blocks={"page-data": packed(as_json(data)), **blocks},
    )  # fmt: skip


def _coded(text: str) -> Markup:
    """A sentence of this project, with what stands between backticks as code."""
    parts = [Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
             for place, part in enumerate(text.split("`"))]  # fmt: skip
    return Markup("").join(parts)


def _policy(style: str, script: str) -> str:
    """Nothing is loaded from anywhere, and no script but this one runs, whatever a text on the page says."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

    return (f"default-src 'none'; script-src 'sha256-{digest(script)}'; style-src 'sha256-{digest(style)}'; "
            "base-uri 'none'; form-action 'none'")  # fmt: skip


def _columns(name: str) -> list[dict[str, Any]]:
    """What the script has to know of a table's columns, in the order of its file."""
    told = ("name", "heading", "unit", "decimals", "low", "high", "help")
    return [{key: getattr(columns_of(name)[one], key) for key in told} for one in written(name)]


def _part(part: Part, filled: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    views = [view for view in part.views if view.table in filled]
    return {**asdict(part), "views": [json.dumps(asdict(view)) for view in views]}


def _counts(claims: Sequence[Row]) -> list[tuple[str, int]]:
    return [(verdict, count) for verdict, count in verdicts.totals(claims) if count]


def _cells(tables: Ordered) -> dict[str, Any]:
    """How many cells there are by state, on which machines, and of which days."""
    rows = tables.rows("cells")
    states: dict[str, int] = {}
    for row in rows:
        state = "void" if get(row, "void") else line(get(row, "state"))
        states[state] = states.get(state, 0) + 1
    days = sorted({line(row.get("time_utc"))[:10] for row in rows if get(row, "time_utc")})
    machines = few(sorted({line(row["machine"]) for row in rows}))
    return {"number": len(rows), "states": sorted(states.items()), "machines": machines, "days": days[:1] + days[-1:]}


def _damaged(row: Row) -> dict[str, str]:
    return {"name": f"{line(row['machine'])}/{line(row['cell'])}", "reason": line(row["reason"])}
