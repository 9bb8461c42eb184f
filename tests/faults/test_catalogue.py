"""The catalogue as a whole: enough faults, each told apart, and those of sheets and files caught."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.judge.invariants import INVARIANTS
from tests.faults import __main__ as command
from tests.faults.catalogue import Fault, catalogue
from tests.faults.stored import Outcome

QUICK = [fault for fault in catalogue() if fault.kind in ("sheet", "file")]


def test_there_are_enough_faults_and_none_is_there_twice():
    assert len(catalogue()) >= 100
    assert not [name for name, count in Counter((one.kind, one.name) for one in catalogue()).items() if count > 1]


def test_every_invariant_has_a_fault_that_it_must_catch():
    tried = {fault.check for fault in catalogue()}
    assert {one.name for one in INVARIANTS} <= tried


@pytest.mark.parametrize("fault", QUICK, ids=lambda fault: fault.name)
def test_a_fault_is_caught(fault: Fault, tmp_path):
    assert fault.fails(tmp_path) == ""


def test_the_command_prints_each_fault_and_fails_with_one_that_was_missed(monkeypatch, capsys):
    caught = Fault("file", "a good one", "A_FLAG", "flagged", lambda folder: Outcome("flagged", {"A_FLAG": "it is"}))
    missed = Fault("file", "a bad one", "A_FLAG", "flagged", lambda folder: Outcome("clean", {}))
    monkeypatch.setattr(command, "catalogue", lambda: [caught])
    assert command.main() == 0
    monkeypatch.setattr(command, "catalogue", lambda: [caught, missed])
    assert command.main() == 1
    told = capsys.readouterr().out
    assert "1 of 2 faults caught" in told and "MISSED" in told and "the verdict is clean, not flagged" in told
