"""Flags on what tools print: each is raised by a text that has the fault, and not by the same text without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.audit.audit import audit
from bench.audit.options import AuditOptions
from tests.audit.audit_records import flags, look

DATA = Path(__file__).resolve().parents[2] / "data" / "audit"


def changed(folder: Path, name: str, *pairs: tuple[str, str], **options: object) -> list[str]:
    """Codes of one of our texts after some words of it were replaced."""
    text = (DATA / name).read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return look(folder, text, **options).codes


def test_guesses_that_the_draft_model_did_not_make(tmp_path: Path) -> None:
    assert "INCONSISTENT" not in changed(tmp_path, "speculative-1.log")
    # 230 runs and 80 steps give 310 guesses at the most.
    assert "INCONSISTENT" in changed(
        tmp_path, "speculative-1.log", ("n_drafted = 300", "n_drafted = 311"), ("53.333", "51.447")
    )


def test_a_verifying_step_cheaper_than_a_plain_one(tmp_path: Path) -> None:
    # (6.0 - 1.1) s / 80 steps are 61 ms a step.
    for rate, cheap in ((20.0, False), (12.0, True)):
        text = f"[ Prompt: 90.0 t/s | Generation: {rate} t/s ]\n\n" + (DATA / "speculative-1.log").read_text()
        sentences = [flag.sentence for flag in flags(look(tmp_path, text), "NOT_COMPARABLE")]
        assert any("verifying step" in sentence for sentence in sentences) == cheap


def test_one_answer_faster_and_all_of_them_slower(tmp_path: Path) -> None:
    def codes(total: str) -> list[str]:
        text = (DATA / "vllm-serve-1.txt").read_text().replace("204.80", total).replace("50.00  ", "63.02  ")
        (tmp_path / "x").write_text(text)
        return audit(tmp_path / "x", AuditOptions(against=DATA / "vllm-serve-2.json")).codes

    assert "SLOWER_IN_SUM" in codes("162.49") and "SLOWER_IN_SUM" not in changed(
        tmp_path, "vllm-serve-1.txt", against=DATA / "vllm-serve-2.json"
    )


def test_a_peak_below_the_mean(tmp_path: Path) -> None:
    assert "INCONSISTENT" not in changed(tmp_path, "vllm-serve-1.txt")
    assert "INCONSISTENT" in changed(tmp_path, "vllm-serve-1.txt", ("240.00", "120.00"))


def test_two_windows_of_one_answer(tmp_path: Path) -> None:
    assert "WINDOW" not in changed(tmp_path, "table-3.txt")
    assert "WINDOW" in changed(tmp_path, "table-3.txt", ("32.0            32.0", "28.0            32.0"))


def test_a_head_that_never_guesses_right(tmp_path: Path) -> None:
    text = "arm,emitted,rounds,seconds,drafted,accepted\nnone,512,512,15.6,,\nmtp,512,512,19.2,{},{}\n"
    assert "DEAD_DRAFTER" in look(tmp_path, text.format(1024, 0)).codes
    assert "DEAD_DRAFTER" not in look(tmp_path, text.format(20, 0)).codes, "too few to tell"
    assert "DEAD_DRAFTER" not in look(tmp_path, text.format(1024, 1)).codes


def test_steps_that_give_hardly_more_than_one_token(tmp_path: Path) -> None:
    assert "NO_GAIN" not in changed(tmp_path, "sglang-serve-1.jsonl")
    assert "NO_GAIN" in changed(tmp_path, "sglang-serve-1.jsonl", ('"accept_length": 2.6', '"accept_length": 1.04'))


def test_three_ways_to_a_length_have_to_agree(tmp_path: Path) -> None:
    assert "ACCEPTANCE" not in changed(tmp_path, "vllm-log-1.log")
    assert "ACCEPTANCE" in changed(tmp_path, "vllm-log-1.log", ("length: 2.40", "length: 2.70"))
    assert "ACCEPTANCE" in changed(tmp_path, "vllm-log-1.log", ("0.800, 0.600", "0.800, 0.300"))


def test_a_prompt_of_the_arm_that_the_baseline_never_ran(tmp_path: Path) -> None:
    assert "NO_BASELINE" not in changed(tmp_path, "ik-spec-bench-1.md")
    codes = changed(tmp_path, "ik-spec-bench-1.md", ("| story    |   1 | base ", "| other    |   1 | base "))
    assert "NO_BASELINE" in codes


def test_a_prompts_rate_that_moves_with_the_answers(tmp_path: Path) -> None:
    def codes(milliseconds: int) -> list[str]:
        row = json.loads((DATA / "ollama-2.json").read_text()) | {"prompt_eval_duration": milliseconds * 10**6}
        (tmp_path / "base.json").write_text(json.dumps(row | {"eval_duration": 3 * 10**9}))
        return audit(tmp_path / "base.json", AuditOptions(against=DATA / "ollama-2.json")).codes

    assert "NOT_COMPARABLE" in codes(150) and "NOT_COMPARABLE" not in codes(390)


@pytest.mark.parametrize(
    ("name", "pairs", "options", "code"),
    [
        ("rocprofv2-1.csv", [], {}, "ZERO_COUNTER"),
        ("rocprofv2-1.csv", [("0.000000", "7.000000")], {}, None),
        ("rocprof-1.csv", [], {}, None),
        ("rocprof-1.csv", [("4000,", ","), ("4200,", ",")], {}, "ABSENT_COUNTER"),
        ("ncu-1.csv", [], {"bytes_per_step": 12e6}, None),
        ("ncu-1.csv", [], {"bytes_per_step": 24e6}, "VOID"),
        ("ncu-1.csv", [], {"bandwidth": 300.0}, None),
        ("ncu-1.csv", [], {"bandwidth": 290.0}, "IMPOSSIBLE"),
        (
            "ncu-1.csv",
            [("launch__registers_per_thread", "dram__throughput.avg.pct_of_peak_sustained_elapsed"), ('"32"', '"132"')],
            {},
            "VOID",
        ),
    ],
)
def test_counters_that_cannot_be(
    tmp_path: Path, name: str, pairs: list[tuple[str, str]], options: dict[str, object], code: str | None
) -> None:
    assert changed(tmp_path, name, *pairs, **options) == ([code] if code else [])


def test_counters_in_another_locale(tmp_path: Path) -> None:
    text = (
        (DATA / "ncu-1.csv").read_text().replace('","', '";"').replace("40.50", "40,50").replace('"12.00"', '"12.000"')
    )
    one = look(tmp_path, text).launches[0]
    assert one["us"] == pytest.approx(40.5) and one["dram_bytes"] == pytest.approx(12_000e6), (
        "a point groups thousands there"
    )


def test_a_spread_without_repetitions(tmp_path: Path) -> None:
    text = "arm,tok_s\nnone,26.2 ± {0}\nmtp,27.0 ± {0}\n"
    assert "NOISE" in look(tmp_path, text.format(0.6)).codes and "NOISE" not in look(tmp_path, text.format(0.1)).codes
    counted = "arm,tok_s,sd,runs\nnone,26.2,.6,10\nmtp,27.5,.6,10\n"
    assert "NOISE" not in look(tmp_path, counted).codes
    assert "NOISE" in look(tmp_path, counted.replace(",10", ",2")).codes


def test_flags_of_a_kind_stand_together(tmp_path: Path) -> None:
    from bench.audit.show import format_audit

    report = look(tmp_path, "arm,tok_s,acceptance\nnone,20,\n" + "".join(f"mtp,2{k},0.7\n" for k in range(7)))
    lines = [line.split("  ")[0] for line in format_audit(report).splitlines() if line[:10].isupper()]
    assert lines.count("ACCEPTANCE") == 5 and "and 3 more of this kind" in format_audit(report)
    assert lines == sorted(lines, key=report.codes.index)
    assert all("line " in flag.sentence for flag in flags(report, "ACCEPTANCE"))


def test_the_answer_has_the_scope_of_its_record(tmp_path: Path) -> None:
    report = audit(DATA / "ik-spec-bench-1.md")
    assert any("by class of prompts: code 1.56x, story 1.14x; worst story 1.14x" in line for line in report.scope)
    assert any(line.startswith("the record does not say the model, the device") for line in report.scope)
    one = look(tmp_path, "arm,prompt,tok_s\nnone,p1,20\nmtp,p1,30\n")
    assert any("one prompt, p1; nothing is said about others" in line for line in one.scope)


def test_a_profile_of_zeros_is_no_profile(tmp_path: Path) -> None:
    report = look(
        tmp_path, (DATA / "rocprofv2-1.csv").read_text().replace("5000.000000", "0").replace("5100.000000", "0")
    )
    assert report.codes == ["ZERO_COUNTER"] and "every counter reads 0" in report.flags[0].sentence


def test_flags_about_a_ratio_name_their_lines(tmp_path: Path) -> None:
    report = look(tmp_path, "arm,prompt,tok_s\nnone,p,20\nmtp,p,10\n")
    assert all("line 3 against line 2" in flag.sentence for flag in report.flags) and len(report.flags) == 2
