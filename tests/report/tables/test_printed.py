"""Tables to print: each row of the findings once, in LaTeX and in Markdown, with conditions and cells."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.judge.columns import changed
from bench.readme import ROOT
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.latex import breakable, escaped, tabular
from bench.report.tables.printed import PAGE_LINES, write_printed
from tests.report import report_stand_ins as stand_ins


def made(findings: object, out: Path) -> dict[str, str]:
    tables = Ordered(findings)
    paths = write_printed(tables, stand_ins.claims(), CellIndex.of(tables), out)
    return {path.name: path.read_text() for path in paths}


def test_every_table_is_there_in_both_kinds_a_table_a_machine(tmp_path: Path) -> None:
    files = made(stand_ins.full(("laptop", "server")), tmp_path)
    assert sorted(files) == sorted(f"{name}.{kind}" for name in ("speedup", "acceptance", "step_cost", "claims")
                                   for kind in ("tex", "md"))  # fmt: skip
    tex = files["speedup.tex"]
    assert tex.count(r"\begin{table*}") == tex.count(r"\end{table*}") == tex.count(r"\toprule") == 2
    assert tex.count(r"\midrule") == tex.count(r"\bottomrule") == tex.count(r"\label{tab:speedup-") == 2
    assert "machine laptop; engine build 0.3.36-abc-cpu" in tex and "0a0a0a0a0a0a 0b0b0b0b0b0b" in tex
    assert breakable("stagger x4 emission=published") + " & 0.51 [0.46, 0.56] & 1.94" in tex
    assert "| stagger x4 emission=published | 0.51 [0.46, 0.56] | 1.94 |" in files["speedup.md"]
    assert "twin.four & refuted & 1.96x & 0.51 [0.46, 0.56]" in files["claims.tex"].replace(r"\allowbreak{}", "")


def test_each_row_has_as_many_cells_as_the_head_and_void_ones_are_left_out(tmp_path: Path) -> None:
    findings = stand_ins.full()
    for name, text in made(findings, tmp_path).items():
        if name.endswith(".tex"):
            rows = [row for row in text.splitlines() if row.endswith(r"\\")]
            columns = len(re.search(r"@\{\}(?:>\{[^}]*\})?([lX]r*)@\{\}", text)[1])
            assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {columns}, name
    assert "jacobi" not in (tmp_path / "tables" / "speedup.tex").read_text()


def test_a_hostile_name_is_text_in_both(tmp_path: Path) -> None:
    findings = stand_ins.full()
    findings.speedup = [changed(row, short="a_b & \\input{x} | <script>") for row in findings.speedup]
    files = made(findings, tmp_path)
    tex = files["speedup.tex"].replace(r"\allowbreak{}", "")
    assert r"a\_b \& \textbackslash{}input\{x\} \textbar{} \textless{}script\textgreater{}" in tex
    assert r"a_b & \input{x} \| &lt;script>" in files["speedup.md"]


def test_a_long_table_goes_on_with_another_and_each_names_its_own_cells(tmp_path: Path) -> None:
    findings = stand_ins.full()
    first = findings.speedup[0]
    findings.speedup = [changed(first, short=f"arm{place:03}", cells=[f"{place:012x}"])
                        for place in range(3 * PAGE_LINES)]  # fmt: skip
    tex = made(findings, tmp_path)["speedup.tex"]
    parts = tex.split(r"\begin{table*}")[1:]
    assert len(parts) == 3 and tex.count(", continued. Conditions: ") == 2
    assert [len(re.findall(r"\barm\d{3}\b", part)) for part in parts] == [PAGE_LINES] * 3
    for place, part in enumerate(parts):
        assert f"{place * PAGE_LINES:012x}" in part and f"{(place + 1) * PAGE_LINES:012x}" not in part
        assert f"tab:speedup-{place + 1}}}" in part


def pdf_log(text: str, folder: Path) -> str:
    """What pdflatex says of a text in a minimal document; it stops at the first error."""
    if not shutil.which("pdflatex"):
        pytest.skip("pdflatex is not here")
    body = "\\documentclass{article}\n\\usepackage{booktabs}\n\\usepackage{tabularx}\n\\begin{document}\n"
    (folder / "all.tex").write_text(f"{body}{text}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "all.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.mark.parametrize("name", ["speedup", "acceptance", "step_cost", "claims"])
def test_the_reference_tables_go_through_latex_and_fit_the_page(name: str, tmp_path: Path) -> None:
    text = (ROOT / "reports" / "reference" / "tables" / f"{name}.tex").read_text()
    told = pdf_log(text, tmp_path)
    assert "Overfull" not in told and "Float too large" not in told
    assert len(re.findall(r"^\\begin\{table\*\}", text, re.MULTILINE)) >= 1


def test_every_letter_goes_through_latex_as_text(tmp_path: Path) -> None:
    letters = [chr(code) for code in (*range(0x20, 0x7F), *range(0xA0, 0x250), 0x2013, 0x2192, 0x65E5, 0x1F600)]
    rows = [[f"a{letter}b {letter * 3} --{letter}-- with more than a few words", f"<{letter}>"] for letter in letters]
    pages = [rows[start : start + 20] for start in range(0, len(rows), 20)]
    tables = [tabular(["a letter", "again"], page, "".join(row[1] for row in page), f"tab:{place}")
              for place, page in enumerate(pages)]  # fmt: skip
    pdf_log("\n\\clearpage\n".join(tables), tmp_path)


def test_two_hyphens_stay_two_and_an_unknown_letter_is_the_one_that_it_is_made_of() -> None:
    assert escaped("--spec-default") == "-{}-spec-default" and escaped("----") == "-{}-{}-{}-"
    assert escaped("\u0105\ufb01\u65e5") == "afi?"
