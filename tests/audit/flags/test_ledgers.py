"""What no run leaves in a ledger, by hand, each side of what decides; and what is no copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.audit.audit import audit
from bench.audit.options import AuditOptions
from tests.faults.foreign import PLAIN, SAMPLES, UNEVEN, bench, ledger, twice

Row = tuple[int, int, int, int, str, int]


def told(folder: Path, text: str) -> dict[str, str]:
    path = folder / "record.csv"
    path.write_text(text)
    return {flag.code: flag.sentence for flag in audit(path, AuditOptions()).flags if flag.code != "NO_BASELINE"}


def together(count: int) -> list[Row]:
    """A ledger whose rounds from 10 on end when the round before them does, `count` times."""
    return [(*row[:5], 1000 if 10 <= row[1] <= 10 + count else row[5]) if row[1] <= 10 + count else row
            for row in PLAIN if not 0 < row[1] < 10 or row[5] < 1000]  # fmt: skip


@pytest.mark.parametrize(("count", "fault"), [(7, False), (8, True)])
def test_several_rounds_do_not_end_at_one_time(tmp_path: Path, count: int, fault: bool) -> None:
    found = told(tmp_path, ledger(together(count)))
    assert ("INCONSISTENT" in found) == fault
    assert not fault or f"{count} rounds end when the round before them does" in found["INCONSISTENT"]


def test_rounds_go_on(tmp_path: Path) -> None:
    back = [(*row[:3], 3 if row[1] == 20 else row[3], *row[4:]) for row in UNEVEN]
    assert "1 rows are of an earlier round than a row before them" in told(tmp_path, ledger(back))["INCONSISTENT"]
    assert told(tmp_path, ledger(UNEVEN)) == {} == told(tmp_path, ledger(PLAIN))


def test_rounds_of_two_streams_may_be_numbered_apart(tmp_path: Path) -> None:
    other = [(1, row[1], row[2] + 100, row[3] + 50 if row[1] else -1, *row[4:]) for row in UNEVEN]
    assert "INCONSISTENT" not in told(tmp_path, ledger(UNEVEN + other))


def test_the_prefill_gives_the_first_token_alone(tmp_path: Path) -> None:
    second = [(*row[:3], -1, "prefill", row[5]) if row[1] == 1 else row for row in UNEVEN]
    assert "1 rows are of the prefill, and not the first" in told(tmp_path, ledger(second))["INCONSISTENT"]


@pytest.mark.parametrize(("length", "fault"), [(7, False), (8, True)])
def test_two_streams_that_say_one_text_are_told(tmp_path: Path, length: int, fault: bool) -> None:
    rows = [(stream, *row[1:]) for row in UNEVEN[:length] for stream in (0, 3)]
    found = told(tmp_path, ledger(rows))
    assert ("COPIED" in found) == fault
    assert not fault or f"stream 3 says the {length} tokens of stream 0" in found["COPIED"]


def test_a_run_that_is_a_copy_is_told_and_one_of_a_coarse_clock_is_none(tmp_path: Path) -> None:
    assert "at the distances of run 0, to the nanosecond" in told(tmp_path, twice(UNEVEN))["COPIED"]
    assert told(tmp_path, twice(PLAIN)) == {}
    assert "COPIED" not in told(tmp_path, twice([(*row[:5], row[5] + row[1] % 7 * 3) for row in PLAIN[:9]]))


@pytest.mark.parametrize(("edits", "code"), [
    ({}, ""), ({"avg_ns": 2_014_000_000}, ""), ({"avg_ns": 2_016_000_000}, "INCONSISTENT"),
    ({"stddev_ts": 0.02}, "INCONSISTENT"), ({"stddev_ts": 30.0}, ""),
    ({"samples_ts": [31.9] * 5}, ""), ({"samples_ts": [32.2] * 5}, "INCONSISTENT"), ({"samples_ts": []}, ""),
    ({"samples_ns": SAMPLES[:1] * 5}, "COPIED"), ({"samples_ns": [2_000_123_000] * 5, "stddev_ts": 0.001}, "")])
def test_a_row_of_llama_bench_is_its_repetitions(tmp_path: Path, edits: dict[str, object], code: str) -> None:
    found = told(tmp_path, bench(**edits))
    assert (code in found) if code else "COPIED" not in found
    assert code or edits.get("samples_ns") or found == {}


@pytest.mark.parametrize(("share", "fault"), [(0.92, False), (0.85, True), (1.08, False), (1.2, False)])
def test_a_spread_may_be_a_tenth_less_than_it_is_and_any_more(tmp_path: Path, share: float, fault: bool) -> None:
    spread = json.loads(bench())[0]["stddev_ts"]
    assert ("INCONSISTENT" in told(tmp_path, bench(stddev_ts=share * spread))) == fault
