"""Checks of cells beside each other by hand: readings of one memory, plain texts, and draws of several temperatures."""

from __future__ import annotations

from typing import Any

import pytest

from bench.judge.controls.read_speed import Read, read_checks
from bench.judge.controls.texts import Spoken, text_checks

ABOUT = {"machine": "m", "build": "b"}


def odd_speeds(*speeds: float, by: str = "h") -> list[float]:
    """Those that are void, of one host but for the last where it is another's."""
    hosts = [*["h"] * (len(speeds) - 1), by]
    reads = [Read({**ABOUT, "cells": [str(speed)]}, ("m", host, "numpy", "2"), speed, "again")
             for host, speed in zip(hosts, speeds, strict=True)]  # fmt: skip
    return [float(row.cell) for row in read_checks(reads)]


@pytest.mark.parametrize(("speeds", "odd"), [
    ((100.0, 101.0, 102.0, 153.0), []), ((100.0, 101.0, 102.0, 153.1), [153.1]),
    ((100.0, 101.0, 102.0, 66.7), []), ((100.0, 101.0, 102.0, 66.6), [66.6]),
    ((100.0, 101.0, 500.0), []), ((17.0, 40.0, 91.0, 900.0), []), ((17.0, 40.0, 91.0, 5000.0), [5000.0])])  # fmt: skip
def test_a_memory_is_as_quick_as_the_others_are_apart(speeds: tuple[float, ...], odd: list[float]) -> None:
    assert odd_speeds(*speeds) == odd


def test_another_host_is_not_compared_and_the_sentence_has_both() -> None:
    assert odd_speeds(100.0, 101.0, 102.0, 900.0, by="other") == []
    reads = [Read({**ABOUT, "cells": [str(speed)]}, ("m", "h", "numpy", "2"), speed, "run it again")
             for speed in (100.0, 101.0, 102.0, 900.0)]  # fmt: skip
    (row,) = read_checks(reads)
    assert row.sentence == ("the memory was read at 900.0 GB/s, and in 3 other cells of this host, by the same reader, "
                            "at 100.0 to 102.0; run it again")  # fmt: skip
    assert (row.control, row.severity, row.ok) == ("read_speed", "void", False)


def spoken(name: str, texts: dict[bytes, bytes] | None = None, temperature: float = 0.0,
           draws: dict[bytes, float] | None = None, rounding: float = 0.05) -> Spoken:  # fmt: skip
    about: dict[str, Any] = {**ABOUT, "cells": [name]}
    return Spoken(about, "run it again", texts or {}, temperature, draws or {}, rounding)


def void(*cells: Spoken) -> dict[str, str]:
    return {row.cell: row.sentence for row in text_checks(cells)}


def test_of_texts_that_differ_the_fewer_are_void_and_both_of_two() -> None:
    same = [spoken(name, {b"k": b"x"}) for name in "abc"]
    found = void(*same, spoken("d", {b"k": b"y"}))
    assert found == {"d": "plain decoding says another text than in 3 more cells of its build, weights, settings and "
                          "prompt; run it again"}  # fmt: skip
    assert set(void(same[0], spoken("d", {b"k": b"y"}))) == {"a", "d"}
    assert void(*same, spoken("d", {b"other": b"y"})) == {}


def test_a_cell_that_contradicts_several_takes_none_of_them_with_it() -> None:
    first, second = spoken("a", {b"k": b"x"}), spoken("b", {b"l": b"x"})
    assert set(void(first, second, spoken("c", {b"k": b"y", b"l": b"y"}))) == {"c"}


@pytest.mark.parametrize(("cold", "hot", "wrong"), [
    (-0.5, -0.9, False), (-0.5, -0.41, False), (-0.5, -0.39, True), (-0.5, -0.5, False)])
def test_collision_probabilities_fall_as_it_gets_warmer(cold: float, hot: float, wrong: bool) -> None:
    cells = spoken("a", temperature=0.3, draws={b"k": cold}), spoken("b", temperature=0.7, draws={b"k": hot})
    for pair in (cells, cells[::-1]):
        assert (set(void(*pair)) == {"a", "b"}) == wrong


@pytest.mark.parametrize(("other", "wrong"), [(-0.59, False), (-0.61, True), (-0.41, False), (-0.39, True)])
def test_at_one_temperature_they_are_one(other: float, wrong: bool) -> None:
    cells = [spoken(name, temperature=0.3, draws={b"k": value}) for name, value in (("a", -0.5), ("b", other))]
    assert bool(void(*cells)) == wrong
    if wrong:
        assert void(*cells)["a"].startswith("behind the same text its draws at temperature 0.3 have other collision "
                                            "probabilities than 1 more cells")  # fmt: skip
