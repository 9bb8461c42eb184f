"""Reading what other programs wrote. The samples are written as llama.cpp's tools print them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.audit.audit import audit
from bench.audit.emits import window_seconds
from bench.audit.formats.own_ledger import read_ledger
from bench.audit.record import read_record
from bench.errors import UserError


def bench_row(n_prompt: int, n_gen: int, samples_ns: list[int], **changed: object) -> dict[str, object]:
    """One row of `llama-bench -o json`, with every field of `test::get_fields` in its order."""
    rates = [1e9 * (n_prompt + n_gen) / ns for ns in samples_ns]
    row: dict[str, object] = {
        "build_commit": "0c1e57098",
        "build_number": 1,
        "cpu_info": "AMD EPYC",
        "gpu_info": "",
        "backends": "CPU",
        "model_filename": "m.gguf",
        "model_type": "llama 135M Q8_0",
        "model_size": 142_000_000,
        "model_n_params": 134515008,
        "n_batch": 2048,
        "n_ubatch": 512,
        "n_threads": 2,
        "cpu_mask": "0x0",
        "cpu_strict": False,
        "poll": 50,
        "type_k": "f16",
        "type_v": "f16",
        "n_gpu_layers": -1,
        "n_cpu_moe": 0,
        "split_mode": "layer",
        "main_gpu": 0,
        "no_kv_offload": False,
        "flash_attn": -1,
        "devices": "auto",
        "tensor_split": "0.00",
        "tensor_buft_overrides": "none",
        "load_mode": "mmap",
        "lazy_mode": "off",
        "embeddings": False,
        "no_op_offload": 0,
        "no_host": False,
        "repack": True,
        "fit_target": 0,
        "fit_min_ctx": 0,
        "n_prompt": n_prompt,
        "n_gen": n_gen,
        "n_depth": 0,
        "test_time": "2026-07-01T11:58:50Z",
        "avg_ns": sum(samples_ns) // len(samples_ns),
        "stddev_ns": 9449585,
        "avg_ts": round(sum(rates) / len(rates), 6),
        "stddev_ts": 1.0,
        "samples_ns": samples_ns,
        "samples_ts": [float(f"{rate:.6g}") for rate in rates],
    }
    return row | changed


TG_NS = [1075361300, 1065089400, 1071761200, 1081934900, 1089692600]
PP_NS = [74601900, 71632900, 71745200, 71952700, 70745500]

TABLE = """\
build: 1 (0c1e57098)

llama_batched_bench: n_kv_max = 16384, n_batch = 2048, n_ubatch = 512, flash_attn = -1, is_pp_shared = 0, \
is_tg_separate = 0, n_gpu_layers = 99, n_threads = 8, n_threads_batch = 8

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   128 |    128 |    1 |    256 |    0.108 |  1186.64 |    3.079 |    41.57 |    3.187 |    80.32 |
|   128 |    128 |    2 |    512 |    0.198 |  1295.19 |    5.029 |    50.90 |    5.227 |    97.95 |
|   128 |    128 |    4 |   1024 |    0.373 |  1373.96 |    6.878 |    74.44 |    7.251 |   141.23 |

