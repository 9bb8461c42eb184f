"""docs/spec-default.md says what the stored cells say, and says so where there are none."""

from __future__ import annotations

from bench.judge.findings import Findings
from bench.records.cells import whole_cells
from bench.spec_default import (
    ASKED,
    LONG,
    NOTHING,
    PAGE,
    REFERENCE,
    SERVED,
    SETTINGS,
    _is,
    is_served,
    put,
    tables,
)
from bench.stored import judge_stored


def test_the_page_is_what_the_reference_says():
    text = PAGE.read_text(encoding="utf-8")
    assert put(text, tables(judge_stored(whole_cells(REFERENCE)))) == text


def test_without_a_cell_the_page_says_what_measures_it():
    made = tables(Findings())
    assert (made.count(NOTHING), made.count(ASKED)) == (len(SETTINGS), len(SERVED))
    assert made.count("### ") == len(SETTINGS) + len(SERVED)


def test_a_served_row_is_of_one_command_line_and_of_long_answers():
    default, beside = SERVED.values()

    def row(became: str, n_predict: int = LONG, difference: str = "server"):
        return {"difference": difference, "temperature": 0, "became": became, "conditions": {"n_predict": n_predict}}

    other = "llama-server --spec-type ngram-map-k4v --spec-ngram-map-k4v-size-n 8"
    assert is_served(row("llama-server --spec-default"), default)
    assert not is_served(row("llama-server --spec-default", LONG - 1), default)
    assert not is_served(row("llama-server --spec-default", difference="build"), default)
    assert not is_served(row(other), beside), "it has another length of its drafts"
    assert is_served(row(f"{other} --spec-ngram-map-k4v-size-m 24 --spec-ngram-map-k4v-min-hits 2"), beside)


def test_a_row_is_of_one_setting_and_of_long_answers():
    (default, beside) = SETTINGS.values()

    def row(n_predict: int = LONG, **given):
        conditions = {"parameters": given, "n_predict": n_predict}
        return {"method": "native", "temperature": 0, "conditions": conditions}

    assert _is(row(**default), default) and not _is(row(**default), beside)
    assert _is(row(**beside), beside) and not _is(row(LONG - 1, **beside), beside)
