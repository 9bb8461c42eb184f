"""Each fault in all its forms, and records that are right and must not be flagged."""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.audit import AuditReport, audit, format_audit
from bench.judge.audit_options import ANY_TEMPERATURE, AuditOptions, add_arguments, options_from
from bench.judge.foreign import read_record
from bench.judge.readings import explain, rounding
from bench.judge.trials import Flag
from bench.records import TABLES, Emit, Round, Run
from bench.store import write_cell

HEADER = "run,stream,position,token,round,source,t_ns\n"
Rows = list[tuple[int, int, int, int, int, str, int]]


def look(folder: Path, text: str, name: str = "record", **options: object) -> AuditReport:
    path = folder / name
    path.write_text(text)
    return audit(path, AuditOptions(**options))  # type: ignore[arg-type]


def flags(report: AuditReport, code: str) -> list[Flag]:
    return [item for item in report.flags if item.code == code]


def ledger(rows: Rows) -> str:
    return HEADER + "".join(",".join(map(str, row)) + "\n" for row in rows)


def clean(streams: int = 1, tokens: int = 9) -> Rows:
    """Streams that decode one token a round of 0.1 s, together."""
    rows: Rows = [(0, s, 0, 100 * s, -1, "prefill", s) for s in range(streams)]
    return rows + [(0, s, p, 100 * s + p, p - 1, "verified", p * 10**8 + s)
                   for p in range(1, tokens) for s in range(streams)]  # fmt: skip


@pytest.mark.parametrize("streams", [1, 3])
def test_a_right_ledger_is_not_flagged(tmp_path: Path, streams: int) -> None:
    report = look(tmp_path, ledger(clean(streams)), baseline=10.0, requested=9)
    assert report.codes == [] and report.exit_code == 0
    assert format_audit(report).endswith("nothing flagged")
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(10.0, rel=1e-6)


def spoiled(kind: str) -> Rows:
    rows = clean(2)
    match kind:
        case "one token once more":
            return [*rows, (0, 0, 8, 8, 8, "verified", 10**9)]
        case "one stream only":
            return [*rows, *[(0, 1, p, 100 + p, 9, "verified", 10**9 + p) for p in range(1, 9)]]
        case "the prefill's token":
            return [*rows, (0, 0, 0, 0, 8, "verified", 10**9)]
        case "out of order":
            return [*rows, (0, 1, 2, 102, 8, "verified", 10**9), (0, 0, 5, 5, 9, "verified", 10**9 + 1)]
    raise AssertionError(kind)


@pytest.mark.parametrize(
    ("kind", "extra"),
    [("one token once more", 1), ("one stream only", 8), ("the prefill's token", 1), ("out of order", 2)],
)
def test_duplicates_wherever_they_are(tmp_path: Path, kind: str, extra: int) -> None:
    report = look(tmp_path, ledger(spoiled(kind)), baseline=10.0)
    assert flags(report, "DUPLICATE")[0].numbers["counted"] == 18 + extra
    assert flags(report, "DUPLICATE")[0].numbers["distinct"] == 18
    assert not flags(report, "CONFLICT")


def test_the_same_position_in_two_streams_or_runs_is_no_duplicate(tmp_path: Path) -> None:
    rows = clean(2)
    again = [(1, *row[1:6], row[6] + 10**10) for row in rows]
    report = look(tmp_path, ledger([*rows, *again]), baseline=10.0)
    assert not flags(report, "DUPLICATE") and len(report.trials) == 2


def test_counts_against_brute_force(tmp_path: Path) -> None:
    draw = random.Random(5)
    for case in range(20):
        rows = [(0, s, 0, 1, -1, "prefill", 0) for s in range(3)]
        rows += [(0, draw.randrange(3), draw.randrange(12), 7, k, "verified", (k + 1) * 10**7)
                 for k in range(draw.randrange(1, 40))]  # fmt: skip
        report = look(tmp_path, ledger(rows), f"case{case}.csv", baseline=1.0)
        row = report.trials[0]
        assert row["counted"] == len(rows)
        assert row["distinct"] == len({entry[1:3] for entry in rows})
        assert bool(flags(report, "DUPLICATE")) == (row["counted"] != row["distinct"])


def test_a_replaced_token_is_a_conflict(tmp_path: Path) -> None:
    report = look(tmp_path, ledger([*clean(), (0, 0, 4, 999, 9, "verified", 10**9)]), baseline=10.0)
    assert flags(report, "CONFLICT")[0].numbers == {"conflicts": 1}


