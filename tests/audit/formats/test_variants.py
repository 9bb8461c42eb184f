"""Texts of the tools with something left out, doubled or at an edge: what is read then, by hand."""

from __future__ import annotations

import json
import math

import pytest

from bench.audit.formats.llama_timings import from_json, positions
from bench.audit.formats.serving import serving_trial
from bench.audit.record import record_of
from bench.audit.text import source_of
from bench.audit.trials import Trial


def trials(text: str) -> tuple[Trial, ...]:
    return record_of(source_of("post", text.encode())).trials


TIMINGS = {"prompt_n": 24, "prompt_ms": 120.0, "predicted_n": 150, "predicted_ms": 5000.0, "predicted_per_second": 30.0}


def timed(**more: object) -> Trial | None:
    found = from_json(3, {key: value for key, value in {**TIMINGS, **more}.items() if value is not None})
    return found.trial("a") if found else None


def test_timings_of_an_answer_as_json() -> None:
    plain = timed()
    assert plain is not None and (plain.seconds, plain.prompt_tokens, plain.prefill_seconds) == (5.0, 24, 0.12)
    by_rate = timed(predicted_ms=None)
    assert by_rate is not None and by_rate.seconds == 5.0
    assert timed(predicted_ms=None, predicted_per_second=None) is None and timed(predicted_n=None) is None
    no_rate = timed(predicted_per_second=None)
    assert no_rate is not None and no_rate.printed == {} and no_rate.seconds == 5.0
    no_time = timed(predicted_ms=None, predicted_per_second=0.0)
    assert no_time is not None and math.isnan(no_time.seconds)
    cached = timed(cache_n=10)
    assert cached is not None and (cached.prompt_tokens, cached.evaluated) == (34, 24)
    assert timed(cache_n=0).evaluated is None  # type: ignore[union-attr]
    bare = timed(prompt_n=None, cache_n=5)
    assert bare is not None and bare.prompt_tokens == 0 and math.isnan(bare.prefill_seconds)
    unknown = timed(prompt_ms=0.0)
    assert unknown is not None and math.isnan(unknown.prefill_seconds) and unknown.prompt_tokens == 24
    guessed = timed(draft_n=90, draft_n_accepted=60)
    assert guessed is not None and (guessed.drafted, guessed.accepted, guessed.rounds) == (90, 60, 90)
    assert timed(draft_n=0, draft_n_accepted=0).rounds is None  # type: ignore[union-attr]
    assert timed(draft_n=900, draft_n_accepted=151).rounds is None  # type: ignore[union-attr]
    assert timed(draft_n=90).drafted is None  # type: ignore[union-attr]


def test_shares_by_place() -> None:
    assert (
        positions("0.8, 0.7 0.6") == (0.8, 0.7, 0.6)
        and positions("") == ()
        and positions("0.5, x, 0.25") == (0.5, 0.25)
    )
    assert len(positions("0.5 " * 70)) == 64


def test_guesses_of_a_log_with_and_without_a_mean_length() -> None:
    text = (
        "prompt eval time = 100.0 ms / 10 tokens\n eval time = 1000.0 ms / 50 tokens\n"
        " total time = 1100.0 ms / 60 tokens\n"
    )
    line = "draft acceptance = 0.50000 ( 30 accepted / 60 generated)"
    full = trials(text + line + ", mean len = 2.50\n")[0]
    assert (full.drafted, full.accepted, full.rounds, full.printed) == (
        60,
        30,
        20,
        {"mean_length": 2.5, "acceptance": 0.5},
    )
    assert trials(text + line + "\n")[0].rounds is None
    one = trials(text + line + ", mean len = 1.00\n")[0]
    assert one.rounds is None and "mean_length" not in one.printed
    none = trials(text + line.replace(" 30 acc", " 0 acc") + ", mean len = 1.50\n")[0]
    assert none.rounds is None and none.accepted == 0


