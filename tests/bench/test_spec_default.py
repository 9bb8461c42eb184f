"""docs/spec-default.md says what the stored cells say, and says so where there are none."""

from __future__ import annotations

from bench.judge.findings import Findings
from bench.records.cells import whole_cells
from bench.spec_default import LONG, NOTHING, PAGE, REFERENCE, SETTINGS, _is, put, tables
from bench.stored import judge_stored


def test_the_page_is_what_the_reference_says():
    text = PAGE.read_text(encoding="utf-8")
    assert put(text, tables(judge_stored(whole_cells(REFERENCE)))) == text


def test_without_a_cell_the_page_says_what_measures_it():
    made = tables(Findings())
    assert made.count(NOTHING) == made.count("### ") == len(SETTINGS)


def test_a_row_is_of_one_setting_and_of_long_answers():
    (default, beside) = SETTINGS.values()

    def row(n_predict: int = LONG, **given):
        conditions = {"parameters": given, "n_predict": n_predict}
        return {"method": "native", "temperature": 0, "conditions": conditions}

    assert _is(row(**default), default) and not _is(row(**default), beside)
    assert _is(row(**beside), beside) and not _is(row(LONG - 1, **beside), beside)
