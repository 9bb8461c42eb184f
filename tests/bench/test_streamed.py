"""Very many cells: the same rows and the same verdicts as ever, of which few are held."""

from __future__ import annotations

import csv
import json
import shutil
from functools import partial
from pathlib import Path

import pytest

import bench.stored
from bench import cli, reporting
from bench.errors import UserError
from bench.report import write_report
from bench.report.tables.streamed_files import write_streamed
from bench.stored import judged, spans, streamed
from bench.stored.chosen import Chosen
from tests.bench.test_stored import root  # noqa: F401, a fixture
from tests.scale.copies import REFERENCE, make

CELLS, SHOWN = 40, 30
"""Cells of a folder, and those that its page shows: more than there are arms."""


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scale") / "results"
    make(folder, CELLS)
    shutil.rmtree(folder / ".files")
    return folder


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.stored, "MANY", 3)
    monkeypatch.setattr(streamed, "SHOWN", SHOWN)
    monkeypatch.setattr(spans, "USUAL", 7)


def tables(folder: Path) -> dict[str, list[dict[str, str]]]:
    return {path.stem: list(csv.DictReader(path.open())) for path in sorted(folder.glob("*.csv"))}


def written(results: Path, out: Path) -> dict[str, list[dict[str, str]]]:
    """The report's CSV files, without the cost of its figures."""
    found = judged(results, "all")
    csv_files = partial(write_streamed, found.many, found.findings, 1, found.claims) if found.many else None
    write_report(found.findings, found.claims, out, figures=False, csv=csv_files)
    return tables(out)


@pytest.mark.parametrize("of", ["copies", "root"])
def test_every_row_is_written_and_every_verdict_the_same(tmp_path: Path, of: str,
                                                         request: pytest.FixtureRequest) -> None:  # fmt: skip
    results = request.getfixturevalue(of)
    few = written(results, tmp_path / "few")
    request.getfixturevalue("many")
    found = written(results, tmp_path / "many")
    assert few["claims"] == found["claims"] and list(few) == list(found)
    for name, rows in few.items():
        assert sorted(map(str, rows)) == sorted(map(str, found[name])), name
    machines = [row["machine"] for row in found["cells"]]
    assert machines == sorted(machines)


