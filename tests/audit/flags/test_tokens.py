"""Faults of counting in all their forms, and ledgers that are right and must not be flagged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.audit.show import format_audit
from tests.audit.audit_records import HEADER, Rows, clean, flags, ledger, look


@pytest.mark.parametrize("streams", [1, 3])
def test_a_right_ledger_is_not_flagged(tmp_path: Path, streams: int) -> None:
    report = look(tmp_path, ledger(clean(streams)), baseline=10.0, requested=9)
    assert report.codes == [] and report.exit_code == 0
    assert format_audit(report).endswith("nothing flagged")
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(10.0, rel=1e-6)


def spoiled(kind: str) -> Rows:
    rows = clean(2)
    match kind:
        case "one token once more":
            return [*rows, (0, 0, 8, 8, 8, "verified", 10**9)]
        case "one stream only":
            return [*rows, *[(0, 1, p, 100 + p, 9, "verified", 10**9 + p) for p in range(1, 9)]]
        case "the prefill's token":
            return [*rows, (0, 0, 0, 0, 8, "verified", 10**9)]
        case "out of order":
            return [*rows, (0, 1, 2, 102, 8, "verified", 10**9), (0, 0, 5, 5, 9, "verified", 10**9 + 1)]
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("kind", "extra"),
    [("one token once more", 1), ("one stream only", 8), ("the prefill's token", 1), ("out of order", 2)],
)
def test_duplicates_wherever_they_are(tmp_path: Path, kind: str, extra: int) -> None:
    report = look(tmp_path, ledger(spoiled(kind)), baseline=10.0)
    assert flags(report, "DUPLICATE")[0].numbers["counted"] == 18 + extra
    assert flags(report, "DUPLICATE")[0].numbers["distinct"] == 18
    assert not flags(report, "CONFLICT")


def test_the_same_position_in_two_streams_or_runs_is_no_duplicate(tmp_path: Path) -> None:
    rows = clean(2)
    again = [(1, *row[1:6], row[6] + 10**10) for row in rows]
    report = look(tmp_path, ledger([*rows, *again]), baseline=10.0)
    assert not flags(report, "DUPLICATE") and len(report.trials) == 2


def test_counts_against_brute_force(tmp_path: Path) -> None:
    draw = random.Random(5)
    for case in range(20):
        rows = [(0, s, 0, 1, -1, "prefill", 0) for s in range(3)]
        rows += [
            (0, draw.randrange(3), draw.randrange(12), 7, k, "verified", (k + 1) * 10**7)
            for k in range(draw.randrange(1, 40))
        ]
        report = look(tmp_path, ledger(rows), f"case{case}.csv", baseline=1.0)
        row = report.trials[0]
        assert row["counted"] == len(rows)
        assert row["distinct"] == len({entry[1:3] for entry in rows})
        assert bool(flags(report, "DUPLICATE")) == (row["counted"] != row["distinct"])


def test_a_replaced_token_is_a_conflict(tmp_path: Path) -> None:
    report = look(tmp_path, ledger([*clean(), (0, 0, 4, 999, 9, "verified", 10**9)]), baseline=10.0)
    assert flags(report, "CONFLICT")[0].numbers == {"conflicts": 1}


def test_holes_and_order(tmp_path: Path) -> None:
    rows = clean()
    holes = look(tmp_path, ledger([row for row in rows if row[2] not in (3, 4, 6)]), baseline=10.0)
    assert flags(holes, "GAP")[0].numbers == {"gaps": 3}
    swapped = [(*row[:2], {3: 5, 5: 3}.get(row[2], row[2]), *row[3:]) for row in rows]
    late = look(tmp_path, ledger(swapped), baseline=10.0)
    assert flags(late, "OUT_OF_ORDER")[0].numbers == {"late": 2} and not flags(late, "GAP")
    shuffled = look(tmp_path, ledger(rows[::-1]), baseline=10.0)
    assert shuffled.codes == [] and shuffled.trials[0]["per_answer_tok_s"] == pytest.approx(10.0)


def test_unverified_tokens(tmp_path: Path) -> None:
    rows = [(*row[:5], "unverified" if row[2] == 4 else row[5], row[6]) for row in clean()]
    assert flags(look(tmp_path, ledger(rows)), "UNVERIFIED")[0].numbers == {"unverified": 1}


def test_more_than_requested_is_by_answer(tmp_path: Path) -> None:
    text = ledger(clean(streams=3, tokens=9))
    assert not flags(look(tmp_path, text, requested=9), "EMITTED_MORE_THAN_REQUESTED")
    assert flags(look(tmp_path, text, requested=8), "EMITTED_MORE_THAN_REQUESTED")[0].numbers["emitted"] == 9


def test_nothing_emitted(tmp_path: Path) -> None:
    assert look(tmp_path, HEADER).codes == ["EMPTY"]
    report = look(tmp_path, "step,tokens,seconds\n0,,.1\n1,,.1\n")
    assert report.codes == ["EMPTY"] and report.exit_code == 1
    assert look(tmp_path, "step,emitted,seconds\n0,0,.1\n").codes == ["EMPTY"]


def test_overlap_without_positions(tmp_path: Path) -> None:
    text = "tokens,seconds\n5 6 7 8,.1\n6 7 8 9,.1\n7 8 9 10,.1\n8 9 10 11,.1\n"
    found = flags(look(tmp_path, text), "DUPLICATE")
    assert found[0].numbers == {"counted": 16, "distinct": 7} and "positions column" in found[0].sentence
    constant = look(tmp_path, "tokens,seconds\n" + "7 7 7,.1\n" * 5)
    assert not flags(constant, "DUPLICATE"), "a text that repeats itself is no evidence"
    honest = look(tmp_path, "tokens,seconds\n5 6 7,.1\n8 9 10,.1\n11 12 13,.1\n")
    assert not flags(honest, "DUPLICATE")
