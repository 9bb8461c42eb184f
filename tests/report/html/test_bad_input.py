"""Records that are damaged, newer or hostile, and none at all: in the browser the page still opens and says so."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.judge.columns import changed
from bench.judge.findings import Findings
from bench.judge.measure.chosen import traces_of
from bench.judge.summary import summarize
from bench.judge.tables.claims import Verdict
from bench.readme import REFERENCE
from bench.report import write_report
from bench.stored import judged
from tests.judge.judge_cells import guess_cell
from tests.report import report_stand_ins as stand_ins

WORDS = ["<img src=x onerror=window.hacked=1>", "</script><script>window.hacked=1</script>", "<b>bold</b>",
         "\u202eevil\u200b", "' onclick='window.hacked=1", "{{7*7}}", "javascript:window.hacked=1"]  # fmt: skip
GOOD, OTHER = "bd724658bd3b", "1fbe50d3a7cb"


def written(findings: Any, claims: list[Any], out: Path, **more: Any) -> Path:
    write_report(findings, claims, out, figures=False, summary=summarize(findings, claims), **more)
    return out / "index.html"


def hostile(out: Path) -> Path:
    word = " ".join(WORDS)
    given = stand_ins.full()
    given.cells = [changed(row, reason=word, label=word, model=word, short=word) for row in given.cells]
    given.speedup = [changed(row, short=word, model=word) for row in given.speedup]
    findings = Findings(**vars(given))
    cell = guess_cell()
    runs = cell.runs.assign(prompt=word)
    findings.traces = [replace(traces_of(replace(cell, runs=runs, cell=given.cells[0]["cell"])), machine="laptop",
                               said={token: word.encode() + b"\xff\n" for token in range(64)})]  # fmt: skip
    texts = dict.fromkeys(("says", "reason", "why", "would_change", "source"), word)
    about = {"cells": [given.cells[0]["cell"]], "machine": "laptop"}
    rows = [Verdict(**row | texts | about) for row in stand_ins.claims()]
    return written(findings, rows, out)


@pytest.mark.parametrize("width", [1200, 375])
def test_hostile_words_are_words_everywhere(visit: Callable[..., Any], tmp_path: Path, width: int) -> None:
    page = visit(hostile(tmp_path), viewport={"width": width, "height": 800})
    page.eval_on_selector_all("main details", "found => found.forEach((one) => { one.open = true; })")
    page.locator("#claims-list .opens").first.click()
    page.locator("#claims-list tr.open a.cell-link").first.click()
    page.wait_for_selector("dialog[open] .reel")
    page.eval_on_selector_all("dialog details", "found => found.forEach((one) => { one.open = true; })")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, main b, main script, dialog b, dialog script").count() == 0
    told = page.locator("main").inner_text() + page.locator("dialog").inner_text()
    assert "<img src=x onerror=window.hacked=1>" in told and "{{7*7}}" in told
    assert "\u202e" not in told and "\u200b" not in told
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    links = page.eval_on_selector_all("a[href]", "all => all.map((one) => one.getAttribute('href'))")
    assert not [link for link in links if link.startswith(("javascript:", "http", "//"))]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """One whole cell, one whose rounds are cut off, and one that a later release wrote."""
    root = tmp_path / "results" / "amd-epyc-2c"
    for name in (GOOD, OTHER, "8ded458b1115"):
        shutil.copytree(REFERENCE / "amd-epyc-2c" / name, root / name)
    rounds = root / OTHER / "rounds.csv.gz"
    rounds.write_bytes(rounds.read_bytes()[:500])
    config = root / "8ded458b1115" / "cell.yaml"
    config.write_text(config.read_text().replace("schema: 3", "schema: 99"))
    return root.parent


def test_damaged_and_newer_cells_are_named_and_take_nothing_else(visit: Callable[..., Any], broken: Path) -> None:
    found = judged(broken, "all")
    page = visit(written(found[0], found[1], broken.parent / "reports", results=broken))
    summary = page.locator("#summary")
    assert "2 of 3 cells cannot be read or judged" in summary.inner_text()
    summary.locator("summary", has_text="cannot be read").click()
    assert "rounds.csv.gz" in summary.inner_text() and "a later release" in summary.inner_text()
    page.evaluate(f"location.hash = '#cell/amd-epyc-2c/{OTHER}'")
    page.wait_for_selector("dialog:has-text('This cell is damaged')")
    assert "The same sweep measures it again." in page.locator("dialog").inner_text()
    page.evaluate(f"location.hash = '#cell/amd-epyc-2c/{GOOD}'")
    page.wait_for_selector("dialog .reel")


def test_without_any_cell_the_page_says_what_to_run(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(written(Findings(), [], tmp_path))
    told = page.locator("main").inner_text()
    assert "There are no finished cells; make bench measures the default ones." in told
    assert "No claim sheet was judged" in told and "python -m bench kernels" in told
    assert page.locator("svg.chart").count() == 0