def test_a_page_is_bounded_and_says_what_it_leaves_out(tmp_path: Path, copies: Path, many: None,
                                                       capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    cli.main(["report", f"results={copies}", f"reports={tmp_path}"])
    said = " ".join(capsys.readouterr().out.split())
    words = f"show {SHOWN} of {CELLS} cells, the first of each arm"
    assert words in said and words in (tmp_path / "report.md").read_text()
    shown = judged(copies, "all").findings
    arms = {(row.machine, row.build, row.model, row.kind, row.state, row.short) for row in shown.cells}
    every = judged(copies, "all").many
    assert every is not None and every.cells == CELLS and len(every.light.cells) == CELLS
    assert arms == {(row.machine, row.build, row.model, row.kind, row.state, row.short) for row in every.light.cells}
    assert len(shown.cells) == SHOWN and (tmp_path / "index.html").stat().st_size < 2_000_000


def test_the_first_screen_counts_all(copies: Path, many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = reporting.summary_of(judged(copies, "all"))
    monkeypatch.setattr(bench.stored, "MANY", 10**9)
    few = reporting.summary_of(judged(copies, "all"))
    assert found.machines == few.machines and found.evidence == few.evidence and found.headlines == few.headlines
    assert [one for one in found.missing if one.kind != "left out"] == list(few.missing)


def test_names_are_asked_for_as_ever(copies: Path, many: None) -> None:
    found = judged(copies, "all", Chosen(machine=("h200",)))
    assert found.many is not None and 0 < found.many.cells < CELLS
    assert {row.machine for row in found.many.light.cells} == {"h200"}
    with pytest.raises(UserError, match="no stored cell has the machine 'h20'; did you mean 'h200'"):
        judged(copies, "all", Chosen(machine=("h20",)))


def test_what_a_filter_leaves_out_is_told_as_ever(copies: Path, many: None, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Chosen(machine=("h200",))
    found = judged(copies, "all", chosen)
    monkeypatch.setattr(bench.stored, "MANY", 10**9)
    few = judged(copies, "all", chosen)
    assert found.many is not None and few.many is None
    left = [row.claim_id for row in found.claims if row.verdict == "left_out"]
    assert left and left == [row.claim_id for row in few.claims if row.verdict == "left_out"]
    assert [(row.claim_id, row.verdict, row.reason) for row in found.claims] == [
        (row.claim_id, row.verdict, row.reason) for row in few.claims]  # fmt: skip


@pytest.mark.parametrize("very_many", [False, True])
def test_kernel_records_are_judged_once(tmp_path: Path, copies: Path, monkeypatch: pytest.MonkeyPatch,
                                        very_many: bool) -> None:  # fmt: skip
    results = tmp_path / "results"
    shutil.copytree(copies, results)
    shutil.copytree(REFERENCE / "h200" / "kernels", results / "h200" / "kernels")
    monkeypatch.setattr(bench.stored, "MANY", 3 if very_many else 10**9)
    asked: list[Path] = []
    of = bench.stored.kernels_of
    monkeypatch.setattr(bench.stored, "kernels_of", lambda folder: (asked.append(folder), of(folder))[1])
    found = judged(results, "all", Chosen(machine=("h200",)))
    assert [folder.parent.name for folder in asked] == ["h200"] and found.findings.kernels
    assert not judged(results, "all", Chosen(machine=("amd-epyc-2c",))).findings.kernels


def test_the_file_of_the_rows_goes_with_them(copies: Path, many: None, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = judged(copies, "all")
    assert [path.name[:10] for path in tmp_path.iterdir()] == ["pti-bench-"]
    del found
    assert not list(tmp_path.iterdir())


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = cli.main(["report", *map(str, words)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("of", ["copies", "root"])
def test_the_document_has_the_rows_and_the_screen_as_ever(of: str, request: pytest.FixtureRequest,
                                                          capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    results = request.getfixturevalue(of)
    few = json.loads(printed(capsys, f"results={results}", "--json")[1])
    request.getfixturevalue("many")
    found = json.loads(printed(capsys, f"results={results}", "--json")[1])
    assert found["summary"] == few["summary"] and list(found["tables"]) == list(few["tables"])
    for name, rows in few["tables"].items():
        assert sorted(map(str, rows)) == sorted(map(str, found["tables"][name])), name


@pytest.mark.parametrize("form", reporting.FORMATS)
@pytest.mark.parametrize("table", ["speedup", "claims", "bandwidth", "peers"])
def test_the_lines_of_a_table_are_those_of_fewer_cells(form: str, table: str, copies: Path, tmp_path: Path,
                                                       request: pytest.FixtureRequest,
                                                       capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    """In another order, but for its head; the last row of a JSON array has no comma behind it."""
    words = (f"results={copies}", "-o", form, f"table={table}")
    few = printed(capsys, *words)[1].replace("},\n", "}\n").splitlines()
    request.getfixturevalue("many")
    found = printed(capsys, *words)[1].replace("},\n", "}\n").splitlines()
    head = {"md": 2, "csv": 1}.get(form, 0)
    assert found[:head] == few[:head] and sorted(found) == sorted(few) and (few or table == "peers")
    if form == "json":
        json.loads(printed(capsys, *words)[1])


def test_a_post_is_of_all_cells(copies: Path, request: pytest.FixtureRequest,
                                capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    few = printed(capsys, f"results={copies}", "--short")
    request.getfixturevalue("many")
    assert printed(capsys, f"results={copies}", "--short") == few


def test_a_check_of_very_many_says_the_same(copies: Path, tmp_path: Path, request: pytest.FixtureRequest,
                                            capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    base = tmp_path / "base"
    shutil.copytree(copies, base)
    shutil.rmtree(next(iter(sorted((base / "amd-epyc-2c").iterdir()))))
    words = ("--check", base, f"results={copies}")
    few = printed(capsys, *words)
    request.getfixturevalue("many")
    assert printed(capsys, *words) == few and f"only in {copies}" in " ".join(few[1].split())
