"""The collected inputs beside the checkout, each with its right value, and every text cut at every fiftieth byte.

The folder is there in CI; a checkout without it tests its own texts only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.audit.audit import AuditReport, audit, judge
from bench.audit.options import AuditOptions
from bench.audit.record import record_of
from bench.audit.show import format_audit, to_json
from bench.audit.text import source_of
from bench.errors import UserError

REPOSITORY = Path(__file__).resolve().parents[2]
OWN = REPOSITORY / "tests" / "data" / "audit"
SHARED = next((one for up in REPOSITORY.parents[:2] if (one := up / "shared" / "inputs").is_dir()), None)

Expected = tuple[str, dict[str, object], dict[str, float], tuple[str, ...], tuple[str, ...]]
"""File, options (`against` names a file), ratios by the end of a comparison's label, codes, words of the report."""
CASES: list[Expected] = [
    (
        "02-llama-bench-two-runs-pasted.txt",
        {},
        {"run 2 over run 1": 0.870},
        ("NOISE",),
        ("16 %", "no difference can be told", "INCONCLUSIVE"),
    ),
    ("03a-llama-bench.csv", {}, {}, (), ("one answer 71.4 ± 0.12",)),
    ("04-llama-bench.sql", {}, {}, (), ("tg128", "one answer 71.4")),
    ("05-llama-bench-json-with-log.txt", {}, {}, (), ("tg128 (line 3)", "one answer 71.4", "skipped 2 line(s)")),
    ("05b-powershell-utf16.json", {}, {}, (), ("UTF-16", "one answer 71.4")),
    ("05c-json-then-log.txt", {}, {}, (), ("one answer 71.4",)),
    ("05d-jsonl-with-log.txt", {}, {}, (), ("one answer 71.4",)),
    ("05e-code-fence.md", {}, {}, (), ("one answer 71.4",)),
    ("06b-vulkan.jsonl", {"against": "06a-rocm.jsonl"}, {"": 1.196}, ("DIFFERS",), ("backends", "gpu_info", "1.20x")),
    (
        "06c-rocm-new-build.jsonl",
        {"against": "06a-rocm.jsonl"},
        {"": 1.121},
        ("DIFFERS",),
        ("build_commit", "1.118 to 1.124"),
    ),
    (
        "06d-rocm-same-settings-faster.jsonl",
        {"against": "06a-rocm.jsonl", "speedup": 1.12},
        {"": 1.121},
        (),
        ("1.118 to 1.124", "1.12x holds", "nothing flagged"),
    ),
    ("06a-rocm.jsonl", {"against": "06d-rocm-same-settings-faster.jsonl"}, {"": 0.892}, ("NO_GAIN",), ("0.89x",)),
    ("06e-default-run.jsonl", {}, {}, (), ("prefill 91", "one answer 71.4", "nothing flagged")),
    (
        "06g-noisy-new.jsonl",
        {"against": "06f-noisy-old.jsonl", "speedup": 1.02},
        {"": 1.016},
        ("NOISE",),
        ("INCONCLUSIVE", "spans 1"),
    ),
    (
        "06d-rocm-same-settings-faster.jsonl",
        {"against": "06h-base-with-cold-first.jsonl"},
        {},
        ("WARMUP",),
        ("baseline 06h", "79.98 tok/s", "1.000x"),
    ),
    (
        "06j-depths-new.jsonl",
        {"against": "06i-depths-base.jsonl", "speedup": 1.25},
        {"depth 0": 1.0, "depth 16384": 1.25},
        ("LESS_THAN_CLAIMED",),
        ("1.25x holds at depth 16384",),
    ),
    ("06l-one-repetition.jsonl", {"claim": 71.4}, {}, (), ("no spread is known",)),
    (
        "07-batched-bench-cliff.md",
        {"claim": 160},
        {"B=8": 0.453, "B=16": 0.209},
        ("AGGREGATE_AS_PER_ANSWER", "CLIFF"),
        ("one answer has 20.0", "2.17x"),
    ),
    ("08-sweep-bench.md", {}, {}, (), ("60.95 tok/s at depth 0", "52.78 at 8192", "-13 %")),
    ("08b-sweep-bench-table-only.md", {}, {}, (), ("-13 %",)),
    (
        "09-batched-two-runs.md",
        {},
        {"run 1, pp=512 tg=32 B=4": 0.5, "run 2, pp=512 tg=32 B=4": 0.702},
        ("NOT_COMPARABLE",),
        ("flash_attn (1 against 0)", "n_ubatch (2048 against 512)", "width 1 25.0 ms", "width 1 12.5 ms"),
    ),
    (
        "10b-server-draft.json",
        {"against": "10a-server-plain.json"},
        {"": 0.827},
        ("NO_GAIN",),
        ("0.83x", "accepted/drafted 0.200", "in 132 steps", "mean_length 1.515"),
    ),
    ("12a-cli-perf.log", {}, {}, (), ("one answer 32.5", "896")),
    (
        "12c-speculative-cheap-verify.log",
        {},
        {},
        ("INCONSISTENT", "NOT_COMPARABLE"),
        ("380 guesses", "159 times", "5.8 ms", "21.3 ms"),
    ),
    (
        "13-speculative-slower.log",
        {"baseline": 11},
        {"": 0.980},
        ("NO_GAIN",),
        ("accepted/drafted 0.343", "in 58 steps", "mean_length 6.397", "0.98x"),
    ),
    (
        "14b-mtp-bench-mtp.txt",
        {"against": "14a-mtp-bench-stock.txt"},
        {"": 1.459},
        ("LENGTH",),
        ("182 tokens", "against 192", "1.426 to 1.493"),
    ),
    (
        "14e-retyped-no-emitted.csv",
        {},
        {"mtp over none": 1.459},
        (),
        ("1.426 to 1.493 over 9 prompts", "worst translation"),
    ),
    (
        "15c-vllm-serve-mtp.json",
        {"against": "15a-vllm-serve-plain.txt"},
        {"": 1.851},
        ("SLOWER_IN_SUM", "INCONSISTENT"),
        ("0.85x", "1.85x", "peak of 458", "mean of 881.4"),
    ),
    ("16-sglang-serving.jsonl", {}, {}, ("NO_GAIN",), ("666.0 is the sum of 8", "1.037 tokens")),
    ("16b-sglang-decode.log", {}, {}, ("NO_GAIN",), ("41.9", "1.04")),
    (
        "17b-ollama-new.txt",
        {"against": "17a-ollama-old.txt"},
        {"": 0.363},
        ("NOT_COMPARABLE", "LENGTH"),
        ("74 tokens", "against 63", "placement"),
    ),
    ("18a-specbench-base.jsonl", {}, {}, (), ("25.0",)),
    (
        "19-ik-spec-bench.md",
        {},
        {"mtp over none": 1.471},
        ("NO_BASELINE",),
        ("story (line 5) has no row of the baseline", "accepted 361 in 151 steps"),
    ),
    ("20-mlx-generate.txt", {}, {}, (), ("31.8 tok/s", "counted 256")),
    ("21-vllm-spec-metrics.log", {}, {}, (), ("in 264 steps", "mean_length 4.739", "accepted/drafted 0.623")),
    (
        "22-mtp-one-too-many.csv",
        {"requested": 64},
        {"": 1.269},
        ("EMITTED_MORE_THAN_REQUESTED",),
        ("65 tokens emitted", "1.27x"),
    ),
    (
        "23-drafters.csv",
        {},
        {"ngram over none": 0.999},
        (),
        ("edit 1.89x, free 1.39x", "edit 0.54x, free 0.26x", "although 59 %"),
    ),
    ("23c-acceptance-no-steps.csv", {}, {}, ("ACCEPTANCE",), ("emitted over drafted", "accepted/drafted 0.640")),
    (
        "24-concurrency-as-posted.log",
        {},
        {"4 answers at once": 0.602},
        ("WINDOW",),
        ("45.6 has the prefill's time inside, 51.7 has not", "sum 2.17x"),
    ),
    ("24b-concurrency.csv", {}, {}, ("INCONSISTENT",), ("prints 51.7 tok/s", "give 45.6")),
    ("24c-concurrency-none.csv", {}, {}, (), ("one answer 24.8", "sum of answers 99.0")),
    (
        "24d-streams-as-count.csv",
        {"claim": 99},
        {"packed over none": 0.503},
        ("AGGREGATE_AS_PER_ANSWER", "NO_GAIN"),
        ("one answer has 24.8 tok/s", "0.50x"),
    ),
    ("25-rocprof-zero-hits.csv", {}, {}, ("ZERO_COUNTER",), ("TCC_HIT_sum read 0", "no hit rate")),
    (
        "26-rocprofv3-half-fetch.csv",
        {"bytes_per_step": 2**30},
        {},
        ("VOID",),
        ("0.537 GB", "0.50 of the 1.074 GB", "counts half"),
    ),
    ("27-rocprofv3-kernel-trace.csv", {}, {}, (), ("at least 210.00", "at most 214.00", "40 registers")),
    ("28-nsys-kern-sum.csv", {}, {}, (), ("729.72 us a launch", "33915 launch(es)")),
    ("28b-nsys-stats-stdout.txt", {}, {}, (), ("729.72 us a launch", "33915 launch(es)")),
    ("29-ncu.csv", {}, {}, (), ("80.2 us", "94.7 MB", "73.1 %", "45 registers")),
    ("29b-ncu-german-locale.csv", {}, {}, (), ("80.32 us", "94.7 MB")),
    ("30-rocprof-stats.csv", {}, {}, (), ("211.50 us", "15872 launch(es)")),
    ("35-mtp-five-percent.csv", {}, {"mtp over none": 1.033}, ("ORDER", "NOISE"), ("run A B B A",)),
    ("37-a-a-placebo.csv", {}, {}, ("NOISE",), ("spans 1",)),
    ("38-lengths-differ.csv", {}, {}, ("LENGTH",), ("798 tokens", "against 1200", "no lossless speed-up")),
    ("38b-other-tokens.csv", {}, {}, ("DIVERGENT",), ("differs from position 2", "no lossless speed-up")),
    ("39-off-by-one.json", {}, {}, ("INCONSISTENT",), ("has 256; 108.2 tok/s, not 108.6",)),
    ("40-extra-columns.csv", {}, {"mtp over none": 1.511}, (), ("columns not used: date, notes",)),
    ("40b-tsv-as-saved.tsv", {}, {}, (), ("31.3 tok/s", "prefill 558.6")),
    ("41-two-changes.csv", {}, {"mtp over base": 1.487}, (), ("over 2 prompts",)),
    ("42-synthetic-acceptance.csv", {}, {}, ("NOISE",), ("set by hand", "no speed follows from it")),
    ("43b-utf16.csv", {}, {"mtp over none": 1.511}, (), ("UTF-16",)),
    ("44-stream-chunks.jsonl", {}, {}, (), ("counted 14, distinct 14", "14 tokens")),
    ("45-llama-bench-moe.jsonl", {"bandwidth": 100}, {}, (), ("nothing flagged",)),
    ("47-llama-bench-cut.json", {}, {}, ("CUT",), ("line 55", "one answer 71.4")),
    ("48-batched.jsonl", {}, {"B=4": 0.684}, (), ("one answer 30.2", "sum of answers 120.8", "0.68x")),
    ("49a-gemma-e2b.jsonl", {"bandwidth": 273}, {}, (), ("Only the file's size is known", "26.6")),
    ("52-dead-head.csv", {}, {"mtp over none": 0.813}, ("DEAD_DRAFTER", "NO_GAIN"), ("0 of 1024 guesses", "broken")),
    ("53-server-progress.log", {}, {}, (), ("33.0", "not a final one")),
    ("54-mean-sd.csv", {}, {"mtp over none": 1.511}, (), ("39.6 ± 0.8",)),
]
REFUSED = [
    ("03b-llama-bench-truncated.csv", ("line 2", "an open quote", "no rate", "-o json")),
    ("31j-fine.gguf", ("is a model (GGUF)", "doctor")),
    ("31l-lfs-pointer.gguf", ("git lfs pull",)),
    ("33d-good.yaml", ("is a claim sheet", "python -m bench report claims=")),
]
UNFLAGGED = ("IMPOSSIBLE", "NO_BASELINE")


