"""Every edit of the catalogue is caught by the check that it names; the cells that are edited are sound as they are."""

from __future__ import annotations

import pytest

from tests.faults import together
from tests.faults.edited import FAULTS
from tests.faults.records import RecordFault
from tests.faults.stored import judged, record


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_edited_record_is_caught(fault: RecordFault, tmp_path):
    edited = record(fault.cell)
    fault.edit(edited)
    found = judged(edited.write(tmp_path))
    assert found.verdict == fault.verdict, found
    assert fault.check in found.said, found


@pytest.mark.parametrize("fault", together.FAULTS, ids=lambda fault: fault.name)
def test_an_edit_shows_beside_other_cells(fault: together.TogetherFault, tmp_path):
    found = fault.tried(tmp_path)
    assert found.verdict == "void" and fault.check in found.said, found


@pytest.mark.parametrize("cell", sorted({fault.cell for fault in FAULTS}))
def test_the_cells_that_are_edited_are_sound(cell, tmp_path):
    found = judged(record(cell).write(tmp_path))
    assert found.verdict in ("sound", "warning"), found
