"""Published points: which claims become points, and which measured row they stand beside."""

from __future__ import annotations

import pytest

from bench.report.figures.published import SpeedupClaims, acceptance_claims, acceptance_points, cost_curves, spans
from tests.report import report_stand_ins as stand_ins

ROW = stand_ins.speedup("0" * 12, "stagger", 4, 0.5)


@pytest.mark.parametrize(
    ("value", "found"),
    [(0.7, [(0.7, 0.7)]), ("0.7", [(0.7, 0.7)]), ("0.6..0.7", [(0.6, 0.7)]), ({"from": 0.6, "to": 0.7}, [(0.6, 0.7)]),
     ("0.3/0.7", [(0.3, 0.3), (0.7, 0.7)]), ([2, 4], [(2.0, 2.0), (4.0, 4.0)]), ("any", []), (None, []), (True, []),
     (float("inf"), [])],
)  # fmt: skip
def test_spans(value: object, found: list[tuple[float, float]]) -> None:
    assert spans(value) == found


def speedup_points(claims: list[dict], row: object) -> list[tuple[float, float]]:
    return [span for span, _ in SpeedupClaims(claims).beside(row)]


def test_step_costs_are_kept_apart_by_what_published_them() -> None:
    found = cost_curves(stand_ins.claims())
    assert [[(point.series, point.x[0], point.y[0]) for point in curve] for curve in found] == [
        [("2026-06-08", 2.0, 1.27), ("2026-06-08", 4.0, 2.04), ("2026-06-09", 2.0, 1.2), ("2026-06-09", 8.0, 3.11)],
    ]
    assert {point.document for point in found[0]} == {"twin README", "twin PLAN"}


def test_only_measured_costs_of_a_width_are_drawn_and_each_sheet_has_a_curve() -> None:
    def cost(width: int, value: object, source: str, **more: object) -> dict:
        told = {"scope": f"width={width}", "published": value, "source": source, **more}
        return stand_ins.claim("a.b", "not_run", "step_cost", None, None) | told

    claims = [
        cost(2, 1.2, "long"), cost(4, 1.7, "long"), cost(4, 4.0, "long"), cost(32, 6.9, "long"),
        cost(3, 87.6, "long", unit="ms"), cost(6, "sub-linear", "long"), cost(8, 1.1, "long", evidence="projected"),
        cost(8, "1.0 to 2.0", "long"), cost(4, 0.01, "other", scope={"width": 4, "machine": "mi50"}),
        cost(2, 1.1, "short") | {"claim_id": "c.d"},
    ]  # fmt: skip
    assert [[(point.x[0], point.y[0]) for point in curve] for curve in cost_curves(claims)] == [
        [(2.0, 1.2), (4.0, 1.7), (32.0, 6.9)], [(2.0, 1.1)],
    ]  # fmt: skip


def test_percentages_and_ranges_become_shares_and_other_methods_stay_out() -> None:
    other = stand_ins.claim("c", "not_run", "acceptance", "method=mtp, temperature=0", 0.886, unit="share")
    gap = stand_ins.claim("d", "not_run", "acceptance", "temperature=0.6", 0.0, unit="difference")
    claims = [*stand_ins.claims(), other, gap]
    expected = [((0.6, 0.6), (0.75, 0.75), "measured"), ((0.6, 0.7), (0.5, 0.65), "stated")]
    read = acceptance_claims(claims)
    assert [(point.x, point.y, point.evidence) for point in acceptance_points(read, ["stagger"])] == expected
    assert len(acceptance_points(read, ["stagger", "mtp"])) == 3


def test_a_projection_is_not_drawn_as_a_published_speedup() -> None:
    scope = "method=stagger, streams=4"
    claims = [stand_ins.claim("a", "not_run", "speedup", scope, 4.0, evidence="projected")]
    assert speedup_points(claims, ROW) == []


@pytest.mark.parametrize(
    ("scope", "matches"),
    [
        ("method=stagger, streams=4", True),
        ("method=stagger, streams=2/4, temperature=any", True),
        ("method=stagger, streams=4, temperature=0..0.3", True),
        ("method=stagger, streams=4, temperature=0.6", False),
        ("method=stagger, streams=4, per=aggregate", False),
        ("method=stagger, streams=4, emission=distinct", False),
        ("method=stagger, streams=3", False),
        ("streams=4", False),
        ("method=packed, streams=4", False),
    ],
)
def test_a_speedup_stands_beside_the_row_that_it_is_about(scope: str, matches: bool) -> None:
    found = speedup_points([stand_ins.claim("a", "refuted", "speedup", scope, 1.96)], ROW)
    assert found == ([(1.96, 1.96)] if matches else [])


def test_a_scope_without_emission_is_about_the_published_loop() -> None:
    claims = [stand_ins.claim("a", "refuted", "speedup", "method=stagger, streams=4", 1.96)]
    assert speedup_points(claims, stand_ins.speedup("0" * 12, "stagger", 4, 0.5, emission="distinct")) == []
    packed = stand_ins.claim("b", "reproduced", "aggregate", "method=packed, streams=4", 1.95)
    summed = stand_ins.speedup("0" * 12, "packed", 4, 1.9, scope="aggregate")
    assert speedup_points([packed], summed) == [(1.95, 1.95)]


def test_a_rate_is_not_drawn_on_an_axis_of_ratios() -> None:
    claims = [stand_ins.claim("a", "not_comparable", "speedup", "method=stagger, streams=4", 38.1, unit="tok/s")]
    assert speedup_points(claims, ROW) == []
