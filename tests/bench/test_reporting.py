"""The verb `report`: what it writes and prints, its filters, and what it makes of bad input."""

from __future__ import annotations

import json
import shutil

import jsonschema
import pytest

from bench.cli import main
from bench.readme import REFERENCE
from bench.report.paste import schema

TINY = "amd-epyc-2c"


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Some real cells of two machines, each whole."""
    root = tmp_path_factory.mktemp("few")
    for machine in ("amd-epyc-2c", "h200"):
        cells = sorted(path for path in (REFERENCE / machine).iterdir() if (path / "runs.csv.gz").exists())
        for cell in cells[:3]:
            shutil.copytree(cell, root / machine / cell.name)
    return root


def report(*words, capsys):
    code = main(["report", *map(str, words)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_report_is_written_and_its_first_screen_printed(few, tmp_path, capsys):
    code, out, err = report(f"results={few}", f"reports={tmp_path}", capsys=capsys)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith(("Was the machine quiet?", "Missing: "))
    assert out.splitlines()[-1] == f"Every claim with its reason: {tmp_path / 'index.html'} (or report.md)"
    assert (tmp_path / "report.md").exists() and (tmp_path / "claims.csv").exists()


def test_printing_writes_no_file(few, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (["--short"], ["--json"], ["-o", "md"], ["-o", "jsonl", "table=cells"]):
        code, out, err = report(f"results={few}", *words, capsys=capsys)
        assert code == 0 and out and not err
    assert not list(tmp_path.iterdir())


def test_the_document_of_real_records_fits_the_schema(few, capsys):
    code, out, _ = report(f"results={few}", "--json", capsys=capsys)
    assert code == 0
    jsonschema.validate(json.loads(out), schema.schema())


def test_what_a_filter_leaves_out_is_said_to_be_left_out_and_not_to_be_unrun(few, tmp_path, capsys):
    jacobi = "d5467a99f243"
    shutil.copytree(few, tmp_path / "few")
    few = tmp_path / "few"
    shutil.copytree(REFERENCE / TINY / jacobi, few / TINY / jacobi, dirs_exist_ok=True)
    _, whole, _ = report(f"results={few}", "-o", "jsonl", "table=claims", capsys=capsys)
    code, out, _ = report(f"results={few}", f"reports={tmp_path}", "machine=h200", capsys=capsys)
    assert code == 0 and "Only of the cells with machine=h200." in out
    every, part = ([json.loads(line) for line in lines.splitlines()] for lines in (
        whole, report(f"results={few}", "machine=h200", "-o", "jsonl", "table=claims", capsys=capsys)[1]))  # fmt: skip
    decided = {row["claim_id"]: row for row in every if row["machine"] == "amd-epyc-2c" and row["verdict"] != "not_run"}
    told = {row["claim_id"]: row for row in part if row["verdict"] == "left_out"}
    assert told and told.keys() <= decided.keys()
    assert not {row["claim_id"] for row in part if row["verdict"] == "not_run"} & decided.keys()
    for name, row in told.items():
        assert f"{decided[name]['verdict']} on amd-epyc-2c" in row["why"] and "machine=h200" in row["would_change"]
    page, text = (tmp_path / "index.html").read_text(), (tmp_path / "report.md").read_text()
    heading = "Left out by machine=h200, so neither judged here nor not run"
    assert heading in page and f"## {heading}" in text and heading in " ".join(out.split())
    short = report(f"results={few}", "machine=h200", "--short", capsys=capsys)[1]
    assert "that machine=h200 leaves out" in short and short.startswith("Only of the cells with machine=h200.")


@pytest.mark.parametrize(("key", "value"), [("machine", "h200"), ("model", "smollm2-135m"), ("method", "packed")])
def test_a_filter_leaves_only_what_fits(few, capsys, key, value):
    _, whole, _ = report(f"results={few}", "-o", "jsonl", "table=cells", capsys=capsys)
    every = [json.loads(line) for line in whole.splitlines()]
    if value not in {row[key] for row in every}:
        value = every[0][key]
    code, out, _ = report(f"results={few}", f"{key}={value}", "-o", "jsonl", "table=cells", capsys=capsys)
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        row for row in every if row[key] == value or (key == "method" and row["kind"] == "profile")
    ]


@pytest.mark.parametrize(("words", "sentence"), [
    (["machine=h20"], "no stored cell has the machine 'h20'; did you mean 'h200'?"),
    (["model=nope"], "no stored cell has the model 'nope'"),
    (["-o", "yaml"], "-o yaml is not known"),
    (["-o"], "-o needs a value: one of md, json, jsonl, csv"),
    (["--short", "--json"], "only one of --short, --json and -o"),
    (["table=speedup"], "table=speedup goes with -o"),
    (["-o", "csv", "table=nope"], "there is no table 'nope'"),
    (["--shrot"], "did you mean '--short'"),
])  # fmt: skip
def test_bad_words_are_one_sentence_and_code_2(few, capsys, words, sentence):
    code, out, err = report(f"results={few}", *words, capsys=capsys)
    assert code == 2 and out == ""
    assert err.startswith("error: ") and err.count("\n") == 1 and sentence in err


def test_an_empty_folder_gives_a_report_that_says_so_and_code_2(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    code, out, err = report(f"results={tmp_path / 'results'}", f"reports={tmp_path / 'reports'}", capsys=capsys)
    assert code == 2
    assert err == "error: There are no finished cells; `make bench` measures the default ones.\n"
    assert out.startswith("Missing: There are no finished cells")
    page = (tmp_path / "reports" / "report.md").read_text()
    assert "> Missing: There are no finished cells" in page and "its own figures give" in page


def test_damaged_and_newer_cells_are_told_and_the_others_judged(few, tmp_path, capsys):
    results = tmp_path / "results"
    shutil.copytree(few, results)
    first, second = sorted((results / "h200").iterdir())[:2]
    (first / "facts.json").write_text("{")
    written = (second / "cell.yaml").read_text()
    (second / "cell.yaml").write_text(written.replace("schema: 1", "schema: 99").replace("schema: 3", "schema: 99"))
    code, out, err = report(f"results={results}", f"reports={tmp_path / 'reports'}", capsys=capsys)
    assert code == 1
    assert err.startswith("2 of 6 cells cannot be read or judged and count for nothing; ") and "schema 99" in err
    assert "Missing: 2 of 6 cells cannot be read or judged." in out
    assert "Damaged cells" in (tmp_path / "reports" / "report.md").read_text()
    code, out, _ = report(f"results={results}", "--json", capsys=capsys)
    assert code == 1
    told = json.loads(out)
    jsonschema.validate(told, schema.schema())
    assert [one["count"] for one in told["summary"]["missing"] if one["kind"] == "damaged"] == [2]


SHEET = """- id: mine.sound
  says: Plain decoding of this file comes at 10 tok/s.
  source: {document: a post, date: 2026-06-08}
  metric: rate
  scope: {temperature: 0}
  published: 10
  unit: tok/s
  conditions: {machine: h200, model: smollm2-135m, quantization: q4_1}
  evidence: measured
  author_status: {state: standing}
  rule: {kind: records, test: absolute, column: baseline_tok_s}
