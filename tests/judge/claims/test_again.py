"""A/A of a row against what a claim is about, how sure a verdict is at few units, and Holm's step-down."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bench.judge.claims import again
from bench.judge.claims.outcome import REFUTING, Outcome, step_down
from tests.judge.claims.claim_findings import claim_of, speed, verdict

MTP = {"method": "mtp", "streams": 1, "counted_tok_s": None}


def gained(ratio: float, half: float, **changes: object) -> dict[str, object]:
    """A row of mtp with an interval of `half` as a log."""
    return speed(**MTP, speedup=ratio, ci_low=ratio * math.exp(-half), ci_high=ratio * math.exp(half), **changes)


def off_by(percent: float, half: float, freedom: float = 6.0) -> dict[str, object]:
    middle = 1 + percent / 100
    return {"again": "ok", "again_ratio": middle, "again_low": middle * math.exp(-half),
            "again_high": middle * math.exp(half), "again_freedom": freedom}  # fmt: skip


@pytest.mark.parametrize(
    ("published", "ratio", "aa", "expected"),
    [
        ("2.00", 2.1, off_by(2.5, 0.004), "reproduced"),  # far less than a third of what is claimed
        ("1.05", 1.06, off_by(2.5, 0.004), "inconclusive"),  # half of what is claimed
        ("1.05", 1.06, off_by(0.9, 0.004), "reproduced"),  # as two sound contexts differ
        ("1.05", 0.40, off_by(2.5, 0.004), "refuted"),  # nobody has to know 1 % for that
    ],
)
def test_a_band_that_knows_the_claim(
    tmp_path: Path, published: str, ratio: float, aa: dict[str, object], expected: str
) -> None:
    claim = claim_of(tmp_path, published=published)
    found = verdict(claim, speedup=[gained(ratio, 0.01, **aa)])
    assert found["verdict"] == expected
    assert ("third of what is claimed" in found["reason"]) == (expected == "inconclusive")


def test_rows_whose_contexts_are_alike_still_speak(tmp_path: Path) -> None:
    rows = [gained(1.06, 0.01, **off_by(2.5, 0.004)), gained(1.07, 0.01, **off_by(0.2, 0.004), cells=["b"])]
    found = verdict(claim_of(tmp_path, published="1.05"), speedup=rows)
    assert found["verdict"] == "reproduced" and found["measured"] == 1.07
    assert "1 rows were left out whose A/A" in found["reason"]


@pytest.mark.parametrize(("published", "ratio", "told"), [("2.00", 2.2, False), ("1.10", 1.12, True)])
def test_too_wide_for_one_claim_is_not_too_wide_for_another(
    tmp_path: Path, published: str, ratio: float, told: bool
) -> None:
    row = gained(ratio, 0.001, **off_by(0.0, 0.2))
    found = verdict(claim_of(tmp_path, published=published), speedup=[row])
    assert ("too wide for a difference of this size" in found["reason"]) == told


def test_a_word_is_all_that_older_rows_have(tmp_path: Path) -> None:
    claim = claim_of(tmp_path)
    assert again.standing(claim, gained(2.0, 0.01, again=again.CANNOT_TELL)) == again.CANNOT_TELL
    assert again.standing(claim, gained(2.0, 0.01)) == again.OK


@pytest.mark.parametrize("freedom", [1.0, 2.0, 5.0, 29.0])
@pytest.mark.parametrize("side", [0.98, 1.02])
def test_a_refutation_is_as_sure_at_few_prompts_as_at_many(tmp_path: Path, freedom: float, side: float) -> None:
    """The log standard error at which Student's 99 % interval just reaches the claim's edge, by scipy."""
    ratio, edge = 0.5, 0.95
    se = math.log(edge / ratio) / stats.t.ppf(0.5 + REFUTING / 2, freedom) * side
    row = gained(ratio, stats.t.ppf(0.975, freedom) * se, freedom=freedom)
    found = verdict(claim_of(tmp_path, published="1.000001"), speedup=[row])
    assert found["verdict"] == ("refuted" if side < 1 else "inconclusive")


@pytest.mark.parametrize("freedom", [2.0, 5.0, 29.0])
@pytest.mark.parametrize(("side", "expected"), [(0.98, "reproduced"), (1.02, "inconclusive")])
def test_what_is_reproduced_holds_at_97_percent(tmp_path: Path, freedom: float, side: float, expected: str) -> None:
    ratio, edge = 2.5, 1.9
    se = math.log(ratio / edge) / stats.t.ppf(0.985, freedom) * side
    row = gained(ratio, stats.t.ppf(0.975, freedom) * se, freedom=freedom)
    assert verdict(claim_of(tmp_path, published="2.00"), speedup=[row])["verdict"] == expected


def holm(p: np.ndarray, alpha: float) -> np.ndarray:
    """Holm's procedure as its author writes it: sorted, until the first that is not small enough."""
    rejected = np.zeros(len(p), dtype=bool)
    for rank, place in enumerate(np.argsort(p)):
        if p[place] > alpha / (len(p) - rank):
            break
        rejected[place] = True
    return rejected


def test_step_down_is_holms() -> None:
    rng = np.random.default_rng(5)
    further = 0
    for _ in range(400):
        p = rng.random(int(rng.integers(1, 8))) ** 6
        rows = [{"p": value} for value in p.tolist()]
        found = step_down(rows, lambda row, left: Outcome("refuted" if row["p"] <= 0.01 / left else "inconclusive", ""))
        assert [one.verdict == "refuted" for one in found] == holm(p, 0.01).tolist()
        further += int(holm(p, 0.01).sum() > (p <= 0.01 / len(p)).sum())
    assert further > 5  # rows that the first step alone leaves


def test_rows_of_a_claim_are_stepped_down(tmp_path: Path) -> None:
    """Of two rows the second is outside at 99 %, and not at 99.5 %: it counts once the first one is refuted."""
    claim = claim_of(tmp_path)
    se = math.log(1.9) / stats.norm.ppf(0.5 + 0.993 / 2)
    near = gained(1.0, 1.959964 * se, cells=["b"])
    alone = verdict(claim, speedup=[near, gained(1.9, 0.5)])
    with_other = verdict(claim, speedup=[near, gained(0.3, 0.001)])
    assert with_other["reason"].startswith("Of 2 rows: 2 refuted")
    assert alone["verdict"] == "inconclusive"


@pytest.mark.parametrize("lacking", ["again_ratio", "again_low", "again_high"])
def test_figures_that_a_row_lacks_are_not_told(lacking: str) -> None:
    row = speed(**MTP, **off_by(2.5, 0.004))
    assert again.told(row) == f"1.025 [{1.025 * math.exp(-0.004):.4g}, {1.025 * math.exp(0.004):.4g}]"
    assert again.told({name: value for name, value in row.items() if name != lacking}) == "not told"
