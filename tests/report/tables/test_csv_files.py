"""The CSV files: columns, missing values, order, and that nothing of a row is lost."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pandas as pd
import pytest

from bench.judge.columns import changed
from bench.report.tables import csv_files
from bench.report.tables.values import MISSING
from tests.report import report_stand_ins as stand_ins

DESIGN = {
    "claims": "claim_id, verdict, scope, published, measured, ci_low, ci_high, unit, evidence, reason",
    "speedup": "model, method, streams, temperature, prompt_class, tok_s, baseline_tok_s, speedup, ci_low, ci_high, "
    "counted_tok_s, aggregate_tok_s, lossless, identical_share",
    "step_cost": "model, width, step_ms, relative_cost, ci_low, ci_high, predicted_tok_s_all_accepted",
    "acceptance": "model, method, streams, temperature, draws, depth, tested, accepted, rate, ci_low, ci_high, "
    "collision_mean",
    "memory": "model, streams, kv_bytes, state_bytes, measured_bytes, per_stream_bytes",
}
EXTRA = ("domain", "decomposition", "predictions", "controls", "timeline", "bandwidth", "peers", "cells")


def write(findings: object, claims: list[dict], out: Path) -> dict[str, list[dict[str, str]]]:
    paths = csv_files.write_tables(csv_files.Ordered(findings), claims, out)
    return {path.stem: list(csv.DictReader(path.open(newline=""))) for path in paths}


@pytest.mark.parametrize(
    "column",
    [[1.5, -0.0, 3.0, 999999999.0, 1234567890.0, 1e300, float("nan"), float("inf")], [1, 0, -7], ["a  b", " c", "nan"],
     [True, 2.0, None, "x"]],
)  # fmt: skip
def test_a_whole_column_is_written_as_its_values_are(column: list) -> None:
    assert csv_files.column_text(column) == [csv_files.cell_text(value) for value in column]


@pytest.mark.parametrize("filled", [True, False])
def test_every_file_of_the_design_has_its_columns(tmp_path: Path, filled: bool) -> None:
    findings = stand_ins.full() if filled else stand_ins.empty()
    write(findings, stand_ins.claims() if filled else [], tmp_path)
    for name, listed in DESIGN.items():
        header, *rows = (tmp_path / f"{name}.csv").read_text().splitlines()
        assert {*listed.split(", "), "machine", "build", "cells"} <= set(header.split(",")), name
        assert bool(rows) == filled, name
    assert all((tmp_path / f"{name}.csv").exists() for name in EXTRA)


def test_nothing_is_blank_and_pandas_reads_missing_numbers_as_nan(tmp_path: Path) -> None:
    read = write(stand_ins.full(), stand_ins.claims(), tmp_path)
    for name, rows in read.items():
        assert all(value not in ("", "nan", "None") for row in rows for value in row.values()), name
    claims = pd.read_csv(tmp_path / "claims.csv").set_index("claim_id")
    assert claims.loc["twin.four", "measured"] == 0.51
    assert pd.isna(claims.loc["twin.mi50", "measured"])
    assert claims.loc["twin.mi50", "cells"] == "none"


def test_values_are_kept_exactly_enough(tmp_path: Path) -> None:
    findings = stand_ins.empty()
    big = {"streams": 4, "kv_bytes": 24223456789, "measured_bytes": 24223456789.0, "per_stream_bytes": 1 / 3}
    findings.memory = [stand_ins.made("memory", stand_ins.origin("0" * 12), big)]
    findings.cells = [stand_ins.cell_row("0" * 12, parameters={"b": 1, "a": [2]}, guesses=True)]
    found = write(findings, [], tmp_path)
    row = found["memory"][0]
    assert row["kv_bytes"] == row["measured_bytes"] == "24223456789"
    assert float(row["per_stream_bytes"]) == pytest.approx(1 / 3, abs=1e-9)
    assert row["state_bytes"] == MISSING
    assert found["cells"][0]["guesses"] == "true"
    assert found["cells"][0]["parameters"] == '{"a": [2], "b": 1}'


def test_a_column_that_no_table_declares_is_refused(tmp_path: Path) -> None:
    claims = [stand_ins.claims()[0] | {"unforeseen": 42}]
    with pytest.raises(TypeError, match="claims has the column 'unforeseen', which Verdict does not declare"):
        write(stand_ins.full(), claims, tmp_path)


def test_what_is_true_of_a_whole_cell_stands_in_the_table_of_cells_alone(tmp_path: Path) -> None:
    read = write(stand_ins.full(), stand_ins.claims(), tmp_path)
    for name, rows in read.items():
        assert bool(rows and {"threads", "n_predict", "parameters"} <= rows[0].keys()) == (name == "cells"), name
        assert not rows or "conditions" not in rows[0], name


def test_the_order_of_the_judges_rows_does_not_matter(tmp_path: Path) -> None:
    findings, shuffled = stand_ins.full(("laptop", "server")), stand_ins.full(("laptop", "server"))
    for name in stand_ins.TABLES:
        random.Random(7).shuffle(getattr(shuffled, name))
    for name in csv_files.FILES:
        if name != "claims":
            texts = [csv_files.table_text(name, csv_files.Ordered(found).rows(name)) for found in (findings, shuffled)]
            assert texts[0] == texts[1], name


def test_claims_keep_the_order_of_their_sheet(tmp_path: Path) -> None:
    claims = stand_ins.claims()
    assert [row["claim_id"] for row in write(stand_ins.empty(), claims, tmp_path)["claims"]] == [
        claim["claim_id"] for claim in claims
    ]


def test_a_timeline_kept_as_lists_becomes_one_row_a_point(tmp_path: Path) -> None:
    findings = stand_ins.empty()
    lists = {"t_s": [0.0, 0.1], "counted": [4, 8], "distinct": [4, 5]}
    findings.timeline = [stand_ins.made("timeline", stand_ins.origin("0" * 12), lists, cell="0" * 12)]
    rows = write(findings, [], tmp_path)["timeline"]
    assert list(rows[0]) == ["cell", "t_s", "counted", "distinct", "machine", "build", "cells"]
    assert [(row["t_s"], row["counted"], row["distinct"]) for row in rows] == [("0", "4", "4"), ("0.1", "8", "5")]
    findings.timeline = [changed(findings.timeline[0], counted=[4])]
    with pytest.raises(ValueError):
        csv_files.Ordered(findings).rows("timeline")


def test_findings_without_a_table_count_as_empty(tmp_path: Path) -> None:
    assert write(object(), [], tmp_path)["speedup"] == []