def test_holes_and_order(tmp_path: Path) -> None:
    rows = clean()
    holes = look(tmp_path, ledger([row for row in rows if row[2] not in (3, 4, 6)]), baseline=10.0)
    assert flags(holes, "GAP")[0].numbers == {"gaps": 3}
    swapped = [(*row[:2], {3: 5, 5: 3}.get(row[2], row[2]), *row[3:]) for row in rows]
    late = look(tmp_path, ledger(swapped), baseline=10.0)
    assert flags(late, "OUT_OF_ORDER")[0].numbers == {"late": 2} and not flags(late, "GAP")
    shuffled = look(tmp_path, ledger(rows[::-1]), baseline=10.0)
    assert shuffled.codes == [] and shuffled.trials[0]["per_answer_tok_s"] == pytest.approx(10.0)


def test_unverified_tokens(tmp_path: Path) -> None:
    rows = [(*row[:5], "unverified" if row[2] == 4 else row[5], row[6]) for row in clean()]
    assert flags(look(tmp_path, ledger(rows)), "UNVERIFIED")[0].numbers == {"unverified": 1}


def test_more_than_requested_is_by_answer(tmp_path: Path) -> None:
    text = ledger(clean(streams=3, tokens=9))
    assert not flags(look(tmp_path, text, requested=9), "EMITTED_MORE_THAN_REQUESTED")
    assert flags(look(tmp_path, text, requested=8), "EMITTED_MORE_THAN_REQUESTED")[0].numbers["emitted"] == 9


def test_nothing_emitted(tmp_path: Path) -> None:
    assert look(tmp_path, HEADER).codes == ["EMPTY"]
    report = look(tmp_path, "step,tokens,seconds\n0,,.1\n1,,.1\n")
    assert report.codes == ["EMPTY"] and report.exit_code == 1
    assert look(tmp_path, "step,emitted,seconds\n0,0,.1\n").codes == ["EMPTY"]


def test_tokens_without_time(tmp_path: Path) -> None:
    rows = [(*row[:6], 5) for row in clean()]
    assert "NO_TIME" in look(tmp_path, "step,tokens,seconds\n0,5,0\n").codes
    assert flags(look(tmp_path, ledger(rows)), "NO_TIME")


def test_overlap_without_positions(tmp_path: Path) -> None:
    text = "tokens,seconds\n5 6 7 8,.1\n6 7 8 9,.1\n7 8 9 10,.1\n8 9 10 11,.1\n"
    found = flags(look(tmp_path, text), "DUPLICATE")
    assert found[0].numbers == {"counted": 16, "distinct": 7} and "positions column" in found[0].sentence
    constant = look(tmp_path, "tokens,seconds\n" + "7 7 7,.1\n" * 5)
    assert not flags(constant, "DUPLICATE"), "a text that repeats itself is no evidence"
    honest = look(tmp_path, "tokens,seconds\n5 6 7,.1\n8 9 10,.1\n11 12 13,.1\n")
    assert not flags(honest, "DUPLICATE")


CLAIMS = [
    (10.0, "answer", []),
    (30.0, "aggregate", []),
    (30.0, "answer", ["AGGREGATE_AS_PER_ANSWER"]),
    (33.75, "aggregate", ["WINDOW"]),
    (11.25, "answer", ["WINDOW"]),
    (77.0, "answer", ["UNEXPLAINED"]),
]


@pytest.mark.parametrize(("claim", "per", "codes"), CLAIMS)
def test_what_a_claim_is(tmp_path: Path, claim: float, per: str, codes: list[str]) -> None:
    report = look(tmp_path, ledger(clean(3)), claim=claim, per=per, baseline=10.0)
    assert report.codes == codes
    assert report.claim is not None
    if codes != ["UNEXPLAINED"]:
        assert report.claim["right"] == pytest.approx(10.0 if per == "answer" else 30.0, rel=1e-3)


def test_rounding_of_a_published_figure() -> None:
    assert [rounding(value) for value in (38.1, 40.0, 9.98, 1200.0)] == [0.05, 0.5, 0.005, 0.5]


def test_a_claim_has_the_reading_with_the_fewest_faults(tmp_path: Path) -> None:
    path = tmp_path / "ledger.csv"
    path.write_text(ledger(clean(1, 1001)))
    trial = read_record(path).trials[0]
    near = explain(10.0, [trial])
    assert near is not None and near.faults == (), "10.01 with the first token inside also rounds to 10"
    exact = explain(10.01, [trial])
    assert exact is not None and exact.faults == ("WINDOW",)


