"""A report over a damaged cell: a row, a section, a line, exit code 1, and every other cell's rows as they were."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bench.cli import main
from bench.records.cells import whole_cells
from bench.stored import judge_stored
from tests.faults.stored import unsealed

ONE_OF_FOUR = "1 of 4 cells cannot be read or judged and counts for nothing"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two contrasts and two profiles on a machine of their own, each with another id."""
    for kind in ("contrast", "profile"):
        for place in (0, 1):
            shutil.copytree(unsealed(kind)[place], tmp_path / "results" / "box" / f"{kind}{place}")
    return tmp_path / "results"


def rows(results: Path, name: str) -> list[dict[str, str]]:
    with (results.parent / "reports" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def report(results: Path) -> int:
    return main(["report", f"results={results}", f"reports={results.parent / 'reports'}", "claims=pti"])


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import report as package

    whole = package.write_report
    monkeypatch.setattr(package, "write_report", lambda *given, **more: whole(*given, **more, figures=False))


def cut(folder: Path) -> None:
    path = folder / ("runs.csv.gz" if (folder / "runs.csv.gz").exists() else "steps.csv.gz")
    path.write_bytes(path.read_bytes()[:-20])


def edit(file: str, change: Callable[[dict], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        read, write = (yaml.safe_load, yaml.safe_dump) if file.endswith("yaml") else (json.loads, json.dumps)
        content = read((folder / file).read_text())
        change(content)
        (folder / file).write_text(write(content))

    return damage


def no_numbers(folder: Path) -> None:
    """A table of the right columns whose values make no sense."""
    path = folder / ("runs.csv.gz" if (folder / "runs.csv.gz").exists() else "steps.csv.gz")
    header = gzip.decompress(path.read_bytes()).decode().splitlines()[0]
    path.write_bytes(gzip.compress(f"{header}\n{','.join(['nan'] * (header.count(',') + 1))}\n".encode()))


@pytest.mark.parametrize("cell", ["contrast0", "profile0"])
@pytest.mark.parametrize(
    "damage",
    [cut, no_numbers, edit("facts.json", lambda facts: facts.update(model=["x"])),
     edit("facts.json", lambda facts: facts["bandwidth"].update(read_gb_s="fast")),
     edit("cell.yaml", lambda config: config.update(schema=99)), edit("env.json", lambda env: env.update(engine=[1])),
     lambda folder: (folder / "status.json").write_text('{"state": "done"')],
    ids=["cut", "nan", "list", "text", "schema", "engine", "status"],
)  # fmt: skip
def test_one_damaged_cell_is_a_row_and_the_others_are_judged(results, cell, damage):
    folders = whole_cells(results)
    before = judge_stored([folder for folder in folders if folder.name != cell], 1)
    damage(results / "box" / cell)
    after = judge_stored(folders, 1)
    (told,) = (row for row in after.cells if row["state"] == "damaged")
    assert (told["cell"], told["machine"], told["cells"]) == (cell, "box", [cell])
    assert {*told} >= {"model", "method", "kind", "streams", "temperature", "seconds"}
    after.cells.remove(told)
    assert repr(after) == repr(before)


@pytest.mark.parametrize("cell", ["contrast0", "profile0"])
def test_a_report_over_a_damaged_cell(results, cell, capsys):
    assert report(results) == 0
    assert capsys.readouterr().err == "" and "Damaged cells" not in (results.parent / "reports/report.md").read_text()
    cut(results / "box" / cell)
    assert report(results) == 1
    (told,) = (row for row in rows(results, "cells") if row["state"] == "damaged")
    assert (told["cell"], told["machine"], told["cells"], told["model"]) == (cell, "box", cell, "n/a")
    assert len(rows(results, "cells")) == 4
    page = (results.parent / "reports" / "report.md").read_text()
    assert page.count("## Damaged cells") == 1 and page.index("## Damaged cells") < page.index("## Speed")
    assert page.count(f"| {cell} | ") == 1, "a damaged cell is no failed one too"
    assert told["reason"] in page
    line = f"{ONE_OF_FOUR}; the same sweep measures a damaged cell again:\n  box/{cell}: {told['reason']}\n"
    assert capsys.readouterr().err == line


def test_a_cell_that_reads_well_and_cannot_be_judged_says_where(results, monkeypatch, capsys):
    edit("facts.json", lambda facts: facts["noise"].update(logit_gap="wide"))(results / "box" / "contrast0")
    assert report(results) == 1
    (told,) = (row for row in rows(results, "cells") if row["state"] == "damaged")
    assert "it cannot be judged (" in told["reason"] and ".py:" in told["reason"]
    assert told["reason"].endswith("`rm -r results/box/contrast0` and the same sweep again")


def test_many_damaged_cells_are_counted(results, capsys):
    for number in range(7):
        shutil.copytree(results / "box" / "contrast0", results / "box" / f"more{number}")
    for folder in (results / "box").iterdir():
        cut(folder)
    assert report(results) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("11 of 11 cells cannot be read or judged and count for nothing; ")
    assert told[-1] == "  and 6 more"
    assert len(told) == 7


def test_advice_goes_on_beside_a_damaged_cell(results, capsys):
    cut(results / "box" / "profile0")
    main(["advise", f"results={results}", "machine=box", "model=smollm2-135m"])
    assert ONE_OF_FOUR in capsys.readouterr().err
