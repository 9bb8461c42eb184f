"""Records that were once read wrong, silently or stated as fact, each with what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.audit.audit import AuditReport, audit
from bench.audit.options import AuditOptions
from bench.audit.show import format_audit
from tests.audit.audit_records import batched, bench, flags, look


def against(folder: Path, record: str, baseline: str, **options: object) -> AuditReport:
    (folder / "baseline").write_text(baseline)
    return look(folder, record, against=folder / "baseline", **options)


def ratio(report: AuditReport, end: str = "") -> float:
    return float(next(row["speedup"] for row in report.contrasts if str(row["label"]).endswith(end)))  # type: ignore[arg-type]


RATES = "arm,prompt,streams,tok_s\nnone,p1,1,19.4\npacked,p1,4,38.1\n"
TIMES = "arm,{},emitted,seconds\nnone,1,128,2.60\npacked,4,512,5.17\n"


@pytest.mark.parametrize(
    ("text", "options", "answer", "total", "sentence"),
    [
        (RATES, {"speedup": 1.96}, 0.491, 1.964, "one answer is 0.49x the baseline; the 1.96x is the sum of 4"),
        (RATES.replace("streams", "concurrency"), {}, 0.491, 1.964, "the 1.96x is the sum of 4"),
        (TIMES.format("streams"), {}, 0.503, 2.012, "one answer is 0.50x the baseline; the 2.01x is the sum of 4"),
        (TIMES.format("n_parallel"), {}, 0.503, 2.012, "the 2.01x is the sum of 4"),
        (TIMES.format("stream"), {}, 0.503, 2.012, "the 2.01x is the sum of 4"),  # no other stream of that arm is there
    ],
)
def test_how_many_streams_is_no_id(
    tmp_path: Path, text: str, options: dict[str, object], answer: float, total: float, sentence: str
) -> None:
    report = look(tmp_path, text, **options)
    row = report.contrasts[0]
    assert row["speedup"] == pytest.approx(answer, abs=1e-3) and row["aggregate_speedup"] == pytest.approx(
        total, abs=1e-3
    )
    assert sentence in report.answer.lower() and report.exit_code == 1
    assert "AGGREGATE_AS_PER_ANSWER" in report.codes or not options


def test_ids_of_streams_stay_ids(tmp_path: Path) -> None:
    rows = "".join(f"packed,{stream},128,5.17\n" for stream in range(4))
    report = look(tmp_path, "arm,streams,emitted,seconds\n" + rows)
    assert {trial["streams"] for trial in report.trials} == {1}
    listed = look(tmp_path, "streams,emitted,seconds\n0 1 2 3,512,5.17\n")
    assert listed.trials[0]["streams"] == 4 and listed.trials[0]["per_answer_tok_s"] == pytest.approx(24.76, abs=0.01)


def test_how_many_tokens_is_no_token(tmp_path: Path) -> None:
    report = look(tmp_path, "arm,tokens,seconds\nnone,128,2.60\nfast,128,1.30\n")
    assert [trial["counted"] for trial in report.trials] == [128, 128] and ratio(report) == pytest.approx(2.0)
    ids = look(tmp_path, "arm,token_ids,seconds\nnone,128,2.60\n")
    assert ids.trials[0]["counted"] == 1


IDS = "arm,prompt,temperature,tokens,positions,seconds\nnone,p,0,{},0 1 2,.3\nfast,p,0,{},0 1 2,.1\n"


def test_outputs_of_two_arms_are_compared(tmp_path: Path) -> None:
    other = look(tmp_path, IDS.format("11 12 13", "11 12 99"))
    assert flags(other, "DIVERGENT")[0].numbers == {"position": 2} and "no lossless speed-up" in format_audit(other)
    assert "DIVERGENT" not in look(tmp_path, IDS.format("11 12 13", "11 12 13")).codes
    assert flags(
        look(tmp_path, IDS.format("11 12 13", "11 12 13").replace("11 12 13,0 1 2,.1", "11 12,0 1,.1")), "DIVERGENT"
    )
    warm = IDS.replace("p,0,", "p,0.7,").format("11 12 13", "11 12 99")
    assert "DIVERGENT" not in look(tmp_path, warm).codes, "draws above temperature 0 may differ"


def test_lengths_of_two_arms_are_compared(tmp_path: Path) -> None:
    text = "arm,prompt,temperature,emitted,seconds\nnone,pi,{0},1200,19.5\nmtp,pi,{0},{1},11.0\n"
    flag = flags(look(tmp_path, text.format(0, 798)), "LENGTH")[0]
    assert flag.numbers == {"tokens": 798, "baseline": 1200} and "greedy answers" in flag.sentence
    assert "LENGTH" not in look(tmp_path, text.format(0, 1200)).codes
    assert "LENGTH" not in look(tmp_path, text.format(0.7, 798)).codes


def test_rows_are_compared_with_rows_of_their_depth(tmp_path: Path) -> None:
    def run(*seconds: float) -> str:
        rows = [bench([s] * 5, n_depth=depth) for s, depth in zip(seconds, (0, 16384), strict=True)]
        return "\n".join(json.dumps(row) for row in rows)

    report = against(tmp_path, run(3.2, 5.12), run(3.2, 6.4), speedup=1.25)
    assert (ratio(report, "depth 0"), ratio(report, "depth 16384")) == (pytest.approx(1.0), pytest.approx(1.25))
    assert "NO_GAIN" not in report.codes and "1.25x holds at depth 16384" in report.answer
    missing = against(tmp_path, run(3.2, 5.12).split("\n")[1], run(3.2, 6.4).split("\n")[0])
    assert missing.codes == ["NO_BASELINE"], "depth 16384 is not compared with depth 0"


def test_rows_are_compared_with_rows_of_their_prompt_length(tmp_path: Path) -> None:
    report = look(
        tmp_path,
        batched((512, 128, 1, 0.5, 2.56), (512, 128, 4, 2, 3.84), (32768, 128, 1, 30, 3.84), (32768, 128, 4, 120, 4.8)),
    )
    rows = {str(row["label"]): row for row in report.contrasts}
    assert rows["pp=32768 tg=128 B=4"]["speedup"] == pytest.approx(0.8)
    assert rows["pp=32768 tg=128 B=4"]["aggregate_speedup"] == pytest.approx(3.2)
    costs = [note for note in report.notes if note.startswith("step cost")]
    assert len(costs) == 2 and "width 1 20.0 ms, width 4 30.0 ms" in costs[0] and "width 1 30.0 ms" in costs[1]


def test_runs_pasted_below_each_other_keep_their_settings(tmp_path: Path) -> None:
    head = "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
    head += "|---|---|---|---|---|---|---|---|---|---|\n"
    rows = [
        "| 512 | 32 | 1 | 544 | 0.4 | 1280 | 0.8 | 40 | 1.2 | 453.33 |\n| 512 | 32 | 4 | 2176 | 1.6 | 1280 | 1.6 | "
        "80 | 3.2 | 680 |\n",
        "| 512 | 32 | 1 | 544 | 0.33 | 1551.52 | 0.4 | 80 | 0.73 | 745.21 |\n| 512 | 32 | 4 | 2176 | 1.25 | 1638.4 | "
        "0.57 | 224.56 | 1.82 | 1195.6 |\n",
    ]
    text = "".join(
        f"main: n_kv_max = 4096, n_ubatch = {ub}, flash_attn = {fa}\n\n{head}{part}\n"
        for ub, fa, part in ((512, 0, rows[0]), (2048, 1, rows[1]))
    )
    report = look(tmp_path, text)
    assert [trial["settings"]["flash_attn"] for trial in report.trials] == ["0", "0", "1", "1"]  # type: ignore[index]
    assert ratio(report, "run 1, pp=512 tg=32 B=4") == pytest.approx(0.5)
    assert ratio(report, "run 2, pp=512 tg=32 B=4") == pytest.approx(0.702, abs=1e-3)
    assert any("run 2, pp512 tg32" in note and "width 1 12.5 ms" in note for note in report.notes)


OLD, FAST = [1.800, 1.795, 1.790, 1.793, 1.791], [1.600, 1.601, 1.599, 1.602, 1.598]


def test_against_answers_with_ratio_interval_and_what_could_be_seen(tmp_path: Path) -> None:
    report = against(tmp_path, json.dumps([bench(FAST)]), json.dumps([bench(OLD)]), speedup=1.12)
    row = report.contrasts[0]
    assert row["speedup"] == pytest.approx(1.121, abs=1e-3) and report.codes == []
    assert 1.117 < row["ci_low"] < row["ci_high"] < 1.125 and 1.0 < row["min_visible_effect"] < 1.01  # type: ignore[operator]
    assert "1.12x holds" in report.answer
    slower = against(tmp_path, json.dumps([bench(OLD)]), json.dumps([bench(FAST)]))
    assert slower.codes == ["NO_GAIN"] and slower.exit_code == 1
    other = against(tmp_path, json.dumps([bench(FAST, build_commit="f00")]), json.dumps([bench(OLD)]))
    assert other.codes == ["DIFFERS"] and ratio(other) == pytest.approx(1.121, abs=1e-3)
    noisy = against(
        tmp_path,
        json.dumps([bench([1.78, 1.70, 1.82, 1.72, 1.80])]),
        json.dumps([bench([1.83, 1.73, 1.80, 1.84, 1.76])]),
        speedup=1.02,
    )
    assert "NOISE" in noisy.codes and "INCONCLUSIVE" in flags(noisy, "NOISE")[0].sentence


def test_the_baselines_own_faults_are_named(tmp_path: Path) -> None:
    report = against(tmp_path, json.dumps([bench(FAST)]), json.dumps([bench([5.4, 1.6, 1.602, 1.599, 1.601])]))
    assert "baseline baseline" in flags(report, "WARMUP")[0].sentence
    assert any("first repetition of each side left out: 1.000x" in note for note in report.notes)


def test_order_and_drift_are_of_one_prompt(tmp_path: Path) -> None:
    two = "arm,prompt,tok_s\nA,short,40\nA,long,20\nB,short,60\nB,long,30\n"
    assert "ORDER" not in look(tmp_path, two).codes and ratio(look(tmp_path, two)) == pytest.approx(1.5)
    one = "arm,prompt,tok_s\nA,p,40\nA,p,40.4\nB,p,60\nB,p,60.6\n"
    assert "ORDER" in look(tmp_path, one).codes


def test_a_printed_rate_beside_counts_stays(tmp_path: Path) -> None:
    rows = [("code", 26.2, 39.6), ("prose", 26.4, 37.0), ("math", 26.3, 40.3)]
    text = "arm,prompt,emitted,tok_s,drafted,accepted\n"
    text += "".join(f"none,{name},192,{base},,\n" for name, base, _ in rows)
    text += "".join(f"mtp,{name},192,{fast},150,110\n" for name, _, fast in rows)
    report = look(tmp_path, text)
    assert ratio(report) == pytest.approx((39.6 / 26.2 * 37.0 / 26.4 * 40.3 / 26.3) ** (1 / 3))
    assert "nan" not in format_audit(report) and "NO_BASELINE" not in report.codes


@pytest.mark.parametrize(
    ("model", "size", "rate", "bandwidth", "impossible"),
    [
        ("gemma4 E2B BF16", 10.25e9, 49.9, 273, False),  # per-layer embeddings are looked up
        ("llama 8B Q4_K - Medium", 4.65e9, 60.0, 270, False),  # 3 % above: an untied embedding table
        ("qwen3moe 30B.A3B Q4_K", 18e9, 90.0, 273, False),  # a step reads some experts
        ("qwen2 7B Q4_K - Medium", 4.68e9, 250.0, 1024, True),
        ("llama 70B Q8_0", 75e9, 30.0, 273, True),
    ],
)
def test_a_bound_from_the_files_size_is_no_more_than_that(
    tmp_path: Path, model: str, size: float, rate: float, bandwidth: float, impossible: bool
) -> None:
    text = json.dumps([bench([128 / rate] * 3, model_type=model, model_size=int(size))])
    report = look(tmp_path, text, bandwidth=bandwidth)
    assert ("IMPOSSIBLE" in report.codes) == impossible
    assert "IMPOSSIBLE" in look(tmp_path, text, bandwidth=bandwidth, bytes_per_step=size * 2).codes


def test_an_acceptance_is_named_only_where_its_inputs_are(tmp_path: Path) -> None:
    text = "arm,prompt,emitted,seconds,drafted,accepted,acceptance\n"
    text += "none,free,400,8.92,0,0,0\nmtp,free,400,6.40,408,261,0.98\n"
    flag = flags(look(tmp_path, text), "ACCEPTANCE")
    assert len(flag) == 1 and "emitted over drafted" in flag[0].sentence and "biased" not in flag[0].sentence
    printed = format_audit(look(tmp_path, text))
    assert "None" not in printed
    assert not flags(look(tmp_path, text.replace("0.98", "0.64")), "ACCEPTANCE")


COUNTED = '"Kernel_Name","Dispatch_Id","Counter_Name","Counter_Value"\n"read(float*)",1,"FETCH_SIZE",{}\n'


def test_fewer_bytes_than_the_operands_have_is_void(tmp_path: Path) -> None:
    half = look(tmp_path, COUNTED.format(2**19), bytes_per_step=2**30)
    assert half.codes == ["VOID"] and "counts half" in half.flags[0].sentence
    assert look(tmp_path, COUNTED.format(2**20), bytes_per_step=2**30).codes == []


def test_a_faster_decode_whose_answer_comes_later_says_so(tmp_path: Path) -> None:
    text = "arm,prompt,emitted,decode_s,total_s\nnone,p,1000,18.5,20.72\nmtp,p,1000,15.9,23.02\n"
    report = look(tmp_path, text)
    assert flags(report, "LATER")[0].numbers == {
        "decode": pytest.approx(1.164, abs=1e-3),
        "answer": pytest.approx(0.9, abs=1e-3),
    }
    assert "comes later" in report.answer
    assert "LATER" not in look(tmp_path, text.replace("23.02", "18.0")).codes


def test_one_file_as_its_own_baseline_is_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(bench([1.0] * 5)))
    report = audit(path, AuditOptions(against=path))
    assert "no difference" in report.answer and report.codes == ["NO_GAIN"]


def test_rows_of_a_sweep_are_compared_with_their_own(tmp_path: Path) -> None:
    def table(off: float, on: float) -> str:
        rows = [bench([128 / rate] * 3, flash_attn=fa) for fa, rate in ((False, off), (True, on))]
        return "\n".join(json.dumps(row) for row in rows)

    report = against(tmp_path, table(20.0, 45.0), table(20.0, 30.0))
    assert {round(float(str(row["speedup"])), 3) for row in report.contrasts} == {1.0, 1.5}
    assert "NOT_COMPARABLE" not in report.codes
