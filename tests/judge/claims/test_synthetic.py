"""Models with random weights: every row says so, and claims about what a model says are not judged on them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.judge import judge
from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.report import write_report
from tests.judge.judge_cells import Builder, guess_cell, profile_cell

ROOT = Path(__file__).parents[3]
FACTS = load_facts(ROOT / "configs" / "facts")
PTI = {claim.id: claim for claim in load_sheet(ROOT / "configs" / "claims" / "pti.yaml")}
BASE = {"machine": "laptop", "build": "cpu-1", "cells": ["aaaaaaaaaaaa"], "model": "smollm2-135m", "void": False,
        "quantization": "q8_0"}  # fmt: skip
MADE = {"model": "smollm2-135m (synthetic)", "synthetic": True}
SPEED = {
    **BASE, "method": "stagger", "emission": "published", "rebuild": "none", "draws": "independent", "streams": 4,
    "temperature": 0.0, "prompt_class": "all", "scope": "answer", "guesses": True, "tok_s": 25.0, "speedup": 0.5,
    "ci_low": 0.48,
    "ci_high": 0.52, "counted_tok_s": 95.5, "lossless": "identical", "identical_share": 1.0, "tokens_per_round": 1.0,
}  # fmt: skip
ACCEPTED = {
    **BASE, "method": "stagger", "emission": "published", "rebuild": "none", "draws": "independent", "streams": 4,
    "depth": 0,
    "temperature": 0.6, "tested": 800, "rate": 0.72, "ci_low": 0.69, "ci_high": 0.75, "difference": 0.006,
    "difference_low": -0.02, "difference_high": 0.032,
}  # fmt: skip
STEP = {**BASE, "layout": "sequences", "width": 4, "relative_cost": 1.6, "ci_low": 1.5, "ci_high": 1.7}
TEXT_CLAIMS = {
    "pti.lossless.published_loop": {"speedup": [SPEED]},
    "pti.four_streams.speedup": {"speedup": [SPEED]},
    "pti.acceptance.greedy_four": {"acceptance": [{**ACCEPTED, "temperature": 0.0, "rate": 1.0, "ci_low": 0.99,
                                              "ci_high": 1.0}]},
    "pti.acceptance.collision": {"acceptance": [{**ACCEPTED, "temperature": t} for t in (0.3, 0.6, 0.8, 1.0)]},
}  # fmt: skip


def verdict(name: str, tables: dict[str, list], **changes: Any) -> dict[str, Any]:
    """One claim on rows that are changed in the same way."""
    changed = {table: [{**row, **changes} for row in rows] for table, rows in tables.items()}
    (found,) = judge_claims([PTI[name]], Findings(**changed), FACTS)
    return found


@pytest.mark.parametrize("name", TEXT_CLAIMS)
def test_what_a_synthetic_model_says_is_no_evidence(name: str) -> None:
    real, made = verdict(name, TEXT_CLAIMS[name]), verdict(name, TEXT_CLAIMS[name], **MADE)
    assert real["verdict"] in ("reproduced", "refuted")
    assert made["verdict"] == "not_comparable"
    assert "smollm2-135m (synthetic) has random weights" in made["reason"]
    assert made["cells"] == ["aaaaaaaaaaaa"]
    assert made["measured"] is None


def test_what_the_shape_decides_is_judged() -> None:
    steps = {"step_cost": [STEP]}
    assert verdict("pti.step_cost.four.sublinear", steps, **MADE)["verdict"] == "reproduced"
    slow = {"step_cost": [{**STEP, "relative_cost": 4.2, "ci_low": 4.1, "ci_high": 4.3}]}
    assert verdict("pti.step_cost.four.sublinear", slow, **MADE)["verdict"] == "refuted"
    summed = {"speedup": [{**SPEED, "method": "packed", "drafter": "none", "guesses": False,
                           "scope": "aggregate", "speedup": 1.9, "ci_low": 1.8,
                           "ci_high": 2.0}]}  # fmt: skip
    assert verdict("pti.packed.four.direction", summed, **MADE)["verdict"] == "reproduced"


def test_a_synthetic_copy_is_not_the_model_of_a_claimed_rate() -> None:
    """On an MI50 the copy's step cost is the claim's, its tokens per second are not."""
    own = {"machine": "mi50", "quantization": "ud-q6_k_xl", "n_predict": 80}
    copied = {"model": "qwen3.6-27b (synthetic)", "synthetic": True}
    steps = {"step_cost": [{**STEP, **own, "width": 2, "relative_cost": 1.27, "ci_low": 1.25, "ci_high": 1.29}]}
    assert verdict("pti.step_cost.two", steps, **copied)["verdict"] == "reproduced"
    plain = {"speedup": [{**SPEED, **own, "baseline_tok_s": 19.4}]}
    made = verdict("pti.baseline.ud", plain, **copied)
    real = verdict("pti.baseline.ud", plain, model="qwen3.6-27b")
    assert real["verdict"] == "reproduced"
    assert made["verdict"] == "not_comparable"
    assert "model (claim: qwen3.6-27b, here: qwen3.6-27b (synthetic))" in made["reason"]


def test_real_rows_beside_synthetic_ones_decide() -> None:
    rows = [{**SPEED, "lossless": "divergent", **MADE}, SPEED]
    (found,) = judge_claims([PTI["pti.lossless.published_loop"]], Findings(speedup=rows), FACTS)
    assert found["verdict"] == "reproduced"
    assert "1 rows of synthetic models were left out" in found["reason"]


def mark(builder: Builder) -> None:
    builder.facts["model"]["synthetic"] = True


def test_every_row_and_every_page_shows_the_mark(tmp_path: Path) -> None:
    profile = profile_cell({1: 50.0, 2: 60.0, 4: 80.0})
    profile.facts["model"]["synthetic"] = True
    pair = {"tool": "llama-bench", "width": 1, "tok_s": 20.0, "ours_tok_s": 20.5}
    profile.facts["peers"] = [pair, {**pair, "ours_tok_s": 21.0}]
    profile.facts["memory_by_streams"] = [
        {"streams": n, "n_ctx": 512, "kv_bytes": 512_000 * n, "state_bytes": 0, "measured_bytes": n,
         "per_stream_bytes": 1} for n in (1, 2)
    ]
    findings = judge([guess_cell(change=mark), profile])
    checked = 0
    for name, rows in findings.tables().items():
        for row in rows:
            if "model" in row:
                assert row["model"] == "toy (synthetic)", name
                assert row["synthetic"] is True, name
                checked += 1
    assert checked > 10
    write_report(findings, [], tmp_path, figures=False)
    shown = set()
    for path in tmp_path.glob("*.csv"):
        for row in csv.DictReader(path.open()):
            if "model" in row:
                assert row["model"] == "toy (synthetic)"
                shown.add(path.stem)
    assert {"speedup", "acceptance", "step_cost", "memory", "decomposition", "peers", "cells"} <= shown
    page = (tmp_path / "report.md").read_text()
    assert page.count("model toy (synthetic) Q8_0") > 3
    assert "model toy Q8_0" not in page


def test_a_failed_cell_has_the_mark_from_its_plan() -> None:
    cell = guess_cell(model={"name": "toy", "synthetic": True})
    failed = replace(cell, facts={}, status={"state": "failed", "reason": "it broke", "seconds": 1.0})
    (row,) = judge([failed]).cells
    assert row["model"] == "toy (synthetic)"


def test_a_real_model_has_neither_mark_nor_column() -> None:
    findings = judge([guess_cell()])
    assert {row["model"] for row in findings.speedup} == {"toy"}
    assert not any("synthetic" in row for row in findings.speedup)
