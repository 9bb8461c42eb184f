"""Every unit is taken once, in order, and shares differ by one unit at most."""

import numpy as np
import pytest

from kernels import shares
from kernels.shares import Plan, Shares


@pytest.mark.parametrize("rows,cols", [(17408, 5120), (5120, 17408), (1024, 4096), (248320, 5120), (144, 256)])
@pytest.mark.parametrize("plan", [Plan(1, 4), Plan(2, 4, per_unit=2), Plan(1, 4, pieces=3, extra=2)], ids=str)
def test_shares_cover_all_units(plan, rows, cols):
    starts = shares.share(plan, rows, cols, 132).starts(rows, cols)
    units = -(-rows // 128) * (cols // 256)
    assert starts[0] == 0 and starts[-1] == units
    assert len(starts) - 1 <= 132 * plan.per_unit
    sizes = np.diff(starts)
    assert sizes.min() >= 1
    if not plan.pieces:
        assert sizes.max() - sizes.min() <= 1


def test_pieces_end_where_groups_end_and_the_last_is_longer():
    starts = shares.share(Plan(1, 4, pieces=3, extra=2), 5120, 17408, 132).starts(5120, 17408)
    assert set(np.arange(41) * 68) <= set(starts.tolist())
    assert list(np.diff(starts)[:3]) == [22, 22, 24]


def test_too_many_pieces_for_the_chip_fall_back_to_even_shares():
    assert shares.share(Plan(1, 4, pieces=4), 5120, 17408, 132) == Shares(132, 0, 0)


def test_stage_bytes_follow_the_layout():
    assert shares.stage_bytes(272, 1) == 8 * 4352 + 256 + 128
    assert shares.stage_bytes(210, 3) == 8 * 3360 + 1024 + 256
