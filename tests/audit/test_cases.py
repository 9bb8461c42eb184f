"""The model-free inputs of the collected cases (C01 and so on) that the audit answers, each with its right value."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench.audit.audit import AuditReport, audit
from bench.audit.flags.acceptance import definitions
from bench.audit.flags.contrasts import statistics_of
from bench.audit.flags.costs import speculation_rate
from bench.audit.options import ANY_TEMPERATURE, AuditOptions
from bench.audit.record import read_record
from bench.audit.show import format_audit
from bench.audit.trials import Flag

LEDGER = "run,stream,position,token,round,source,t_ns\n"


def look(folder: Path, text: str, **options: object) -> AuditReport:
    path = folder / "record.csv"
    path.write_text(text)
    return audit(path, AuditOptions(**options))  # type: ignore[arg-type]


def flag(report: AuditReport, code: str) -> Flag:
    found = [item for item in report.flags if item.code == code]
    assert found, f"{code} is not among {report.codes}"
    return found[0]


def published_loop(rounds: int, streams: int, seconds: float) -> str:
    """The loop that emits `streams` tokens a round, all but one of which the round before emitted too."""
    rows = ["0,0,0,1000,-1,prefill,0"]
    for number in range(rounds):
        moment = round((number + 1) * seconds / rounds * 1e9)
        rows += [
            f"0,0,{number + 1 + k},{1001 + number + k},{number},{'unverified' if k else 'verified'},{moment}"
            for k in range(streams)
        ]
    return LEDGER + "\n".join(rows) + "\n"


def test_published_loop_from_its_ledger_alone(tmp_path: Path) -> None:
    report = look(tmp_path, published_loop(79, 4, 317 / 38.1), claim=38.1, requested=80, streams=4)
    row = report.trials[0]
    assert (row["counted"], row["distinct"]) == (317, 83)
    assert row["first_inside_tok_s"] == pytest.approx(83 * 38.1 / 317)
    assert report.claim is not None and report.claim["right"] == pytest.approx(9.976, abs=1e-3)
    assert {"DUPLICATE", "WINDOW", "EMITTED_MORE_THAN_REQUESTED", "UNVERIFIED"} <= set(report.codes)
    text = format_audit(report)
    assert "counted 317, distinct 83" in text and "put right 10.0 tok/s" in text and report.exit_code == 1


@pytest.mark.parametrize(
    ("streams", "claim", "counted", "distinct", "right"),
    [(2, 30.5, 159, 81, 15.5), (3, 33.9, 238, 82, 11.7), (4, 38.1, 317, 83, 10.0)],
)
def test_published_widths(
    tmp_path: Path, streams: int, claim: float, counted: int, distinct: int, right: float
) -> None:
    report = look(tmp_path, published_loop(79, streams, counted / claim), claim=claim)
    assert (report.trials[0]["counted"], report.trials[0]["distinct"]) == (counted, distinct)
    assert report.claim is not None and report.claim["right"] == pytest.approx(right, abs=0.05)


C01 = "step,tokens,positions,seconds\n0,5 6 7 8,1 2 3 4,.1\n1,6 7 8 9,2 3 4 5,.1\n2,7 8 9 10,3 4 5 6,.1\n"


def test_c01_duplicate_emission(tmp_path: Path) -> None:
    report = look(tmp_path, C01, claim=40.0)
    assert flag(report, "DUPLICATE").numbers == {"counted": 12, "distinct": 6, "most": 3}
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(20.0)
    assert report.trials[0]["counted_tok_s"] == pytest.approx(40.0)
    assert report.claim is not None and report.claim["right"] == pytest.approx(20.0)


def test_c03_counted_at_emission(tmp_path: Path) -> None:
    rows = "".join(f"0,0,{k},220,{k - 1},{'verified' if k else 'prefill'},{k * 10**8}\n" for k in range(15))
    report = look(tmp_path, LEDGER + rows)
    assert (report.trials[0]["counted"], report.trials[0]["distinct"]) == (15, 15)
    assert report.exit_code == 0 and report.trials[0]["per_answer_tok_s"] == pytest.approx(10.0)


def test_c04_prompt_tokens_in_the_rate(tmp_path: Path) -> None:
    text = "phase,n_prompt,emitted,seconds\nprefill,900,0,1.0\nsteady,,100,5.0\n"
    report = look(tmp_path, text, claim=166.7)
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(20.0)
    assert report.trials[0]["prefill_tok_s"] == pytest.approx(900.0)
    assert report.trials[0]["total_tok_s"] == pytest.approx(1000 / 6)
    assert flag(report, "PREFILL_IN_RATE").numbers["right"] == pytest.approx(20.0)
    assert look(tmp_path, text, claim=20.0).exit_code == 0


def test_c06_above_the_bound(tmp_path: Path) -> None:
    options = {"bytes_per_step": 24e9, "bandwidth": 1000.0}
    assert flag(look(tmp_path, "arm,tok_s\nx,60\n", **options), "IMPOSSIBLE").numbers == {
        "rate": 60.0,
        "bound": pytest.approx(41.667, abs=1e-3),
    }
    assert look(tmp_path, "arm,tok_s\nx,41\n", **options).exit_code == 0


def test_c08_tokens_and_seconds_of_one_interval(tmp_path: Path) -> None:
    rows = "".join(f"0,0,{k},{k},{k - 1},{'verified' if k else 'prefill'},{k * 10**8}\n" for k in range(5))
    report = look(tmp_path, LEDGER + rows, claim=12.5)
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(10.0)
    assert flag(report, "WINDOW").numbers["right"] == pytest.approx(10.0)
    assert look(tmp_path, LEDGER + rows, claim=10.0).exit_code == 0


def test_c08_start_up_left_out(tmp_path: Path) -> None:
    text = "step,phase,emitted,seconds\n0,startup,0,1.0\n1,steady,50,1.0\n2,steady,50,1.0\n"
    report = look(tmp_path, text, claim=50.0)
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(100 / 3)
    assert report.trials[0]["steady_tok_s"] == pytest.approx(50.0)
    assert flag(report, "WINDOW").numbers["right"] == pytest.approx(100 / 3)


def test_c10_records_that_differ_in_one_setting(tmp_path: Path) -> None:
    text = "arm,n_seq_max,n_ctx,tok_s\nbase,1,512,10\nspec,4,512,20\nspec,4,512,21\nbase,1,512,11\n"
    assert "n_seq_max (4 against 1)" in flag(look(tmp_path, text), "NOT_COMPARABLE").sentence
    assert "n_ctx" not in flag(look(tmp_path, text), "NOT_COMPARABLE").sentence
    assert "NOT_COMPARABLE" not in look(tmp_path, text.replace(",4,", ",1,")).codes


def test_c11_aggregate_and_one_answer(tmp_path: Path) -> None:
    row = {
        "n_kv_max": 4096,
        "n_batch": 2048,
        "n_ubatch": 512,
        "flash_attn": 0,
        "is_pp_shared": 0,
        "n_gpu_layers": 0,
        "n_threads": 2,
        "n_threads_batch": 2,
        "pp": 16,
        "tg": 64,
        "pl": 4,
        "n_kv": 320,
        "t_pp": 0.1,
        "speed_pp": 640.0,
        "t_tg": 3.2,
        "speed_tg": 80.0,
        "t": 3.3,
        "speed": 96.969697,
    }
    report = look(tmp_path, json.dumps(row) + "\n", claim=80.0, baseline=26.0)
    assert report.trials[0]["aggregate_tok_s"] == pytest.approx(80.0)
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(20.0)
    assert report.trials[0]["answer_seconds"] == pytest.approx(3.3)
    assert report.contrasts[0]["speedup"] == pytest.approx(0.769, abs=1e-3)
    assert report.contrasts[0]["aggregate_speedup"] == pytest.approx(3.077, abs=1e-3)
    assert flag(report, "AGGREGATE_AS_PER_ANSWER").numbers["right"] == pytest.approx(20.0)
    assert look(tmp_path, json.dumps(row), claim=80.0, baseline=26.0, per="aggregate").exit_code == 0
    assert "AGGREGATE_AS_PER_ANSWER" in look(tmp_path, json.dumps(row), speedup=3.08, baseline=26.0).codes


def test_c12_degraded_denominator(tmp_path: Path) -> None:
    report = look(tmp_path, "arm,tok_s\npacked,26\nsolo,8\nbaseline,20\n")
    assert flag(report, "DEGRADED_DENOMINATOR").numbers == {
        "speedup": pytest.approx(1.3),
        "same_context": pytest.approx(3.25),
    }
    assert report.contrasts[0]["speedup"] == pytest.approx(1.3)
    assert "DEGRADED_DENOMINATOR" not in look(tmp_path, "arm,tok_s\npacked,26\nsolo,20\nbaseline,20\n").codes
    only = flag(look(tmp_path, "arm,tok_s\npacked,26\nsolo,8\n"), "DEGRADED_DENOMINATOR")
    assert only.numbers == {"same_context": pytest.approx(3.25)}


def test_c13_which_statistic(tmp_path: Path) -> None:
    rates = {"base": [[30, 30, 22], [30, 30, 30], [22, 30, 30]], "spec": [[60, 62, 35], [42, 45, 45], [55, 55, 34]]}
    rows = [f"{arm},p{p},{rates[arm][p][k]}" for p in range(3) for k in range(3) for arm in rates]
    report = look(tmp_path, "arm,prompt,tok_s\n" + "\n".join(rows))
    found = statistics_of(read_record(tmp_path / "record.csv"), "spec")
    assert found["ratio of means"] == pytest.approx(433 / 254)
    assert found["ratio of medians"] == pytest.approx(1.5)
    assert found["geometric mean of medians by prompt"] == pytest.approx((60 / 30 * 45 / 30 * 55 / 30) ** (1 / 3))
    assert flag(report, "STATISTIC").numbers["estimator"] == pytest.approx(report.contrasts[0]["speedup"])


def test_c14_noise_is_no_effect(tmp_path: Path) -> None:
    pairs = zip([20.0, 20.4, 19.7], [20.5, 19.9, 20.6], strict=True)
    report = look(tmp_path, "arm,tok_s\n" + "".join(f"A,{a}\nB,{b}\n" for a, b in pairs))
    numbers = flag(report, "NOISE").numbers
    assert numbers["low"] < 1 < numbers["high"] and "INCONCLUSIVE" in flag(report, "NOISE").sentence
    clear = look(tmp_path, "arm,tok_s\nA,20\nB,30\nB,30.1\nA,20.1\nA,20\nB,30\n")
    assert "NOISE" not in clear.codes


def test_c15_order(tmp_path: Path) -> None:
    naive = look(tmp_path, "arm,tok_s\nA,100\nA,98\nB,96.04\nB,94.1192\n")
    assert flag(naive, "ORDER").numbers["naive"] == pytest.approx(0.9604)
    assert flag(naive, "ORDER").numbers["level"] == pytest.approx(1.0)
    balanced = look(tmp_path, "arm,tok_s\nA,100\nB,98\nB,96.04\nA,94.1192\n")
    assert "ORDER" not in balanced.codes
    assert balanced.contrasts[0]["speedup"] == pytest.approx(1.0, abs=1e-3)


def test_c17_warm_up_is_dropped(tmp_path: Path) -> None:
    report = look(tmp_path, "width,seconds\n4,0.90\n4,0.10\n4,0.10\n")
    assert flag(report, "WARMUP").numbers["mean"] == pytest.approx(0.10)


def test_c18_cached_prompt(tmp_path: Path) -> None:
    report = look(tmp_path, "prompt,n_prompt_evaluated\np,37\np,0\n")
    assert flag(report, "CACHED").numbers == {"evaluated": 0, "prompt": 37}
    assert look(tmp_path, "prompt,n_prompt_evaluated\np,37\np,37\n").exit_code == 0


def steps(accepted: int, total: int, milliseconds: float) -> str:
    rows = [f"{k},1,1,{int(k < accepted)},{1 + int(k < accepted)},{milliseconds},0" for k in range(total)]
    return "step,drafted,verified,accepted,emitted,ms,temperature\n" + "\n".join(rows)


def test_c20_c21_high_acceptance_is_no_speed(tmp_path: Path) -> None:
    report = look(tmp_path, steps(82, 100, 58 + 6.1), baseline=30.0)
    assert report.trials[0]["per_answer_tok_s"] == pytest.approx(1.82 / 0.0641)
    assert flag(report, "NO_GAIN").numbers["speedup"] == pytest.approx(0.946, abs=1e-3)
    assert speculation_rate({1: 0.0333, 2: 0.058}, 1, 0.82, 0.0061) == pytest.approx(28.39, abs=0.01)
    assert "NO_GAIN" not in look(tmp_path, steps(82, 100, 40.0), baseline=30.0).codes


def test_c22_definitions_of_acceptance(tmp_path: Path) -> None:
    text = "rounds,drafted,skipped,accepted,emitted,acceptance\n10,30,6,12,22,{}\n"
    report = look(tmp_path, text.format(0.55), baseline=20.0)
    acceptance = report.trials[0]["acceptance"]
    assert isinstance(acceptance, dict)
    assert acceptance["accepted/tested"] == pytest.approx(0.5) and acceptance["accepted/drafted"] == pytest.approx(0.4)
    assert acceptance["mean_length"] == pytest.approx(2.2)
    assert "INCONSISTENT" in flag(report, "ACCEPTANCE").sentence
    for fair in (0.5, 0.4, 2.2):
        assert "ACCEPTANCE" not in look(tmp_path, text.format(fair), baseline=20.0).codes
    off = flag(look(tmp_path, "rounds,drafted,accepted,emitted\n10,30,12,21\n"), "ACCEPTANCE")
    assert off.numbers == {"emitted": 21, "expected": 22}


def test_c22_biased_form_is_not_acceptance(tmp_path: Path) -> None:
    text = "step,drafted,verified,accepted,emitted,acceptance\n0,3,1,0,1,.25\n1,3,1,0,1,.25\n"
    report = look(tmp_path, text)
    acceptance = definitions(read_record(tmp_path / "record.csv").trials[0])
    assert acceptance["accepted/drafted"] == 0.0 and acceptance["biased"] == pytest.approx(0.25)
    assert "(accepted + 1) over (drafted + 1)" in flag(report, "ACCEPTANCE").sentence
    assert "ACCEPTANCE" not in look(tmp_path, text.replace(".25", "0")).codes


def test_c24_greedy_acceptance_is_true_by_construction(tmp_path: Path) -> None:
    report = look(tmp_path, steps(100, 100, 20.0), baseline=30.0, temperatures=ANY_TEMPERATURE)
    assert "BY_CONSTRUCTION" in report.codes
    assert "0.3, 0.7, 1" in flag(report, "UNSUPPORTED").sentence
    assert "BY_CONSTRUCTION" not in look(tmp_path, steps(99, 100, 20.0), baseline=30.0).codes
    warm = look(tmp_path, steps(100, 100, 20.0).replace(",0\n", ",0.7\n").removesuffix(",0") + ",0.7", baseline=30.0)
    assert "BY_CONSTRUCTION" not in warm.codes
    assert "UNSUPPORTED" not in look(tmp_path, steps(82, 100, 20.0), baseline=30.0, temperatures=(0.0,)).codes


def test_c32_no_baseline(tmp_path: Path) -> None:
    report = look(tmp_path, "tok_s,acceptance\n28,.766\n", claim=28.0)
    assert "NOT ASSESSABLE" in flag(report, "NO_BASELINE").sentence
    for missing in ("--baseline", "build", "temperature"):
        assert missing in flag(report, "NO_BASELINE").sentence
    assert "NO_BASELINE" not in look(tmp_path, "tok_s,acceptance\n28,.766\n", claim=28.0, baseline=21.0).codes


def test_c46_cliff(tmp_path: Path) -> None:
    report = look(tmp_path, "width,ms\n1,50\n8,95\n9,150\n16,155\n", acceptance=0.9)
    assert [item.numbers["high"] for item in report.flags if item.code == "CLIFF"] == [9]
    costs = {1: 0.050, 8: 0.095, 9: 0.150, 16: 0.155}
    assert speculation_rate(costs, 7, 0.9) == pytest.approx(60.0, abs=0.1)
    assert speculation_rate(costs, 8, 0.9) == pytest.approx(40.8, abs=0.1)
    assert any("8 guesses 40.8 tok/s" in note and "best with 7" in note for note in report.notes)
    with pytest.raises(KeyError):
        speculation_rate(costs, 4, 0.9)


def test_c46_reported_card(tmp_path: Path) -> None:
    card = {1: 47.6, 2: 57.0, 4: 63.7, 8: 94.5, 9: 152.9, 16: 158.6, 32: 168.5, 33: 270.8}
    report = look(tmp_path, "width,ms\n" + "".join(f"{width},{ms}\n" for width, ms in card.items()))
    assert [item.numbers["high"] for item in report.flags if item.code == "CLIFF"] == [9, 33]
    assert math.isclose(flag(report, "CLIFF").numbers["ratio"], 152.9 / 94.5)
