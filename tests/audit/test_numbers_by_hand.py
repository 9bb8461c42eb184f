"""Which numbers a table writes, whose arm is plain, and what a published ratio is: one case a rule, worked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.audit.audit import judge
from bench.audit.numbers import LARGEST, count, decimal_comma, finite, measured, rounding, seconds, whole
from bench.audit.options import ANY_TEMPERATURE, AuditOptions
from bench.audit.trials import Record, Trial, baseline_arm, of_arm, treatments


@pytest.mark.parametrize(
    ("cells", "comma"),
    [
        (["26,2"], True), (["26,25", "x"], True), (["26,2", "1.5"], False), (["26.2"], False), (["1,000"], False),
        (["1,000", "0,5"], True), (["1.000.000"], True), (["1.000,5"], True), (["1,000,000", "2,5"], False),
        (["1,000.5", "2,5"], False), (["12,3456"], True), (["12.3456", "1,5"], False), (["0.5", "1,5"], False),
        ([".5", "1,5"], False), ([], False), (["abc"], False), (["1.000"], False), ([" 3,5 "], True),
    ],
)  # fmt: skip
def test_a_table_has_one_decimal_sign(cells: list[str], comma: bool) -> None:
    assert decimal_comma(cells) is comma


def test_a_cell_is_as_long_as_a_number_can_be() -> None:
    assert measured("1" + " " * 199) is not None and measured("1" + " " * 200) is None
    relative = measured("26.2 ± 3 %")
    assert relative is not None and (relative.value, relative.unit) == (26.2, "")
    assert relative.spread == pytest.approx(0.786)
    found = measured("26.2 % ± 3 %")
    assert found is not None and (found.value, found.spread, found.unit) == (26.2, 3.0, "%")
    assert measured("26.2 ± x") is None and measured("~26.2 t/s ± 0.1").unit == "t/s"  # type: ignore[union-attr]


def test_counts_and_largest_values() -> None:
    assert (count(0), count(3.0), count(-1), count(1.5), count(True), count("3")) == (0, 3, None, None, None, None)
    assert finite(LARGEST) == LARGEST and finite(1.01 * LARGEST) is None and finite(-1.01 * LARGEST) is None
    assert whole("1,024") == 1024 and whole("3.5") is None and whole("x") is None
    assert seconds("1h2m3.5s") == pytest.approx(3723.5) and seconds("1m2") is None and seconds("") is None
    assert seconds("5ns") == pytest.approx(5e-9) and seconds("7us") == seconds("7µs") == pytest.approx(7e-6)
    assert [rounding(one) for one in (38.1, 40.0, 0.25, 1e22)] == pytest.approx([0.05, 0.5, 0.005, 1e16])


def arms(*names: str, guess: str = "") -> Record:
    trials = [Trial("l", name, arm=name, printed={"tok_s": 10.0}, drafted=9 if name == guess else None)
              for name in names]  # fmt: skip
    return Record(Path("r"), "a table", tuple(trials))


@pytest.mark.parametrize(
    ("names", "guess", "base", "treated"),
    [
        (("x", "Vanilla"), "", "Vanilla", ["x"]), (("a", "off"), "", "off", ["a"]), (("b", "a"), "", "a", ["b"]),
        (("x", "y", "sabotage"), "x", "y", ["x"]), (("x", "y"), "", "x", ["y"]), (("x", "solo"), "", None, []),
        (("x", "again", "oracle", "carry", "kept"), "", None, []), (("ar", "again"), "", "ar", []),
        (("no spec", "none"), "", "none", ["no spec"]), (("x", "y", "z"), "z", "x", ["y", "z"]),
    ],
)  # fmt: skip
def test_the_plain_arm_is_found_by_name_or_by_its_guesses(
    names: tuple[str, ...], guess: str, base: str | None, treated: list[str]
) -> None:
    record = arms(*names, guess=guess)
    assert baseline_arm(record) == base and treatments(record) == treated
    assert [trial.arm for trial in of_arm(record, names[0])] == [names[0]]


def test_a_claim_about_any_temperature_has_to_show_these() -> None:
    """As docs/audit.md and the claims' own `temperature: any` have them."""
    assert ANY_TEMPERATURE == (0.0, 0.3, 0.7, 1.0)


def answer(*rates: tuple[str, float, int], **options: object) -> str:
    trials = [Trial("line 2", arm, arm=arm, printed={"tok_s": rate}, streams=streams) for arm, rate, streams in rates]
    return judge(Record(Path("r"), "a table", tuple(trials)), AuditOptions(**options)).answer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("claim", "words"),
    [(1.5, "the published 1.5x holds"), (1.51, "the published 1.51x holds"),
     (1.52, "1.52x is not what the record shows"), (1.48, "1.48x is not what the record shows")],
)  # fmt: skip
def test_a_published_ratio_holds_to_one_per_cent_or_its_last_digit(claim: float, words: str) -> None:
    assert words in answer(("none", 10.0, 1), ("mtp", 15.0, 1), speedup=claim)
