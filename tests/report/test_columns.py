"""The dictionary of columns: current, complete, and made of what the types declare."""

from __future__ import annotations

import csv

import pytest

from bench.judge.tables import columns_of, written
from bench.report.columns import PAGE, dictionary
from bench.report.tables.csv_files import FILES, Ordered, write_tables
from tests.report import report_stand_ins as stand_ins


def test_the_page_in_docs_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == dictionary(), "run `python -m bench.report.columns`"


@pytest.mark.parametrize("name", FILES)
def test_every_column_of_every_file_is_explained(name: str, tmp_path) -> None:
    section = dictionary().split(f"## {name}.csv\n")[1].split("\n## ")[0]
    explained = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert explained == list(written(name))
    assert all(columns_of(name)[column].help for column in explained)


def test_the_files_have_the_columns_of_the_page(tmp_path) -> None:
    for path in write_tables(Ordered(stand_ins.full()), stand_ins.claims(), tmp_path):
        assert next(csv.reader(path.open(newline=""))) == list(written(path.stem)), path.name
