"""Two texts of every tool that differ, made by us as the tool prints them, and what is read from each."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

import pytest

from bench.audit import numbers
from bench.audit.audit import audit
from bench.audit.flags import physics
from bench.audit.formats import FORMATS, batched_bench, ollama
from bench.audit.record import read_record
from bench.audit.trials import Record, Trial

DATA = Path(__file__).resolve().parents[2] / "data" / "audit"

Rates = list[float]
ONE_ANSWER: list[tuple[str, str, Rates]] = [
    ("llama-bench-1.md", "llama-bench", [55.2]),
    ("llama-bench-2.md", "llama-bench", [18.4, 12.1]),
    ("llama-bench-1.json", "llama-bench", [55.18]),
    ("llama-bench-2.jsonl", "llama-bench", [61.31]),
    ("llama-bench-1.csv", "llama-bench", [55.18]),
    ("llama-bench-2.csv", "llama-bench", [53.33]),
    ("llama-bench-1.sql", "llama-bench", [55.18]),
    ("llama-bench-2.sql", "llama-bench", [45.71]),
    ("batched-bench-1.md", "llama-batched-bench", [40.0, 33.68, 26.67]),
    ("batched-bench-2.md", "llama-batched-bench", [35.56, 8.89, 53.33, 10.67]),
    ("batched-bench-1.jsonl", "llama-batched-bench", [40.0, 26.67]),
    ("batched-bench-2.jsonl", "llama-batched-bench", [32.0, 29.09, 12.31]),
    ("sweep-bench-1.md", "llama-sweep-bench", [40.0, 38.79, 32.0]),
    ("sweep-bench-2.jsonl", "llama-sweep-bench", [12.8, 10.0]),
    ("server-log-1.log", "llama-server's log", [40.0]),
    ("server-log-2.log", "llama-server's log", [25.0, 33.33]),
    ("server-timings-1.json", "llama-server's timings", [30.0]),
    ("server-timings-2.json", "llama-server's timings", [37.5]),
    ("server-metrics-1.txt", "llama-server's /metrics", [30.0]),
    ("server-metrics-2.txt", "llama-server's /metrics", [40.0]),
    ("perf-1.log", "llama.cpp's timings", [31.0]),
    ("perf-2.log", "llama.cpp's timings", [10.0]),
    ("speculative-1.log", "llama-speculative", [40.0]),
    ("speculative-2.log", "llama-speculative", [32.0]),
    ("mtp-bench-1.txt", "mtp-bench", [41.0, 33.0, 43.5]),
    ("mtp-bench-2.txt", "mtp-bench", [28.0, 28.2, 27.9]),
    ("mtp-bench-1.json", "mtp-bench's JSON", [41.0, 33.0, 43.5]),
    ("mtp-bench-2.json", "mtp-bench's JSON", [28.0]),
    ("ik-spec-bench-1.md", "llama-spec-bench", [32.0, 50.0, 31.6, 36.01]),
    ("ik-spec-bench-2.md", "llama-spec-bench", [50.0]),
    ("ik-spec-bench-1.jsonl", "llama-spec-bench's JSON", [32.0, 51.2]),
    ("ik-spec-bench-2.jsonl", "llama-spec-bench's JSON", [32.0]),
    ("speed-bench-1.txt", "speed-bench", [48.1, 33.4, 40.75]),
    ("speed-bench-2.txt", "speed-bench", [30.1, 48.1, 30.0, 33.4]),
    ("speed-bench-1.json", "speed-bench's JSON", [30.1, 30.0]),
    ("speed-bench-2.json", "speed-bench's JSON", [48.1, 33.4]),
    ("vllm-serve-1.txt", "a serving benchmark", [54.95]),
    ("vllm-serve-2.json", "vLLM's benchmark", [43.48]),
    ("vllm-throughput-1.txt", "a serving benchmark", []),
    ("vllm-throughput-2.json", "vLLM's benchmark", []),
    ("vllm-log-1.log", "vLLM's log", [62.0]),
    ("vllm-log-2.log", "vLLM's log", []),
    ("sglang-serve-1.jsonl", "SGLang's bench_serving", [53.76]),
    ("sglang-serve-2.txt", "a serving benchmark", [51.2]),
    ("sglang-log-1.log", "SGLang's log", [62.0]),
    ("sglang-log-2.log", "SGLang's log", [35.75]),
    ("trtllm-1.txt", "TensorRT-LLM's benchmark", [53.76]),
    ("trtllm-2.json", "TensorRT-LLM's report", [71.43]),
    ("trtllm-3.txt", "TensorRT-LLM's benchmark", [51.2]),
    ("ollama-1.txt", "Ollama", [40.0]),
    ("ollama-2.json", "Ollama's API", [20.0]),
    ("mlx-1.txt", "mlx_lm", [50.0]),
    ("mlx-2.txt", "mlx_lm", [52.1, 51.7, 52.3]),
    ("spec-bench-1.jsonl", "Spec-Bench", [40.0, 80.0]),
    ("spec-bench-2.jsonl", "Spec-Bench", [37.5, 50.0]),
    ("table-1.md", "a table", [25.35, 36.1]),
    ("table-2.csv", "a CSV", [26.2, 39.6, 26.0, 38.1]),
    ("table-3.txt", "a table", [32.0, 16.0]),
    ("receipt-1.json", "an engine's own record", [32.0]),
    ("receipt-2.json", "an engine's own record", [45.0]),
    ("chunks-1.jsonl", "chunks of a streamed answer", [30.0]),
    ("chunks-2.jsonl", "chunks of a streamed answer", [20.0]),
    ("ledger-1.csv", "ledger", [23.33]),
    ("ledger-2.csv", "ledger", [25.0]),
]


@pytest.mark.parametrize(("name", "form", "rates"), ONE_ANSWER)
def test_rate_of_one_answer(name: str, form: str, rates: Rates) -> None:
    record = read_record(DATA / name)
    assert record.format == form
    found = [trial.per_answer for trial in record.trials if trial.per_answer > 0]
    assert found == [pytest.approx(rate, abs=0.006) for rate in rates]


KERNELS: list[tuple[str, str, int, float | None, float | None]] = [
    ("ncu-1.csv", "gemv<4>", 1, 40.5, 12e6),
    ("ncu-2.csv", "gemv", 2, 11.0, 3.1e6),
    ("nsys-1.csv", "gemv<(int)4>", 100, 80.0, None),
    ("nsys-2.txt", "gemv<(int)1>", 30, 100.0, None),
    ("rocprof-1.csv", "gemv<1>", 2, 51.0, 4100 * 1024),
    ("rocprof-2.csv", "gemv<1>", 400, 50.0, None),
    ("rocprofv2-1.csv", "gemv<2>", 2, 61.0, None),
    ("rocprofv3-1.csv", "gemv<4>", 2, 51.5, 40001.5 * 1024),
    ("rocprofv3-2.csv", "gemv<4>", 2, 76.0, None),
    ("rocprofv3-3.csv", "gemv<4>", 10, 76.0, None),
    ("rocpd-1.csv", "gemv<4>", 1, 55.0, None),
]


@pytest.mark.parametrize(("name", "kernel", "calls", "us", "read"), KERNELS)
def test_kernels_of_a_profiler(name: str, kernel: str, calls: int, us: float, read: float | None) -> None:
    one = read_record(DATA / name).launches[0]
    assert (one.kernel, one.calls) == (kernel, calls)
    assert one.us == pytest.approx(us) and one.dram_bytes == (None if read is None else pytest.approx(read))


def test_every_text_is_expected_and_every_reader_has_one() -> None:
    expected = {name for name, *_ in ONE_ANSWER} | {name for name, *_ in KERNELS} | {"ncu-3.txt"}
    assert {path.name for path in DATA.iterdir()} == expected
    assert len({one.module for one in FORMATS}) >= 30
    assert {path.stem for path in (Path(__file__).parents[3] / "bench/audit/formats").glob("*.py")} >= {
        one.module for one in FORMATS
    }


def only(name: str) -> tuple[Record, Trial]:
    record = read_record(DATA / name)
    return record, record.trials[-1]


def test_guesses_that_a_tool_counts() -> None:
    facts = {
        "server-log-1.log": (180, 150, 90),
        "server-log-2.log": (120, 60, None),
        "server-timings-2.json": (120, 80, 70),
        "speculative-1.log": (300, 160, 80),
        "speculative-2.log": (90, 28, 100),
        "mtp-bench-1.txt": (70, 58, 38),
        "ik-spec-bench-1.md": (312, 100, 156),
        "ik-spec-bench-2.md": (380, 160, None),
        "vllm-serve-1.txt": (8534, 5974, 4267),
        "vllm-log-1.log": (500, 350, 250),
        "vllm-log-2.log": (300, 120, 100),
        "server-metrics-2.txt": (400, 300, None),
        "ik-spec-bench-1.jsonl": (200, 150, 100),
    }
    for name, expected in facts.items():
        trial = only(name)[1]
        assert (trial.drafted, trial.accepted, trial.rounds) == expected, name


def test_acceptance_by_place() -> None:
    assert only("server-log-1.log")[1].positions == (0.9, 0.767)
    assert only("vllm-log-1.log")[1].positions == (0.8, 0.6) == only("vllm-serve-1.txt")[1].positions
    assert only("ik-spec-bench-1.md")[1].positions == pytest.approx((0.481, 0.16))


def test_settings_around_a_table() -> None:
    settings = only("llama-bench-1.md")[1].settings
    assert settings["gpu_info"] == "NVIDIA GeForce RTX 3060" and settings["build"] == "5f2c8d1a4"
    assert only("llama-bench-1.md")[1].model_bytes == pytest.approx(4.58 * 2**30, rel=1e-6)
    assert only("llama-bench-2.md")[1].model_bytes is None, "a mixture of experts"
    assert [trial.settings["flash_attn"] for trial in read_record(DATA / "batched-bench-2.md").trials] == [
        "0",
        "0",
        "1",
        "1",
    ]
    assert only("ollama-1.txt")[1].settings == {"placement": "18%/82% CPU/GPU"}


def test_one_tool_in_two_forms_compares() -> None:
    from bench.audit.options import AuditOptions

    def of(name: str, base: str) -> tuple[float, list[str]]:
        report = audit(DATA / name, AuditOptions(against=DATA / base))
        return float(report.contrasts[0]["speedup"]), report.codes  # type: ignore[arg-type]

    assert of("vllm-serve-1.txt", "vllm-serve-2.json")[0] == pytest.approx(23.0 / 18.2, abs=1e-3)
    assert of("mtp-bench-1.json", "mtp-bench-2.txt")[0] == pytest.approx((41 / 28 * 33 / 28.2 * 43.5 / 27.9) ** (1 / 3))
    ratio, codes = of("ollama-2.json", "ollama-1.txt")
    assert ratio == pytest.approx(0.5) and "NOT_COMPARABLE" in codes
    assert of("speed-bench-2.json", "speed-bench-1.json")[0] == pytest.approx((48.1 / 30.1 * 33.4 / 30.0) ** 0.5)
    assert "NOT_COMPARABLE" in of("speculative-1.log", "perf-1.log")[1], "two tools"
    assert of("llama-bench-2.jsonl", "llama-bench-1.csv")[0] == pytest.approx(1 / 0.9, rel=1e-3)


def test_sums_of_an_unknown_number_of_answers_are_not_shared_out() -> None:
    for name in ("vllm-throughput-1.txt", "vllm-throughput-2.json"):
        report = audit(DATA / name)
        assert "PREFILL_IN_RATE" in report.codes and "one answer decodes" not in report.answer


def rocpd(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE "rocpd_info_kernel_symbol_ab" (id INTEGER, kernel_name TEXT, display_name TEXT)')
    connection.execute(
        'CREATE TABLE "rocpd_kernel_dispatch_ab" (id INTEGER, kernel_id INTEGER, start INTEGER, "end" INTEGER)'
    )
    connection.executemany(
        'INSERT INTO "rocpd_info_kernel_symbol_ab" VALUES (?, ?, ?)', [(1, "_Z4gemv", "gemv<4>(float*)")]
    )
    connection.executemany(
        'INSERT INTO "rocpd_kernel_dispatch_ab" VALUES (?, 1, ?, ?)', [(1, 0, 50_000), (2, 100, 60_100)]
    )
    connection.commit()
    connection.close()
    return path


def nsys(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    connection.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, shortName INTEGER)')
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", [(7, "rope"), (8, "gemv")])
    connection.executemany(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", [(0, 9000, 7), (0, 80_000, 8), (0, 84_000, 8)]
    )
    connection.commit()
    connection.close()
    return path


def test_databases_of_profilers(tmp_path: Path) -> None:
    amd = audit(rocpd(tmp_path / "trace.db")).launches[0]
    assert (amd["kernel"], amd["calls"], amd["us"], amd["us_high"]) == ("gemv<4>", 2, 55.0, 60.0)
    nvidia = audit(nsys(tmp_path / "r.sqlite")).launches[0]
    assert (nvidia["kernel"], nvidia["calls"], nvidia["us"]) == ("gemv", 2, 82.0)


@pytest.mark.parametrize("pattern", [batched_bench._PAIRS, ollama._PLACE, numbers._DURATION, physics._PARAMETERS])
def test_a_long_word_is_looked_through_once(pattern: re.Pattern[str]) -> None:
    """Tried again from each of its letters it would take minutes."""
    began = time.process_time()
    assert pattern.findall("1" * 200_000) == []
    assert time.process_time() - began < 2
