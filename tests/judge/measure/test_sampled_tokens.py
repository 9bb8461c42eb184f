"""Rows and control of counted draws, from tables that are written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench.judge import judge
from bench.judge.measure.chi_square import DIFFERENT, SAME, TOO_FEW
from bench.judge.measure.sampled_tokens import distribution_control, distribution_rows
from bench.records.rows import Count
from pti_loop.ledger import RecordError
from tests.judge.judge_cells import case_of, frame, guess_cell

SHARE = np.array([0.5, 0.3, 0.15, 0.05])


def drawn(arm: str, share: np.ndarray = SHARE, n: int = 1000, tested: int = 1, group: int = 0, seed: int = 0,
          told: np.ndarray = SHARE) -> list[Count]:
    """A group whose counts come from `share` and whose rows say `told`."""
    counts = np.random.default_rng(seed).multinomial(n, share)
    return [Count(arm, "p0", group, 1, "", tested, token, int(count), float(p), float(p))
            for token, count, p in zip([0, 1, 2, -1], counts, told, strict=True)]  # fmt: skip


FAULT = np.array([0.7, 0.2, 0.08, 0.02])


def judged(*rows: list[Count], method: str = "jacobi"):
    cell = guess_cell(method={"name": method})
    cell = type(cell)(**{**vars(cell), "counts": frame("counts", [row for group in rows for row in group])})
    case = case_of(cell)
    return cell, distribution_rows(case), distribution_control(case)


def verdicts(*rows: list[Count], **more) -> list[str]:
    return [row["verdict"] for row in judged(*rows, **more)[1]]


def severity(*rows: list[Count], **more) -> tuple[str, str]:
    (control,) = judged(*rows, **more)[2]
    return control.severity, control.sentence


def test_a_sound_arm_beside_a_fault_that_is_seen():
    rows = drawn("treatment"), drawn("biased", FAULT)
    assert verdicts(*rows) == [SAME, DIFFERENT]
    level, sentence = severity(*rows)
    assert level == "ok"
    assert sentence.startswith("1000 tokens behind 1 prefixes: total variation 0.0")


def test_another_distribution_voids_the_cell_and_its_speed():
    rows = drawn("treatment", FAULT), drawn("biased", FAULT)
    assert verdicts(*rows) == [DIFFERENT, DIFFERENT]
    assert severity(*rows)[0] == "void"
    findings = judge([judged(*rows)[0]])
    assert [row["arm"] for row in findings.distribution] == ["treatment", "biased"]
    assert all(row["void"] and "no speed" in row["void_reason"] for row in findings.speedup)
    assert not any(row["void"] for row in judge([judged(drawn("treatment"), drawn("biased", FAULT))[0]]).speedup)


def test_a_fault_that_is_not_seen_takes_the_verdict_away():
    rows = drawn("treatment"), drawn("biased", seed=4)
    assert verdicts(*rows) == [TOO_FEW, SAME]
    assert "the planted fault was not seen; raise measure.distribution" in severity(*rows)[1]


@pytest.mark.parametrize(("method", "expected"), [("jacobi", TOO_FEW), ("packed", SAME)])
def test_draws_that_nobody_guessed_say_nothing_about_a_method_that_guesses(method, expected):
    rows = drawn("treatment", tested=0), drawn("biased", FAULT, tested=0)
    assert verdicts(*rows, method=method)[0] == expected
    if method == "jacobi":
        assert "no guess was compared with any of them" in severity(*rows)[1]


def test_a_group_that_is_no_whole_distribution_is_a_broken_record():
    broken = drawn("treatment", told=SHARE * 0.9)
    with pytest.raises(RecordError, match=r"group 0: probability adds up to 0\.9"):
        judged(broken, drawn("biased", FAULT))
    findings = judge([type(guess_cell())(**{**vars(guess_cell()), "counts": frame("counts", broken)})])
    assert [row["control"] for row in findings.controls if row["severity"] == "void"] == ["records"]


@pytest.mark.parametrize("bad", [{"arm": "oracle"}, {"count": -1}, {"probability": 1.5}])
def test_a_row_that_makes_no_sense_cannot_be_built(bad):
    good = {"arm": "treatment", "prompt": "p", "group": 0, "position": 1, "prefix": "", "tested": 1, "token": 3,
            "count": 2, "probability": 0.5, "moved": 0.5}  # fmt: skip
    Count(**good)
    with pytest.raises(RecordError):
        Count(**{**good, **bad})
