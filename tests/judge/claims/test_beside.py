"""What stands beside a projection: measured ratios, told and never held against the projected rate."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from tests.judge.claims.claim_findings import PTI, Row, claim_of, speed, verdict

PROJECTED = ("pti.projection.integration_50_60", "pti.projection.integration_65_75", "pti.projection.mtp_80_100")
CARD = {"machine": "card", "model": "qwen3.6-27b (synthetic)", "quantization": "Q6_K"}


def trial(method: str, streams: int, scope: str, gain: float, **changes: Any) -> Row:
    ends = {"ci_low": gain / 1.02, "ci_high": gain * 1.02}
    return {"build": "packed-1", "method": method, "streams": streams, "scope": scope, "speedup": gain,
            "drafter": "none", "temperature": 0.0, "prompt_class": "all", "depth": 0, "difference": "build",
            "was": "stock", "became": "packed", "short": method, "lossless": "divergent", "void": False, **CARD, **ends,
            "cells": [f"{method}{streams}"], **changes}  # fmt: skip


def four(gain: float, **changes: Any) -> Row:
    ends = {"ci_low": gain / 1.01, "ci_high": gain * 1.01}
    return speed(method="packed", drafter="none", emission=None, rebuild=None, streams=4, scope="aggregate",
                 speedup=gain, cells=["stock4"], **{**ends, **CARD, **changes})  # fmt: skip


TRIALS = [trial("autoregressive", 1, "answer", 1.8), trial("packed", 4, "aggregate", 6.08),
          trial("packed", 4, "answer", 1.52), trial("packed", 4, "aggregate", 5.0, prompt_class="prose")]  # fmt: skip


@pytest.mark.parametrize("name", PROJECTED)
def test_the_three_projections_stay_not_run_with_the_measured_ratios_beside_them(name: str) -> None:
    row = verdict(name, trials=TRIALS, speedup=[four(2.77), four(3.1, machine="laptop"),
                                               speed(**CARD, speedup=0.66, ci_low=0.65, ci_high=0.67)])  # fmt: skip
    assert row["verdict"] == "not_run" and row["measured"] is None and row["machine"] == "any"
    assert f"{float(PTI[name].published[0]) / 19.4:.2f} to" in row["reason"]
    assert row["reason"].count("on card (") == 4 and "laptop" not in row["reason"]
    wide = math.exp(math.hypot(math.log(1.02), math.log(1.01)))
    over = 6.08 / 2.77
    for told in ("1.8 [", "6.08 [", f"{over:.4g} [{over / wide:.4g}, {over * wide:.4g}]", "0.66 [0.65, 0.67]"):
        assert told in row["reason"]
    assert row["reason"].count("output divergent") == 3
    assert row["cells"] == ["aaaaaaaaaaaa", "autoregressive1", "packed4", "stock4"]


def test_what_is_void_or_was_not_measured_is_not_told() -> None:
    row = verdict(PROJECTED[0], trials=[{**TRIALS[0], "void": True}, {**TRIALS[1], "ci_low": None}])
    assert "Measured ratios" not in row["reason"] and row["cells"] == []
    assert "Measured ratios" not in verdict(PROJECTED[0])["reason"]


def counted(kernel: str, fmt: str, streams: int, **changes: str) -> Row:
    return {"machine": "card", "build": "none", "kernel": f"{kernel}<{streams}>", "format": fmt,
            "streams": str(streams), "arch": "gfx906",
            "compiler": "Debian clang version 19.1.7 (3~deb12u1)", "vector_bound": f"{streams}.50",
            "vgprs": str(20 + streams), "waves_per_simd": "4", **changes}  # fmt: skip


def test_static_counts_are_told_as_a_kind_of_their_own_and_leave_the_verdict_as_it_is() -> None:
    rows = [counted("mul_mat_vec_q", fmt, streams) for fmt in ("Q6_K", "Q8_0") for streams in (8, 1)]
    rows += [counted("gemv_planes", "Q6_K", 1), counted("mul_mat_vec_q", "Q6_K", 4, arch="gfx908"),
             counted("mul_mat_vec_q", "Q6_K", 2, vector_bound="")]  # fmt: skip
    bare, told = verdict("pti.step_cost.four"), verdict("pti.step_cost.four", kernel_resources=rows)
    assert told["verdict"] == bare["verdict"] == "not_run" and told["cells"] == bare["cells"] == []
    assert told["reason"].startswith(bare["reason"].split(" Later timed")[0])
    assert "Static count, compiled and not run" in told["reason"]
    assert told["reason"].count("1.50, 8.50 at 1, 8 vectors (Debian clang version 19.1.7 for gfx906)") == 2
    registers = verdict("pti.kernel.registers", kernel_resources=rows)["reason"]
    assert "21, 22, 28 at 1, 2, 8 vectors" in registers and "its waves a SIMD 4, 4, 4" in registers


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ("[{says: a, table: trials}]", "has no scope"),
        ("[{table: trials, scope: {streams: 4}}]", "has no says"),
        ("[{says: a, table: memory, scope: {streams: 4}}]", "memory"),
        ("[{says: a, table: trials, scope: {strems: 4}}]", "unknown scope key 'strems'"),
        ("[{says: a, table: trials, scope: {streams: 4}, over: {table: speedup, scope: {width: 2}}}]", "'width'"),
        ("[{says: a, table: trials, scope: {streams: 4}, under: {}}]", "under"),
        ("[{says: a, table: kernel_resources, scope: {streams: 4}}]", "'streams'"),
        ("[{says: a, table: kernel_resources, scope: {kernel: k}, column: speed}]", "speed"),
        ("[{says: a, table: trials, scope: {streams: 4}, column: speedup}]", "leave it out"),
        ("{says: a}", "write a list"),
        ("[a]", "has the entry 'a'"),
    ],
)
def test_an_entry_that_says_nothing_is_an_error_of_the_sheet(tmp_path: Path, beside: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        claim_of(tmp_path, metric="arithmetic", scope="{streams: 4}",
                 rule=f"{{kind: projection, needs: a card, beside: {beside}}}")  # fmt: skip