def look(folder: Path, name: str, options: dict[str, object]) -> AuditReport:
    given = {key: folder / str(value) if key == "against" else value for key, value in options.items()}
    return audit(folder / name, AuditOptions(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "case", CASES if SHARED else [], ids=lambda case: f"{case[0]} {' '.join(map(str, case[1]))}".strip()
)
def test_a_collected_input_has_its_right_value(case: Expected) -> None:
    name, options, ratios, codes, words = case
    assert SHARED is not None
    report = look(SHARED, name, options)
    text = format_audit(report)
    for end, ratio in ratios.items():
        found = [row["speedup"] for row in report.contrasts if str(row["label"]).endswith(end)]
        assert any(value == pytest.approx(ratio, abs=6e-4) for value in found), f"{end}: {found}"
    assert set(codes) <= set(report.codes), report.codes
    assert not [word for word in words if word.lower() not in text.lower()], text
    assert report.answer.endswith(".") and text.startswith(report.answer)


@pytest.mark.parametrize(("name", "words"), REFUSED if SHARED else [])
def test_a_collected_input_is_refused_in_one_sentence(name: str, words: tuple[str, ...]) -> None:
    assert SHARED is not None
    with pytest.raises(UserError) as caught:
        look(SHARED, name, {})
    assert "\n" not in str(caught.value) and not [word for word in words if word not in str(caught.value)], caught.value


def test_a_possible_rate_is_not_called_impossible() -> None:
    for folder in [SHARED] if SHARED else []:
        for name in ("49a-gemma-e2b.jsonl", "45-llama-bench-moe.jsonl"):
            assert "IMPOSSIBLE" not in look(folder, name, {"bandwidth": 273}).codes


TEXTS = sorted(OWN.iterdir()) + sorted(
    one for one in (SHARED.iterdir() if SHARED else ()) if one.suffix != ".md" or one.name[0].isdigit()
)
OPTIONS = (
    AuditOptions(),
    AuditOptions(
        claim=38.1, speedup=1.9, baseline=20.0, bandwidth=500.0, bytes_per_step=1e9, requested=64, acceptance=0.7
    ),
)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_text_cut_anywhere_raises_anything_but_one_sentence(path: Path) -> None:
    raw = path.read_bytes()
    for number, size in enumerate([*range(50, len(raw), 50), len(raw)]):
        try:
            report = judge(record_of(source_of(path.name, raw[:size])), OPTIONS[number % 2])
        except UserError as error:
            assert "\n" not in str(error) and len(str(error)) < 600, size
            continue
        assert format_audit(report) and to_json(report)
