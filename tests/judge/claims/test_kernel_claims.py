"""PTI's claims about kernels, judged from invented records."""

from __future__ import annotations

import pytest

from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from bench.plan.config import CONFIGS
from tests.judge import kernel_runs
from tests.judge.kernel_runs import case, ncu


@pytest.fixture(scope="module")
def sheet():
    return load_sheet(CONFIGS / "claims" / "pti.yaml"), load_facts(CONFIGS / "facts")


def verdict(sheet, folder, claim_id: str, samples: list, counters: dict | None = None, machine: str = "gpubox") -> dict:
    claims, facts = sheet
    findings = judge_kernels(Findings(), [kernel_runs.write(folder / machine, samples, counters)])
    (row,) = judge_claims([claim for claim in claims if claim.id == claim_id], findings, facts)
    return row


def streams(share: float) -> list:
    """A kernel that is quick alone, and the claimed one, whose four streams take `share` of the ceiling."""
    return [case("quick", "Q8_0", 1, share=0.9), case("quick", "Q8_0", 4, share=0.9),
            case("flat_interleaved", "Q8_0", 4, share=share)]  # fmt: skip


@pytest.mark.parametrize(
    ("share", "expected"), [(0.89, "reproduced"), (0.857, "inconclusive"), (0.6, "refuted")]
)
def test_four_streams_cost_what_one_costs(sheet, tmp_path, share: float, expected: str) -> None:
    samples = streams(share)
    if expected == "inconclusive":
        for place, sample in enumerate(samples[2]):
            sample["us"] *= 1 + 0.05 * (-1) ** place
    row = verdict(sheet, tmp_path, "pti.kernel.streams_cost_one.q8_0", samples, machine="mi50")
    assert row["verdict"] == expected, row["reason"]
    assert "flat_interleaved" in row["reason"]
    assert row["cells"] == ["kernels"]


def test_another_kernel_or_another_card_says_nothing_of_the_claimed_one(sheet, tmp_path) -> None:
    """Matrix units that the claimed kernel does not use did make it true once."""
    quick = [case("quick", "Q8_0", n, share=0.9) for n in (1, 4)]
    assert verdict(sheet, tmp_path, "pti.kernel.streams_cost_one.q8_0", quick, machine="mi50")["verdict"] == "not_run"
    row = verdict(sheet, tmp_path / "x", "pti.kernel.streams_cost_one.q8_0", streams(0.89))
    assert row["verdict"] == "not_comparable" and "machine (claim: mi50, here: gpubox)" in row["reason"]


def test_a_figure_of_the_mi50_is_compared_on_an_mi50_alone(sheet, tmp_path) -> None:
    samples = [case("flat_scalar", streams=4, share=0.0230)]
    here = verdict(sheet, tmp_path, "pti.kernel.flat_q8", samples)
    assert here["verdict"] == "not_comparable" and "machine (claim: mi50, here: gpubox)" in here["reason"]
    there = verdict(sheet, tmp_path / "x", "pti.kernel.flat_q8", samples, machine="mi50")
    assert there["verdict"] == "reproduced", there["reason"]


@pytest.mark.parametrize(("machine", "megabytes", "expected"), [
    ("mi50", 95 * 2.5, "refuted"), ("mi50", 95 * 16, "reproduced"), ("gpubox", 95 * 2.5, "not_comparable"),
])  # fmt: skip
def test_activations_in_l2(sheet, tmp_path, machine: str, megabytes: float, expected: str) -> None:
    counters = {"ncu_flat_scalar_Q8_0_n4_17408x5120.csv": ncu("flat_scalar<4>(int)", l2=("Mbyte", megabytes))}
    samples = [case("flat_scalar", streams=4)]
    row = verdict(sheet, tmp_path, "pti.traffic.ratio.counted", samples, counters, machine=machine)
    assert row["verdict"] == expected, row["reason"]


def test_the_drafts_weights_are_not_free(sheet, tmp_path) -> None:
    samples = [case("ssq_twin", "SSQ", 2, share=0.9, peer=0), case("quick", share=0.9)]
    counters = {"ncu_ssq_twin_SSQ_n2_17408x5120.csv": ncu("ssq_twin(int)", dram=("Mbyte", 189.5))}
    row = verdict(sheet, tmp_path, "pti.ssq.free_draft.counted", samples, counters)
    assert row["verdict"] == "refuted" and row["measured"] == pytest.approx(2.0, rel=1e-3)
    row = verdict(sheet, tmp_path / "x", "pti.ssq.free_draft.time", samples)
    assert row["verdict"] == "not_comparable" and row["measured"] == pytest.approx(2.0, rel=1e-2)
    row = verdict(sheet, tmp_path / "y", "pti.ssq.free_draft.counted", samples)
    assert row["verdict"] == "inconclusive"


def test_without_records_it_says_what_to_run(sheet) -> None:
    claims, facts = sheet
    (row,) = judge_claims([claim for claim in claims if claim.id == "pti.traffic.ratio.counted"], Findings(), facts)
    assert row["verdict"] == "not_run" and "python -m bench kernels" in row["reason"]
