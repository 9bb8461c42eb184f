"""The sections about guesses: what they predict, how often they are accepted, and whether they change what is drawn.

Knows nothing about files and templates.
"""

from __future__ import annotations

from bench.judge.arm import COUNTED, ROLES
from bench.report.page.section import Column, Section, by_group, ids_of, limits, shown, spans, unless_void
from bench.report.tables.arms import describe, is_void, of_all_prompts, prediction_line, with_role
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, get, line, number

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
    order = list(ROLES)
    rows = [row for row in of_all_prompts(every) if not is_void(row)]
    rows = sorted(rows, key=lambda row: (bool(ROLES[line(get(row, "arm"))].words), -order.index(line(get(row, "arm")))))
    columns: list[Column] = [
        ("arm", lambda row: with_role(row, index)),
        *shown("predictions", "predicted", "measured", "ratio"),
        limits("predictions", "ratio"),
        *shown("predictions", "curve_only", "alternation", "from_draws", "best_draft", "best_speedup"),
        limits("predictions", "best_speedup", "95 % interval of it"),
        *shown("predictions", "best_kind"),
        ("no price for", lambda row: line(get(row, "note") or "nothing")),
        ("cells", ids_of),
    ]
    made = by_group(rows, columns, index, "predictions.csv")
    intro = f"{PREDICTED} {prediction_line(every)}"
    empty = "No contrast has a step-cost curve of the same machine, build, model and settings."
    return Section("predictions", "Predicted and measured", intro, empty, made, ("predictions",))


def acceptance(tables: Ordered, index: CellIndex) -> Section:
    rows = [row for row in tables.rows("acceptance") if get(row, "depth") == 0]
    columns: list[Column] = [
        ("arm", lambda row: line(get(row, "short"))),
        *shown("acceptance", "streams", "temperature", "draws"),
        ("accepted / tested", lambda row: f"{number(row.get('accepted'))} / {number(row.get('tested'))}"),
        *map(unless_void, shown("acceptance", "rate")),
        unless_void(limits("acceptance", "rate"), MISSING),
        *shown("acceptance", "collision_mean", "difference"),
        limits("acceptance", "difference", "95 % interval of it"),
        ("cells", ids_of),
    ]
    made = by_group(rows, columns, index, "acceptance.csv")
    intro = (
        "All depths pooled; by depth: `acceptance.csv`. Two independent draws from one distribution agree with "
        "its collision probability, the sum of p(x)^2. Acceptance says nothing about speed."
    )
    return Section("acceptance", "Acceptance", intro, "No guess was tested.", made, ("acceptance",))


def distribution(tables: Ordered, index: CellIndex) -> Section:
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index) + _planted(row)),
        ("draws come from", lambda row: _VERDICT_OF_DRAWS.get(line(get(row, "verdict")), line(get(row, "verdict")))),
        *shown("distribution", "tokens", "tested", "prefixes", "tv", "tv_expected"),
        ("p", lambda row: number(get(row, "p"), 2)),
        *shown("distribution", "visible_tv"),
        ("cells", ids_of),
    ]
    made = by_group(tables.rows("distribution"), columns, index, "distribution.csv")
    intro = (
        "Next tokens of many short runs behind one prefix, against plain decoding's exact probabilities there "
        "(chi-square; total variation of as many sound draws stands beside the measured one). The planted fault takes "
        "a guess whenever it is among the two likeliest tokens; a test that does not see it says nothing."
    )
    empty = "No draws were counted; `measure.distribution=1000` counts so many of each arm above temperature 0."
    return Section("distribution", "Distribution of the draws", intro, empty, made)


def _planted(row: Row) -> str:
    words = COUNTED[line(get(row, "arm"))]
    return f" ({words})" if words else ""


def domain(tables: Ordered, index: CellIndex) -> Section:
    """On and off a tuned drafter's domain, the excess over a reference beside the plain acceptance."""
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index)),
        ("score of an answer", _score),
        ("guesses", lambda row: "all" if row.get("window") == 0 else number(row.get("window"))),
        *spans("domain", "on_mean", "off_mean", "auc"),
        *shown("domain", "threshold"),
        *spans("domain", "false_alarm", "miss"),
        *shown("domain", "needed"),
        *map(unless_void, shown("domain", "tells")),
        *shown("domain", "by_class"),
        ("cells", ids_of),
    ]
    made = by_group(tables.rows("domain"), columns, index, "domain.csv")
    intro = (
        "How often guesses are accepted on the domain that a prompt set names and off it, and whether a low score says "
        "that an answer is off it: AUC 0.5 is chance, and below that the signal points the wrong way. The threshold "
        "that judges a prompt is made of the other prompts. *collision* is the predictability of the text alone; "
        "*excess* is what acceptance has beyond that, or beyond a drafter without the tuning on the same answers. "
        "Where acceptance tells and its excess does not, the text is harder and it is not the tuning that shows. "
        "*guesses needed*: the fewest from which on both error rates average 10 % or less. Intervals are over prompts."
    )
    empty = "No cell's prompts name a domain; those of `python -m bench sweep method=adapter prompts=pydoc` do."
    return Section("domain", "On and off a drafter's domain", intro, empty, made)


def _score(row: Row) -> str:
    against = get(row, "against")
    return number(get(row, "signal")) + (f" over {against}" if against not in (None, "none") else "")
