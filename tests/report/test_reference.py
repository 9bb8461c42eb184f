"""What is committed comes from the committed records: the reference report and the README's table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.cli import main
from bench.judge import judge
from bench.readme import REFERENCE, ROOT, put, table
from bench.records.cells import load_cells
from tests.report.html.pages import unpacked, without_blocks

REGENERATE = "make report ARGS='results=results/reference reports=reports/reference' && python -m bench.readme"


NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


def same_text(name: Path, made: str, kept: str) -> None:
    """Equal but for the last printed digit of a number: other processors round the last bits otherwise."""
    assert NUMBER.sub("#", made) == NUMBER.sub("#", kept), f"{name}: {REGENERATE}"
    mine, theirs = ([float(number) for number in NUMBER.findall(text)] for text in (made, kept))
    assert mine == pytest.approx(theirs, rel=2e-3), f"{name}: {REGENERATE}"


def page_of(folder: Path) -> dict[str, str]:
    """The page's parts, unpacked; where its links lead to depends on the folder that it lies in."""
    text = (folder / "index.html").read_text()
    parts = unpacked(text) | {"page": without_blocks(text)}
    return parts | {"page-data": re.sub('"(records|command)":"[^"]*"', "", parts["page-data"])}


def test_the_committed_report_is_what_the_committed_records_give(tmp_path, capsys):
    assert main(["report", f"results={REFERENCE}", f"reports={tmp_path}"]) == 0
    committed = ROOT / "reports" / "reference"
    kinds = {".csv", ".svg", ".tex"}
    found = sorted(path.relative_to(committed) for path in committed.rglob("*") if path.suffix in kinds)
    names = [*found, Path("report.md")]
    assert len(names) > 30
    for name in names:
        same_text(name, (tmp_path / name).read_text(), (committed / name).read_text())
    made, kept = (page_of(folder) for folder in (tmp_path, committed))
    assert made.keys() == kept.keys()
    for part in made:
        same_text(Path("index.html", part), made[part], kept[part])


def test_the_readme_shows_the_reference_results():
    text = (ROOT / "README.md").read_text()
    assert put(text, table(judge(load_cells(REFERENCE)))) == text, REGENERATE
