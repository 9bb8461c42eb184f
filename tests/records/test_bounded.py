"""Sizes, nesting, aliases and line lengths are checked before they cost anything."""

from __future__ import annotations

import gzip
import os
import time
import tracemalloc
from pathlib import Path

import pytest
import yaml

from bench.records import bounded
from bench.records.bounded import json_value, read_bytes, unpacked, word_lengths, yaml_value
from bench.records.rows import Emit, columns
from bench.records.table_files import table_of
from pti_loop.ledger import Emit as LedgerRow

HEADER = ",".join(columns(Emit)) + "\n"
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_only_regular_files_of_a_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    assert read_bytes(path, 100) == bytes(100)
    with pytest.raises(ValueError, match="100 bytes, at most 99"):
        read_bytes(path, 99)
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/stdin")):
        with pytest.raises((ValueError, OSError)):
            read_bytes(odd)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)


def test_little_that_unpacks_to_much() -> None:
    bomb = gzip.compress(bytes(bounded.MOST_BYTES + 1))
    assert len(bomb) < 100_000
    with pytest.raises(ValueError, match="unpacks to more than"):
        unpacked(bomb)


def test_aliases_and_nesting() -> None:
    assert len(LAUGHS) < 606
    with pytest.raises(yaml.YAMLError, match=r"more than 200000 things, aliases written out"):
        yaml_value(LAUGHS)
    with pytest.raises(yaml.YAMLError, match=r"&a has itself in it"):
        yaml_value("a: &a [1, *a]")
    long = f"a: &a {'x' * 60_000}\nb: [{','.join(['*a'] * 9_000)}]"
    with pytest.raises(yaml.YAMLError, match=r"more than 200000 things"):
        yaml_value(long)
    assert yaml_value("a: &a {x: 1}\nb: [*a, *a]") == {"a": {"x": 1}, "b": [{"x": 1}, {"x": 1}]}
    for deep in ("[" * 65 + "]" * 65, "- " * 20_000 + "x", "? " * 20_000, "{a: " * 900 + "}" * 900):
        with pytest.raises(yaml.YAMLError):
            yaml_value(deep)
    assert yaml_value("a: '*b & c'\nb: [1, {c: 2}]") == {"a": "*b & c", "b": [1, {"c": 2}]}
    with pytest.raises(ValueError, match="nested too deep"):
        json_value("[" * 100_000)


@pytest.mark.parametrize("letters", [100_000, 300_000])
def test_one_long_word_does_not_make_every_row_as_long(letters: int) -> None:
    rows = ["0,0,0,5,-1,prefill,1"] * 3000
    tracemalloc.start()
    with pytest.raises(ValueError, match="letters"):
        table_of(gzip.compress((HEADER + "\n".join([*rows, f"0,0,0,5,-1,{'v' * letters},1"])).encode()), LedgerRow)
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


def test_a_long_line_of_another_column_costs_nothing() -> None:
    rows = ["0,0,0,5,-1,prefill,1"] * 3000 + [f"0,0,0,5,-1,verified,{'0' * 100_000}1"]
    assert word_lengths(rows, [5]) == [8]


def test_many_short_rows_are_read_whole() -> None:
    text = HEADER + "".join(f"0,0,{place},5,-1,prefill,1\n" for place in range(5000))
    found = table_of(gzip.compress(text.encode()), LedgerRow)
    assert found["position"].tolist() == [*range(5000)] and set(found["source"]) == {"prefill"}


@pytest.mark.parametrize(
    ("content", "said"),
    [("1," * (10 << 20), "a line of more than 1048576 letters"), (HEADER + "1," * (10 << 20), "a line of more than"),
     ("\n" * (bounded.MOST_LINES + 2), "4000002 lines, at most 4000000"), ("1," * 500_000, "it has the columns")],
    ids=["header", "row", "lines", "columns"],
)  # fmt: skip
def test_little_that_unpacks_to_many_columns_or_lines(content: str, said: str) -> None:
    packed, began = gzip.compress(content.encode(), 1), time.process_time()
    with pytest.raises(ValueError, match=said):
        table_of(packed, Emit)
    assert time.process_time() - began < 3