SPECULATIVE = (
    "encoded   20 tokens in    0.200 seconds, speed:  100.000 t/s\n"
    "decoded  240 tokens in    6.000 seconds, speed:   40.000 t/s\n\nn_draft   = 4\n"
    "n_predict = 240\nn_drafted = 300\nn_accept  = 160\naccept    = 53.333%\n"
)


def test_two_runs_of_a_speculative_program() -> None:
    one, two = trials(SPECULATIVE + SPECULATIVE.replace("6.000", "3.000").replace("160", "200"))
    assert (one.line, one.seconds, one.rounds, one.block) == (1, 6.0, 80, 0)
    assert (two.line, two.seconds, two.rounds, two.block) == (9, 3.0, 40, 1)
    assert math.isnan(one.draft_seconds) and one.draft_runs is None
    all_taken = trials(SPECULATIVE.replace("= 160", "= 240"))[0]
    assert all_taken.rounds is None and all_taken.accepted == 240
    bare = trials(
        SPECULATIVE.replace("n_predict = 240\n", "").replace("n_accept  = 160\n", "").replace("accept    = 53.333%", "")
    )
    assert (bare[0].counted, bare[0].accepted, bare[0].rounds, bare[0].printed) == (240, None, None, {})
    part = (
        SPECULATIVE
        + "\ndraft:\n\nllama: eval time = 500.0 ms / 99 runs\ntarget:\nllama: eval time = 700.0 ms / 9 runs\n"
    )
    drafted = trials(part)[0]
    assert (drafted.draft_seconds, drafted.draft_runs) == (0.5, 99)


def test_the_line_that_llama_cli_ends_with() -> None:
    record = record_of(source_of("post", b"text\n[ Prompt: 250.5 t/s | Generation: 31.0 t/s ]\n"))
    (one,) = record.trials
    assert record.format == "llama-cli" and one.printed == {"tok_s": 31.0, "pp": 250.5}
    assert (one.place, one.line, one.arm, one.settings) == ("line 2", 2, "plain", {"program": "llama-cli"})


OLLAMA = (
    "total duration: 4.1s\nload duration: 100ms\nprompt eval count: 30 token(s)\nprompt eval duration: 200ms\n"
    "eval count: 152 token(s)\neval duration: 3.8s\neval rate: 40.00 tokens/s\n"
)


def test_answers_of_ollama() -> None:
    one, two = trials(OLLAMA + OLLAMA.replace("3.8s", "1m1s"))
    assert (one.line, one.label, one.seconds, one.total_seconds) == (1, "answer 1", 3.8, pytest.approx(4.0))
    assert (two.line, two.label, two.seconds, two.block) == (8, "answer 2", 61.0, 1)
    rate = trials("eval rate: 40.00 tokens/s\n")[0]
    assert (
        (rate.counted, rate.printed) == (0, {"tok_s": 40.0})
        and math.isnan(rate.seconds)
        and math.isnan(rate.total_seconds)
    )
    loaded = trials(OLLAMA.replace("load duration: 100ms\n", ""))[0]
    assert loaded.total_seconds == pytest.approx(4.1)
    placed = trials("NAME ID SIZE PROCESSOR\nl8 01 9 GB 100% GPU 4096\n" + OLLAMA)[0]
    assert placed.settings == {"placement": "100% GPU"}


