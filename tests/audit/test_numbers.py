"""Numbers as people write them, where blocks of a pasted text begin and end, and tokens of a run counted by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.audit import numbers
from bench.audit.blocks import Block, JsonBlock, LinesBlock, TableBlock
from bench.audit.emits import Answer, Emits, count, together, window_seconds
from bench.audit.paste import Paste
from bench.audit.record import read_records, record_of
from bench.audit.text import source_of
from bench.errors import UserError


@pytest.mark.parametrize(
    ("text", "comma", "value", "spread", "unit"),
    [
        ("26.2 ± 0.1 t/s", False, 26.2, 0.1, "t/s"),
        ("26.2 t/s ± 0.1", False, 26.2, 0.1, "t/s"),
        ("26.2 ± 3 %", False, 26.2, 0.786, ""),
        ("50 % ± 3 %", False, 50.0, 3.0, "%"),
        ("26.2 (± 0.1)", False, 26.2, 0.1, ""),
        ("1,030", False, 1030.0, None, ""),
        ("1,03", False, 1.03, None, ""),
        ("1 030,5", True, 1030.5, None, ""),
        ("1.030", True, 1030.0, None, ""),
        ("-3", False, -3.0, None, ""),
        (".5", False, 0.5, None, ""),
        ("1e3", False, 1000.0, None, ""),
        ("<5", False, 5.0, None, ""),
        ("(5)", False, 5.0, None, ""),
        ("1'030", False, 1030.0, None, ""),
        ("1e21", False, 1e21, None, ""),
        ("5 ± x", False, None, None, ""),
    ],
)
def test_a_cell(text: str, comma: bool, value: float | None, spread: float | None, unit: str) -> None:
    found = numbers.measured(text, comma)
    if value is None:
        assert found is None
        return
    assert found is not None and found.value == pytest.approx(value) and found.unit == unit
    assert found.spread == pytest.approx(math.nan if spread is None else spread, nan_ok=True)


def test_what_is_too_large_or_too_long_is_none() -> None:
    assert numbers.measured("1e22") is None and numbers.measured("1" * 201) is None
    assert numbers.measured("1." + "0" * 198) is not None
    assert math.isnan(numbers.real("1e22")) and numbers.real("1e21") == 1e21 and math.isnan(numbers.real("x"))
    assert numbers.finite(1e22) is None and numbers.finite(1e21) == 1e21 and numbers.finite(True) is None
    assert numbers.finite("5") is None and numbers.finite(5) == 5.0
    assert [numbers.count(value) for value in (5, 5.0, 5.5, -1, 0, None)] == [5, 5, None, None, 0, None]
    assert [numbers.whole(text) for text in ("5", "5.0", "5.5", "x")] == [5, 5, None, None]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.411s", 2.411),
        ("60.1ms", 0.0601),
        ("1m2.5s", 62.5),
        ("1h", 3600.0),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("7ns", 7e-9),
        ("5", None),
        ("5s ", 5.0),
        ("x5s", None),
        ("", None),
    ],
)
def test_durations(text: str, value: float | None) -> None:
    assert numbers.seconds(text) == (None if value is None else pytest.approx(value))


def test_the_rounding_of_a_figure() -> None:
    assert [numbers.rounding(value) for value in (0.125, 1e20, 3.0, 1e-7)] == [0.0005, 1e14, 0.5, pytest.approx(1e-13)]
    assert math.isnan(numbers.rounding(math.nan)) or numbers.rounding(math.inf) == math.inf


def blocks(text: str, known: bool = True) -> list[Block]:
    return Paste("post", text.split("\n"), lambda block: known and not isinstance(block, LinesBlock)).split()


def test_a_markdown_table_ends_where_its_pipes_do() -> None:
    text = (
        "log\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\nmore\n\n| c | d |\n|---|---|\n| 5 | 6 |\n"
        "| e | f |\n|---|---|\n| 7 | 8 |"
    )
    first, second, third, rest = blocks(text)
    assert isinstance(first, TableBlock) and isinstance(second, TableBlock) and isinstance(third, TableBlock)
    assert (first.line, first.last, first.form, first.index) == (2, 5, "markdown", 0)
    assert [(row.line, row.cells) for row in first.rows] == [(4, {"a": "1", "b": "2"}), (5, {"a": "3", "b": "4"})]
    assert [line.number for line in first.above] == [1] and [line.number for line in first.below] == [6, 7, 8, 9]
    assert (second.line, second.last) == (8, 10) and (third.line, third.last) == (11, 13)
    assert [line.number for line in second.above] == [6, 7] and third.above == [] and third.below == []
    assert isinstance(rest, LinesBlock) and [line.number for line in rest.lines] == [1, 6, 7]


def test_a_table_needs_two_pipes_or_a_rule() -> None:
    bare = blocks("a | b | c\n1 | 2 | 3\n")[0]
    assert (
        isinstance(bare, TableBlock)
        and bare.form == "markdown"
        and bare.rows[0].cells == {"a": "1", "b": "2", "c": "3"}
    )
    ruled = blocks("a | b\n--|--\n1 | 2\n")[0]
    assert isinstance(ruled, TableBlock) and [row.line for row in ruled.rows] == [3]
    assert isinstance(blocks("a | b\n1 | 2\n")[0], LinesBlock)


def test_a_csv_goes_on_past_comments_and_ends_at_a_line_of_a_log() -> None:
    first, rest = blocks("a,b\n1,2\n# note\n==PROF==\n3,4\ndone\n")
    assert isinstance(first, TableBlock) and (first.line, first.last, first.delimiter) == (1, 5, ",")
    assert [row.line for row in first.rows] == [2, 5] and isinstance(rest, LinesBlock)
    assert [line.text for line in rest.lines] == ["done", ""]
    semi = blocks("a;b\n1,5;2\n")[0]
    assert isinstance(semi, TableBlock) and semi.delimiter == ";" and semi.rows[0].cells == {"a": "1,5", "b": "2"}
    cut = blocks("a,b\n1,2\n3")[0]
    assert isinstance(cut, TableBlock) and cut.cut.startswith(
        "line 3: is cut or damaged: 1 fields, expected 2 (a, b ..)"
    )
    many = blocks("a,b\n1,2\n3,4,5")[0]
    assert isinstance(many, TableBlock) and "a decimal comma between commas?" in many.cut and len(many.rows) == 1
    with pytest.raises(UserError, match=r"line 3: .*the table goes on below it"):
        blocks("a,b\n1,2\n3,4,5\n6,7\n")
    with pytest.raises(UserError, match=r"line 4: 1 fields, expected 2.*the table goes on below it"):
        blocks("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |\n| 5 | 6 |\n")


def test_columns_under_each_other() -> None:
    (table,) = blocks("name  size  rate\n----  ----  ----\nx     1     2\ny 3 4\n")[:1]
    assert isinstance(table, TableBlock) and (table.form, table.line, table.last) == ("columns", 1, 4)
    assert [row.cells for row in table.rows] == [
        {"name": "x", "size": "1", "rate": "2"},
        {"name": "y", "size": "3", "rate": "4"},
    ]
    spaced = blocks("name  size  rate\n\nx  1  2\n\nz  5  6\n")[0]
    assert isinstance(spaced, TableBlock) and [row.line for row in spaced.rows] == [3]
    assert isinstance(blocks("name  size\nx  1\n")[0], LinesBlock), "two words are a sentence"
    assert isinstance(blocks("1  2  3\nx  1  2\n")[0], LinesBlock), "a name is no figure"


def test_json_values_that_follow_one_another_are_one_block() -> None:
    (one,) = blocks('[\n {"a": 1},\n {"a": 2}\n]')
    assert (
        isinstance(one, JsonBlock)
        and (one.first, one.last) == (1, 4)
        and [v for _, v in one.rows] == [{"a": 1}, {"a": 2}]
    )
    lines, other, rest = blocks('{"a": 1}\n{"a": 2}\n{"z": 1, "y": 2}\nend')
    assert isinstance(lines, JsonBlock) and isinstance(other, JsonBlock) and isinstance(rest, LinesBlock)
    assert ([line for line, _ in lines.values], lines.last, other.first, other.last) == ([1, 2], 2, 3, 3)
    cut = blocks('[{"a": 1},\n{"a": 2},\n{"a": ')[0]
    assert isinstance(cut, JsonBlock) and len(cut.rows) == 2 and cut.cut.startswith("line 3: the JSON breaks off")
    for text in ("[1, 2]", "[info] x"):
        assert isinstance(Paste("post", [text], lambda block: isinstance(block, JsonBlock)).split()[0], LinesBlock)
    damaged = Paste("post", ['{"a": '], lambda block: True)
    assert isinstance(damaged.split()[0], LinesBlock) and damaged.broken[0].startswith("line 1: JSON that breaks off")


def test_an_answer_in_an_envelope_is_found_three_levels_down() -> None:
    def claims(block: Block) -> bool:
        return isinstance(block, JsonBlock) and block.has("tok")

    def inside(depth: int) -> list[Block]:
        text = '{"x": ' * depth + '{"tok": 5}' + "}" * depth
        return Paste("post", [text], claims).split()

    assert all(isinstance(inside(depth)[0], JsonBlock) for depth in (0, 1, 2, 3))
    assert isinstance(inside(4)[0], LinesBlock)


def test_headers_that_are_none() -> None:
    twice = Paste("post", ["a,a", "1,2"], lambda block: isinstance(block, TableBlock))
    twice.split()
    assert twice.broken == ["line 1: column 'a' stands twice in the header"]
    empty = Paste("post", ["a,,b", "1,2,3"], lambda block: isinstance(block, TableBlock))
    empty.split()
    assert empty.broken == ["line 1: a column of the header has no name"]
    assert isinstance(blocks("a=1,b=2\n1,2\n")[0], LinesBlock) and isinstance(blocks("a,5\n1,2\n")[0], LinesBlock)


def test_fences_quotes_and_c_numbers() -> None:
    quoted = blocks("```\n> a,b\n> 1,2\n```")[0]
    assert isinstance(quoted, TableBlock) and quoted.line == 2 and quoted.rows[0].cells == {"a": "1", "b": "2"}
    (one,) = blocks('{"a": nan, "b": -inf, "c": 1}')
    assert isinstance(one, JsonBlock) and math.isnan(one.head["a"]) and math.isnan(one.head["b"]) and one.head["c"] == 1


def test_an_answer_keeps_what_was_said_last() -> None:
    answer = Answer()
    for position, token in ((2, 20), (3, 30), (5, 50), (9000, 1)):
        answer.put(position, token)
    assert (answer.low, answer.high, answer.size) == (2, 9000, 4) and answer.listed() == [20, 30]
    answer.change(3, 31)
    answer.change(9000, 2)
    assert (answer.get(3), answer.get(9000), answer.get(4)) == (31, 2, -(2**31))
    answer.put(1, 10)
    assert answer.low == 1 and answer.listed() == [10, 20, 31]


def emits(*rows: tuple[int, int, int, int, int, bool], clocked: bool = True) -> Emits:
    """(stream, position, token, round, time, prefill)."""
    found = Emits(clocked)
    for stream, position, token, round_, t_ns, prefill in rows:
        found.add(stream, position, token, round_, t_ns, prefill, True)
    return found


def test_tokens_of_a_run_counted_by_hand() -> None:
    rows = emits(
        (0, 0, 9, -1, 0, True),
        (0, 1, 5, 0, 10, False),
        (0, 2, 6, 1, 20, False),
        (0, 2, 7, 2, 30, False),
        (0, 2, 7, 3, 40, False),
        (0, 1, 5, 3, 40, False),
        (0, 5, 8, 5, 50, False),
        (0, 4, 8, 5, 50, False),
    )
    found = count(rows, {0})
    assert (found.counted, found.distinct, found.first, found.first_calls) == (7, 4, 1, 1)
    assert (found.duplicates, found.most, found.conflicts, found.late, found.gaps) == (3, 3, 1, 1, 1)
    assert (found.rounds, found.startup_counted, found.startup_distinct, found.longest) == (5, 1, 1, 5)
    assert found.answers[0].listed() == [9, 5, 7]
    assert count(emits((0, 0, 1, 3, 0, False), (0, 1, 1, 1, 1, False), (0, 2, 1, 3, 2, False))).rounds == 2


def test_a_window_leaves_gaps_out_that_end_in_a_prefill() -> None:
    rows = emits(
        (0, 0, 9, -1, 100, True), (0, 1, 5, 0, 300, False), (1, 0, 9, -1, 900, True), (1, 1, 5, 0, 1000, False)
    )
    assert window_seconds(rows) == pytest.approx(300e-9)
    assert math.isnan(window_seconds(emits())) and window_seconds(emits((0, 0, 9, 0, 5, False))) == 0.0
    first = emits((0, 0, 9, 0, 5, False), (1, 0, 9, 0, 5, False), (0, 1, 9, 1, 6, False))
    first.mark_first()
    assert list(first.prefill) == [1, 1, 0]
    for other in (emits((0, 0, 9, 0, 5, False), clocked=False), emits((0, 1, 9, 0, 5, False), (0, 0, 9, -1, 6, True))):
        before = list(other.prefill)
        other.mark_first()
        assert list(other.prefill) == before


def test_answers_under_way_at_once() -> None:
    def between(*ends: tuple[int, int]) -> int:
        return together([Answer(begin_ns=begin, end_ns=end) for begin, end in ends])

    assert between((0, 10), (10, 20)) == 1 and between((0, 10), (9, 20), (8, 30)) == 3 and between() == 1
    assert between((0, 10), (2, 4), (6, 8)) == 2


def test_several_files_are_one_record(tmp_path: Path) -> None:
    for name, rate in (("a.csv", 10), ("b.csv", 20)):
        (tmp_path / name).write_text(f"arm,tok_s\nx,{rate}\n\nlog {name}\n")
    both = read_records([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert [(trial.block, trial.place, trial.aggregate) for trial in both.trials] == [
        (0, "a.csv, line 2", 10.0),
        (1, "b.csv, line 2", 20.0),
    ]
    assert both.format == "a CSV" and both.notes[0] == "a.csv: read a CSV (lines 1-2)"
    assert "a.csv: skipped 1 line(s): 4: log a.csv" in both.notes


def test_lines_that_were_skipped_are_shown() -> None:
    record = record_of(source_of("post", ("arm,tok_s\nx,5\n\n" + "noise\n" * 3).encode()))
    assert record.notes == ("read a CSV (lines 1-2)", "skipped 3 line(s): 4: noise; 5: noise; 6: noise")
    more = record_of(source_of("post", ("arm,tok_s\nx,5\n\n" + "noise\n" * 4).encode()))
    assert more.notes[-1].endswith("6: noise ..")
    with pytest.raises(UserError, match=r"post: nothing in its 2 line\(s\) is known, line 2 is 'hello'"):
        record_of(source_of("post", b"\nhello\nyou\n"))
