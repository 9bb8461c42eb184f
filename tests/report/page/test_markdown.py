"""The Markdown page and the report as a whole, without its figures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.claims.verdicts import judge_claims
from bench.judge.columns import changed
from bench.judge.findings import Findings
from bench.judge.summary import summarize
from bench.report import write_report
from bench.report.page.section import MAX_ROWS
from tests.judge.claims.claim_findings import FACTS, PTI, speed
from tests.report import report_stand_ins as stand_ins

NAN = float("nan")
NAMED = ("machine", "engine build", "model", "threads", "n_predict", "prompts", "blocks", "cells of")


def page(findings: object, claims: list[dict], out: Path) -> str:
    return next(path for path in write_report(findings, claims, out, figures=False) if path.suffix == ".md").read_text()


def section(text: str, title: str) -> str:
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def tables_of(text: str) -> list[tuple[str, list[str]]]:
    """Each table as (the nearest text line above it, its lines)."""
    found, above, current = [], "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            current.append(line)
            continue
        if current:
            found.append((above, current))
            current = []
        above = line.removeprefix("<summary>").removesuffix("</summary>") or above
    return found


@pytest.mark.parametrize("machines", [("laptop",), ("laptop", "server")])
def test_a_condition_line_stands_above_every_table(tmp_path: Path, machines: tuple[str, ...]) -> None:
    found = tables_of(page(stand_ins.full(machines), stand_ins.claims(), tmp_path))
    assert len(found) >= 10
    for above, lines in found:
        assert "Conditions: " in above or above.startswith("not run, "), lines[0]
        if above.startswith("not run, "):
            continue
        assert all(f"{name} " in above for name in NAMED), above
        assert len({re.sub(r"\\\|", "", line).count("|") for line in lines}) == 1, lines[0]


def test_conditions_are_those_of_the_rows(tmp_path: Path) -> None:
    above, _ = tables_of(section(page(stand_ins.full(), stand_ins.claims(), tmp_path), "Speed-up"))[0]
    assert above == (
        "Conditions: machine laptop; engine build 0.3.36-abc-cpu; model smollm2-135m Q8_0; threads 2; n_predict 32; "
        "prompts 24; blocks 24; cells of 2026-06-01"
    )


def test_what_a_row_does_not_say_is_looked_up_in_its_cell(tmp_path: Path) -> None:
    above, _ = tables_of(section(page(stand_ins.full(), [], tmp_path), "Where a round's time goes"))[0]
    assert above.endswith("n_predict 32; prompts 24; blocks 24; cells of 2026-06-01")


def test_a_table_is_about_one_machine(tmp_path: Path) -> None:
    text = page(stand_ins.full(("laptop", "server")), stand_ins.claims(), tmp_path)
    for title in ("Speed-up", "Step cost", "Acceptance", "Memory", "Controls"):
        found = tables_of(section(text, title))
        machines = [re.search(r"machine (.*?);", above)[1] for above, _ in found]
        assert machines == ["laptop", "server"], title
        cells = [{word for line in lines for word in re.findall(r"\b[01][a-f0-9]{11}\b", line)} for _, lines in found]
        assert all(cell.startswith(str(place)) for place, ids in enumerate(cells) for cell in ids), title


@pytest.mark.parametrize("findings", [stand_ins.full(), stand_ins.empty(), object()])
def test_missing_values_are_words(tmp_path: Path, findings: object) -> None:
    text = page(findings, stand_ins.claims(), tmp_path)
    assert not re.search(r"\b(nan|NaN|None|NaT|undefined)\b", text)
    assert not re.search(r"\|[ \t]*\|", text)


def test_verdicts_come_first_by_verdict_with_their_numbers(tmp_path: Path) -> None:
    text = page(stand_ins.full(), stand_ins.claims(), tmp_path)
    titles = re.findall(r"^## (.*)$", text, flags=re.M)
    assert titles[:2] == ["How to read a verdict", "Verdicts"]
    (measured, lines), (not_run, others) = tables_of(section(text, "Verdicts"))
    assert measured.startswith("measured here, 2 verdicts: 1 refuted, 1 reproduced. Conditions: machine laptop; ")
    assert not_run == "not run, 8 verdicts: 1 reproduced, 5 inconclusive, 1 not_comparable, 1 not_run"
    assert "| **refuted** | `twin.four` |" in lines[2]
    assert "`twin.future`" in others[-1]


def test_the_page_begins_with_the_screen_and_every_fold_is_closed(tmp_path: Path) -> None:
    findings = Findings(speedup=[speed()])
    claims = judge_claims([PTI["pti.four_streams.rate"], PTI["pti.packed.16.same_context"]], findings, FACTS)
    summary = summarize(findings, claims, ["sheet.yaml: claim '<b>x</b>' lacks rule"])
    write_report(stand_ins.full(), claims, tmp_path, figures=False, summary=summary)
    text = (tmp_path / "report.md").read_text()
    titles = re.findall(r"^## (.*)$", text, flags=re.M)
    assert titles[:5] == ["Was the machine quiet?", "1 of 2 claims, those that their sheets tell first",
                          "2 verdicts on 2 claims", "How to read a verdict",
                          "Verdicts"]  # fmt: skip
    first = text.split("\n## How to read", 1)[0]
    assert len(first) < 3000
    assert "so 38.1 tok/s are 10.0 distinct. _laptop_<br>Would change it: an interval that reaches" in first
    assert "> Missing: sheet.yaml: claim '&lt;b>x&lt;/b>' lacks rule" in first
    assert "| measured here | 1 | 0 |" in first or "| measured here | 1 |" in first
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>") > 5
    for fold in text.split("<details>\n")[1:]:
        head, blank = fold.split("\n")[:2]
        assert head.startswith("<summary>") and head.endswith("</summary>") and blank == ""
        assert fold.split("</details>")[0].endswith("|\n\n") or "`." in fold.split("</details>")[0][-60:]


def test_a_void_speedup_is_never_printed(tmp_path: Path) -> None:
    text = section(page(stand_ins.full(), [], tmp_path), "Speed-up")
    row = next(line for line in text.splitlines() if line.startswith("| jacobi"))
    assert "| void |" in row
    assert "A/A is 1.2, outside 1.00" in row
    assert "7.77" not in row.split("| void |")[0] + row.split("| void |")[1].split("|")[0]


def test_the_costs_of_a_void_curve_are_never_printed(tmp_path: Path) -> None:
    found = stand_ins.full()
    found.step_cost = [changed(row, void=row["width"] == 4, relative_cost=7.77) for row in found.step_cost]
    lines = tables_of(section(page(found, [], tmp_path), "Step cost"))[0][1]
    told = {line.split(" | ")[0]: line.split(" | ")[3] for line in lines[2:]}
    assert told == {"| 1": "7.77", "| 2": "7.77", "| 4": "void", "| 8": "7.77"}


def test_predictions_stand_beside_measurements_and_void_ones_nowhere(tmp_path: Path) -> None:
    text = section(page(stand_ins.full(), [], tmp_path), "Predicted and measured")
    _, lines = tables_of(text)[0]
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| stagger x4 emission=published", "| stagger x4 emission=published, all guesses wrong",
    ]  # fmt: skip
    assert "| 0.50 | 0.51 | 1.020 | 0.920 to 1.120 | 0.62 | 0.800 | n/a | 3 | 0.60 | 0.50 to 0.70 | projected |" in (
        lines[2]
    )
    assert "off by 2.0 % in the median of 1 arms, 18.4 % with the step-cost curve alone" in text
    assert "3.33" not in text and "7.77" not in text


def test_failed_void_and_unsupported_cells_are_listed_with_their_reason(tmp_path: Path) -> None:
    text = section(page(stand_ins.full(), [], tmp_path), "Failed, unsupported and void cells")
    assert r"killed by signal 9 \| no table in sight" in text
    assert "| done, void |" in text
    assert "| failed |" in text


def test_failed_controls_come_first_and_a_long_table_names_its_file(tmp_path: Path) -> None:
    findings = stand_ins.full()
    passed = findings.controls[0]
    warned = changed(passed, severity="warning")
    findings.controls = [changed(warned, cells=[f"{n:012x}"], cell=f"{n:012x}") for n in range(MAX_ROWS + 5)]
    findings.controls.append(passed)
    findings.controls.append(changed(passed, ok=False, severity="void", sentence="broken", cells=["f" * 12]))
    text = section(page(findings, [], tmp_path), "Controls")
    (_, lines), *_ = tables_of(text)
    assert len(lines) == MAX_ROWS + 2
    assert "broken" in lines[2]
    assert "6 more rows are in `controls.csv`." in text
    assert f"1 of {MAX_ROWS + 7} checks passed" in text and "A/A is 1.001" not in lines[2]


def test_an_empty_report_says_so(tmp_path: Path) -> None:
    text = page(stand_ins.empty(), [], tmp_path)
    assert tables_of(text) == []
    assert "No claim sheet was judged." in text
    assert "No finished contrast." in section(text, "Speed-up")


def test_every_table_says_which_cells_it_rests_on(tmp_path: Path) -> None:
    text = section(page(stand_ins.full(), stand_ins.claims(), tmp_path), "What each table rests on")
    assert "| `step_cost.csv` | 1 | 0e0e0e0e0e0e |" in text
    assert "| `claims.csv` | 1 | 0a0a0a0a0a0a |" in text


def test_claims_on_several_machines_name_them(tmp_path: Path) -> None:
    claims = stand_ins.claims()
    claims.append(claims[1] | {"machine": "server", "measured": 0.6})
    _, lines = tables_of(section(page(stand_ins.full(), claims, tmp_path), "Verdicts"))[0]
    assert "| server (0.3.36-abc-cpu) |" in lines[3]
    alone = page(stand_ins.full(), stand_ins.claims(), tmp_path)
    assert "| laptop |" in section(alone, "Verdicts") and "| laptop (0.3.36-abc-cpu) |" not in alone


@pytest.mark.parametrize("blocked", ["out", "out/report.md", "out/speedup.csv"])
def test_a_place_that_cannot_be_written_is_a_user_error(tmp_path: Path, blocked: str) -> None:
    target = tmp_path / blocked
    if blocked == "out":
        target.write_text("a file")
    else:
        target.mkdir(parents=True)
    with pytest.raises(UserError, match=r"cannot be written to.*python -m bench report"):
        write_report(stand_ins.full(), [], tmp_path / "out", figures=False)
    assert not list(tmp_path.rglob("*.partial"))


def test_without_figures_matplotlib_is_not_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from bench.report import print_summary, write_report; from pathlib import Path;"
        "write_report(object(), [], Path(sys.argv[1]), figures=False);"
        "sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=Path(__file__).parents[3])


def test_a_child_process_draws_the_same_figures_and_hands_back_its_error(tmp_path: Path, monkeypatch) -> None:
    alone = write_report(stand_ins.full(), stand_ins.claims(), tmp_path / "alone")
    monkeypatch.setattr("bench.report.page.markdown.ENOUGH_ROWS", 0)
    drawn_here: list[str] = []
    monkeypatch.setattr("bench.report.figures.drawing.rendered", _recorded(drawn_here))
    beside = write_report(stand_ins.full(), stand_ins.claims(), tmp_path / "beside", processes=2)
    assert not drawn_here
    assert [path.relative_to(tmp_path / "beside") for path in beside] == [
        path.relative_to(tmp_path / "alone") for path in alone
    ]
    assert [path.read_bytes() for path in beside] == [path.read_bytes() for path in alone]
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "figures").write_text("in the way")
    with pytest.raises(UserError, match="figures"):
        write_report(stand_ins.full(), stand_ins.claims(), tmp_path / "blocked", processes=2)


def _recorded(calls: list[str]) -> Callable[..., bytes]:
    """The drawing of a file, noting in this process that it ran in it."""
    from bench.report.figures.drawing import rendered as really

    def rendered(figure: object, kind: str, plan: object) -> bytes:
        calls.append(kind)
        return really(figure, kind, plan)

    return rendered


def test_a_domain_s_rows_show_both_sides_the_signal_and_that_it_may_tell_nothing(tmp_path: Path) -> None:
    findings = stand_ins.full()
    row = {**stand_ins.origin("dddddddddddd"), **stand_ins.subject("adapter", 1, 0.7), "signal": "excess",
           "against": "twin q8_0", "domain": "pydoc", "window": 0, "on_mean": 0.71, "on_low": 0.58, "on_high": 0.85,
           "off_mean": 0.81,
           "off_low": 0.77, "off_high": 0.85, "auc": 0.24, "auc_low": 0.09, "auc_high": 0.51, "threshold": 0.76,
           "false_alarm": 0.67, "false_alarm_low": 0.3, "false_alarm_high": 0.9, "miss": 0.78, "miss_low": 0.55,
           "miss_high": 0.91, "needed": None, "tells": "no better than chance", "by_class": "prose 0.81"}  # fmt: skip
    short = {"window": 32, "auc": NAN, "tells": "n/a"}
    findings.domain = [stand_ins.made("domain", row), stand_ins.made("domain", row, short)]
    write_report(findings, stand_ins.claims(), tmp_path, figures=False)
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    (shown,) = [line for line in page.splitlines() if "excess over twin q8_0 | all" in line]
    for told in ("71 % (58 % to 85 %)", "0.24 (0.09 to 0.51)", "no better than chance", "67 % (30 % to 90 %)"):
        assert told in shown
    assert "excess over twin q8_0 | 32" in page and "No cell's prompts name a domain" not in page
    assert "twin q8_0" in (tmp_path / "domain.csv").read_text(encoding="utf-8")