def test_a_rate_printed_in_the_record(tmp_path: Path) -> None:
    text = "arm,run,step,tokens,positions,seconds,tok_s\n" + "".join(
        f"x,0,{k},{k} {k + 1},{k} {k + 1},.1,{{}}\n" for k in range(5)
    )
    assert "prints 20 tok/s" in flags(look(tmp_path, text.replace("{}", "20")), "DUPLICATE")[1].sentence
    assert len(flags(look(tmp_path, text.replace("{}", "12")), "DUPLICATE")) == 1
    assert flags(look(tmp_path, text.replace("{}", "55")), "INCONSISTENT")


BATCHED = {"n_kv_max": 4096, "n_batch": 2048, "n_ubatch": 512, "flash_attn": 0, "is_pp_shared": 0, "n_gpu_layers": 0,
           "n_threads": 2, "n_threads_batch": 2}  # fmt: skip


def batched(*rows: tuple[int, int, int, float, float], **wrong: float) -> str:
    """(pp, tg, pl, t_pp, t_tg) as llama-batched-bench prints them in JSONL."""
    lines = []
    for pp, tg, pl, t_pp, t_tg in rows:
        lines.append(json.dumps({**BATCHED, "pp": pp, "tg": tg, "pl": pl, "n_kv": pl * (pp + tg), "t_pp": t_pp,
                                 "speed_pp": pl * pp / t_pp, "t_tg": t_tg, "speed_tg": pl * tg / t_tg,
                                 "t": t_pp + t_tg, "speed": pl * (pp + tg) / (t_pp + t_tg)} | wrong))  # fmt: skip
    return "\n".join(lines) + "\n"


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


def test_batched_bench_without_width_one_has_no_baseline(tmp_path: Path) -> None:
    assert look(tmp_path, batched((16, 64, 4, 0.1, 3.2))).codes == ["NO_BASELINE"]
    assert look(tmp_path, batched((16, 64, 1, 0.1, 2.0), (16, 64, 4, 0.1, 3.2))).codes == []
    assert look(tmp_path, batched((16, 64, 1, 0.1, 1.0), (16, 64, 2, 0.1, 3.0))).codes == ["CLIFF"]


def test_table_times_are_rounded_and_that_is_no_fault(tmp_path: Path) -> None:
    head = "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
    row = "|   128 |    128 |    1 |    256 |    0.004 | 29767.44 |    0.079 |  1612.90 |    0.083 |  3068.89 |\n"
    assert look(tmp_path, head + row).codes == []
    assert look(tmp_path, head + row.replace("1612.90", "1812.90")).codes == ["INCONSISTENT"]


def bench(samples: list[float], n_prompt: int = 0, n_gen: int = 128, **changed: object) -> dict[str, object]:
    rates = [(n_prompt + n_gen) / seconds for seconds in samples]
    return {"build_commit": "0c1e57098", "model_type": "llama 7B Q4_0", "model_size": 4_000_000_000, "n_threads": 8,
            "type_k": "f16", "n_prompt": n_prompt, "n_gen": n_gen, "n_depth": 0,
            "avg_ns": int(sum(samples) / len(samples) * 1e9), "avg_ts": sum(rates) / len(rates),
            "samples_ns": [int(seconds * 1e9) for seconds in samples], "samples_ts": rates} | changed  # fmt: skip


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


@pytest.mark.parametrize(("bandwidth", "codes"), [(500.0, ["IMPOSSIBLE"]), (600.0, []), (None, [])])
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


def test_order_and_interleaving(tmp_path: Path) -> None:
    def order(names: str) -> bool:
        rows = "".join(f"{name},{10 + k / 10}\n" for k, name in enumerate(names))
        return bool(flags(look(tmp_path, "arm,tok_s\n" + rows), "ORDER"))

    assert order("AABB") and order("BBAA") and order("AAABBB")
    assert not order("ABBA") and not order("ABAB") and not order("AB")


