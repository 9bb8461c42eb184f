"""The sections about guesses: what they predict, how often they are accepted, and whether they change what is drawn.

Knows nothing about files and templates.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.report.figures.charts import describe, is_void
from bench.report.page.section import (
    Column,
    Section,
    by_group,
    decimals_of,
    field_of,
    ids_of,
    percent_interval,
    share_of,
)
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, figure, fixed, get, interval, line, number
from bench.report.terminal.verdicts import prediction_line

CONTROLS = {"treatment": "", "oracle": ", all guesses right", "sabotage": ", all guesses wrong"}
PREDICTED = (
    "*predicted* prices the decodes of an arm's own rounds by the step-cost curve of the profile and takes all else as "
    "measured, over the measured baseline; *changes of width* is the factor that decodes after another width cost, as "
    "the cell's other arms show. *from acceptance alone* knows only how guesses were accepted by depth, so it holds "
    "for any draft length: the best one is that with the highest value (*projected* beyond the depths tested). Void "
    "cells are left out."
)
_VERDICT_OF_DRAWS = {"same": "plain decoding's distribution", "different": "another one"}


def predictions(tables: Ordered, index: CellIndex) -> Section:
    every = tables.rows("predictions")
    rows = [row for row in every if get(row, "prompt_class") in ("all", None) and not is_void(row)]
    rows = sorted(rows, key=lambda row: list(CONTROLS).index(line(get(row, "arm"))))
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index) + CONTROLS[line(get(row, "arm"))]),
        ("predicted", decimals_of("predicted", 2)),
        ("measured", decimals_of("measured", 2)),
        ("measured / predicted", decimals_of("ratio", 3)),
        ("95 % interval", lambda row: interval(row.get("ratio_low"), row.get("ratio_high"))),
        ("from the curve alone", decimals_of("curve_only", 2)),
        ("changes of width", decimals_of("alternation", 3)),
        ("from acceptance alone", decimals_of("from_draws", 2)),
        ("best draft", lambda row: number(get(row, "best_draft"))),
        ("its speed-up", decimals_of("best_speedup", 2)),
        ("95 % interval of it", lambda row: interval(row.get("best_low"), row.get("best_high"))),
        ("acceptance by depth", lambda row: line(get(row, "best_kind") or MISSING)),
        ("no price for", lambda row: line(get(row, "note") or "nothing")),
        ("cells", ids_of),
    ]
    shown = by_group(rows, columns, index, "predictions.csv")
    intro = f"{PREDICTED} {prediction_line(every)}"
    empty = "No contrast has a step-cost curve of the same machine, build, model and settings."
    return Section("predictions", "Predicted and measured", intro, empty, shown, ("predictions",))


def acceptance(tables: Ordered, index: CellIndex) -> Section:
    rows = [row for row in tables.rows("acceptance") if figure(row, "position") in (0.0, None)]
    columns: list[Column] = [
        ("method", lambda row: number(index.find(row, "method"))),
        ("streams", field_of("streams")),
        ("T", field_of("temperature")),
        ("draws", field_of("draws")),
        ("accepted / tested", lambda row: f"{number(row.get('accepted'))} / {number(row.get('tested'))}"),
        ("rate", lambda row: "void" if is_void(row) else share_of("rate")(row)),
        ("95 % interval", lambda row: MISSING if is_void(row) else percent_interval(row)),
        ("collision probability", share_of("collision_mean")),
        ("difference", decimals_of("difference", 4)),
        ("95 % interval of it", lambda row: interval(row.get("difference_low"), row.get("difference_high"), 4)),
        ("cells", ids_of),
    ]
    shown = by_group(rows, columns, index, "acceptance.csv")
    intro = (
        "All positions pooled; by position: `acceptance.csv`. Two independent draws from one distribution agree with "
        "its collision probability, the sum of p(x)^2. Acceptance says nothing about speed."
    )
    return Section("acceptance", "Acceptance", intro, "No guess was tested.", shown, ("acceptance",))


def distribution(tables: Ordered, index: CellIndex) -> Section:
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index) + (" (planted fault)" if row.get("arm") == "biased" else "")),
        ("draws come from", lambda row: _VERDICT_OF_DRAWS.get(get(row, "verdict"), number(get(row, "verdict")))),
        ("tokens", field_of("tokens")),
        ("compared with a guess", field_of("tested")),
        ("prefixes", field_of("prefixes")),
        ("total variation", decimals_of("tv", 3)),
        ("expected of so many", decimals_of("tv_expected", 3)),
        ("p", field_of("p", digits=2)),
        ("smallest visible", decimals_of("visible_tv", 3)),
        ("cells", ids_of),
    ]
    shown = by_group(tables.rows("distribution"), columns, index, "distribution.csv")
    intro = (
        "Next tokens of many short runs behind one prefix, against plain decoding's exact probabilities there "
        "(chi-square; total variation of as many sound draws stands beside the measured one). The planted fault takes "
        "a guess whenever it is among the two likeliest tokens; a test that does not see it says nothing."
    )
    empty = "No draws were counted; `measure.distribution=1000` counts so many of each arm above temperature 0."
    return Section("distribution", "Distribution of the draws", intro, empty, shown)


def domain(tables: Ordered, index: CellIndex) -> Section:
    """On and off a tuned drafter's domain, the excess over a reference beside the plain acceptance."""
    columns: list[Column] = [
        ("method", lambda row: describe(row, index)),
        ("score of an answer", _score),
        ("guesses", lambda row: "all" if row.get("window") == 0 else number(row.get("window"))),
        ("on the domain", _side("on")),
        ("off it", _side("off")),
        ("AUC", _beside("auc")),
        ("threshold", decimals_of("threshold", 3)),
        ("false alarms", _beside("false_alarm")),
        ("misses", _beside("miss")),
        ("guesses needed", field_of("needed")),
        ("tells", lambda row: "void" if is_void(row) else number(get(row, "tells"))),
        ("by class", field_of("by_class")),
        ("cells", ids_of),
    ]
    shown = by_group(tables.rows("domain"), columns, index, "domain.csv")
    intro = (
        "How often guesses are accepted on the domain that a prompt set names and off it, and whether a low score says "
        "that an answer is off it: AUC 0.5 is chance, and below that the signal points the wrong way. The threshold "
        "that judges a prompt is made of the other prompts. *collision* is the predictability of the text alone; "
        "*excess* is what acceptance has beyond that, or beyond a drafter without the tuning on the same answers. "
        "Where acceptance tells and its excess does not, the text is harder and it is not the tuning that shows. "
        "*guesses needed*: the fewest from which on both error rates average 10 % or less. Intervals are over prompts."
    )
    empty = "No cell's prompts name a domain; those of `python -m bench sweep method=adapter prompts=pydoc` do."
    return Section("domain", "On and off a drafter's domain", intro, empty, shown)


def _score(row: Row) -> str:
    against = get(row, "against")
    return number(get(row, "signal")) + (f" over {against}" if against not in (None, "none") else "")


def _side(side: str) -> Callable[[Row], str]:
    return lambda row: _with_interval(row, f"{side}_mean", side)


def _beside(name: str) -> Callable[[Row], str]:
    return lambda row: _with_interval(row, name, name)


def _with_interval(row: Row, name: str, stem: str) -> str:
    """A figure and its interval in one column; a table with a column for each end would not fit a page."""
    told = fixed(row.get(name), 2)
    limits = interval(row.get(f"{stem}_low"), row.get(f"{stem}_high"), 2)
    return told if MISSING in (told, limits) else f"{told} ({limits})"
