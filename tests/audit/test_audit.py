"""The audit's options, its text, and a cell of the harness as a foreign record."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import pytest

from bench.audit.audit import audit
from bench.audit.options import ANY_TEMPERATURE, AuditOptions, add_arguments, options_from
from bench.audit.show import format_audit
from bench.errors import UserError
from bench.records.cells import write_cell
from bench.records.rows import TABLES, Emit, Round, Run
from tests.audit.audit_records import batched, clean, flags, ledger, look


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
    names = {action.dest for action in parser._actions} - {"help", "file", "json"}
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
        for turn in range(24 // per_round):
            rounds.append(
                Round(
                    number,
                    turn,
                    "steady",
                    2 if wide else 1,
                    0,
                    length,
                    0,
                    0,
                    length,
                    *((1, 1, accepted) if per_round == 2 else (0, 0, 0)),
                )
            )
            emits += [
                Emit(number, s, turn * per_round + k + 1, 2, turn, "verified", start + (turn + 1) * length)
                for s in range(answers)
                for k in range(per_round)
            ]
        runs.append(
            Run(
                number,
                0,
                number,
                arm,
                "p",
                "prose",
                1,
                7,
                evaluated,
                25,
                10**8,
                start,
                start + 24 // per_round * length,
                24 // per_round * length,
                2000.0,
                50.0,
            )
        )
    engine = {"n_seq_max": 1, "n_ctx": 256, "type_k": "f16"}
    write_cell(
        folder / "0123456789ab",
        config={"temperature": 0.0},
        env={},
        status={"state": "done", "reason": "", "seconds": 1.0},
        facts={"engine": {"baseline": engine, "treatment": engine | {"n_seq_max": 2}}},
        tables={"runs": runs, "rounds": rounds, "ledger": emits},
    )
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
    for part in (
        "llama-batched-bench",
        "counted 400, distinct 400",
        "one answer 12.5",
        "sum of answers 50.0",
        "prefill 900.0",
        "one answer 0.50x, sum 2.00x",
        "AGGREGATE_AS_PER_ANSWER",
    ):
        assert part in text, text


def test_a_long_record_is_cut_in_print_and_not_in_the_report(tmp_path: Path) -> None:
    report = look(tmp_path, "arm,tok_s\n" + "a,10\n" * 50)
    assert len(report.trials) == 50 and "and 10 more" in format_audit(report)
