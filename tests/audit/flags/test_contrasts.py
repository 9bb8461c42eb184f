"""Faults of comparing: the order of runs, the baseline that is missing, and conditions that differ."""

from __future__ import annotations

import json
from pathlib import Path

from tests.audit.audit_records import batched, bench, flags, look


def test_batched_bench_without_width_one_has_no_baseline(tmp_path: Path) -> None:
    assert look(tmp_path, batched((16, 64, 4, 0.1, 3.2))).codes == ["NO_BASELINE"]
    assert look(tmp_path, batched((16, 64, 1, 0.1, 2.0), (16, 64, 4, 0.1, 3.2))).codes == []
    assert look(tmp_path, batched((16, 64, 1, 0.1, 1.0), (16, 64, 2, 0.1, 3.0))).codes == ["CLIFF"]


def test_order_and_interleaving(tmp_path: Path) -> None:
    def order(names: str) -> bool:
        rows = "".join(f"{name},{10 + k / 10}\n" for k, name in enumerate(names))
        return bool(flags(look(tmp_path, "arm,tok_s\n" + rows), "ORDER"))

    assert order("AABB") and order("BBAA") and order("AAABBB")
    assert not order("ABBA") and not order("ABAB") and not order("AB")


def test_the_order_column_decides(tmp_path: Path) -> None:
    text = "arm,order,tok_s\nA,0,100\nA,3,94.1\nB,1,98\nB,2,96\n"
    assert not flags(look(tmp_path, text), "ORDER")


def test_baseline_in_another_file(tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    base.write_text(json.dumps([bench([0.1, 0.1], 512, 0), bench([2.0, 2.0, 2.0])]))
    other = json.dumps([bench([1.0, 1.0, 1.0], n_threads=16, type_k="q8_0")])
    report = look(tmp_path, other, against=base, speedup=2.0)
    assert report.codes == ["NOT_COMPARABLE"]
    assert "n_threads (16 against 8), type_k (q8_0 against f16)" in report.flags[0].sentence
    assert look(tmp_path, json.dumps([bench([1.0, 1.0])]), against=base, speedup=2.0).codes == []
    assert look(tmp_path, json.dumps([bench([1.0, 1.0])]), against=base, speedup=3.0).codes == ["LESS_THAN_CLAIMED"]
    assert "NO_GAIN" in look(tmp_path, json.dumps([bench([3.0, 3.0])]), against=base, speedup=2.0).codes
    crossed = look(tmp_path, batched((16, 64, 1, 0.1, 1.0)), against=base)
    assert any("two tools" in item.sentence for item in flags(crossed, "NOT_COMPARABLE"))


def test_a_temperature_is_a_condition(tmp_path: Path) -> None:
    text = "arm,temperature,tok_s\nbase,0.7,10\nspec,0,20\nspec,0,21\nbase,0.7,11\n"
    assert "temperature" in flags(look(tmp_path, text), "NOT_COMPARABLE")[0].sentence
