"""The control of builds that pack weights: an arm that packed nothing says nothing about the packed kernels."""

import pytest

from bench.judge.controls.packing import packing
from tests.judge.judge_cells import case_of, guess_cell

COUNTS = {"packed_columns_1": 400, "packed_columns_2_8": 90, "packed_columns_9_32": 0, "packed_wide": 12,
          "packed_tensors": 250, "packed_bytes": 22_000_000_000}  # fmt: skip
NONE = dict.fromkeys(COUNTS, 0)


@pytest.mark.parametrize(("repack", "counts", "severity"), [
    (True, COUNTS, "ok"),
    (True, NONE, "void"),
    (True, {**NONE, "packed_tensors": 250}, "void"),
    (True, {**NONE, "packed_wide": 3}, "void"),
    (False, NONE, "ok"),
    (False, COUNTS, "void"),
])  # fmt: skip
def test_an_arm_that_should_pack_packed_and_used_it(repack, counts, severity):
    cell = guess_cell()
    cell.facts["engine"]["treatment"] |= {"repack": repack, **counts}
    (found,) = packing(case_of(cell))
    assert found.severity == severity
    assert "treatment" in found.sentence


def test_a_build_that_counts_nothing_has_no_such_control():
    assert packing(case_of(guess_cell())) == []
