"""Text as people paste it: fences, quotes, prompts, logs around, UTF-16, colours, several tools; and its bounds."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.audit.audit import audit
from bench.audit.formats import FORMATS
from bench.audit.numbers import decimal_comma, measured, number, seconds
from bench.audit.record import read_record, record_of
from bench.audit.text import lines_of, source_of
from bench.cli import main
from bench.errors import UserError

DATA = Path(__file__).resolve().parents[1] / "data" / "audit"
TABLE = (DATA / "llama-bench-1.md").read_text()
ROW = (DATA / "llama-bench-2.jsonl").read_text().splitlines()[1]


def labels(text: str) -> list[str]:
    return [trial.label for trial in record_of(source_of("post", text.encode())).trials]


@pytest.mark.parametrize(
    "text",
    [
        f"I get this:\n\n```\n$ llama-bench -m x.gguf\n{TABLE}```\nnice, no?\n",
        "".join(f"> {line}\n" for line in TABLE.splitlines()),
        "\x1b[32m" + TABLE.replace("tg128", "\x1b[1mtg128\x1b[0m"),
        TABLE.replace("\n", "\r\n"),
        TABLE.replace("|", "│"),
        f"PS C:\\bench> .\\llama-bench.exe -m x.gguf\r\n{TABLE}",
        TABLE + "\nand, to compare, the text of a log, with commas, 1, 2, 3\n",
    ],
)
def test_a_table_is_found_in_any_text(text: str) -> None:
    assert labels(text) == ["pp512", "tg128"]


@pytest.mark.parametrize("code", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_a_text_is_read_in_the_encoding_it_was_saved_in(code: str) -> None:
    trial = record_of(source_of("post", TABLE.encode(code))).trials[1]
    assert (trial.aggregate, trial.spread) == (pytest.approx(55.2), pytest.approx(0.3))


def test_what_was_read_and_what_was_skipped_is_said() -> None:
    text = f"hello\n{TABLE}\nslot print_timing: id 0 | task 1 | eval time = 100.00 ms / 10 tokens\nbye\n{ROW}\n"
    record = record_of(source_of("post", text.encode()))
    assert record.format == "llama-bench, llama-server's log"
    assert record.notes[0].startswith(
        "read llama-bench (lines 2-9); llama-server's log (line 11); llama-bench (line 13)"
    )
    assert any(note.startswith("skipped 2 line(s): 1: hello; 12: bye") for note in record.notes)
    assert [trial.block for trial in record.trials] == [0, 0, 1, 2]


def test_rows_in_an_envelope_and_two_arrays_below_each_other() -> None:
    row = json.loads(ROW)
    assert labels(json.dumps({"date": "x", "results": [row, row]})) == ["tg128", "tg128"]
    assert labels(json.dumps([row], indent=2) + "\n" + json.dumps([row], indent=2)) == ["tg128", "tg128"]


def test_several_files_are_one_record(tmp_path: Path) -> None:
    report = audit([DATA / "mtp-bench-1.txt", DATA / "mtp-bench-2.txt"])
    assert report.contrasts[0]["speedup"] == pytest.approx((41 / 28 * 33 / 28.2 * 43.5 / 27.9) ** (1 / 3))
    assert "run 1 over run 2" in str(report.contrasts[0]["label"]), "the run without guesses is the baseline"
    assert "mtp-bench-1.txt, line 3" in str(report.trials[2]["place"])


def test_standard_input_and_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
    assert main(["audit", "-", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["answer"].startswith("One answer decodes at 55.2") and printed["exit_code"] == 0
    assert printed["trials"][0]["per_answer_tok_s"] is None


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["audit", str(DATA / "llama-bench-1.md")]) == 0
    assert main(["audit", str(DATA / "receipt-1.json")]) == 1
    assert main(["audit", str(tmp_path / "nowhere")]) == 2
    monkeypatch.setattr("bench.audit.audit.judge", lambda *_: 1 / 0)
    assert main(["audit", str(DATA / "llama-bench-1.md")]) == 3
    printed = capsys.readouterr().err
    assert "a fault of the audit itself (ZeroDivisionError" in printed and "Traceback" not in printed


def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, word in ((tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device")):
        with pytest.raises(UserError, match=word):
            read_record(path)


def test_too_much_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.audit.text.MAX_TEXT", 1000)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"x" * 100_000))
    with pytest.raises(UserError, match="more than 1000 bytes"):
        read_record(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 100_000,
        "-" * 300_000 + "x",
        "|" * 100_000 + "\n" + "-|" * 100_000,
        "a," * 100_000,
        "1 " * 100_000,
        "a,b\n" * 100_000,
        "{\n" * 20_000,
        "Mean acceptance length: 1, Accepted: 1 tokens, Drafted: 1 tokens, "
        "Per-position acceptance rate: " + "0.1, " * 700 + "x",
        "eval time = 1 ms / 1 tokens" * 10_000,
        "tok/s," + "9" * 100_000,
    ],
    ids=range(11),
)
def test_text_made_to_be_slow_is_not(text: str) -> None:
    """Four times the text takes about four times as long, not sixteen."""

    def taken(part: str) -> float:
        begin = time.process_time()
        try:
            record_of(source_of("post", part.encode()))
        except UserError as error:
            assert len(str(error)) < 600
        return time.process_time() - begin

    assert taken(text) < 12 * max(taken(text[: len(text) // 4]), 0.05)


def test_what_cannot_be_seen_is_taken_off() -> None:
    assert lines_of("a\u202eb\x07c\n50%\r 100% |done\r\n") == ["abc", " 100% |done", ""]
    record = record_of(source_of("post", b"arm,tok_s\nx\x1b[2J\x00,5\ny,6\n".replace(b"\x00", b"")))
    assert record.arms == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "comma", "value", "spread"),
    [
        ("26.2 ± 0.1", False, 26.2, 0.1),
        ("26.2+-0.1 t/s", False, 26.2, 0.1),
        ("**26.2** ", False, 26.2, None),
        ("26,2", True, 26.2, None),
        ("94.700.000", True, 94.7e6, None),
        ("1,030.5", False, 1030.5, None),
        ("1 030", False, 1030.0, None),
        ("62.3%", False, 62.3, None),
        ("~1.5x", False, 1.5, None),
        ("100 ± 3 %", False, 100, 3),
        ("0 1 2 3", False, None, None),
        ("fast", False, None, None),
        ("1e400", False, None, None),
        ("", False, None, None),
    ],
)
def test_numbers_as_people_write_them(text: str, comma: bool, value: float | None, spread: float | None) -> None:
    found = measured(text, comma)
    assert (found.value if found else None) == (None if value is None else pytest.approx(value))
    assert found is None or spread is None or found.spread == pytest.approx(spread)


def test_a_decimal_comma_is_told_from_thousands() -> None:
    assert (
        decimal_comma(["26,2", "p1"]) and not decimal_comma(["1,030", "2,000"]) and not decimal_comma(["26,2", "3.14"])
    )
    assert number("26,2", True) == 26.2 and seconds("1m2.5s") == 62.5 and seconds("60.1ms") == pytest.approx(0.0601)


def test_a_small_text_needs_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys\nfrom bench.cli import main\n"
        f"main(['audit', {str(DATA / 'llama-bench-2.jsonl')!r}, '--against', {str(DATA / 'llama-bench-1.json')!r}])\n"
        "print(sorted({'numpy', 'scipy', 'pandas', 'yaml', 'bench.judge'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=DATA.parents[2])
    assert done.stdout.strip().endswith("[]"), done.stdout


def test_a_line_in_the_list_is_all_that_a_format_needs() -> None:
    for one in FORMATS:
        assert one.kind in ("json", "table", "lines") and callable(one.reader.sniff) and callable(one.reader.read)