- id: mine.other
  says: A method that does not exist is twice as fast.
  source: {document: a post, date: 2026-06-08}
  metric: speedup
  scope: {method: warp_drive, temperature: 0}
  published: 2.0
  unit: x
  conditions: {machine: h200, model: smollm2-135m, quantization: q4_1}
  evidence: measured
  author_status: {state: standing}
  rule: {kind: records, test: ratio}
"""


@pytest.mark.parametrize(("text", "told"), [
    (SHEET, "warp_drive"),
    (SHEET[: SHEET.index("author_status", SHEET.index("mine.other"))], "lacks author_status, rule"),
    (SHEET[: SHEET.index("{kind: records, test: ratio") + 12], "are left out"),
])  # fmt: skip
def test_a_sheet_with_a_bad_entry_is_judged_but_for_that_one(few, tmp_path, capsys, text, told):
    (tmp_path / "sheet.yaml").write_text(text)
    code, out, err = report(f"results={few}", f"reports={tmp_path / 'reports'}", f"claims={tmp_path / 'sheet.yaml'}",
                            capsys=capsys)  # fmt: skip
    assert code == 2
    assert err.startswith("error: ") and err.count("\n") == 1 and told in err
    assert "Missing: " in out and "Plain decoding of this file comes at 10 tok/s." in out
    assert "mine.sound" in (tmp_path / "reports" / "report.md").read_text()
