"""Where each flag about outputs, settings or tokens begins: a step to either side of its threshold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.audit.compare import comparisons
from bench.audit.emits import Emits, count
from bench.audit.flags.outputs import output_flags
from bench.audit.flags.settings import differing, setting_flags
from bench.audit.flags.tokens import token_flags
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record, Trial


def record(*trials: Trial, form: str = "a table") -> Record:
    return Record(Path("r"), form, trials)


def row(arm: str, rate: float, **more: object) -> Trial:
    return Trial("line 2", arm or "x", arm=arm, printed={"tok_s": rate}, **more)  # type: ignore[arg-type]


def spoken(arm: str, tokens: list[int], first: int = 0, streams: int = 1, **more: object) -> Trial:
    emits = Emits(False)
    for stream in range(streams):
        for k, token in enumerate(tokens):
            emits.add(stream, first + k, token, k, 0, False, True)
    count(emits)
    return Trial(arm, arm, arm=arm, printed={"tok_s": 9.0}, emits=emits, **more)  # type: ignore[arg-type]


def outputs(*trials: Trial) -> list[Flag]:
    return output_flags(comparisons(record(*trials), AuditOptions(), None))


def test_where_two_outputs_part() -> None:
    base = spoken("none", [5, 6, 7, 8], 3, temperature=0.0)
    assert outputs(base, spoken("mtp", [5, 6, 7, 8], 3, temperature=0.0)) == []
    found = outputs(base, spoken("mtp", [5, 6, 9, 8], 3, temperature=0.0))
    assert [(flag.code, flag.numbers) for flag in found] == [("DIVERGENT", {"position": 5})]
    assert "differs from position 5 on: 9 against 7" in found[0].sentence and "if both" not in found[0].sentence
    shorter = outputs(base, spoken("mtp", [5, 6], 3))
    assert shorter[0].numbers == {"position": 5} and "2 against 4 tokens" in shorter[0].sentence
    assert "(if both are greedy)" in shorter[0].sentence
    assert (
        outputs(base, spoken("mtp", [1, 2], temperature=0.7))
        == []
        == outputs(replace(base, temperature=0.7), spoken("mtp", [1, 2]))
    )
    assert outputs(base, spoken("mtp", [1, 2], streams=2)) == []
    assert len(outputs(base, base, spoken("mtp", [1]), spoken("mtp", [1]))) == 1, "said once a prompt"
    assert "on p:" in outputs(replace(base, prompt="p"), spoken("mtp", [1], prompt="p"))[0].sentence


def test_answers_of_other_lengths() -> None:
    def long(arm: str, tokens: int | None, **more: object) -> Trial:
        return row(arm, 9.0, emitted=tokens, **more)

    found = outputs(long("none", 100, temperature=0.0), long("mtp", 96, temperature=0.0))
    assert [(flag.code, flag.numbers) for flag in found] == [("LENGTH", {"tokens": 96, "baseline": 100})]
    assert "have to be equal" in found[0].sentence
    assert (
        "at temperature 0 that is another" in outputs(long("none", 100, temperature=0.0), long("mtp", 96))[0].sentence
    )
    assert outputs(long("none", 100), long("mtp", 100)) == [] == outputs(long("none", 0), long("mtp", 100))
    counted = Trial("l", "m", arm="mtp", counted=194, distinct=194, first=6, seconds=9.0, streams=2)
    assert outputs(long("none", 100), counted) == [], "200 tokens of two answers"
    for tokens, flagged in ((1009, False), (1011, True), (992, False), (989, True)):
        pair = long("none", 1000, test="serving"), long("mtp", tokens, test="serving")
        assert bool(outputs(*pair)) == flagged
    assert outputs(replace(long("none", 100), label="under way"), long("mtp", 96)) == []


def test_an_answer_that_comes_later_though_it_decodes_faster() -> None:
    base = row("none", 10.0, total_seconds=10.0)
    for wait, rate, flagged in ((10.19, 12.0, False), (10.21, 12.0, True), (10.21, 10.0, False), (10.21, 9.0, False)):
        found = outputs(base, row("mtp", rate, total_seconds=wait))
        assert bool(found) == flagged
        if flagged:
            assert found[0].numbers == {"decode": pytest.approx(1.2), "answer": pytest.approx(10 / 10.21)}
            assert "10.210 s against 10.000 s from the request on, 0.98x" in found[0].sentence
    assert outputs(base, row("mtp", 12.0)) == [] == outputs(row("none", 10.0), row("mtp", 12.0, total_seconds=11.0))
    served = [replace(base, test="serving"), row("mtp", 12.0, total_seconds=11.0, test="serving")]
    assert outputs(*served) == [] == outputs(base, row("mtp", 24.0, total_seconds=11.0, streams=2))


def test_which_settings_differ() -> None:
    three = {"a": "1", "b": "2", "c": "3"}
    assert differing(three, {**three, "b": "4"}) == {"b": "2 against 4"}
    assert differing(three, {**three, "b": "4"}, ("b",)) == {} == differing(three, {**three, "x*": "1"})
    assert differing(three, {**three, "d": "1"}) == {"d": "not said against 1"}
    assert differing(three, {**three, "d": "1", "e": "1", "f": "1", "g": "1"}) == {}, "a text that says more"
    assert differing({"a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3"}) == {}, "two that both say are too few"
    assert differing({"s": "4917737553"}, {"s": "4917756928"}) == {}, "GiB with two decimals"
    assert differing({"s": "4917737553"}, {"s": "4993000000"}) and differing({"s": "100000"}, {"s": "100001"})
    assert differing({"s": "fast"}, {"s": "slow"})


def settings(*trials: Trial, form: str = "a table") -> list[Flag]:
    whole = record(*trials, form=form)
    return setting_flags(whole, None, comparisons(whole, AuditOptions(), None))


def test_what_is_compared_on_purpose_differs_and_the_rest_is_not_comparable() -> None:
    base = row("none", 10.0, settings={"build": "1", "ngl": "9"})
    found = settings(base, row("mtp", 12.0, settings={"build": "2", "ngl": "9"}))
    assert [(flag.code, flag.numbers) for flag in found] == [("DIFFERS", {"keys": 1})]
    both = settings(base, row("mtp", 12.0, settings={"build": "2", "ngl": "8"}))
    assert [(flag.code, flag.numbers) for flag in both] == [("NOT_COMPARABLE", {"keys": 2})]
    warm = settings(base, row("mtp", 12.0, settings=base.settings, temperature=0.7))
    assert "temperature (0.7 against None)" in warm[0].sentence
    cell = [row("none", 10.0, settings={"n_ctx": "1"}), row("mtp", 12.0, settings={"n_ctx": "4"})]
    assert settings(*cell, form="cell") == [] != settings(*cell)
    two = record(row("", 1.0, block=0), row("", 2.0, block=1), form="a table, Ollama")
    assert [flag.code for flag in setting_flags(two, None, [])] == ["NOT_COMPARABLE"]
    assert setting_flags(record(row("", 1.0), form="a table, Ollama"), None, []) == []
    assert setting_flags(record(row("", 1.0), form="Ollama"), record(row("", 1.0), form="Ollama's API"), []) == []
    crossed = setting_flags(record(row("", 1.0), form="Ollama"), record(row("", 1.0)), [])
    assert ["two tools" in flag.sentence for flag in crossed] == [True]


def test_a_prompts_rate_that_moves_with_the_answers() -> None:
    def run(block: int, rate: float, prompt: float, **more: object) -> Trial:
        return Trial("l", "x", block=block, printed={"tok_s": rate, "pp": prompt}, **more)  # type: ignore[arg-type]

    base = run(0, 10.0, 100.0)
    for rate, prompt, flagged in (
        (20.0, 141.0, True),
        (20.0, 139.0, False),
        (20.0, 70.0, False),
        (5.0, 70.0, True),
        (5.0, 72.0, False),
        (10.9, 200.0, False),
        (11.1, 200.0, True),
        (5.0, 200.0, False),
    ):
        found = settings(base, run(1, rate, prompt))
        assert bool(found) == flagged
        if flagged:
            assert found[0].numbers == {"prefill": pytest.approx(prompt / 100), "decode": pytest.approx(rate / 10)}
            assert "Neither text says" in found[0].sentence
    told = settings(run(0, 10.0, 100.0, settings={"a": "1"}), run(1, 20.0, 200.0, settings={"a": "1"}))
    assert "Neither" not in told[0].sentence
    lengths = [run(0, 10.0, 100.0, prompt_tokens=100), run(1, 20.0, 200.0, prompt_tokens=200)]
    assert settings(*lengths) == [] != settings(lengths[0], replace(lengths[1], prompt_tokens=199))
    assert settings(lengths[0], replace(lengths[1], prompt_tokens=50)) == []
    assert settings(row("none", 10.0), replace(run(0, 20.0, 200.0), arm="mtp")) == []


def tokens(trial: Trial, **options: object) -> list[Flag]:
    return token_flags(record(trial), AuditOptions(**options))  # type: ignore[arg-type]


def test_more_than_was_asked_for() -> None:
    counted = Trial("l", "x", counted=18, distinct=18, streams=2)
    assert tokens(counted, requested=9) == []
    assert [flag.numbers for flag in tokens(counted, requested=8)] == [{"emitted": 9, "requested": 8}]
    assert tokens(replace(counted, requested=8)) and tokens(replace(counted, requested=8), requested=9) == []
    assert tokens(Trial("l", "x", emitted=9), requested=8) and tokens(Trial("l", "x"), requested=8) == []
    assert [flag.code for flag in tokens(Trial("l", "x", emitted=0))] == ["EMPTY"]


def overlapping(*steps: list[int], placed: bool = False, shift: int = 0) -> Trial:
    emits, position = Emits(False, placed), shift
    for number, step in enumerate(steps):
        for token in step:
            emits.add(0, position, token, number - 1, 0, False, True)
            position += 1
    return Trial("l", "x", emits=emits)


def test_steps_that_begin_with_the_end_of_the_one_before() -> None:
    said = tokens(overlapping([], [1, 2, 3], [2, 3, 4], [3, 4, 5]))
    assert [(flag.code, flag.numbers) for flag in said] == [("DUPLICATE", {"counted": 9, "distinct": 5})]
    assert "the last 2 tokens" in said[0].sentence and "add a positions column" in said[0].sentence
    placed = tokens(overlapping([], [1, 2, 3], [2, 3, 4], [3, 4, 5], placed=True))
    assert "look whether its positions" in placed[0].sentence
    assert tokens(overlapping([], [1, 2, 3], [2, 3, 4])) == [], "two steps are no evidence"
    assert tokens(overlapping([1, 2, 3], [2, 3, 4], [3, 4, 5])) == [], "the prefill is no step"
    assert tokens(overlapping([], [1, 2, 3], [2, 3, 4], [9, 4, 5])) == []
    assert tokens(overlapping([], [1, 2], [2, 1], [1, 2], [2, 1])) == [], "a text that repeats itself"
    once = tokens(overlapping([], [1, 2], [2, 3], [3, 4]))
    assert [flag.numbers for flag in once] == [{"counted": 6, "distinct": 4}] and "the last 1 tokens" in once[
        0
    ].sentence
