"""Every cheating method is caught by the check that it names; the project's own methods pass."""

from __future__ import annotations

import pytest

from tests.faults.cheating import FAULTS, MethodFault, judged, judged_method


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
    found = judged(method, streams, temperature, **parameters)
    assert found.verdict in ("sound", "warning", "divergent"), found
