"""Every cheating method is caught by the check that it names; the project's own methods pass."""

from __future__ import annotations

import pytest

from tests.faults.cheating import FAULTS, MethodFault, judged, judged_method, outcome_of
from tests.faults.cheats import known_cheats


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_cheating_method_is_caught(fault: MethodFault):
    found = judged_method(fault)
    assert found.verdict == fault.verdict, found
    assert fault.check in found.said, found


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize(
    ("method", "parameters"),
    [("stagger", {"emission": "published"}), ("stagger", {"emission": "distinct", "rebuild": "exact"}),
     ("packed", {}), ("packed", {"drafter": "mtp"}), ("jacobi", {}), ("lookup", {}), ("lookup", {"adaptive": True}),
     ("mtp", {}), ("lookup_mtp", {}), ("mtp", {"draft": 3, "rollback": "checkpoint"})],
)  # fmt: skip
def test_a_sound_method_is_not_void(method, parameters, temperature):
    streams = 3 if method in ("stagger", "packed") else 1
    found = outcome_of(judged(method, streams, temperature, **parameters))
    assert found.verdict in ("sound", "warning", "divergent"), found


def test_the_runner_up_at_close_calls_passes_for_rounding_on_coarse_weights_alone():
    with known_cheats():
        row = judged("close", noise=1.2).speedup[0]
    assert (row.lossless_own, row.lossless_f16, row.lossless) == ("near_tie", "divergent", "divergent")
    assert 0 < row.f16_divergent_share <= 1 and row.f16_answers == 6


@pytest.mark.parametrize(("method", "streams"), [("packed", 3), ("lookup", 1), ("mtp", 1)])
def test_a_sound_method_that_the_width_moves_is_a_near_tie_on_coarse_weights_and_none_on_f16(method, streams):
    row = judged(method, streams, noise=0.4).speedup[0]
    assert row.lossless_f16 in ("identical", "near_tie")
    assert row.f16_divergent_share == 0 and row.f16_identical_share >= row.identical_share
