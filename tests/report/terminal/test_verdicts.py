"""The table of verdicts in the terminal: readable at any usual width, in colour or without."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.report import print_verdicts
from tests.report import report_stand_ins as stand_ins


def printed(claims: list[dict], width: int, out: Path = Path("reports"), colour: bool = False) -> str:
    stream = io.StringIO()
    system = "standard" if colour else None
    print_verdicts(claims, out, Console(file=stream, width=width, force_terminal=colour, color_system=system))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_each_claim_shows_verdict_numbers_and_reason_within_the_width(width: int) -> None:
    claims = stand_ins.claims()
    claims[1]["reason"] = "A sentence that is far too long for one line of a terminal. " * 4
    text = printed(claims, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    at = next(place for place, line in enumerate(lines) if "twin.four" in line)
    assert lines[at].split() == ["refuted", "twin.four", "1.96x", "0.51x"]
    assert lines[at + 1].strip().startswith("counted 77.7 tok/s, distinct 20.4 tok/s. A sentence")
    assert "twin." in lines[at + 2]
    assert "not_comparable" in text
    assert not any(word in text for word in ("nan", "None"))


def test_totals_and_the_path_of_the_report_come_last() -> None:
    out = Path("a-folder-with-a-long-name") / "and-another-folder-below-it" / "and-one-more-to-be-sure"
    lines = printed(stand_ins.claims(), 100, out).splitlines()
    assert lines[-2] == "10 verdicts: 1 refuted, 2 reproduced, 5 inconclusive, 1 not_comparable, 1 not_run"
    assert lines[-1] == f"Report: {out / 'report.md'}"


def test_refuted_claims_come_first_and_colour_adds_no_words() -> None:
    bare, coloured = printed(stand_ins.claims(), 100), printed(stand_ins.claims(), 100, colour=True)
    first = next(line for line in bare.splitlines() if "twin." in line)
    assert "twin.four" in first
    assert "\x1b[31m" in coloured
    assert "\x1b" not in bare


def test_machines_are_named_where_there_are_several() -> None:
    claims = stand_ins.claims()
    assert "(laptop)" not in printed(claims, 100)
    text = printed([*claims, claims[1] | {"machine": "server"}], 100)
    assert "twin.four (laptop)" in text
    assert "twin.four (server)" in text


def test_markup_in_a_reason_is_text() -> None:
    claims = [stand_ins.claim("a[b]", "not_run", "speedup", "", 2, reason="add [bold]this[/bold] and [/oops]")]
    assert "add [bold]this[/bold] and [/oops]" in printed(claims, 100)


def test_no_claims() -> None:
    assert printed([], 80).splitlines() == ["No claim was judged.", "Report: reports/report.md"]


def long_sheet() -> list[dict]:
    many = [
        stand_ins.claim(f"twin.sum.{n}", "reproduced", "arithmetic", "", n, judged_by="arithmetic") for n in range(50)
    ]
    wrong = stand_ins.claim("twin.l2", "refuted", "device", "", 16, unit="MiB", measured=4, judged_by="fact")
    never = stand_ins.claim("twin.dream", "not_run", "speedup", "", 70, judged_by="projection")
    return [*many, wrong, never, *(claim | {"judged_by": "records"} for claim in stand_ins.claims())]


def test_a_long_sheet_is_told_in_part_and_counted_in_full() -> None:
    lines = printed(long_sheet(), 100).splitlines()
    text = "\n".join(lines)
    assert "twin.sum.7" not in text
    assert "twin.dream" not in text
    assert "twin.mi50" not in text
    at = {
        name: next(n for n, line in enumerate(lines) if name in line)
        for name in ("twin.four", "twin.cost.2", "twin.l2")
    }
    assert at["twin.four"] < at["twin.cost.2"] < at["twin.l2"]
    assert lines[at["twin.l2"]].split() == ["refuted", "twin.l2", "16", "MiB", "4", "MiB"]
    assert "Because" not in lines[at["twin.l2"] + 1]
    assert ["reproduced", "2", "50", "0", "0"] in [line.split() for line in lines]
    assert lines[-3] == "62 verdicts: 2 refuted, 52 reproduced, 5 inconclusive, 1 not_comparable, 2 not_run"
    assert lines[-2] == "1 of them rest on an interval: at their edge chance reproduces 1 in 60 and refutes 1 in 200."
    assert lines[-1] == "Report: reports/report.md (with the other 53 claims)"


def test_a_unit_that_does_not_fit_is_left_to_the_report() -> None:
    claim = stand_ins.claim("a", "refuted", "bandwidth", "", 393, unit="of the ceiling", measured=1.026)
    assert printed([claim], 80).splitlines()[2].split() == ["refuted", "a", "393", "1.026"]
