"""The figures: what they draw, what they say about themselves, and that equal input gives equal bytes."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from bench.errors import UserError
from bench.judge.columns import changed
from bench.report import write_report
from bench.report.figures import charts, curves
from bench.report.figures.canvas import MAX_PANELS, drawing_style
from bench.report.figures.drawing import FIGURES, FORMATS, write_figures
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from tests.report import report_stand_ins as stand_ins

MACHINES = ("laptop", "server")
OF_CELLS = [name for name, (table, _) in FIGURES.items() if table != "kernels"]
"""Figures of the stand-ins; those of kernels have tests of their own."""
CONDITION = "engine build 0.3.36-abc-cpu; model smollm2-135m Q8_0; threads 2; n_predict 32"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_report(stand_ins.full(MACHINES), stand_ins.claims(), out)
    return out


def draw(drawer: object, findings: SimpleNamespace, claims: list[dict] | None = None) -> object:
    tables = Ordered(findings)
    with drawing_style():
        return drawer(tables, claims or [], CellIndex.of(tables))


def marks(axes: object, marker: str) -> list[tuple[float, float]]:
    lines = [line for line in axes.lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_every_figure_is_there_in_every_format(report: Path) -> None:
    found = {path.name for path in (report / "figures").iterdir()}
    assert found == {f"{name}.{kind}" for name in OF_CELLS for kind in FORMATS} | {"figures.csv"}
    text = (report / "report.md").read_text()
    assert all(f"(figures/{name}.svg)" in text for name in OF_CELLS)


def test_another_process_with_other_settings_writes_the_same_bytes(report: Path, tmp_path: Path) -> None:
    """Another hash seed and a user's own matplotlibrc must not show."""
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\nsvg.fonttype: none\n")
    code = (
        "import sys; from pathlib import Path; from bench.report import write_report;"
        "from tests.report import report_stand_ins as s;"
        f"write_report(s.full({MACHINES!r}), s.claims(), Path(sys.argv[1]))"
    )
    root = Path(__file__).parents[3]
    environment = os.environ | {
        "PYTHONHASHSEED": "3", "MATPLOTLIBRC": str(tmp_path), "PYTHONPATH": str(root),
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "again")], check=True, env=environment, cwd=root)
    first = {path.relative_to(report): path.read_bytes() for path in report.rglob("*") if path.is_file()}
    again = tmp_path / "again"
    second = {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()}
    assert first.keys() == second.keys()
    assert [str(name) for name in first if first[name] != second[name]] == []


def test_files_say_what_they_rest_on_and_carry_no_date(report: Path) -> None:
    cells = "0a0a0a0a0a0a 0b0b0b0b0b0b 1a1a1a1a1a1a 1b1b1b1b1b1b"
    svg = (report / "figures/speedup.svg").read_text()
    told = Image.open(report / "figures/speedup.png").text["Description"]
    for text in (svg, told):
        assert cells in text
        assert CONDITION in text
    assert "<dc:date>" not in svg
    pdf = (report / "figures/speedup.pdf").read_bytes()
    assert b"CreationDate" not in pdf
    assert b"ModDate" not in pdf


def test_the_side_file_lists_cells_conditions_and_omissions(report: Path) -> None:
    rows = {row["figure"]: row for row in csv.DictReader((report / "figures/figures.csv").open(newline=""))}
    assert list(rows) == OF_CELLS
    assert rows["step_cost"]["cells"] == "0e0e0e0e0e0e 1e1e1e1e1e1e"
    assert CONDITION in rows["speedup"]["condition"]
    assert "void or unmeasured rows: 2" in rows["speedup"]["left_out"]
    assert "0c0c0c0c0c0c" not in rows["speedup"]["cells"]


def test_figures_alone_then_stale_ones_go_and_others_stay(tmp_path: Path) -> None:
    findings = stand_ins.empty()
    findings.decomposition = stand_ins.full().decomposition
    folder = tmp_path / "figures"
    folder.mkdir()
    for name in ("speedup.svg", "speedup.pdf", "speedup.txt", "mine.png"):
        (folder / name).write_text("old")
    paths = write_figures(findings, [], tmp_path)
    assert [path.name for path in paths] == [*(f"round_time.{kind}" for kind in FORMATS), "figures.csv"]
    assert {path.name for path in folder.iterdir()} == {path.name for path in paths} | {"speedup.txt", "mine.png"}


def test_no_rows_no_figures(tmp_path: Path) -> None:
    assert [path.name for path in write_figures(stand_ins.empty(), stand_ins.claims(), tmp_path)] == ["figures.csv"]


def test_a_figures_folder_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("a file")
    with pytest.raises(UserError, match="figures"):
        write_figures(stand_ins.empty(), [], tmp_path)


