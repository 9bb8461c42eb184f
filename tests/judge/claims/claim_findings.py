"""Rows of findings as they come out for PTI's loop, and the verdict of one claim on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.judge.claims.claim import Claim
from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings

ROOT = Path(__file__).parents[3]
FACTS = load_facts(ROOT / "configs" / "facts")
PTI = {claim.id: claim for claim in load_sheet(ROOT / "configs" / "claims" / "pti.yaml")}
Row = dict[str, Any]


def speed(**changes: Any) -> Row:
    """The published loop at four streams as it comes out: 0.5x, and a counter that reads 3.8 times as much."""
    row: Row = {
        "machine": "laptop", "build": "cpu-1", "cells": ["aaaaaaaaaaaa"], "model": "smollm2-135m",
        "quantization": "q8_0",
        "method": "stagger", "emission": "published", "rebuild": "none", "draws": "independent", "streams": 4,
        "temperature": 0.0, "prompt_class": "all", "scope": "answer", "n_predict": 80, "tok_s": 25.0,
        "steady_tok_s": 26.0,
        "baseline_tok_s": 50.0, "speedup": 0.50, "ci_low": 0.48, "ci_high": 0.52, "counted_tok_s": 95.5,
        "counted_speedup": 1.91, "aggregate_tok_s": 25.0, "solo_tok_s": 48.0, "lossless": "identical",
        "identical_share": 1.0, "tokens_per_round": 1.05, "void": False, "void_reason": "",
    }  # fmt: skip
    return {**row, **changes}


def accepted(**changes: Any) -> Row:
    row: Row = {
        "machine": "laptop", "build": "cpu-1", "cells": ["bbbbbbbbbbbb"], "model": "smollm2-135m", "method": "stagger",
        "emission": "published", "rebuild": "none", "draws": "independent", "streams": 4, "temperature": 0.6,
        "quantization": "q8_0", "depth": 0, "tested": 800, "accepted": 576, "rate": 0.72, "ci_low": 0.69,
        "ci_high": 0.75,
        "collision_mean": 0.714, "difference": 0.006, "difference_low": -0.02, "difference_high": 0.032,
    }  # fmt: skip
    return {**row, **changes}


def step(width: int, cost: float, low: float, high: float) -> Row:
    return {"machine": "laptop", "build": "cpu-1", "cells": ["cccccccccccc"], "model": "smollm2-135m",
            "quantization": "q8_0", "layout": "sequences", "width": width, "relative_cost": cost, "ci_low": low,
            "ci_high": high}  # fmt: skip


def verdict(claim: Claim | str, **tables: list[Row]) -> dict[str, Any]:
    """The one row of one claim."""
    rows = judge_claims([PTI[claim] if isinstance(claim, str) else claim], Findings(**tables), FACTS)
    assert len(rows) == 1
    return rows[0]


def claim_of(tmp_path: Path, **changes: str) -> Claim:
    """A claim about mtp on the machine and model of `speed()` written as YAML, with some lines exchanged."""
    lines = {
        "id": "a.claim", "says": "It is twice as fast.", "source": "{document: A page, date: 2026-06-08}",
        "metric": "speedup", "scope": "{method: mtp, temperature: 0, per: answer}", "published": "2.0",
        "unit": "x", "conditions": "{machine: laptop, model: smollm2-135m, quantization: q8_0}", "evidence": "measured",
        "author_status": "{state: standing}",
        "rule": "{kind: records, test: ratio}", **changes,
    }  # fmt: skip
    path = tmp_path / "sheet.yaml"
    path.write_text("- " + "\n  ".join(f"{key}: {value}" for key, value in lines.items()) + "\n", encoding="utf-8")
    return load_sheet(path)[0]
