"""What counts as a mutant, which tests one is shown, and that the list of equivalent ones is honest."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.faults import mutants as module
from tests.faults.covering import Covering
from tests.faults.mutants import Mutant, mutants
from tests.faults.mutate import every, known, sample, shown

SOURCE = '''"""A docstring with 1 number."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import os
LIMIT = 0.5
class Thing:
    @property
    def small(self) -> "int | None":
        return self.size < LIMIT and not self.empty
def share(part: float, whole: float = 1.0) -> float:
    if not whole:
        raise ValueError(f"{whole} is " + "nothing")
    return part / whole
'''


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "one.py").write_text(SOURCE)
    return mutants(tmp_path / "one.py")


def test_every_place_that_computes_is_changed_and_no_text(found: list[Mutant]) -> None:
    assert [(one.line, one.function, one.change.partition(": ")[2]) for one in found] == [
        (5, "", "0.5 becomes 1.0"),
        (9, "Thing.small", "returns None"),
        (9, "Thing.small", "and becomes or"),
        (9, "Thing.small", "negated"),
        (9, "Thing.small", "< becomes <="),
        (9, "Thing.small", "< becomes >="),
        (10, "", "1.0 becomes 2.0"),
        (11, "share", "negated"),
        (12, "share", "left out"),
        (13, "share", "returns None"),
        (13, "share", "/ becomes *"),
    ]


def test_a_mutant_is_its_module_with_one_change(found: list[Mutant]) -> None:
    told = {
        "Thing.small: negated": "return self.size < LIMIT and self.empty",
        "Thing.small: < becomes >=": "return self.size >= LIMIT and (not self.empty)",
        "share: negated": "if whole:",
        "share: / becomes *": "return part * whole",
        ": 1.0 becomes 2.0": "def share(part: float, whole: float=2.0) -> float:",
        ": 0.5 becomes 1.0": "LIMIT = 1.0",
    }
    plain = set(ast.unparse(ast.parse(SOURCE)).splitlines())
    for one in found:
        line = told.get(f"{one.function}: {one.change.partition(': ')[2]}")
        changed = {text.strip() for text in ast.unparse(one.tree()).splitlines() if text not in plain}
        assert len(changed) == 1 and (line is None or changed == {line})


def test_a_sample_takes_of_each_file_in_proportion_and_is_the_same_again() -> None:
    sizes = {"a": 600, "b": 300, "c": 9}
    population = [Mutant(path, k, k, k, "", "", "") for path, size in sizes.items() for k in range(size)]
    drawn = sample(population, 100, 3)
    assert len(set(drawn)) == 100 and drawn == sample(population, 100, 3) != sample(population, 100, 4)
    counts = [sum(one.path == path for one in drawn) for path in "abc"]
    assert abs(counts[0] - 66) <= 1 and abs(counts[1] - 33) <= 1 and counts[2] in (0, 1, 2)
    assert len(sample(population, 10_000, 3)) == len(population)


def test_a_mutant_is_shown_what_runs_its_statement_and_then_the_rest_of_those_files() -> None:
    seconds = {"t/a::slow": 5.0, "t/a::quick": 0.1, "t/a::other": 0.2, "t/b::far": 0.1, "t/a::late": 30.0}
    found = Covering(seconds=seconds)
    found.tests["p.py"][4] = ["t/a::slow"]
    found.tests["p.py"][5] = ["t/a::quick", "t/a::slow"]
    found.tests["p.py"][9] = ["t/a::other", "t/b::far", "t/a::late"]
    assert shown(Mutant("p.py", 0, 5, 4, "f", "", ""), found) == ["t/a::quick", "t/a::slow", "t/a::other"]
    assert shown(Mutant("p.py", 0, 1, 1, "", "", ""), found)[-2:] == ["t/a::other", "t/a::slow"]
    assert shown(Mutant("p.py", 0, 7, 7, "f", "", ""), found) == [], "no test runs it"


def test_each_equivalent_mutant_is_one_and_has_a_reason() -> None:
    listed = known()
    there = {mutant.key for mutant in every(sorted({file for file, *_ in listed}))} if listed else set()
    assert not [key for key in listed if key not in there], "changed or gone: leave its line out of equivalent.csv"
    assert all(len(why) > 20 for why in listed.values())
