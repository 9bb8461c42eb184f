"""The list of tables: every name leads somewhere, metrics have one column, and one line makes a table."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench.errors import UserError
from bench.judge import judge
from bench.judge.columns import Row, column, table
from bench.judge.engine_settings import PRICED, SHARED, TOLD
from bench.judge.findings import Findings, origin
from bench.judge.measure.case import Case
from bench.judge.tables import (
    CONTROLS,
    TABLES,
    Table,
    columns_of,
    interval_of,
    metric_column,
    metric_columns,
    named,
    row_type,
    unit_of,
)
from bench.judge.tables.base import Fact
from bench.judge.tables.cell import Cell
from tests.judge.judge_cells import guess_cell


@pytest.mark.parametrize("name", TABLES)
def test_every_name_in_the_list_leads_to_what_it_says(name: str) -> None:
    table = TABLES[name]
    assert issubclass(named(table.row), Row)
    makers = [one for one in (table.made_by, table.gathered_by, table.joined_by) if one]
    assert all(callable(named(one)) for one in makers)
    assert bool(table.gathered_by) == bool(table.joined_by)


def test_every_check_is_there() -> None:
    assert all(callable(named(name)) for names in CONTROLS.values() for name in names)


def test_claims_ask_for_columns_that_there_are() -> None:
    for metric, (name, one) in metric_columns().items():
        assert metric in columns_of(name)[one].metrics
    assert metric_column("step_cost") == ("step_cost", "relative_cost")
    assert interval_of("step_cost", "relative_cost") == ("ci_low", "ci_high")
    assert interval_of("domain", "auc") == ("auc_low", "auc_high")
    assert interval_of("speedup", "tok_s") is None and interval_of("speedup", "nothing") is None
    assert (unit_of("memory", "kv_bytes"), unit_of("speedup", "tok_s"), unit_of("speedup", "method")) == (
        "bytes", "tok/s", "",
    )  # fmt: skip
    with pytest.raises(UserError, match="did you mean 'step_cost'"):
        metric_column("step_costs")
    with pytest.raises(UserError, match="no table 'speedups'; did you mean 'speedup'"):
        row_type("speedups")


def test_every_condition_of_a_cell_has_its_column() -> None:
    assert set(TOLD) <= Cell.columns.keys()
    assert set(PRICED) <= set(TOLD) and {"build", "sha256", "threads"} <= set(SHARED)


def test_a_table_that_there_is_not_is_an_error() -> None:
    with pytest.raises(TypeError, match="no table speedups"):
        Findings(speedups=[])


def test_a_metric_is_one_file_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one cell, and rows over several, from a module that nothing else has heard of."""
    own = ModuleType("somebodys_metric")

    @table
    class Drafted(Fact):
        """How many guesses a cell made."""

        drafted: int = column("guesses")

    own.Drafted = Drafted
    def drafted(case: Case) -> int:
        return int(case.runs.counters["drafted"].sum())

    own.gathered = drafted
    own.rows = lambda case: [Drafted(**origin(case.cell), drafted=drafted(case))]
    own.joined = lambda found: [Drafted(machine="all", build="b", cells=[], drafted=sum(found))]
    monkeypatch.setitem(sys.modules, "somebodys_metric", own)
    monkeypatch.setitem(TABLES, "drafted", Table("somebodys_metric:Drafted", "somebodys_metric:rows"))
    summed = Table("somebodys_metric:Drafted", gathered_by="somebodys_metric:gathered",
                   joined_by="somebodys_metric:joined")  # fmt: skip
    monkeypatch.setitem(TABLES, "drafted_in_all", summed)
    findings = judge([guess_cell(cell="a"), guess_cell(cell="b")])
    each = [row["drafted"] for row in findings.drafted]
    assert len(each) == 2 and each[0] > 0
    assert findings.drafted_in_all[0]["drafted"] == sum(each)


def test_the_guide_s_table_works_as_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "extend.md").read_text(encoding="utf-8")
    section = guide.split("## A metric, a check, a figure")[1].split("\n## ")[0]
    name, row, maker = re.findall(r'"(\w+)": Table\("([\w.:]+)", "([\w.:]+)"\)', section)[0]
    module = ModuleType(row.partition(":")[0])
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(section.split("```python")[1].split("```")[0], module.__dict__)
    monkeypatch.setitem(TABLES, name, Table(row, maker))
    (found,) = getattr(judge([guess_cell()]), name)
    assert found["drafted"] > 0 and found["window"] == found["parameters"]["window"]
    assert columns_of(name)["drafted"].metrics == ("guesses",)
