"""Records are whole or absent, and a time belongs to a variant that passed."""

import json
import math

import pytest

from kernels import records
from kernels.errors import KernelError


def row(**changes):
    fields = {
        "variant": "packed_mma", "format": "Q6_K", "streams": 4, "rows": 16, "cols": 256, "cache": "cold",
        "status": "ok", "reason": "", "layout": "repacked", "bytes_per_weight": 0.82,
        "weight_bytes": 3360, "bytes_read": 4000,
        "max_rel_err": 0.005, "tolerance": 0.01, "block": 0, "us": 2.5,
    }  # fmt: skip
    return records.Sample(**{**fields, **changes})


@pytest.mark.parametrize("changes", [{"status": "failed"}, {"us": math.nan}, {"block": -1}, {"status": "unsupported"}])
def test_a_row_that_makes_no_sense_cannot_be_built(changes):
    with pytest.raises(ValueError, match="packed_mma"):
        row(**changes)


def test_written_and_read_back(tmp_path):
    rows = [row(peer_us=5.0), row(status="unsupported", reason="no such chip, here", us=math.nan, block=-1)]
    records.write(tmp_path / "a", rows, {"gpu": "none"})
    back = records.read_csv(tmp_path / "a" / "timings.csv.gz")
    assert tuple(back[0]) == records.COLUMNS
    assert (back[0]["us"], back[0]["peer_us"], back[0]["ceiling_us"]) == ("2.5", "5", "")
    assert (back[1]["reason"], back[1]["us"]) == ("no such chip, here", "")
    assert json.loads((tmp_path / "a" / "env.json").read_text()) == {"gpu": "none"}
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["env.json", "timings.csv.gz"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KernelError, match=r"could not be written to .*file"):
        records.write(tmp_path / "file", [], {})
