"""Where each flag about guesses begins, with its figures: one step to either side of every threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.audit.flags.acceptance import acceptance_flags, definitions
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Step, Trial

PLAIN = Trial("line 2", "draft", line=2, drafted=40, tested=30, accepted=15, rounds=10, emitted=25)


def said(trial: Trial, code: str, **options: object) -> list[Flag]:
    record = Record(Path("r"), "a table", (trial,))
    found = acceptance_flags(record, AuditOptions(**options))  # type: ignore[arg-type]
    return [flag for flag in found if flag.code == code]


def steps(*rows: tuple[int, int | None, int | None, int | None, int | None]) -> tuple[Step, ...]:
    """(line, drafted, tested, accepted, emitted), one round each."""
    return tuple(Step(line, drafted=d, tested=t, accepted=a, emitted=e) for line, d, t, a, e in rows)


def test_all_definitions_by_hand() -> None:
    rows = steps((2, 4, 3, 1, 2), (3, 2, 2, 2, 3))
    trial = Trial("x", "x", drafted=6, tested=5, accepted=3, rounds=2, emitted=99, steps=rows)
    assert definitions(trial) == pytest.approx({
        "accepted/tested": 3 / 5, "accepted/drafted": 3 / 6, "biased": 5 / 8, "emitted/drafted": 5 / 6,
        "accepted/step": 3 / 2, "mean_length": 2.5, "biased_steps": (2 / 5 + 3 / 3) / 2,
    })  # fmt: skip
    assert definitions(replace(trial, rounds=None, steps=())) == pytest.approx(
        {"accepted/tested": 0.6, "accepted/drafted": 0.5, "emitted/drafted": 99 / 6}
    )
    assert definitions(replace(trial, accepted=None)) == {}
    assert definitions(replace(trial, tested=0, drafted=0, rounds=0)) == {}
    assert "biased_steps" not in definitions(replace(trial, steps=rows[:1]))
    assert "biased_steps" not in definitions(replace(trial, steps=(replace(rows[0], rounds=2), rows[1])))
    assert "biased_steps" not in definitions(replace(trial, steps=(replace(rows[0], drafted=None), rows[1])))


def test_the_first_row_in_a_wrong_order_is_named_and_all_are_counted() -> None:
    trial = replace(PLAIN, steps=steps((5, 3, 3, 3, 4), (6, 3, 2, 3, 4), (7, 3, 1, 2, 3)))
    assert [flag.numbers for flag in said(trial, "ACCEPTANCE")][:1] == [{"accepted": 3, "tested": 2, "rows": 2}]
    assert "draft, line 6: accepted 3 is above tested 2; 2 such rows" in said(trial, "ACCEPTANCE")[0].sentence
    whole = replace(PLAIN, tested=41)
    assert said(whole, "ACCEPTANCE")[0].numbers == {"tested": 41, "drafted": 40, "rows": 1}
    assert said(replace(PLAIN, tested=40, accepted=40), "ACCEPTANCE") == []
    assert said(replace(PLAIN, tested=None, accepted=41), "ACCEPTANCE")[0].numbers["drafted"] == 40


def test_tokens_that_the_counters_do_not_give_are_summed_up() -> None:
    rows = steps((5, 3, 3, 2, 3), (6, 3, 3, 2, 5), (7, 3, 3, 1, 1), (8, 3, 3, 2, 3))
    found = said(replace(PLAIN, steps=rows), "ACCEPTANCE")
    assert [flag.numbers for flag in found] == [{"emitted": 12, "expected": 11}]
    words = "line 6: emits 5 tokens where 1 step(s) + 2 accepted give 3; 2 such rows, +1 tokens in all"
    assert words in found[0].sentence
    fills = steps((4, 0, 0, 0, 0), (5, 3, 3, 2, 3))
    assert said(replace(PLAIN, steps=fills), "ACCEPTANCE") == [], "a round that fills the pipeline emits nothing"
    two = (replace(fills[0], rounds=2), fills[1])
    assert said(replace(PLAIN, steps=two), "ACCEPTANCE")[0].numbers == {"emitted": 3, "expected": 5}
    assert said(replace(PLAIN, steps=rows, drafted=0), "ACCEPTANCE") == []
    assert said(replace(PLAIN, steps=rows, rounds=None), "ACCEPTANCE") == []
    assert said(replace(PLAIN, steps=(*rows, Step(9, drafted=3))), "ACCEPTANCE") == [], "a row that does not say"


@pytest.mark.parametrize(
    ("emitted", "rounds", "flagged"),
    [(4, 1, False), (3, 1, False), (1, 1, False), (0, 2, True), (2, 2, False), (5, 1, True)],
)
def test_only_the_last_step_may_give_less_than_its_own(emitted: int, rounds: int, flagged: bool) -> None:
    rows = (*steps((5, 3, 3, 2, 3)), Step(6, rounds=rounds, drafted=3, tested=3, accepted=3, emitted=emitted))
    assert bool(said(replace(PLAIN, steps=rows), "ACCEPTANCE")) == flagged


def test_one_row_may_have_the_token_of_the_prompt() -> None:
    row = Step(5, drafted=40, tested=30, accepted=15, emitted=26, rounds=10)
    assert said(replace(PLAIN, steps=(row,)), "ACCEPTANCE") == []
    assert said(replace(PLAIN, steps=(replace(row, emitted=27),)), "ACCEPTANCE")[0].numbers == {
        "emitted": 27, "expected": 25,
    }  # fmt: skip
    assert said(replace(PLAIN, steps=(replace(row, emitted=24),)), "ACCEPTANCE"), "one row is no last of many"


@pytest.mark.parametrize(
    ("printed", "words"),
    [(0.5, None), (0.375, None), (0.504, "no definition gives it"), (0.5004, "no definition"), (0.50004, None),
     (50.0, None), (37.5, None), (2.5, None), (0.625, "emitted over drafted"), (0.63, "emitted over drafted"),
     (0.64, "no definition"), (1.5, None), (1, "no definition"), (51.0, "no definition"), (20.0, "no definition")],
)  # fmt: skip
def test_a_printed_rate_is_one_of_the_definitions_to_its_last_digit(printed: float, words: str | None) -> None:
    # 15 of 30 tested and of 40 drafted in 10 steps: 0.5, 0.375, 2.5 tokens a step, 25/40, and (15 + 10)/(40 + 10).
    found = said(replace(PLAIN, printed={"acceptance": printed}), "ACCEPTANCE")
    assert len(found) == (words is not None)
    for flag in found:
        assert words and words in flag.sentence
        assert flag.numbers["printed"] == printed and flag.numbers["mean_length"] == 2.5


def test_a_rate_without_counters_asks_for_them() -> None:
    bare = Trial("line 2", "draft", printed={"acceptance": 0.7})
    assert "at least five definitions" in said(bare, "ACCEPTANCE")[0].sentence
    assert said(bare, "ACCEPTANCE")[0].numbers == {"printed": 0.7}
    for summary in ({"test": "serving"}, {"test": "overall"}, {"category": "code", "repetitions": 3}):
        assert said(replace(bare, **summary), "ACCEPTANCE") == []
    assert said(replace(bare, category="code"), "ACCEPTANCE") and said(replace(bare, repetitions=3), "ACCEPTANCE")
    assert said(Trial("line 2", "plain"), "ACCEPTANCE", acceptance=0.7) == [], "a published rate is that of guesses"
    assert said(replace(bare, printed={"acceptance": 0.0}), "ACCEPTANCE") == []
    assert said(replace(PLAIN, accepted=0, printed={"acceptance": 0.0}), "ACCEPTANCE") == []


@pytest.mark.parametrize(
    ("length", "flagged"), [(2.5, False), (2.54, False), (2.56, True), (2.46, False), (2.44, True)]
)
def test_a_printed_length_may_be_rounded(length: float, flagged: bool) -> None:
    found = said(replace(PLAIN, printed={"mean_length": length}), "ACCEPTANCE")
    assert [flag.numbers for flag in found] == ([{"printed": length, "right": 2.5}] if flagged else [])


def test_a_length_is_also_one_and_the_shares_of_its_places() -> None:
    printed = {"mean_length": 2.01, "acceptance": 0.6}
    bare = Trial("line 2", "draft", printed=printed, positions=(0.7, 0.3), test="serving")
    assert said(bare, "ACCEPTANCE") == [] and said(replace(bare, positions=()), "ACCEPTANCE") == []
    found = said(replace(bare, positions=(0.7, 0.4)), "ACCEPTANCE")
    assert [flag.numbers["right"] for flag in found] == [pytest.approx(2.1)]
    assert "of its positions" in found[0].sentence
    assert said(replace(bare, positions=(0.7, 0.4), printed={"mean_length": 2.01}), "ACCEPTANCE") == [], "no guesses"
    both = replace(PLAIN, positions=(0.9, 0.9), printed={"mean_length": 3.01})
    assert [flag.numbers["right"] for flag in said(both, "ACCEPTANCE")] == [2.5], "said once"


def test_all_accepted_is_no_evidence_of_skill() -> None:
    all_right = replace(PLAIN, tested=10, accepted=10, temperature=0.0)
    found = said(all_right, "BY_CONSTRUCTION")
    assert [flag.numbers for flag in found] == [{"accepted": 10, "tested": 10}]
    assert "at temperature 0;" in found[0].sentence
    assert "that the record does not say" in said(replace(all_right, temperature=None), "BY_CONSTRUCTION")[0].sentence
    assert said(replace(all_right, tested=None, drafted=10), "BY_CONSTRUCTION")[0].numbers["tested"] == 10
    for other in ({"arm": "oracle"}, {"arm": "sabotage"}, {"accepted": None}, {"tested": 9, "accepted": 9},
                  {"accepted": 9}, {"temperature": 0.3}, {"tested": 0, "accepted": 0}):  # fmt: skip
        assert said(replace(all_right, **other), "BY_CONSTRUCTION") == []


def test_a_head_that_is_never_right_is_broken() -> None:
    dead = replace(PLAIN, drafted=50, accepted=0)
    assert [flag.numbers for flag in said(dead, "DEAD_DRAFTER")] == [{"drafted": 50}]
    for other in ({"drafted": 49}, {"accepted": 1}, {"accepted": None}, {"arm": "sabotage"}, {"drafted": None}):
        assert said(replace(dead, **other), "DEAD_DRAFTER") == []


def test_a_step_that_gives_hardly_more_than_its_own_token() -> None:
    little = replace(PLAIN, accepted=1, rounds=11)
    assert said(little, "NO_GAIN")[0].numbers == {"mean_length": pytest.approx(12 / 11)}
    assert said(replace(little, rounds=10), "NO_GAIN") == [], "1.1 is the edge"
    assert said(replace(little, accepted=0), "NO_GAIN") == [], "that is a dead drafter"
    assert said(replace(little, drafted=None), "NO_GAIN") == [], "nothing was guessed"
    printed = Trial("line 2", "draft", printed={"mean_length": 1.05})
    assert said(printed, "NO_GAIN")[0].numbers == {"mean_length": 1.05}
    assert said(replace(little, printed={"mean_length": 1.2}), "NO_GAIN") == [], "what is printed goes before"


def test_a_draft_model_gives_one_guess_a_call_and_one_a_step() -> None:
    most = replace(PLAIN, draft_runs=30)
    assert said(most, "INCONSISTENT") == []
    found = said(replace(most, draft_runs=29), "INCONSISTENT")
    assert [flag.numbers for flag in found] == [{"drafted": 40, "most": 39}]
    assert said(replace(most, draft_runs=29, rounds=0), "INCONSISTENT") == []
    assert said(replace(most, draft_runs=None), "INCONSISTENT") == []
    assert said(replace(most, draft_runs=0, rounds=2), "INCONSISTENT")[0].numbers["most"] == 2


def test_temperatures_of_a_claim_that_the_record_lacks() -> None:
    trial = replace(PLAIN, temperature=0.3)
    assert said(trial, "UNSUPPORTED") == [] and said(trial, "UNSUPPORTED", temperatures=(0.3,)) == []
    found = said(trial, "UNSUPPORTED", temperatures=(0.0, 0.3, 0.7))
    assert found[0].sentence == "the claim covers temperature 0, 0.7, and the record has 0.3"
    assert found[0].numbers == {"temperatures": 1}
    assert said(PLAIN, "UNSUPPORTED", temperatures=(0.0,))[0].sentence.endswith("the record has no temperature")
