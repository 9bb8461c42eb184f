"""The first screen in the terminal: whole at any width, in colour or without, and never cut off."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.judge.summary import summarize
from bench.judge.tables.claims import Verdict
from bench.report import print_summary
from bench.report import summary as words
from tests.judge.claims.claim_findings import FACTS, PTI, accepted, speed
from tests.report import report_stand_ins as stand_ins

HOSTILE = "\x1b[31mred\x1b[0m [bold]x[/bold] \u202eback https://example.org " + "word" * 30


def printed(summary, width: int = 80, colour: bool = False, out: Path = Path("reports")) -> str:
    stream = io.StringIO()
    system = "standard" if colour else None
    print_summary(summary, out, Console(file=stream, width=width, force_terminal=colour, color_system=system))
    return stream.getvalue()


def summary_of(*names: str, faults: tuple[str, ...] = (), **tables):
    findings = Findings(**tables)
    return summarize(findings, judge_claims([PTI[name] for name in names], findings, FACTS), faults)


FOUND = summary_of(*PTI, speedup=[speed(), speed(machine="server", cells=["d" * 12])], acceptance=[accepted()])


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_every_word_is_there_within_the_width(width):
    text = printed(FOUND, width)
    lines = text.splitlines()
    assert max(map(len, lines[:-1])) <= width
    whole = " ".join(text.split())
    for one in FOUND.headlines:
        for told in (one.verdict, one.says, one.why, one.would_change):
            assert "".join(told.split()) in "".join(whole.split())
    assert "…" not in text and "..." not in text
    assert "so 38.1 tok/s are 10.0 distinct." in whole


def test_the_headlines_fit_one_screen_of_80_columns():
    assert len(printed(FOUND).splitlines()) <= 60


def test_words_that_are_no_readers_own_are_explained_where_they_are_used():
    lines = printed(FOUND).splitlines()
    legend = " ".join(lines[lines.index(words.LEGEND_TITLE) :])
    for word in ("distinct: each token of an answer once", "counted: ", "plain decoding: ", "a round: "):
        assert word in legend
    assert "A/A: " not in legend, "nothing on this screen says it"
    cell = stand_ins.cell_row("c" * 12, stalled=0.0)
    assert "A/A: plain decoding measured against itself" in printed(summarize(Findings(cells=[cell]), []))
    assert words.LEGEND_TITLE not in printed(summarize(Findings(), []))


def test_colour_adds_no_words():
    bare, coloured = printed(FOUND), printed(FOUND, colour=True)
    assert "\x1b[1;31mrefuted" in coloured
    assert "\x1b" not in bare


def test_what_is_missing_comes_first_and_the_path_last():
    out = Path("a-folder-with-a-long-name") / "and-another-folder-below-it" / "and-one-more-to-be-sure"
    lines = printed(summary_of("pti.four_streams.rate", faults=("s.yaml: claim 'x' lacks rule",)), out=out).splitlines()
    assert lines[0].startswith("Missing: There are no finished cells")
    assert lines[1] == "Missing: s.yaml: claim 'x' lacks rule"
    assert lines[-1] == f"Every claim with its reason: {out / 'index.html'} (or report.md)"


def test_no_claim_at_all():
    lines = printed(summarize(Findings(), [])).splitlines()
    assert "No claim was judged." in lines


def test_names_are_text_and_nothing_of_them_acts():
    row = Verdict(claim_id="x", verdict="refuted", scope="", published=1, measured=None, ci_low=None, ci_high=None,
                  unit="x", evidence="measured", reason=HOSTILE, machine=HOSTILE, build="b", says=HOSTILE,
                  metric="speedup", why=HOSTILE, would_change=HOSTILE, cells=["a" * 12])  # fmt: skip
    text = printed(summarize(Findings(), [row]))
    assert "\x1b" not in text and "\u202e" not in text
    assert "[bold]x[/bold]" in text


def test_of_many_machines_a_number_and_the_first_are_told():
    rows = [speed(machine=f"box-{number:02}", cells=[f"{number:012x}"]) for number in range(13)]
    text = " ".join(printed(summary_of(*PTI, speedup=rows), 400).split())
    assert "13 machines, box-00, box-01 and box-02 first" in text and "box-03" not in text
    few = printed(summary_of(*PTI, speedup=rows[:4]), 400)
    assert "box-00, box-01, box-02, box-03" in " ".join(few.split())


def test_of_many_machines_the_most_disturbed_of_each_verdict_is_told():
    cells = [stand_ins.cell_row(f"{number:012x}", f"box-{number:02}", stalled=0.001 * number)
             for number in range(13)]  # fmt: skip
    summary = summarize(Findings(cells=cells), [])
    lines = words.machines(summary)
    assert len(summary.machines) == 13 and 0 < len(lines) < 4
    assert any("box-12" in sentence for _, _, sentence in lines)