def test_the_order_column_decides(tmp_path: Path) -> None:
    text = "arm,order,tok_s\nA,0,100\nA,3,94.1\nB,1,98\nB,2,96\n"
    assert not flags(look(tmp_path, text), "ORDER")


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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"claim": -1.0}, "--claim is -1"),
        ({"requested": 0}, "--requested is 0"),
        ({"bytes_per_step": float("nan")}, "--bytes-per-step is nan"),
        ({"acceptance": 76.6}, "--acceptance 0.766"),
        ({"temperatures": (-0.5,)}, "--temperatures has a value below 0"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        look(tmp_path, ledger(clean()), **options)


def test_command_line_options() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    line = "x.csv --claim 38.1 --requested 80 --streams 4 --bytes-per-step 24e9 --bandwidth 1024 --temperatures any"
    options = options_from(parser.parse_args(line.split()))
    assert (options.claim, options.requested, options.streams) == (38.1, 80, 4)
    assert (options.bytes_per_step, options.bandwidth, options.temperatures) == (24e9, 1024.0, ANY_TEMPERATURE)
    assert options_from(parser.parse_args(["x.csv"])) == AuditOptions()
    names = {action.dest for action in parser._actions} - {"help", "file"}
    assert names == {field.name for field in dataclasses.fields(AuditOptions)}


def stored(folder: Path, evaluated: int = 7, accepted: int = 1, streams: int = 1) -> Path:
    """A cell as the harness writes it: A B B A, the treatment emitting two tokens a round, or two streams."""
    runs, rounds, emits = [], [], []
    for number, arm in enumerate(("baseline", "treatment", "treatment", "baseline")):
        start, wide = number * 10**10, arm == "treatment"
        length = (55 + number) * 10**6
        per_round = 2 if wide and streams == 1 else 1
        answers = streams if wide else 1
        emits += [Emit(number, s, 0, 1, -1, "prefill", start) for s in range(answers)]
        for turn in range(12):
            rounds.append(Round(number, turn, "steady", 2 if wide else 1, 0, length, 0, 0, length,
                                *((1, 1, accepted) if per_round == 2 else (0, 0, 0))))  # fmt: skip
            emits += [Emit(number, s, turn * per_round + k + 1, 2, turn, "verified", start + (turn + 1) * length)
                      for s in range(answers) for k in range(per_round)]  # fmt: skip
        runs.append(Run(number, 0, number, arm, "p", "prose", 1, 7, evaluated, 25, 10**8, start, start + 12 * length,
                        12 * length, 2000.0, 50.0))  # fmt: skip
    engine = {"n_seq_max": 1, "n_ctx": 256, "type_k": "f16"}
    write_cell(
        folder / "0123456789ab",
        config={"temperature": 0.0}, env={}, status={"state": "done", "reason": "", "seconds": 1.0},
        facts={"engine": {"baseline": engine, "treatment": engine | {"n_seq_max": 2}}},
        tables={"runs": runs, "rounds": rounds, "ledger": emits},
    )  # fmt: skip
    assert set(TABLES) >= {"runs", "rounds", "ledger"}
    return folder / "0123456789ab"


def test_a_cell_of_the_harness(tmp_path: Path) -> None:
    report = audit(stored(tmp_path))
    assert report.format == "cell" and report.codes == ["BY_CONSTRUCTION"]
    assert report.contrasts[0]["speedup"] == pytest.approx(2.0, rel=0.01)
    row = report.trials[1]
    assert (row["counted"], row["distinct"], row["accepted"], row["rounds"]) == (25, 25, 12, 12)


def test_a_cell_with_faults(tmp_path: Path) -> None:
    assert len(flags(audit(stored(tmp_path / "a", evaluated=6)), "CACHED")) == 4
    assert len(flags(audit(stored(tmp_path / "b", accepted=0)), "ACCEPTANCE")) == 2


def test_a_cell_of_two_answers(tmp_path: Path) -> None:
    report = audit(stored(tmp_path, streams=2))
    assert report.codes == ["NOISE"]
    total = next(row for row in report.contrasts if "aggregate_speedup" in row)
    assert (total["speedup"], total["aggregate_speedup"]) == (pytest.approx(1.0, rel=0.02), pytest.approx(2, rel=0.02))


def test_text_of_a_report_names_what_it_recounted(tmp_path: Path) -> None:
    text = format_audit(look(tmp_path, batched((900, 100, 4, 4.0, 8.0)), claim=50.0, baseline=25.0))
    for part in ("llama-batched-bench jsonl", "counted 400, distinct 400", "one answer 12.5", "sum of answers 50.0",
                 "prefill 900.0", "one answer 0.50x, sum 2.00x", "AGGREGATE_AS_PER_ANSWER"):  # fmt: skip
        assert part in text, text


def test_a_long_record_is_cut_in_print_and_not_in_the_report(tmp_path: Path) -> None:
    report = look(tmp_path, "arm,tok_s\n" + "a,10\n" * 50)
    assert len(report.trials) == 50 and "and 10 more" in format_audit(report)