def test_speedups_stand_beside_counted_and_published_ones() -> None:
    drawn = draw(charts.speedup, stand_ins.full(), stand_ins.claims())
    axes = drawn.figure.axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["packed x4, sum of streams", "stagger x4 emission=published"]
    assert marks(axes, "o") == [(1.93, 0.0), (0.51, 1.0)]
    assert marks(axes, "x") == [(1.94, 1.0)]
    assert [x for x, _ in marks(axes, "D")] == [1.95, 1.96]
    assert drawn.cells == ("0a0a0a0a0a0a", "0b0b0b0b0b0b")


def test_the_lowest_temperature_is_drawn_and_the_others_are_told() -> None:
    findings = stand_ins.empty()
    findings.speedup = [
        stand_ins.speedup(f"{at}" * 12, "stagger", 4, value, temperature=temperature)
        for at, (temperature, value) in enumerate(((0.7, 0.4), (0.0, 0.5), (0.3, 0.45)))
    ]
    drawn = draw(charts.speedup, findings)
    assert [x for x, _ in marks(drawn.figure.axes[0], "o")] == [0.5]
    assert drawn.left_out == "rows at other temperatures or settings: 2"


def test_panels_are_limited_to_those_with_most_cells() -> None:
    findings = stand_ins.full(("a", "b", "c"))
    findings.speedup.append(stand_ins.speedup("9" * 12, "stagger", 2, 0.8, "c"))
    drawn = draw(charts.speedup, findings)
    titles = [axes.get_title(loc="left") for axes in drawn.figure.axes]
    assert len(titles) == MAX_PANELS == 2
    assert ["on a" in titles[0], "on c" in titles[1]] == [True, True]
    assert "other machines, builds or models: 1" in drawn.left_out


def test_bars_add_up_to_the_parts_of_a_round() -> None:
    findings = stand_ins.full()
    findings.decomposition.append(stand_ins.decomposition("9" * 12, "treatment", method="jacobi", void=True))
    drawn = draw(charts.round_time, findings)
    axes = drawn.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "plain decoding",
        "stagger x4 emission=published",
    ]
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert max(ends) == pytest.approx(20.8)
    assert "void rows and control arms: 2" in drawn.left_out


def test_step_costs_stand_beside_every_published_curve() -> None:
    drawn = draw(curves.step_cost, stand_ins.full(), stand_ins.claims())
    axes = drawn.figure.axes[0]
    assert marks(axes, "o") == [(1.0, 1.0), (2.0, 1.3), (4.0, 2.0), (8.0, 3.4)]
    assert marks(axes, "D") == [(2.0, 1.27), (4.0, 2.04)]
    assert marks(axes, "s") == [(2.0, 1.2), (8.0, 3.11)]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "published 2026-06-08" in legend


def test_counted_and_distinct_tokens_are_drawn_to_their_ends() -> None:
    axes = draw(curves.tokens_over_time, stand_ins.full()).figure.axes[0]
    assert [line.get_ydata()[-1] for line in axes.lines] == [76.0, 19.0]
    assert [text.get_text() for text in axes.texts] == ["counted 76", "distinct 19"]


def test_acceptance_is_pooled_and_stands_on_the_collision_curve() -> None:
    drawn = draw(curves.acceptance, stand_ins.full(), stand_ins.claims())
    axes = drawn.figure.axes[0]
    assert [y for _, y in marks(axes, "o")] == [1.0, 0.72, 0.55]
    assert marks(axes, "D") == [(0.6, 0.75)]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"published", "published, stated", "stagger x2, independent draws"} <= set(legend)
    collision = [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "None"]
    assert [0.72, 0.55] in collision


@pytest.mark.parametrize("drawer", [charts.speedup, curves.acceptance])
def test_void_rows_are_not_drawn(drawer: object) -> None:
    findings = stand_ins.full()
    for name in ("speedup", "acceptance"):
        setattr(findings, name, [changed(row, void=True) for row in getattr(findings, name)])
    assert draw(drawer, findings, stand_ins.claims()) is None


def test_no_text_leaves_the_figure() -> None:
    """A long method name and a long machine name still fit."""
    findings = stand_ins.full(("a-workstation-with-a-very-long-host-name", "laptop"))
    long = "stagger x8 emission=distinct rebuild=exact draws=coupled"
    findings.speedup = [changed(row, short=long) for row in findings.speedup]
    drawn = draw(charts.speedup, findings, stand_ins.claims())
    width, height = drawn.figure.get_size_inches() * drawn.figure.dpi
    renderer = drawn.figure.canvas.get_renderer()
    texts = [text for axes in drawn.figure.axes for text in (*axes.get_yticklabels(), axes.xaxis.label)]
    titles = [axes._left_title for axes in drawn.figure.axes]
    for text in [*texts, *titles, drawn.figure._suptitle, drawn.figure._supxlabel]:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()
        assert box.y0 >= 0, text.get_text()
        assert box.y1 <= height, text.get_text()
