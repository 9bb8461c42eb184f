"""Tables to print: each row of the findings once, in LaTeX and in Markdown, with conditions and cells."""

from __future__ import annotations

import re
from pathlib import Path

from bench.judge.columns import changed
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.printed import write_printed
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
    assert "stagger x4 emission=published & 0.51 [0.46, 0.56] & 1.94" in tex
    assert "| stagger x4 emission=published | 0.51 [0.46, 0.56] | 1.94 |" in files["speedup.md"]
    assert "twin.four & refuted & 1.96x & 0.51 [0.46, 0.56]" in files["claims.tex"]


def test_each_row_has_as_many_cells_as_the_head_and_void_ones_are_left_out(tmp_path: Path) -> None:
    findings = stand_ins.full()
    for name, text in made(findings, tmp_path).items():
        if name.endswith(".tex"):
            rows = [row for row in text.splitlines() if row.endswith(r"\\")]
            columns = len(re.search(r"@\{\}(l?r*)@\{\}", text)[1])
            assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {columns}, name
    assert "jacobi" not in (tmp_path / "tables" / "speedup.tex").read_text()


def test_a_hostile_name_is_text_in_both(tmp_path: Path) -> None:
    findings = stand_ins.full()
    findings.speedup = [changed(row, short="a_b & \\input{x} | <script>") for row in findings.speedup]
    files = made(findings, tmp_path)
    assert r"a\_b \& \textbackslash{}input\{x\} \textbar{} \textless{}script\textgreater{}" in files["speedup.tex"]
    assert r"a_b & \input{x} \| &lt;script>" in files["speedup.md"]
