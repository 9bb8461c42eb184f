"""A column `streams` may count answers or number them, and `tokens` may hold ids or counts: the values decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.audit.audit import AuditReport, audit, format_audit
from bench.audit.options import AuditOptions

COUNT = "read as how many answers are decoded together"
IDS = "read as which answer a row belongs to"


def look(tmp_path: Path, text: str, **options: float) -> AuditReport:
    path = tmp_path / "record.csv"
    path.write_text("\n".join(line.strip() for line in text.strip().splitlines()) + "\n")
    return audit(path, AuditOptions(**options))


def test_the_sum_of_four_answers_is_no_speed_up_of_one(tmp_path: Path) -> None:
    report = look(tmp_path, "arm,streams,tok_s\nnone,1,19.4\npacked,4,38.1", speedup=1.96)
    text = format_audit(report)
    assert "one answer 0.49x, sum 1.96x of the baseline" in text
    assert f"column 'streams' {COUNT}" in text and "printed rate is taken as the sum" in text
    assert {"AGGREGATE_AS_PER_ANSWER", "NO_GAIN"} <= set(report.codes)


@pytest.mark.parametrize("column", ["emitted", "tokens"])
def test_a_claim_of_the_sum_is_put_right(tmp_path: Path, column: str) -> None:
    report = look(tmp_path, f"arm,streams,{column},seconds\nnone,1,128,2.60\npacked,4,512,5.17", claim=99)
    assert report.claim is not None and report.claim["right"] == pytest.approx(512 / 5.17 / 4)
    assert report.contrasts[0]["speedup"] == pytest.approx(512 / 5.17 / 4 / (128 / 2.6))
    assert "one answer 0.50x, sum 2.01x" in format_audit(report)


def streams_of(report: AuditReport) -> list[object]:
    return [row["streams"] for row in report.trials]


@pytest.mark.parametrize(
    ("text", "streams"),
    [
        ("streams,step,tokens,ms\n4,0,11 21 31 41,20\n4,1,12 22 32 42,20", [4]),
        ("stream,tokens,ms\n4,11 21 31 41,20\n4,12 22 32 42,20\n2,13 23,20", [4]),
        ("streams,step,tokens,ms\n4,0,11 21 31 41,20\n3,1,12 22 32,20\n4,2,13 23 33 43,20", [4]),
        ("arm,stream,tok_s\nnone,1,20\npacked,2,30\npacked,4,40", [1, 2, 4]),
        ("arm,streams,tok_s\npacked,1,20\npacked,2,30\npacked,3,35\npacked,4,40", [1, 2, 3, 4]),
        ("arm,seq,emitted,seconds\nnone,1,64,2\npacked,4,256,4", [1, 4]),
    ],
    ids=["constant", "falls as answers end", "varies by step", "a sweep", "a sweep from 1 on", "another name"],
)
def test_a_number_of_answers_is_a_count(tmp_path: Path, text: str, streams: list[int]) -> None:
    report = look(tmp_path, text)
    assert streams_of(report) == streams
    assert any(COUNT in note for note in report.notes)


@pytest.mark.parametrize(
    ("text", "streams"),
    [
        ("stream,step,tokens,ms\n0,0,11,20\n1,0,21,20\n0,1,12,20\n1,1,22,20", None),
        ("streams,t_s,tokens\n1,0.0,11\n2,0.0,21\n1,0.1,12\n2,0.1,22", [2]),
        ("streams,step,tokens,ms\n1,0,11,20\n2,0,21,20\n1,1,12,20\n2,1,22,20", None),
        ("streams,tokens,ms\n1,11 12,20\n2,21 22,20\n1,13 14,20\n2,23 24,20", None),
        ("stream,tokens,ms\n3,11,20\n3,12,20", [1]),
        ("slot,emitted,seconds\n3,128,2.8", [1]),
        ("arm,stream,emitted,seconds\nmtp,1,64,2\nmtp,2,64,2\nmtp,3,64,2", None),
        ("streams,emitted,seconds\n0 1 2 3,512,5.17", [4]),
        ("streams,step,tokens,ms\n0 1,0,11 21,20\n0 1,1,12 22,20", [2]),
    ],
    ids=["with 0", "one moment", "one step", "to and fro", "fewer tokens", "slot", "1 to n", "listed", "listed ids"],
)
def test_a_number_that_names_an_answer_is_an_id(tmp_path: Path, text: str, streams: list[int] | None) -> None:
    report = look(tmp_path, text)
    assert any(IDS in note for note in report.notes)
    if streams is not None:
        assert streams_of(report) == streams


def counted(report: AuditReport) -> list[object]:
    return [row["counted"] for row in report.trials]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("arm,tokens,seconds\nnone,128,2.6\nmtp,130,1.9", [128, 130]),
        ("step,tokens,width,ms\n0,3,4,20\n1,1,4,20\n2,4,4,20", [8]),
        ("step,tokens,drafted,ms\n0,3,3,20\n1,1,3,20", [4]),
        ("step,tokens,ms\n0,1,20\n1,1,20\n2,1,20", [3]),
    ],
    ids=["runs", "not above the width", "not above the guesses", "always 1"],
)
def test_tokens_that_can_only_be_numbers_are_counted(tmp_path: Path, text: str, tokens: list[int]) -> None:
    report = look(tmp_path, text)
    assert counted(report) == tokens
    assert "column 'tokens' read as how many tokens a row emitted" in report.notes


@pytest.mark.parametrize(
    "text",
    [
        "step,tokens,ms\n0,317,20\n1,52,20\n2,317,20",
        "step,tokens,width,ms\n0,317,1,20\n1,52,1,20\n2,9,1,20",
        "arm,ids,seconds\nnone,128,2.6\nmtp,130,1.9\nmtp,131,1.9",
        "tokens,positions,ms\n7,0,20\n7,1,20\n7,2,20",
    ],
    ids=["a step each", "above the width", "named ids", "with positions"],
)
def test_ids_stay_ids(tmp_path: Path, text: str) -> None:
    report = look(tmp_path, text)
    assert sum(int(str(count)) for count in counted(report)) == 3
    assert not any("how many tokens" in note for note in report.notes)


def test_copies_of_one_answer_are_no_answers_of_their_own(tmp_path: Path) -> None:
    """Four sequences say positions r to r + 3 in round r: 13 different tokens of 40, whatever is called a stream."""
    rows = [f"{step},4,{' '.join(str(100 + step + k) for k in range(4))},{' '.join(str(step + k) for k in range(4))},20"
            for step in range(10)]  # fmt: skip
    report = look(tmp_path, "\n".join(["step,streams,tokens,positions,ms", *rows]))
    assert (report.trials[0]["counted"], report.trials[0]["distinct"]) == (40, 13)
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(13 / 0.2)
