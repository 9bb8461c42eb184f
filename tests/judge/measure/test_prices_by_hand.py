"""Which step-cost curve prices a cell, and what a round reads of its cache, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.judge.claims.table_tests import best_kernel
from bench.judge.measure.case import Case, Profile, identity
from bench.judge.measure.roofline import _context
from tests.judge.judge_cells import guess_cell


def curve(layout: str = "tokens", n_past: float = 10.0, width: int = 1) -> Any:
    return SimpleNamespace(layout=layout, n_past=n_past, step_ms={width: 1.0})


def chosen(*offered: tuple[str, str, Any]) -> str | None:
    """The cell of the profile that prices a cell of the host h1, of (cell, host, curve)."""
    cell: Any = guess_cell()
    cell.env["host"] = "h1"
    found = Case(cell, [Profile(name, identity(cell), [one], host) for name, host, one in offered]).priced_by
    return found and found[0]


def test_a_cell_is_priced_by_its_own_layout_then_its_own_host_then_the_nearest_text() -> None:
    assert chosen() is None and chosen(("a", "h1", curve(width=2))) is None
    assert chosen(("a", "h2", curve()), ("b", "h1", curve())) == "b"
    assert chosen(("a", "h1", curve("sequences")), ("b", "h2", curve())) == "b"
    assert chosen(("a", "h1", curve(n_past=900.0)), ("b", "h1", curve(n_past=12.0))) == "b"
    assert chosen(("a", "h1", curve(n_past=900.0)), ("b", "h2", curve(n_past=10.0))) == "a"
    assert chosen(("b", "h1", curve()), ("a", "h1", curve())) == "a"


def test_a_round_reads_its_prompt_and_half_of_its_answer() -> None:
    cell: Any = SimpleNamespace(config={"streams": 4})
    table: Any = SimpleNamespace(
        tokens=SimpleNamespace(streams=np.array([4, 4, 1]), distinct=np.array([80, 80, 80])),
        concurrent=np.array([1, 4, 1]), n_prompt=np.array([40, 40, 40]))  # fmt: skip
    assert _context(cell, table).tolist() == [10 + 10, 40 + 40, 10 + 40]


def test_kernels_without_a_time_decide_nothing() -> None:
    claim: Any = SimpleNamespace(id="a", printed="1.2", published=(1.2,), rule=SimpleNamespace())
    (told,) = best_kernel(claim, [{"us": None, "format": "Q4_1", "cells": ["c"]}])  # type: ignore[list-item]
    assert told.verdict == "inconclusive" and "No kernel passed its check there." in told.reason
