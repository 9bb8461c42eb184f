"""Every number of the page is in a file, and every number of a file is on the page: both are walked."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.judge.tables import columns_of
from bench.report.html.views import PARTS
from bench.report.page.section import _text
from bench.report.tables.csv_files import FILES
from tests.report.html import pages

NUMBER = re.compile(r"(?<![\w.#])\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
OF_THE_PAGE = ".count, .tally, nav, summary, figcaption, svg, script, style, dialog, output, .all dt"
"""What counts rows, names a part of the page, or is a picture: its marks are asked for by the value that they carry."""


def read(folder: Path, name: str) -> list[dict[str, str]]:
    path = folder / f"{name}.csv"
    return list(csv.DictReader(path.open(newline=""))) if path.exists() else []


def numbers(texts: Iterable[str]) -> set[str]:
    return {number for text in texts for number in NUMBER.findall(text)}


@pytest.fixture(scope="module")
def values(reference: Path) -> set[str]:
    """Every value of every file, as it is written there."""
    return {value for name in FILES for row in read(reference, name) for value in row.values()}


def whole(visit: Any, reference: Path) -> Any:
    """The page with everything that folds away unfolded, and every row shown."""
    page = visit(reference / "index.html")
    page.eval_on_selector_all("main details", "found => found.forEach((one) => { one.open = true; })")
    pages.until(
        page, "document.querySelectorAll('.view .grid').length === document.querySelectorAll('.view > details').length"
    )
    return page


def test_every_number_that_is_shown_is_in_a_file(visit: Any, reference: Path, values: set[str]) -> None:
    page = whole(visit, reference)
    shown = page.eval_on_selector_all(
        "main data, svg [data-value]", "all => all.map((one) => one.value ?? one.dataset.value)"
    )
    assert len(shown) > 2000
    assert not {value for value in shown if value not in values}
    bare = page.evaluate(
        """(skipped) => {
          const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), found = [];
          while (walk.nextNode()) {
            const parent = walk.currentNode.parentElement;
            if (!parent.closest(skipped) && !parent.closest("data")) found.push(walk.currentNode.textContent);
          }
          return found;
        }""",
        OF_THE_PAGE,
    )
    own = [text for part in PARTS for text in (part.intro, part.empty)] + ["What a 95 % interval is"]
    known = numbers(counted(reference)) | numbers(own) | numbers(values)
    strange = {text for text in bare if not numbers([text]) <= known}
    assert not strange


def counted(folder: Path) -> Iterable[str]:
    """What the first screen counts, recounted from the files."""
    claims, cells, controls = (read(folder, name) for name in ("claims", "cells", "controls"))
    yield f"{len(claims)} {len(cells)} {len({row['claim_id'] for row in claims})}"
    yield f"{len({row['claim_id'] for row in claims if row['headline'] != 'n/a'})}"
    yield from map(str, Counter(row["void"] for row in cells).values())
    yield from map(str, Counter(row["state"] for row in cells if row["void"] == "false").values())
    of_rule = {"arithmetic": "arithmetic", "fact": "sources"}
    kinds = [of_rule.get(row["judged_by"], "none" if row["cells"] == "none" else "here") for row in claims]
    yield from map(str, Counter(kinds).values())
    yield from map(str, Counter(zip(kinds, (row["verdict"] for row in claims), strict=True)).values())
    for machine in {row["machine"] for row in cells}:
        told = [row for row in cells if row["machine"] == machine and row["stalled"] != "n/a"]
        ids = {row["cell"] for row in told}
        checks = [row for row in controls if row["machine"] == machine and row["cell"] in ids]
        yield str(len(told))
        yield str(sum(row["control"] == "stall" and row["severity"] != "ok" for row in checks))
        yield from map(str, Counter(row["severity"] for row in checks if row["control"] == "again").values())
        yield f"{100 * sum(float(row['stalled']) for row in told) / max(len(told), 1):.2g}"
        yield str(sum(row["other_cpus"] != "n/a" or row["steal"] != "n/a" for row in told))
        for name in ("other_cpus", "steal"):
            known = sorted(float(row[name]) for row in told if row[name] != "n/a")
            if known:
                yield f"{(known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2:.2f}"


def test_every_value_of_every_file_is_on_the_page(visit: Any, reference: Path) -> None:
    page = visit(reference / "index.html")
    seen = 0
    for name in FILES:
        rows = read(reference, name)
        shown = page.evaluate(
            """async (name) => {
              const of = await table(name);
              const told = (row) => [...allColumns(of, row).querySelectorAll("dd")];
              return of.rows.map((row) => told(row).map((one) => one.textContent.trim()));
            }""",
            name,
        )
        told = [
            [value if column != "cells" or value != "none" else "" for column, value in row.items()] for row in rows
        ]
        assert shown == told, name
        seen += sum(map(len, told))
    assert seen > 50_000


def test_numbers_are_written_as_the_other_report_writes_them(visit: Any, reference: Path) -> None:
    """The script's rounding and units against those of the Markdown report, for every value of every file."""
    page = visit(reference / "index.html", wait="claims")
    for name in FILES:
        rows = read(reference, name)
        shown = page.evaluate(
            """async (name) => {
              const of = await table(name);
              return of.rows.map((row) => row.map((text, at) => shown(of.columns[at], text)));
            }""",
            name,
        )
        for row, told in zip(rows, shown, strict=True):
            for (column, text), words in zip(row.items(), told, strict=True):
                if re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text, flags=re.I):
                    value: float | int = int(text) if text.isdigit() else float(text)
                    assert words == _text(columns_of(name)[column], value), (name, column, text)
