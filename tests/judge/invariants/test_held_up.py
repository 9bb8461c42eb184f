"""Time in no account: one run that was held up says nothing, a method that takes some in most of its runs does."""

from __future__ import annotations

from pathlib import Path

from tests.faults.sharp import SHARP
from tests.faults.stored import judged, record

HELD_NS = 500_000_000


def accounts(folder: Path, *, every: bool) -> bool:
    """Whether the account fails when one run of the treatment, or every one, is over so much later."""
    edited = record(SHARP)
    runs = edited.tables["runs"]
    later = runs.index[runs["arm"] == "treatment"]
    runs.loc[later if every else later[:1], "finish_ns"] += HELD_NS
    return "account" in judged(edited.write(folder)).said


def test_one_run_that_was_held_up_voids_nothing_and_all_of_an_arm_do(tmp_path):
    assert not accounts(tmp_path / "one", every=False)
    assert accounts(tmp_path / "all", every=True)
