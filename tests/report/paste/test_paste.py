"""Results to paste and to parse: the document fits its schema, and says what the CSV files say."""

from __future__ import annotations

import csv
import io
import json
from copy import deepcopy

import jsonschema
import pytest

from bench.errors import UserError
from bench.judge.claims.facts import load_facts
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.judge.summary import summarize
from bench.judge.tables import written
from bench.plan.config import CONFIGS
from bench.report.paste import document, rows, schema, short
from bench.report.tables.csv_files import FILES, Ordered, table_text
from bench.stored import sheets
from tests.judge.claims.claim_findings import accepted, speed
from tests.report import report_stand_ins as stand_ins

SCHEMA = schema.schema()
FORMATS = ("md", "json", "jsonl", "csv")


def judged(findings):
    claims = judge_claims(sheets("all"), Findings(speedup=[speed()], acceptance=[accepted()]),
                          load_facts(CONFIGS / "facts"))  # fmt: skip
    return summarize(Findings(cells=list(findings.cells)), claims), claims


@pytest.fixture(scope="module")
def made():
    findings = stand_ins.full(("laptop", "server"))
    summary, claims = judged(findings)
    out = io.StringIO()
    document.write(summary, findings, claims, out)
    return findings, claims, json.loads(out.getvalue())


def test_the_committed_schema_is_what_the_types_give_and_a_schema():
    assert schema.PAGE.read_text(encoding="utf-8") == schema.text()
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_document_fits_the_schema(made):
    jsonschema.validate(made[2], SCHEMA)
    empty = stand_ins.empty()
    out = io.StringIO()
    document.write(summarize(Findings(), []), empty, [], out)
    jsonschema.validate(json.loads(out.getvalue()), SCHEMA)


@pytest.mark.parametrize("spoil", [
    lambda made: made["tables"]["speedup"][0].pop("speedup"),
    lambda made: made["tables"]["speedup"][0].update(speedup="1.2"),
    lambda made: made["tables"]["speedup"][0].update(further=1),
    lambda made: made["tables"]["step_cost"][0].update(width=1.5),
    lambda made: made["tables"].pop("claims"),
    lambda made: made["tables"]["claims"][0].update(cells="aaaaaaaaaaaa"),
    lambda made: made["summary"]["headlines"][0].update(verdict="perhaps"),
    lambda made: made["summary"].update(claims=None),
    lambda made: made.update(version=2),
])  # fmt: skip
def test_the_schema_refuses_what_is_no_such_document(made, spoil):
    spoilt = deepcopy(made[2])
    spoil(spoilt)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoilt, SCHEMA)


def test_every_value_is_that_of_the_csv_file(made):
    findings, claims, told = made
    tables = Ordered(findings)
    for name in FILES:
        kept = list(csv.DictReader(io.StringIO(table_text(name, claims if name == "claims" else tables.rows(name)))))
        assert len(kept) == len(told["tables"][name])
        for mine, theirs in zip(told["tables"][name], kept, strict=True):
            assert list(mine) == list(theirs) == list(written(name))
            for column, value in mine.items():
                if isinstance(value, float):
                    assert float(theirs[column]) == pytest.approx(value, rel=1e-8)
                elif value is None:
                    assert theirs[column] in ("n/a", "inf", "-inf")


@pytest.mark.parametrize("name", ["speedup", "claims", "step_cost", "memory", "cells"])
def test_each_format_has_every_row(made, name):
    findings, claims, told = made
    texts = {}
    for form in FORMATS:
        out = io.StringIO()
        rows.write(name, form, findings, claims, out)
        texts[form] = out.getvalue()
    count = len(told["tables"][name])
    assert count
    assert json.loads(texts["json"]) == told["tables"][name]
    assert [json.loads(line) for line in texts["jsonl"].splitlines()] == told["tables"][name]
    assert len(list(csv.reader(io.StringIO(texts["csv"])))) == count + 1
    lines = texts["md"].splitlines()
    assert len(lines) == count + 2 and len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_a_table_without_rows_and_one_that_there_is_not():
    for form, text in (("json", "[]\n"), ("jsonl", ""), ("md", "No row of peers.\n")):
        out = io.StringIO()
        rows.write("peers", form, stand_ins.empty(), [], out)
        assert out.getvalue() == text
    with pytest.raises(UserError, match="there is no table 'speedups'; did you mean 'speedup'"):
        rows.write("speedups", "csv", stand_ins.empty(), [], io.StringIO())


def test_a_post_has_claims_conditions_and_no_raw_html():
    findings = stand_ins.full()
    findings.cells.append(stand_ins.cell_row("9" * 12, "<img src=x>", stalled=0.5))
    summary, _ = judged(findings)
    text = short.text(summary, findings)
    assert len(text.splitlines()) < 60
    assert "so 38.1 tok/s are 10.0 distinct." in text
    assert "machine laptop; engine build 0.3.36-abc-cpu; model smollm2-135m Q8_0; threads 2" in text
    assert "| stagger x4 emission=published | 0.51 (0.46 to 0.56) | same | identical |" in text
    assert "<img" not in text and "&lt;img src=x>" in text
    assert "7.77" not in text
