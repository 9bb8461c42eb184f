"""What a published rate is, by the reading of the record that gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.audit.numbers import rounding
from bench.audit.readings import explain
from bench.audit.record import read_record
from tests.audit.audit_records import clean, ledger, look

CLAIMS = [
    (10.0, "answer", []),
    (30.0, "aggregate", []),
    (30.0, "answer", ["AGGREGATE_AS_PER_ANSWER"]),
    (33.75, "aggregate", ["WINDOW"]),
    (11.25, "answer", ["WINDOW"]),
    (77.0, "answer", ["UNEXPLAINED"]),
]


@pytest.mark.parametrize(("claim", "per", "codes"), CLAIMS)
def test_what_a_claim_is(tmp_path: Path, claim: float, per: str, codes: list[str]) -> None:
    report = look(tmp_path, ledger(clean(3)), claim=claim, per=per, baseline=10.0)
    assert report.codes == codes
    assert report.claim is not None
    if codes != ["UNEXPLAINED"]:
        assert report.claim["right"] == pytest.approx(10.0 if per == "answer" else 30.0, rel=1e-3)


def test_rounding_of_a_published_figure() -> None:
    assert [rounding(value) for value in (38.1, 40.0, 9.98, 1200.0)] == [0.05, 0.5, 0.005, 0.5]


def test_a_claim_has_the_reading_with_the_fewest_faults(tmp_path: Path) -> None:
    path = tmp_path / "ledger.csv"
    path.write_text(ledger(clean(1, 1001)))
    trial = read_record(path).trials[0]
    near = explain(10.0, [trial])
    assert near is not None and near.faults == (), "10.01 with the first token inside also rounds to 10"
    exact = explain(10.01, [trial])
    assert exact is not None and exact.faults == ("WINDOW",)
