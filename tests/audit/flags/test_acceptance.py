"""Counters of acceptance that cannot be, and published shares that no definition gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.audit_records import flags, look


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("0,3,3,4,5", "accepted 4 is above tested 3"),
        ("0,3,4,2,3", "tested 4 is above drafted 3"),
        ("0,3,,4,5", "accepted 4 is above drafted 3"),
        ("0,3,3,2,4", "emits 4 tokens where 1 step(s) + 2 accepted give 3"),
        ("0,3,3,2,2", "emits 2 tokens where"),
    ],
)
def test_counters_that_cannot_be(tmp_path: Path, row: str, words: str) -> None:
    head = "step,drafted,verified,accepted,emitted\n"
    report = look(tmp_path, head + "9,3,3,2,3\n" + row + "\n8,3,3,2,3\n", baseline=1.0)
    sentences = [item.sentence for item in flags(report, "ACCEPTANCE")]
    assert any(words in sentence and "line 3" in sentence for sentence in sentences)


def test_the_last_step_may_be_cut_off(tmp_path: Path) -> None:
    head = "step,drafted,verified,accepted,emitted\n0,3,3,2,3\n1,3,3,2,3\n"
    assert look(tmp_path, head + "2,3,3,3,2\n", baseline=1.0).codes == []
    assert look(tmp_path, head + "2,3,3,3,5\n", baseline=1.0).codes == ["ACCEPTANCE"]


def test_tokens_of_a_step_against_its_guesses(tmp_path: Path) -> None:
    good = "tokens,positions,drafted,accepted\n1 2,0 1,1,1\n3,2,1,0\n4 5,3 4,1,1\n"
    assert not flags(look(tmp_path, good), "ACCEPTANCE")
    assert flags(look(tmp_path, good.replace("3,2,1,0", "3,2,1,1")), "ACCEPTANCE")


def test_published_acceptance(tmp_path: Path) -> None:
    text = "step,drafted,verified,accepted,emitted\n" + "0,4,2,1,2\n" * 10
    assert not flags(look(tmp_path, text, acceptance=0.5), "ACCEPTANCE")
    assert not flags(look(tmp_path, text, acceptance=0.25), "ACCEPTANCE")
    assert "(accepted + 1)" in flags(look(tmp_path, text, acceptance=0.4), "ACCEPTANCE")[0].sentence
    assert "no definition" in flags(look(tmp_path, text, acceptance=0.8), "ACCEPTANCE")[0].sentence
