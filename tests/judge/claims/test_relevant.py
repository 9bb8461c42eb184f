"""Rows that read alike to every claim are asked about once, and rows that none is about are not held: none is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import pytest

from bench.host.pins import ROOT
from bench.judge.claims.facts import load_facts
from bench.judge.claims.names import Names
from bench.judge.claims.relevant import Relevant, keys_of
from bench.judge.claims.rows import Indexed, matching
from bench.judge.findings import Findings
from bench.plan.config import CONFIGS
from bench.records.cells import whole_cells
from bench.stored import judge_stored, sheets
from tests.judge.claims.test_drawn import OTHER, claim, rows
from tests.scale.copies import REFERENCE

CLAIMS = sheets("all")
NAMES = load_facts(CONFIGS / "facts").names


@pytest.fixture(scope="module")
def found() -> Findings:
    return judge_stored(whole_cells(REFERENCE)[::3], 1)


def test_every_claim_is_about_the_same_rows_in_their_order(found: Findings) -> None:
    indexed = Indexed(found, keys_of(CLAIMS))
    about = [(matching(one, found, NAMES), matching(one, indexed, NAMES)) for one in CLAIMS if one.table]
    assert sum(map(bool, about)) and max(len(plain) for plain, _ in about) > 5
    for plain, those in about:
        assert len(plain) == len(those) and all(one is other for one, other in zip(plain, those, strict=True))


def test_no_row_that_a_claim_is_about_is_left_out(found: Findings) -> None:
    relevant = Relevant(CLAIMS, NAMES)
    held = {table: {id(row) for row in relevant.of(table, getattr(found, table))} for table in relevant.tables}
    wanted = [(one.table, row) for one in CLAIMS if one.table for row in matching(one, found, NAMES)]
    assert wanted and all(id(row) in held[table] for table, row in wanted)
    assert any(len(held[table]) < len(getattr(found, table)) for table in relevant.tables)


@pytest.mark.parametrize("name", OTHER)
def test_a_condition_that_a_claim_tells_may_be_any_there_too(tmp_path, name: str) -> None:
    """It is compared later, so that its rows are the claim's whatever they say of it."""
    told = claim(tmp_path, conditions=f"{name}: {str(OTHER[name]).lower()}")
    both = rows(**{name: OTHER[name]})
    assert Relevant([told], Names()).of("speedup", both.speedup) == both.speedup
    assert matching(told, Indexed(both, keys_of([told])), Names()) == both.speedup


def test_values_that_only_look_alike_are_told_apart() -> None:
    """1, 1.0, True and the word have one hash or one spelling; a claim may mean one of them."""
    values = (1, 1.0, True, "1", [1], None)
    told = Indexed(Findings(speedup=[{"streams": one, "draft": other} for one, other in product(values, values)]),
                   {"speedup": ("streams", "draft")})  # type: ignore[list-item]  # fmt: skip
    for one, other in product(values, values):
        mine = [row for row in told.speedup if (type(row["streams"]), type(row["draft"])) == (type(one), type(other))]
        assert told.rows_that("speedup", lambda row: any(row is own for own in mine)) == mine  # noqa: B023


def test_what_is_asked_is_told_alike_in_every_process() -> None:
    """What one report keeps is found by the next, whose sets stand in another order."""
    code = ("from tests.judge.claims.test_relevant import CLAIMS, NAMES; from bench.judge.claims.relevant import "
            "Relevant; print(Relevant(CLAIMS, NAMES).digest)")  # fmt: skip
    told = {subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed},
                           check=True, capture_output=True, text=True).stdout for seed in ("1", "2", "3")}  # fmt: skip
    assert told == {f"{Relevant(CLAIMS, NAMES).digest}\n"}
    assert Relevant(CLAIMS[1:], NAMES).digest != Relevant(CLAIMS, NAMES).digest
