"""What the figures show: every method and machine, the judge's numbers and no others, nothing on top of anything."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from types import SimpleNamespace

import pytest

from bench.judge.columns import changed
from bench.report.figures import acceptance, classes, forest, predictions, round_time, step_cost, streams, tokens
from bench.report.figures.drawing import FIGURES
from bench.report.figures.marks import marks_text
from bench.report.figures.style import COLUMN, PAGE
from tests.report import report_stand_ins as stand_ins
from tests.report.figures.drawn import pages, planned, points

NAN = float("nan")
ALL_FIGURES = {
    "claims": forest.claims, "speedup": forest.speedup, "streams": streams.streams, "classes": classes.classes,
    "round_time": round_time.round_time, "step_cost": step_cost.step_cost, "predictions": predictions.predictions,
    "acceptance": acceptance.acceptance, "tokens_over_time": tokens.tokens_over_time,
}  # fmt: skip


def many(methods: int = 24, machines: tuple[str, ...] = ("a", "b", "c", "d")) -> SimpleNamespace:
    """Speed-ups of more arms and machines than a limit would leave."""
    findings = stand_ins.full(machines)
    findings.speedup += [
        stand_ins.speedup(f"{place:012x}", "lookup", 1, 0.5 + place / 40, machine, draft=place + 1)
        for machine in machines for place in range(methods)
    ]  # fmt: skip
    return findings


@pytest.mark.parametrize("name", ALL_FIGURES)
def test_no_machine_is_left_out(name: str) -> None:
    machines = tuple("abcdefgh")
    claims = [row | {"machine": machine} for row in stand_ins.claims() for machine in machines if row["ci_low"] == 0.46]
    plan = planned(ALL_FIGURES[name], stand_ins.full(machines), claims)
    shown = " ".join(panel.title for panel in plan.panels)
    assert [machine for machine in machines if f" {machine}," not in f" {shown},"] == []


def test_no_method_is_left_out_and_the_slowest_is_named() -> None:
    plan = planned(forest.speedup, many())
    labels = {label for panel in plan.panels for label in panel.labels}
    assert {f"lookup draft={draft}" for draft in range(1, 25) if draft != 3} <= labels
    assert "stagger x4 emission=published" in labels
    for panel in plan.panels:
        measured = [mark.x for mark in panel.marks if mark.series == forest.MEASURED]
        assert measured == sorted(measured, reverse=True)
        slowest = [mark.x for mark in panel.marks if mark.note.endswith(forest.LEAST)]
        assert slowest == [min(measured)]
    texts = [text.get_text() for page in pages(plan) for axes in page.axes for text in axes.texts]
    assert texts.count(forest.LEAST) == 4


@pytest.mark.parametrize("name", ALL_FIGURES)
@pytest.mark.parametrize("width", [PAGE, COLUMN])
def test_what_is_drawn_is_what_the_file_says(name: str, width: float) -> None:
    """Both ways: every mark of the file is on the paper, and every point on the paper is in the file."""
    plan = planned(ALL_FIGURES[name], stand_ins.full(("a", "b")), stand_ins.claims())
    rows = list(csv.DictReader(io.StringIO(marks_text(plan))))
    axes = [one for page in pages(plan, width, titled=False) for one in page.axes]
    assert len(axes) == len(plan.panels)
    if name in ("round_time", "classes"):
        shown = sorted(f"{bar.get_width():.9g}" for one in axes for bar in one.patches) if name == "round_time" else (
            sorted(text.get_text().strip("()") for one in axes for text in one.texts if text.get_gid()))  # fmt: skip
        told = [row["x"] for row in rows if float(row["x"]) > 0] if name == "round_time" else [
            f"{float(row['y']):.2f}" for row in rows]  # fmt: skip
        assert shown == sorted(told) != []
        return
    rows = [row for row in rows if row["series"] != tokens.PAUSE]
    # Rows of words have no number on the vertical axis.
    told = sorted((row["series"], row["x"], row["y"]) for row in rows)
    named = {one for one, panel in zip(axes, plan.panels, strict=True) if panel.labels}
    found = [(one, *point) for one in axes for point in points(one)]
    shown = sorted((series, f"{x:.9g}", "" if one in named else f"{y:.9g}") for one, series, x, y in found)
    assert shown == told != []


def test_speedups_stand_beside_counted_and_published_ones() -> None:
    plan = planned(forest.speedup, stand_ins.full(), stand_ins.claims())
    (axes,) = pages(plan)[0].axes
    assert plan.panels[0].labels == ("packed x4, sum of streams", "stagger x4 emission=published")
    assert [label.get_text() for label in axes.get_yticklabels()] == list(plan.panels[0].labels)
    by_series = {series: [x for one, x, _ in points(axes) if one == series] for series, _, _ in points(axes)}
    assert by_series == {forest.MEASURED: [1.93, 0.51], forest.COUNTED: [1.94], forest.CLAIMED: [1.95, 1.96]}
    assert axes.get_xscale() == "log"
    assert plan.cells == ("0a0a0a0a0a0a", "0b0b0b0b0b0b")


def test_an_output_that_differs_is_hollow() -> None:
    findings = stand_ins.empty()
    findings.speedup = [stand_ins.speedup("a" * 12, "stagger", 4, 0.5, lossless="divergent", identical_share=0.5)]
    plan = planned(forest.speedup, findings)
    assert [mark.series for mark in plan.panels[0].marks] == [forest.DIFFERS]
    assert {line.get_gid(): line.get_markerfacecolor() for line in pages(plan)[0].axes[0].lines if line.get_gid()} == {
        f"data {forest.DIFFERS}": "white"
    }


def test_every_temperature_has_a_row_and_the_longest_measurement_counts() -> None:
    findings = stand_ins.empty()
    findings.speedup = [
        stand_ins.speedup("a" * 12, "stagger", 4, 0.4, temperature=0.7),
        stand_ins.speedup("b" * 12, "stagger", 4, 0.5, n_blocks=3),
        stand_ins.speedup("c" * 12, "stagger", 4, 0.6, n_blocks=30),
    ]
    plan = planned(forest.speedup, findings)
    assert [mark.x for mark in plan.panels[0].marks] == [0.6, 0.4]
    assert plan.left_out == "shorter measurements of the same arm: 1"


def test_a_wide_interval_ends_in_an_arrow_and_squeezes_nothing() -> None:
    findings = stand_ins.empty()
    findings.speedup = [
        stand_ins.speedup("a" * 12, "stagger", 2, 0.95, ci_low=0.08, ci_high=11.3),
        stand_ins.speedup("b" * 12, "stagger", 4, 0.5),
    ]
    plan = planned(forest.speedup, findings)
    (axes,) = pages(plan)[0].axes
    low, high = axes.get_xlim()
    assert 0.2 < low < 0.3 and 1.9 < high < 2.5
    arrows = {line.get_marker(): [*map(float, line.get_xdata())] for line in axes.lines if line.get_marker() in "<>"}
    assert arrows == {"<": [pytest.approx(low)], ">": [pytest.approx(high)]}
    row = next(csv.DictReader(io.StringIO(marks_text(plan))))
    assert (row["low"], row["high"]) == ("0.08", "11.3")
    assert "arrow" in plan.says


def test_claims_stand_by_verdict_beside_what_was_published() -> None:
    plan = planned(forest.claims, stand_ins.full(), stand_ins.claims())
    (panel,) = plan.panels
    assert [(mark.series, mark.label, mark.x) for mark in panel.marks] == [
        ("refuted", "twin.four", 0.51), (forest.CLAIMED, "twin.four", 1.96),
    ]  # fmt: skip
    assert panel.marks[0].note.endswith(forest.FURTHEST)


def test_streams_are_told_counted_distinct_and_in_sum() -> None:
    plan = planned(streams.streams, stand_ins.full(), stand_ins.claims())
    found = {(mark.series, mark.x, mark.y) for panel in plan.panels for mark in panel.marks}
    assert (streams.ANSWER, 4.0, 0.51) in found and (streams.SUM, 4.0, 1.93) in found
    assert (streams.CLAIMED, 4.0, 1.96) in found


def test_a_map_has_a_field_for_each_class_and_says_what_is_unsure() -> None:
    findings = stand_ins.full()
    unsure = {"prompt_class": "code", "ci_low": 0.9, "ci_high": 1.1}
    findings.speedup.append(stand_ins.speedup("0a" * 6, "stagger", 4, 1.02, **unsure))
    plan = planned(classes.classes, findings)
    (axes,) = pages(plan)[0].axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["all", "code", "prose"]
    assert {text.get_text() for text in axes.texts if text.get_gid()} == {"0.51", "0.47", "(1.02)"}


def test_bars_add_up_to_the_parts_of_a_round_and_say_what_it_gives() -> None:
    findings = stand_ins.full()
    findings.decomposition.append(stand_ins.decomposition("9" * 12, "treatment", method="jacobi", void=True))
    plan = planned(round_time.round_time, findings)
    (axes,) = pages(plan)[0].axes
    assert plan.panels[0].labels == ("plain decoding", "stagger x4 emission=published")
    assert max(bar.get_x() + bar.get_width() for bar in axes.patches) == pytest.approx(20.8)
    assert len({bar.get_hatch() for bar in axes.patches}) == 4
    assert "void rows, control arms and one stream alone: 2" in plan.left_out


def test_step_costs_stand_beside_every_published_curve_on_logarithmic_axes() -> None:
    plan = planned(step_cost.step_cost, stand_ins.full(), stand_ins.claims())
    assert [panel.title for panel in plan.panels][1:] == ["published: twin README"]
    measured, published = pages(plan)[0].axes
    assert [(x, y) for _, x, y in points(measured)] == [(1.0, 1.0), (2.0, 1.3), (4.0, 2.0), (8.0, 3.4)]
    assert sorted((x, y) for _, x, y in points(published)) == [(2.0, 1.2), (2.0, 1.27), (4.0, 2.04), (8.0, 3.11)]
    assert (measured.get_xscale(), measured.get_yscale()) == ("log", "log")
    assert measured.get_ylim() == published.get_ylim()


def test_the_largest_jump_of_a_curve_is_named() -> None:
    findings = stand_ins.empty()
    costs = {1: 1.0, 2: 1.3, 8: 1.5, 9: 3.0, 10: 3.1}
    findings.step_cost = [
        stand_ins.made("step_cost", stand_ins.origin("a" * 12), layout="tokens", width=width, relative_cost=cost)
        for width, cost in costs.items()
    ]
    plan = planned(step_cost.step_cost, findings)
    assert [mark.note for mark in plan.panels[0].marks if mark.note] == ["jump 2.00x, width 8 to 9"]


def test_acceptance_stands_on_the_collision_curve() -> None:
    plan = planned(acceptance.acceptance, stand_ins.full(), stand_ins.claims())
    (panel,) = plan.panels
    assert [mark.y for mark in panel.of(acceptance.FOUND)] == [1.0, 0.72, 0.55]
    assert [mark.y for mark in panel.of(acceptance.CURVE)] == [0.72, 0.55]
    assert [(mark.x, mark.y) for mark in panel.of(acceptance.CLAIMED)] == [(0.6, 0.75)]
    (stated,) = panel.of(acceptance.STATED)
    assert (stated.low, stated.high) == (0.5, 0.65)


def test_counted_and_distinct_tokens_are_drawn_to_their_ends_and_a_pause_is_shown() -> None:
    plan = planned(tokens.tokens_over_time, stand_ins.full())
    (axes,) = pages(plan)[0].axes
    assert [text.get_text() for text in axes.texts if text.get_text().isdigit()] == ["76", "19"]
    assert plan.panels[0].of(tokens.PAUSE) == []
    findings = stand_ins.full()
    times = [0.1 * step + (2.0 if step > 9 else 0.0) for step in range(20)]
    findings.timeline = [changed(findings.timeline[0], t_s=times)]
    (pause,) = planned(tokens.tokens_over_time, findings).panels[0].of(tokens.PAUSE)
    assert (pause.low, pause.high) == (pytest.approx(0.9), pytest.approx(3.0))


@pytest.mark.parametrize("drawer", [forest.speedup, streams.streams, acceptance.acceptance])
def test_void_rows_are_not_drawn(drawer: object) -> None:
    findings = stand_ins.full()
    for name in ("speedup", "acceptance"):
        setattr(findings, name, [changed(row, void=True) for row in getattr(findings, name)])
    assert planned(drawer, findings, stand_ins.claims()) is None


def trial(cell: str, became: str, value: float, **more: object) -> object:
    about = {"difference": "build", "was": "0.3.36-abc-cuda", "became": became, "prompt_class": "all",
             "scope": "answer", "speedup": value, "ci_low": value * 0.98, "ci_high": value * 1.02,
             "lossless": "near_tie", "n_blocks": 8}  # fmt: skip
    return stand_ins.made("trials", stand_ins.origin(cell), stand_ins.subject("packed", 4), about, more)


def test_builds_on_trial_are_drawn_end_to_end_when_there_are_such_cells() -> None:
    findings = stand_ins.empty()
    build = "0.3.36-abc-cuda+packed"
    findings.trials = [trial("a" * 12, build, 1.4, scope="aggregate"), trial("b" * 12, build, 1.02),
                       trial("c" * 12, build, 9.0, void=True)]  # fmt: skip
    plan = planned(forest.trials, findings)
    assert [mark.x for mark in plan.panels[0].marks] == [1.4, 1.02]
    assert "build 0.3.36-abc-cuda+packed, against 0.3.36-abc-cuda" in plan.panels[0].labels[0]
    assert FIGURES["trials"][0] == ("trials",)


def boxes(page: object) -> list[tuple[str, object]]:
    """All texts of a page with the room that they take."""
    page.canvas.draw()
    renderer = page.canvas.get_renderer()
    texts = [text for axes in page.axes for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label)]
    for axis in (axis for axes in page.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        # A tick beyond the ends of its axis is not drawn.
        texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    texts += [text for legend in page.legends for text in legend.get_texts()] + page.texts
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text().strip()]


@pytest.mark.parametrize("name", ALL_FIGURES)
@pytest.mark.parametrize("width", [PAGE, COLUMN])
def test_no_text_leaves_the_figure_and_no_legend_lies_on_a_panel(name: str, width: float) -> None:
    """Long names and a long machine name still fit."""
    findings = stand_ins.full(("a-workstation-with-a-very-long-host-name", "laptop"))
    long = "stagger x8 emission=distinct rebuild=exact draws=coupled adapter=a-very-long-name-of-a-file.F16.gguf"
    findings.speedup = [changed(row, short=long) for row in findings.speedup]
    for page in pages(planned(ALL_FIGURES[name], findings, stand_ins.claims()), width):
        across, up = page.get_size_inches() * page.dpi
        for text, box in boxes(page):
            assert box.x0 >= -1 and box.x1 <= across + 1 and box.y0 >= -1 and box.y1 <= up + 1, text
        for legend in page.legends:
            band = legend.get_window_extent(page.canvas.get_renderer())
            assert all(band.y0 >= axes.bbox.y1 - 1 for axes in page.axes)
        tall = [axes.bbox for axes in page.axes]
        assert not any(one.overlaps(other) for place, one in enumerate(tall) for other in tall[place + 1 :])


def test_rows_of_one_panel_do_not_lie_on_each_other() -> None:
    plan = planned(forest.speedup, many(methods=60))
    for page in pages(plan, COLUMN, titled=False):
        renderer = page.canvas.get_renderer()
        for axes in page.axes:
            labels = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
            ordered = sorted(labels, key=lambda box: -box.y1)
            assert all(above.y0 >= below.y1 - 0.5 for above, below in pairwise(ordered))
