"""Faults of rates and times: windows, prefill, columns that contradict counters, drift, and the physical bound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.audit.audit_records import batched, bench, clean, flags, ledger, look


def test_tokens_without_time(tmp_path: Path) -> None:
    rows = [(*row[:6], 5) for row in clean()]
    assert "NO_TIME" in look(tmp_path, "step,tokens,seconds\n0,5,0\n").codes
    assert flags(look(tmp_path, ledger(rows)), "NO_TIME")


def test_a_rate_printed_in_the_record(tmp_path: Path) -> None:
    text = "arm,run,step,tokens,positions,seconds,tok_s\n" + "".join(
        f"x,0,{k},{k} {k + 1},{k} {k + 1},.1,{{}}\n" for k in range(5)
    )
    assert "prints 20 tok/s" in flags(look(tmp_path, text.replace("{}", "20")), "DUPLICATE")[1].sentence
    assert len(flags(look(tmp_path, text.replace("{}", "12")), "DUPLICATE")) == 1
    assert flags(look(tmp_path, text.replace("{}", "55")), "INCONSISTENT")


def test_batched_bench_columns(tmp_path: Path) -> None:
    text = batched((900, 100, 1, 1.0, 5.0), (900, 100, 4, 4.0, 8.0))
    assert look(tmp_path, text).exit_code == 0
    assert look(tmp_path, text, claim=166.7).codes == ["PREFILL_IN_RATE"]
    assert look(tmp_path, text, claim=900.0).codes == ["PREFILL_IN_RATE"]
    assert look(tmp_path, text, claim=50.0).codes == ["AGGREGATE_AS_PER_ANSWER"]
    assert look(tmp_path, text, claim=12.5).codes == []
    total = look(tmp_path, text, claim=333.3, per="aggregate")
    assert total.codes == ["PREFILL_IN_RATE"] and total.claim is not None
    assert total.claim["right"] == pytest.approx(50.0)


@pytest.mark.parametrize("column", ["speed_pp", "speed_tg", "speed"])
def test_a_column_that_its_counters_do_not_give(tmp_path: Path, column: str) -> None:
    report = look(tmp_path, batched((128, 128, 2, 0.4, 11.1), **{column: 31.0}), baseline=40.0)
    assert report.codes == ["INCONSISTENT"]


def test_table_times_are_rounded_and_that_is_no_fault(tmp_path: Path) -> None:
    head = "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
    row = "|   128 |    128 |    1 |    256 |    0.004 | 29767.44 |    0.079 |  1612.90 |    0.083 |  3068.89 |\n"
    assert look(tmp_path, head + row).codes == []
    assert look(tmp_path, head + row.replace("1612.90", "1812.90")).codes == ["INCONSISTENT"]


def test_llama_bench_rows(tmp_path: Path) -> None:
    steady = [bench([1.0, 1.01, 0.99, 1.0, 1.0]), bench([0.1, 0.1, 0.1], 512, 0)]
    assert look(tmp_path, json.dumps(steady)).codes == []
    assert look(tmp_path, json.dumps(steady), claim=5120.0).codes == ["PREFILL_IN_RATE"]
    assert look(tmp_path, json.dumps([bench([1.0, 1.0], 512, 128)])).codes == ["PREFILL_IN_RATE"]
    assert look(tmp_path, json.dumps([bench([1.0, 1.0], avg_ts=140.0)])).codes == ["INCONSISTENT"]
    assert look(tmp_path, json.dumps([bench([0.1, 0.1], 512, 0, avg_ts=140.0)])).codes == ["INCONSISTENT"]


def test_repetitions(tmp_path: Path) -> None:
    assert look(tmp_path, json.dumps([bench([1.0, 2.0, 1.2])])).codes == ["NOISE"]
    assert "WARMUP" in look(tmp_path, json.dumps([bench([4.0, 1.0, 1.0, 1.0])])).codes
    hot = [1.0, 1.02, 1.041, 1.06, 1.083, 1.105]
    assert look(tmp_path, json.dumps([bench(hot)])).codes == ["DRIFT"]
    assert look(tmp_path, json.dumps([bench([hot[k] for k in (2, 0, 5, 1, 4, 3)])])).codes == []


@pytest.mark.parametrize(("bandwidth", "codes"), [(440.0, ["IMPOSSIBLE"]), (490.0, []), (600.0, []), (None, [])])
def test_bound_from_the_models_size(tmp_path: Path, bandwidth: float | None, codes: list[str]) -> None:
    text = json.dumps([bench([1.0, 1.0, 1.0])])
    assert look(tmp_path, text, bandwidth=bandwidth).codes == codes


def test_bound_counts_tokens_a_step(tmp_path: Path) -> None:
    options = {"bytes_per_step": 10e9, "bandwidth": 100.0, "baseline": 10.0}
    assert look(tmp_path, batched((16, 64, 4, 0.1, 7.0)), **options).codes == []
    assert look(tmp_path, batched((16, 64, 4, 0.1, 6.0)), **options).codes == ["IMPOSSIBLE"]
    speculative = "step,drafted,verified,accepted,emitted,ms\n" + "".join(f"{k},3,3,2,3,{{}}\n" for k in range(9))
    assert look(tmp_path, speculative.replace("{}", "101"), **options).codes == []
    assert look(tmp_path, speculative.replace("{}", "99"), **options).codes == ["IMPOSSIBLE"]


def test_a_published_rate_above_the_bound(tmp_path: Path) -> None:
    options = {"bytes_per_step": 10e9, "bandwidth": 100.0}
    report = look(tmp_path, ledger([(*row[:6], row[6] * 2) for row in clean()]), claim=38.0, **options)
    assert report.codes == ["IMPOSSIBLE", "UNEXPLAINED"]
    table = batched((16, 64, 1, 0.1, 7.0), (16, 64, 4, 0.1, 7.0))
    assert look(tmp_path, table, claim=36.6, per="aggregate", **options).codes == []


def test_clock_and_heat(tmp_path: Path) -> None:
    slow = "".join(f"A,{100 * 0.98**k},p\n" for k in range(6))
    assert flags(look(tmp_path, "arm,tok_s,prompt\n" + slow), "DRIFT")
    clocks = "arm,tok_s,clock_mhz\nA,68.6,1725\nB,65.0,1365\n"
    assert flags(look(tmp_path, clocks), "DRIFT")[0].numbers == {"low": 1365, "high": 1725}
    assert not flags(look(tmp_path, clocks.replace("1365", "1700")), "DRIFT")


def test_warm_up_is_by_width(tmp_path: Path) -> None:
    text = "width,ms\n1,10\n1,10\n1,10\n4,40\n4,15\n4,15\n"
    found = flags(look(tmp_path, text), "WARMUP")
    assert len(found) == 1 and "width 4" in found[0].sentence
    assert not flags(look(tmp_path, "width,ms\n1,10\n1,40\n1,10\n4,16\n4,15\n4,15\n"), "WARMUP")


@pytest.mark.parametrize(
    ("rows", "cached"),
    [("p,37,37\np,37,36\n", 1), ("p,37,0\nq,9,0\n", 2), ("p,37,37\nq,9,9\n", 0), ("p,37,37\np,37,37\n", 0)],
)
def test_cached_prompts(tmp_path: Path, rows: str, cached: int) -> None:
    report = look(tmp_path, "prompt,n_prompt,n_prompt_evaluated\n" + rows)
    assert len(flags(report, "CACHED")) == cached


def test_prompts_without_names_may_differ(tmp_path: Path) -> None:
    assert look(tmp_path, "tok_s,n_prompt_evaluated\n20,37\n20,12\n").codes == []
    assert look(tmp_path, "tok_s,n_prompt_evaluated\n20,37\n20,0\n").codes == ["CACHED"]