llama_perf_context_print:        load time =     812.01 ms
"""
JSONL = (
    '{"n_kv_max": 2048, "n_batch": 2048, "n_ubatch": 512, "flash_attn": 0, "is_pp_shared": 0, "n_gpu_layers": 99, '
    '"n_threads": 8, "n_threads_batch": 8, "pp": 128, "tg": 128, "pl": 1, "n_kv": 256, "t_pp": 0.233810, "speed_pp": '
    '547.453064, "t_tg": 3.503684, "speed_tg": 36.532974, "t": 3.737494, "speed": 68.495094}\n'
    '{"n_kv_max": 2048, "n_batch": 2048, "n_ubatch": 512, "flash_attn": 0, "is_pp_shared": 0, "n_gpu_layers": 99, '
    '"n_threads": 8, "n_threads_batch": 8, "pp": 128, "tg": 128, "pl": 2, "n_kv": 512, "t_pp": 0.422602, "speed_pp": '
    '605.770935, "t_tg": 11.106112, "speed_tg": 23.050371, "t": 11.528713, "speed": 44.410854}\n'
)


def put(folder: Path, text: str | bytes, name: str = "record") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_llama_bench_json(tmp_path: Path) -> None:
    rows = [bench_row(512, 0, PP_NS), bench_row(0, 128, TG_NS), bench_row(512, 128, [1_150_000_000])]
    record = read_record(put(tmp_path, json.dumps(rows, indent=2)))
    prompt, generation, mixed = record.trials
    assert record.format == "llama-bench"
    assert [trial.label for trial in record.trials] == ["pp512", "tg128", "pp512+tg128"]
    assert generation.per_answer == pytest.approx(128 / (sum(TG_NS) / 5e9))
    assert generation.counted == 128 and generation.prompt_tokens == 0 and generation.model_bytes == 142e6
    assert prompt.prefill_rate == pytest.approx(512 / (sum(PP_NS) / 5e9)) and prompt.counted == 0
    assert mixed.mixed_tokens == 640 and mixed.counted == 0


def test_llama_bench_jsonl_line_as_printed(tmp_path: Path) -> None:
    # The printer joins the two sample lists without a blank between them.
    line = json.dumps(bench_row(0, 128, TG_NS)).replace("], ", "],")
    record = read_record(put(tmp_path, f"ggml_cuda_init: found 1 device\n{line}\n{line}\n".partition("\n")[2]))
    assert [trial.place for trial in record.trials] == ["line 1", "line 2"]
    assert record.trials[0].settings["n_threads"] == "2"


def test_llama_bench_without_samples_uses_the_mean(tmp_path: Path) -> None:
    row = bench_row(0, 64, [2_000_000_000])
    del row["samples_ns"]
    assert read_record(put(tmp_path, json.dumps([row]))).trials[0].per_answer == pytest.approx(32.0)


@pytest.mark.parametrize("name", ["qwen3moe 30B.A3B Q4_K - Medium", "llama 8x7B Q4_0", "gpt-oss 20B MoE"])
def test_size_of_a_mixture_of_experts_is_not_what_a_step_reads(tmp_path: Path, name: str) -> None:
    record = read_record(put(tmp_path, json.dumps([bench_row(0, 128, TG_NS, model_type=name)])))
    assert record.trials[0].model_bytes is None


def test_batched_bench_table(tmp_path: Path) -> None:
    record = read_record(put(tmp_path, TABLE))
    assert record.format == "llama-batched-bench" and len(record.trials) == 3
    wide = record.trials[2]
    assert (wide.streams, wide.counted, wide.prompt_tokens, wide.rounds) == (4, 512, 512, 128)
    assert wide.aggregate == pytest.approx(74.44, abs=0.01) and wide.per_answer == pytest.approx(18.61, abs=0.01)
    assert wide.settings["n_threads"] == "8" and wide.place == "line 9"


def test_batched_bench_jsonl(tmp_path: Path) -> None:
    record = read_record(put(tmp_path, JSONL))
    assert record.format == "llama-batched-bench"
    assert [round(trial.aggregate, 2) for trial in record.trials] == [36.53, 23.05]
    assert record.trials[1].per_answer == pytest.approx(11.525, abs=1e-3)


def test_shared_prompt_is_evaluated_once(tmp_path: Path) -> None:
    shared = read_record(put(tmp_path, JSONL.replace('"is_pp_shared": 0', '"is_pp_shared": 1')))
    assert [trial.prompt_tokens for trial in shared.trials] == [128, 128]
    assert [trial.prompt_tokens for trial in read_record(put(tmp_path, JSONL)).trials] == [128, 256]


def test_separate_generation_is_no_batch(tmp_path: Path) -> None:
    record = read_record(put(tmp_path, TABLE.replace("is_tg_separate = 0", "is_tg_separate = 1")))
    assert record.trials[2].streams == 1 and record.trials[2].rounds == 512


def test_c_prints_nan_which_json_has_not(tmp_path: Path) -> None:
    record = read_record(put(tmp_path, JSONL.replace('"speed_pp": 547.453064', '"speed_pp": -nan')))
    assert "S_PP" not in record.trials[0].printed and "S_PP" in record.trials[1].printed


LEDGER = "run,stream,position,token,round,source,t_ns\n"


def test_ledger_plain_and_packed_are_the_same(tmp_path: Path) -> None:
    text = LEDGER + "0,0,0,5,-1,prefill,0\n0,0,1,6,0,verified,100000000\n0,0,2,7,1,verified,200000000\n"
    plain = read_record(put(tmp_path, text, "ledger.csv")).trials[0]
    packed = read_record(put(tmp_path, gzip.compress(text.encode()), "ledger.csv.gz")).trials[0]
    assert plain.per_answer == packed.per_answer == pytest.approx(10.0)
    assert (plain.counted, plain.first, plain.rounds) == (2, 1, 2)


def test_prompts_of_answers_one_after_the_other_are_not_decode_time(tmp_path: Path) -> None:
    rows = [(0, 0, 9, "prefill", 0), (0, 1, 9, "verified", 100), (1, 0, 9, "prefill", 900), (1, 1, 9, "verified", 1000)]
    lines = [
        f"0,{s},{p},{t},{-1 if src == 'prefill' else k},{src},{ms * 10**6}" for k, (s, p, t, src, ms) in enumerate(rows)
    ]
    trial = read_ledger(put(tmp_path, LEDGER + "\n".join(lines), "ledger.csv")).trials[0]
    assert trial.seconds == pytest.approx(0.2) and trial.streams == 1
    assert trial.emits is not None and window_seconds(trial.emits) == pytest.approx(0.2)


def test_answers_at_once_are_streams(tmp_path: Path) -> None:
    lines = [f"0,{s},0,9,-1,prefill,{s}" for s in range(3)]
    lines += [f"0,{s},{p},9,{p},verified,{p * 10**9 + s}" for p in (1, 2) for s in range(3)]
    trial = read_ledger(put(tmp_path, LEDGER + "\n".join(lines), "ledger.csv")).trials[0]
    assert trial.streams == 3 and trial.counted == 6
    assert trial.per_answer == pytest.approx(1.0) and trial.aggregate == pytest.approx(3.0)


def test_csv_names_are_flexible(tmp_path: Path) -> None:
    for header in ("step,tokens,positions,seconds", "Round;Token IDs;pos;time", "iter\ttoken\tposition\ts"):
        delimiter = next(mark for mark in ",;\t" if mark in header)
        row = delimiter.join(["0", "5 6", "0 1", "0.5"])
        trial = read_record(put(tmp_path, f"# my loop\n{header}\n{row}\n")).trials[0]
        assert trial.per_answer == pytest.approx(4.0)


@pytest.mark.parametrize(("column", "value"), [("ms", "500"), ("us", "500000"), ("ns", "500000000"), ("s", ".5")])
def test_csv_units(tmp_path: Path, column: str, value: str) -> None:
    assert read_record(put(tmp_path, f"tokens,{column}\n5 6,{value}\n")).trials[0].seconds == pytest.approx(0.5)


def test_csv_clock_times_cannot_time_their_first_step(tmp_path: Path) -> None:
    rows = "".join(f"7,{k},{k / 10}\n" for k in range(5))
    trial = read_record(put(tmp_path, "token,position,t_s\n" + rows)).trials[0]
    assert trial.first == 1 and trial.per_answer == pytest.approx(10.0)


def test_csv_phases(tmp_path: Path) -> None:
    text = "phase,tokens,seconds,n_prompt\nwarmup,1,9,\nprefill,2,1.5,30\nstartup,3,1,\nsteady,4 5,1,\n"
    trial = read_record(put(tmp_path, text)).trials[0]
    assert (trial.first, trial.counted, trial.startup_distinct, trial.prompt_tokens) == (1, 3, 1, 30)
    assert (trial.seconds, trial.startup_seconds, trial.prefill_seconds) == (2.0, 1.0, 1.5)


def test_csv_streams_in_a_row(tmp_path: Path) -> None:
    text = "tokens,positions,stream,seconds\n5 6,0 0,0 1,.5\n7 8,1 1,0 1,.5\n"
    trial = read_record(put(tmp_path, text)).trials[0]
    assert (trial.streams, trial.counted, trial.distinct, trial.per_answer) == (2, 4, 4, pytest.approx(2.0))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("step,tokens,seconds\n0,5 6,.1\n1,5 six,.1\n", 3, "expected whole numbers"),
        ("step,tokens,seconds\n0,5 6\n1,5 6,.1\n", 2, "2 fields, expected 3"),
        ("step,tokens,seconds\n0,5 6,fast\n", 2, "seconds is 'fast', expected a number"),
        ("step,tokens,seconds\n0,5 6,inf\n", 2, "seconds is 'inf', expected a number"),
        ("step,tokens,seconds\n0,5 6,-1\n", 2, "expected 0 or more"),
        ("step,tokens,positions,seconds\n0,5 6,1,.1\n", 2, "2 tokens and 1 positions"),
        ("step,tokens,stream,seconds\n0,5 6 7,0 1,.1\n", 2, "3 tokens and 2 streams"),
        ("step,tokens,phase,seconds\n0,5,later,.1\n", 2, "phase is 'later'"),
        ("step,tokens,seconds,ms\n0,5,1,1\n", 1, "both give the time"),
        ("step,tokens,tokens\n0,5,1\n", 1, "stands twice"),
        ("step,,tokens,ms\n0,1,5,1\n", 1, "has no name"),
        ("arm,run\na,1\n", 1, "is known"),
        ("# note\n\nstep,drafted,ms\n0,1.5,3\n", 4, "drafted is '1.5', expected a whole number"),
        (LEDGER + "0,0,0,5,-1,prefill,0\n0,0,-1,5,0,verified,9\n", 3, "position is -1, expected 0 or more"),
        (LEDGER + "0,0,0,5,-1,prompt,0\n", 2, "source is 'prompt'"),
        (LEDGER + "0,0,0,5,-1,prefill\n", 2, "6 fields, expected 7"),
        (LEDGER + "0,0,0,99999999999,-1,prefill,0\n", 2, "larger than any token id"),
        (TABLE.replace("    5.029 |", "    5.029 | 1 |"), 8, "11 fields, expected 10"),
        (TABLE.replace("   50.90", "   fifty"), 8, "expected a number in every field"),
        (JSONL.replace('"pl": 2, ', ""), 2, "field 'pl' is missing"),
        (json.dumps([bench_row(0, 128, TG_NS)], indent=1)[:-30], 2, "JSON that breaks off"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = put(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read_record(path)
    assert words in str(caught.value) and str(path) in str(caught.value)
    assert f"line {line}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("step,tokens,seconds\n0,5 6,.1\n1,5 6\n", 3, "2 fields, expected 3"),
        (JSONL[:-40], 2, "breaks off"),
        (TABLE.split("    4 |   1024")[0], 9, "2 fields, expected 10"),
    ],
)
def test_a_text_that_is_cut_off_says_where_and_keeps_what_is_whole(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    report = audit(put(tmp_path, text))
    assert [flag.code for flag in report.flags if flag.code == "CUT"] == ["CUT"] and report.exit_code == 1
    sentence = next(flag.sentence for flag in report.flags if flag.code == "CUT")
    assert words in sentence and f"line {line}" in sentence and report.trials


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (bench_row(0, 0, TG_NS), "n_prompt and n_gen are both 0"),
        (bench_row(0, 128, TG_NS, avg_ts="fast"), "avg_ts is 'fast', expected a number"),
        (bench_row(0, 128, TG_NS) | {"samples_ns": [0, 5]}, "expected positive nanoseconds"),
        (bench_row(0, 128, TG_NS) | {"samples_ns": [5, 1e-320]}, "expected positive nanoseconds"),
        (bench_row(0, -1, TG_NS), "n_gen is -1, expected a number of 0 or more"),
        ({"name": "x", "npp": 1}, "is known"),
        ([1], "is known"),
    ],
)
def test_a_json_row_is_named(tmp_path: Path, row: object, words: str) -> None:
    with pytest.raises(UserError, match="line 1") as caught:
        read_record(put(tmp_path, json.dumps([row])))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"<!DOCTYPE html><html></html>", "is a web page"),
        (b"GGUF\x03\0\0\0", "is a model"),
        (b"\x89PNG\r\n\x1a\n\0\0", "is an image"),
        (b"%PDF-1.7 \n", "is a PDF"),
        (b"PK\x03\x04\0\0", "run unzip on it"),
        (b"\x7fELF\0\0\0", "is a binary file"),
        (b"\x1f\x8bbroken", "cannot be read"),
        (gzip.compress(b"run,stream\n" * 99, mtime=0)[:-12], "cannot be read"),
        (b"# only a comment\n", "is known"),
        (b"[]", "is known"),
        (b"- id: post\n  rule: {kind: records}\n", "is a claim sheet"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"),
        (b"| model | size | params | backend | threads | test | t/s |\n", "a header and no row"),
        (b'build_commit,n_gen,avg_ts\n"a","1","2"\n', "n_prompt is missing"),
        (TABLE.split("|   128")[0].encode(), "a header and no row"),
    ],
)
def test_what_is_no_record_is_a_sentence(tmp_path: Path, raw: bytes, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read_record(put(tmp_path, raw))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_record(tmp_path / "nowhere.csv")


def test_folder_without_ledger_says_why(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text('{"state": "failed", "reason": "out of memory"}')
    with pytest.raises(UserError, match="failed: out of memory"):
        read_record(tmp_path)