@pytest.mark.parametrize(
    ("values", "streams", "seconds"),
    [
        ({"max_concurrency": 4, "completed": 40}, 4, 2.15),
        ({"max_concurrency": 4, "completed": 3}, 3, None),
        ({"concurrency": 3.6, "max_concurrency": 9, "completed": 40}, 4, 2.15),
        ({"concurrency": 0.2, "completed": 40}, 1, 2.15),
        ({"max_concurrent_requests": 5, "completed": 40}, 5, 2.15),
        ({"completed": 1}, 1, None),
        ({"completed": 40}, 4, 2.15),
        ({"completed": 40, "mean_e2e_latency_ms": 6000}, 5, 6.0),
        ({"completed": 40, "mean_tpot_ms": 0}, 0, None),
        ({}, 4, None),
    ],
)
def test_how_many_answers_a_server_ran_at_once(values: dict[str, float], streams: int, seconds: float | None) -> None:
    # 200 tokens a second at 20 ms a token are 4 answers; 4000 tokens of 40 requests are 100 each: 150 ms + 99 x 20 ms.
    base = {
        "output_throughput": 200.0,
        "total_output_tokens": 4000.0,
        "duration": 48.0,
        "mean_tpot_ms": 20.0,
        "mean_ttft_ms": 170.0,
    }
    (one,) = serving_trial(7, {**base, **values})
    assert (one.streams, one.streams_known, one.unshared) == (streams or 1, bool(streams), not streams)
    assert (one.line, one.counted, one.seconds) == (7, 4000, 48.0)
    if seconds is not None:
        assert one.total_seconds == pytest.approx(seconds)


def test_a_server_without_an_output_rate_is_no_trial() -> None:
    assert serving_trial(1, {"total_output_tokens": 10.0}) == [] == serving_trial(1, {"duration": 10.0})
    (counts,) = serving_trial(1, {"total_output_tokens": 100.0, "duration": 10.0, "draft_tokens": 0.0})
    assert (counts.aggregate, counts.drafted, counts.accepted, counts.label) == (10.0, 0, None, "serving")
    (rate,) = serving_trial(
        1, {"output_throughput": 10.0, "acceptance_percent": 70.0, "position_0": 0.8, "position_2": 0.5}
    )
    assert rate.printed == {"tok_s": 10.0, "acceptance": 0.7} and rate.positions == (0.8, 0.5) and rate.counted == 0


def receipt(**row: object) -> tuple[Trial, ...]:
    return trials(json.dumps(row))


def test_records_of_ones_own_engine() -> None:
    (one,) = receipt(name="n", timing={"decode_ms": 500, "decode_tokens": 20}, arm="a", temperature=0.5)
    assert (one.label, one.arm, one.counted, one.seconds, one.temperature) == ("n", "a", 20, 0.5, 0.5)
    assert receipt(timing={"decode_ms": 500, "decode_tokens": 4, "prefill_ms": 100})[0].prefill_seconds == 0.1
    record = record_of(source_of("post", b'{"timing": {"decode_ms": 2000, "decode_tokens": 8}, "tokens_count": 6}'))
    assert record.flags[0].numbers == {"printed": 4.0, "right": 3.0}
    assert not record_of(
        source_of("post", b'{"timing": {"decode_ms": 9, "decode_tokens": 6}, "tokens_count": 6}')
    ).flags


def test_the_line_of_earlier_vllm_is_read_with_what_it_counts() -> None:
    line = ("INFO metrics.py:477] Speculative metrics: Draft acceptance rate: 0.640, System efficiency: 0.560, "
            "Number of speculative tokens: 4, Number of accepted tokens: 2560, "
            "Number of draft tokens: 4000")  # fmt: skip
    (whole,) = trials(f"{line}, Number of emitted tokens: 3000.\n")
    assert (whole.drafted, whole.accepted, whole.emitted, whole.printed["acceptance"]) == (4000, 2560, 3000, 0.64)
    (cut,) = trials(f"{line}.\n")
    assert (cut.drafted, cut.emitted) == (4000, None)


@pytest.mark.parametrize(("unit", "seconds"), [("us", 21e-6), ("\u00b5s", 21e-6), ("ns", 21e-9), ("ms", 21e-3)])
def test_a_profiler_says_microseconds_with_either_letter(unit: str, seconds: float) -> None:
    text = ("\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
            f"\"0\",\"gemv\",\"gpu__time_duration.sum\",\"{unit}\",\"21\"\n"
            "\"0\",\"gemv\",\"dram__bytes_read.sum\",\"Mbyte\",\"42\"\n")  # fmt: skip
    found = record_of(source_of("ncu.csv", text.encode()))
    (launches,) = found.launches
    assert launches.us * 1e-6 == pytest.approx(seconds)
