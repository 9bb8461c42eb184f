"""The page as a file: what is in it, and that it asks nothing of a network."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.columns import changed
from bench.judge.findings import Findings
from bench.judge.measure.chosen import traces_of
from bench.judge.summary import summarize
from bench.judge.tables import columns_of, written
from bench.judge.tables.claims import MEANINGS, Verdict
from bench.report import write_report
from bench.report.html.page import Place
from bench.report.html.views import PARTS, parts
from bench.report.tables.csv_files import FILES
from tests.judge.judge_cells import guess_cell
from tests.report import report_stand_ins as stand_ins
from tests.report.html import pages

VIEWS = [view for part in PARTS for view in part.views]
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script><script>alert(2)</script>",
           "]]>--></style><b>x", "{{ 7 * 7 }}{% raw %}", "javascript:alert(1)", "\u202egnp.exe\u200b",
           "'onclick='x"]  # fmt: skip


def verdict(row: dict, **more: object) -> Verdict:
    return Verdict(**{**row, **more})


def test_every_table_of_the_report_has_its_place() -> None:
    every = parts({name: written(name) for name in FILES if name != "claims"})
    whole = [view.table for part in every for view in part.views if not view.only]
    assert sorted([*whole, "claims"]) == sorted(FILES)
    for view in VIEWS:
        assert set(view.columns) <= set(written(view.table)), view.table
        assert not view.only or view.only[0] in columns_of(view.table)
    assert len({part.key for part in PARTS}) == len(PARTS)


def test_the_tables_are_the_files_beside_it(tmp_path: Path) -> None:
    findings, claims = stand_ins.full(("laptop", "server")), stand_ins.claims()
    (made,) = (path for path in write_report(findings, claims, tmp_path, figures=False) if path.suffix == ".html")
    assert made == tmp_path / "index.html"
    packed = {name.removeprefix("table-"): text for name, text in pages.unpacked(made.read_text()).items()
              if name.startswith("table-")}  # fmt: skip
    files = pages.files_of(tmp_path)
    assert packed == {name: text for name, text in files.items() if text.count("\n") > 1} and len(packed) > 10
    columns = pages.data(made.read_text())["columns"]
    assert {name: [one["name"] for one in told] for name, told in columns.items()} == {
        name: list(written(name)) for name in packed
    }


def test_nothing_comes_from_a_network_and_no_other_script_runs() -> None:
    text = pages.full()
    shown = pages.without_blocks(text)
    links = re.findall(r'(?:src|href|action|xlink:href)="([^"]*)"', shown)
    assert links and not [link for link in links if re.match(r"\w+:|//", link)]
    assert "@import" not in shown and "url(" not in shown.replace("url(#${clip})", "")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', shown)
    assert policy.startswith("default-src &#39;none&#39;")
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", shown, flags=re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind} &#39;sha256-{digest}&#39;" in policy


@pytest.mark.parametrize("word", HOSTILE)
def test_what_a_record_says_is_text(word: str) -> None:
    findings = stand_ins.full()
    findings.cells = [changed(row, machine=word, reason=word, short=word) for row in findings.cells]
    findings.cells.append(stand_ins.cell_row("f" * 12, word, "damaged", reason=word))
    verdicts = [verdict(row, says=word, why=word, would_change=word) for row in stand_ins.claims()]
    summary = summarize(Findings(**vars(findings)), verdicts, [word])
    shown = pages.without_blocks(pages.page(findings, verdicts, summary=summary))
    plain = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", shown, flags=re.S)
    for part in ("<script>alert", "<img src", "<b>x", "49", "\u202e", "\u200b"):
        assert part not in plain, part
    assert "'onclick" not in plain
    assert shown.count("<script") == 1


def test_the_same_findings_give_the_same_page() -> None:
    assert pages.full() == pages.full()


def test_a_report_without_cells_is_a_page_that_says_so() -> None:
    text = pages.page(stand_ins.empty(), [], summary=summarize(Findings(), []))
    assert "There are no finished cells; <code>make bench</code>" in text and set(pages.unpacked(text)) == {"page-data"}
    for part in PARTS:
        assert f"<p>{part.empty}</p>".replace("'", "&#39;") in re.sub("</?code>", "`", text), part.key


def test_what_is_missing_comes_first_then_the_headlines() -> None:
    findings = stand_ins.full()
    findings.cells.append(stand_ins.cell_row("f" * 12, "laptop", "damaged", reason="rounds.csv.gz: it ends early"))
    verdicts = [verdict(row, why="It is 0.51, not 1.96.", headline=1) for row in stand_ins.claims()]
    summary = summarize(Findings(**vars(findings)), verdicts, ["The sheet mine.yaml: entry 3 has no metric."])
    shown = pages.without_blocks(pages.page(findings, verdicts, summary=summary))
    told = ["mine.yaml: entry 3", " of 6 cells cannot be read", "it ends early", "It is 0.51, not 1.96.",
            "On what evidence", 'id="claims-list"']  # fmt: skip
    assert sorted(told, key=shown.index) == told
    assert all(f'class="verdict {verdict}"' in shown for verdict in MEANINGS)


def test_a_headline_leads_to_its_claim_and_to_the_run() -> None:
    row = verdict(stand_ins.claims()[0], claim_id="a/b c", machine="x#1", build="y", cells=["0" * 12])
    summary = summarize(Findings(), [row])
    shown = pages.page(stand_ins.empty(), [row], summary=summary)
    assert 'href="#claim/a%2Fb%20c/x%231/y"' in shown and f'href="#cell/x%231/{"0" * 12}"' in shown


def test_a_panel_is_the_cells_own_record() -> None:
    cell = guess_cell()
    findings = stand_ins.empty()
    findings.traces = [traces_of(cell)]
    text = pages.page(findings, [], place=Place("../results", ""))
    assert pages.data(text)["panels"] == {f"box/{cell.cell}": 0}
    assert pages.data(text)["records"] == "../results"
    panel = pages.json.loads(pages.unpacked(text)["panel-0"])
    run = cell.runs.set_index("run").loc[panel["shown"][0]["run"]]
    rounds = cell.rounds[cell.rounds.run == run.name]
    assert panel["shown"][0]["rounds"]["total"] == [round(value / 1000) for value in rounds.total_ns]
    assert panel["runs"]["decode_window_ns"] == cell.runs.decode_window_ns.tolist()
    assert panel["texts"][0][0][:2] == [" #0", " #1"] and panel["folder"] == f"box/{cell.cell}"


def test_links_lead_to_the_records_and_commands_name_them(tmp_path: Path) -> None:
    assert Place.of(tmp_path / "a b", tmp_path / "reports") == Place("../a%20b", str(tmp_path / "a b"))
    assert Place.of(Path("results/reference"), Path("reports/reference")) == Place("../../results/reference", "")
    assert Place.of(None, tmp_path) == Place("", "")


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "index.html").mkdir()
    with pytest.raises(UserError, match=r"index\.html"):
        write_report(stand_ins.empty(), [], tmp_path, figures=False)
