"""The figures as files: every format and width, what they say about themselves, and equal bytes for equal input."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from PIL import Image

from bench.errors import UserError
from bench.judge.columns import changed
from bench.report import write_report
from bench.report.figures.drawing import FIGURES, write_figures
from bench.report.figures.style import COLUMN, HIGHEST, PAGE
from tests.report import report_stand_ins as stand_ins

MACHINES = ("laptop", "server")
OF_CELLS = [name for name, (tables, _) in FIGURES.items() if not {*tables} & {"kernels", "trials"}]
"""Figures of the stand-ins; those of kernels and trials have tests of their own."""
CONDITION = "engine build 0.3.36-abc-cpu; model smollm2-135m Q8_0; threads 2; n_predict 32"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_figures(stand_ins.full(MACHINES), stand_ins.claims(), out)
    return out / "figures"


def test_every_figure_is_there_in_every_format_and_both_widths(paper: Path) -> None:
    kinds = ("svg", "pdf", "png")
    expected = {f"{name}.{kind}" for name in OF_CELLS for kind in (*kinds, "csv")} | {"figures.csv", "figures.tex"}
    assert {path.name for path in paper.iterdir() if path.is_file()} == expected
    columns = {path.name for path in (paper / "column").iterdir()}
    assert {f"{name}.{kind}" for name in OF_CELLS for kind in kinds} <= columns


def test_they_have_the_width_of_print_at_300_dots_an_inch_and_fit_a_page(paper: Path) -> None:
    for folder, width in ((paper, PAGE), (paper / "column", COLUMN)):
        for path in folder.glob("*.png"):
            image = Image.open(path)
            assert image.width == round(width * 300) and image.height <= HIGHEST * 300 + 30, path
            assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)


def test_pdf_fonts_are_truetype_and_svg_texts_are_texts(paper: Path) -> None:
    for path in paper.rglob("*.pdf"):
        data = path.read_bytes()
        assert b"/Type3" not in data and b"/FontFile2" in data, path
    for path in paper.rglob("*.svg"):
        root = ElementTree.parse(path).getroot()
        texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
        assert len(texts) > 5 and root.find(f"{SVG}title") is not None, path
        assert "Conditions: machine" in root.findtext(f"{SVG}desc", ""), path
    assert "stagger x4 emission=published" in " ".join(texts_of(paper / "speedup.svg"))


def texts_of(path: Path) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.parse(path).getroot().iter(f"{SVG}text")]


def test_the_report_makes_what_its_page_shows_and_leaves_what_was_made_for_paper_while_it_is_the_same(tmp_path) -> None:
    findings, claims = stand_ins.full(), stand_ins.claims()
    write_report(findings, claims, tmp_path)
    folder = tmp_path / "figures"
    assert {path.suffix for path in folder.iterdir()} == {".svg", ".csv", ".tex"}
    text = (tmp_path / "report.md").read_text()
    assert [name for name in OF_CELLS if f"(figures/{name}.svg)" not in text] == []
    write_figures(findings, claims, tmp_path)
    kept = {path: path.read_bytes() for path in folder.rglob("*.p*")}
    write_report(findings, claims, tmp_path)
    assert {path: path.read_bytes() for path in folder.rglob("*.p*")} == kept
    findings.speedup[0] = changed(findings.speedup[0], speedup=0.52)
    write_report(findings, claims, tmp_path)
    gone = {path.relative_to(folder).as_posix() for path in kept if not path.exists()}
    assert gone >= {"speedup.pdf", "speedup.png", "column/speedup.pdf"} and "step_cost.pdf" not in gone


def test_another_process_with_other_settings_writes_the_same_bytes(paper: Path, tmp_path: Path) -> None:
    """Another hash seed and a user's own matplotlibrc must not show."""
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\nsvg.fonttype: path\n")
    code = (
        "import sys; from pathlib import Path; from bench.report.figures.drawing import write_figures;"
        "from tests.report import report_stand_ins as s;"
        f"write_figures(s.full({MACHINES!r}), s.claims(), Path(sys.argv[1]), 2)"
    )
    root = Path(__file__).parents[3]
    environment = os.environ | {
        "PYTHONHASHSEED": "3", "MATPLOTLIBRC": str(tmp_path), "PYTHONPATH": str(root),
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "again")], check=True, env=environment, cwd=root)
    first = {path.relative_to(paper): path.read_bytes() for path in paper.rglob("*") if path.is_file()}
    again = tmp_path / "again" / "figures"
    second = {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    assert first.keys() == second.keys()
    assert [str(name) for name in first if first[name] != second[name]] == []


def test_files_say_what_they_rest_on_and_carry_no_date(paper: Path) -> None:
    cells = "0a0a0a0a0a0a 0b0b0b0b0b0b 1a1a1a1a1a1a 1b1b1b1b1b1b"
    svg = (paper / "speedup.svg").read_text()
    told = Image.open(paper / "column" / "speedup.png").text["Description"]
    tex = (paper / "figures.tex").read_text()
    for text in (svg, told, tex):
        assert cells in text
    assert CONDITION in svg and CONDITION in told and "n\\_predict 32" in tex
    for path in paper.rglob("*.*"):
        data = path.read_bytes()
        assert not re.search(rb"<dc:date>|CreationDate|ModDate|Creation Time|tIME", data), path
        assert b"matplotlib v" not in data.lower() and b"Matplotlib v" not in data, path


def test_captions_are_printed_and_nothing_in_them_is_a_command(tmp_path: Path) -> None:
    findings = stand_ins.full(("50%_box & \\input{x} $y$ #1 ~^",))
    write_figures(findings, [], tmp_path)
    tex = (tmp_path / "figures" / "figures.tex").read_text()
    body = tex.split("\n\n", 1)[1]
    assert r"50\%\_box \& \textbackslash{}input\{x\} \$y\$ \#1 \textasciitilde{}\textasciicircum{}" in body
    assert body.count("\\begin{figure*}") == body.count("\\end{figure*}") == body.count("\\label{fig:") > 5
    assert "\\includegraphics{speedup}" in body


def test_the_side_file_lists_cells_conditions_and_omissions(paper: Path) -> None:
    rows = {row["figure"]: row for row in csv.DictReader((paper / "figures.csv").open(newline=""))}
    assert list(rows) == OF_CELLS
    assert rows["step_cost"]["cells"] == "0e0e0e0e0e0e 1e1e1e1e1e1e"
    assert CONDITION in rows["speedup"]["condition"]
    assert "void or unmeasured rows and plain decoding itself: 2" in rows["speedup"]["left_out"]
    assert "0c0c0c0c0c0c" not in rows["speedup"]["cells"]


def test_figures_alone_then_stale_ones_go_and_others_stay(tmp_path: Path) -> None:
    findings = stand_ins.empty()
    findings.decomposition = stand_ins.full().decomposition
    folder = tmp_path / "figures"
    (folder / "column").mkdir(parents=True)
    for name in ("speedup.svg", "speedup.pdf", "column/speedup-2.png", "speedup.txt", "mine.png", "round_time-3.pdf"):
        (folder / name).write_text("old")
    paths = write_figures(findings, [], tmp_path)
    kinds = ("svg", "pdf", "png")
    assert [path.relative_to(folder).as_posix() for path in paths] == [
        *(f"round_time.{kind}" for kind in kinds), *(f"column/round_time.{kind}" for kind in kinds), "round_time.csv",
        "figures.csv", "figures.tex",
    ]  # fmt: skip
    found = {path for path in folder.rglob("*") if path.is_file()}
    assert found == {*paths, folder / "speedup.txt", folder / "mine.png"}


def test_no_rows_no_figures(tmp_path: Path) -> None:
    paths = write_figures(stand_ins.empty(), stand_ins.claims()[:1], tmp_path)
    assert [path.name for path in paths] == ["figures.csv", "figures.tex"]


def test_a_figures_folder_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file")
    with pytest.raises(UserError, match="figures"):
        write_figures(stand_ins.empty(), [], tmp_path)
