"""The command line: verbs, exit codes, start-up, and the whole way from records to the report."""

from __future__ import annotations

import errno
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import USAGE, VERBS, main
from bench.errors import nearest
from pti_loop.engine import EngineError
from pti_loop.gguf.header import ModelFileError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("words", [[], ["--help"], ["help"]])
def test_help_names_every_verb(words, capsys):
    assert main(words) == 0
    assert capsys.readouterr().out == USAGE
    for verb in VERBS:
        assert f"  {verb} " in USAGE


@pytest.mark.parametrize("verb", ["sweep", "report", "figures", "all", "doctor", "synth", "advise"])
def test_every_verb_has_help(verb, capsys):
    assert main([verb, "--help"]) == 0
    assert "usage: python -m bench" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["swep"], "did you mean 'sweep'"), (["sweep", "temprature=0"], "did you mean 'temperature'"),
     (["report", "result=x"], "did you mean 'results'"), (["report", "results=/no/such"], "run `make bench`"),
     (["audit", "/no/such/file"], "/no/such/file"), (["advise", "modle=x"], "did you mean 'model'"),
     (["advise", "results=/no/such"], "run `python -m bench sweep model=smollm2-135m")],
)  # fmt: skip
def test_bad_input_is_one_line_and_code_2(words, sentence, capsys):
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize("verb", ["report", "sweep", "all"])
def test_a_python_without_the_packages_is_one_line_and_code_2(verb):
    """`-S` leaves the environment's packages out, as the system's own Python would."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from bench.cli import main; sys.exit(main([{verb!r}]))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "lacks " in done.stderr and "run `make setup`" in done.stderr and done.stderr.count("\n") == 1


def test_a_typo_in_a_claim_sheet_is_named(tmp_path, capsys):
    text = (ROOT / "tests" / "judge" / "claims" / "example_sheet.yaml").read_text()
    (tmp_path / "sheet.yaml").write_text(text.replace("metric:", "metrik:", 1))
    (tmp_path / "results").mkdir()
    assert main(["report", f"claims={tmp_path / 'sheet.yaml'}", f"results={tmp_path / 'results'}",
                 f"reports={tmp_path / 'reports'}"]) == 2
    assert "did you mean 'metric'" in capsys.readouterr().err


def test_help_imports_nothing_heavy():
    """Start-up time is an import list: what is not imported costs nothing."""
    code = "import sys; import bench.cli; bench.cli.main(['--help']); print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in ("numpy", "pandas", "hydra", "omegaconf", "scipy", "matplotlib", "llama_cpp", "rich", "yaml"):
        assert f"'{name}'" not in printed, f"--help imports {name}"


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [("bench.run.worker", ("pandas", "hydra", "matplotlib", "scipy")),
     ("bench.run.sweep", ("pandas", "matplotlib", "scipy", "llama_cpp"))],
)  # fmt: skip
def test_long_lived_processes_stay_light(module, forbidden):
    code = f"import sys; import {module}, bench.run.contrast, bench.run.step_times; print(sorted(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in forbidden:
        assert f"'{name}'" not in printed


def test_audit_of_the_published_ledger(tmp_path, capsys):
    """79 rounds of four tokens and the first one, at 317 / 38.1 s."""
    seconds = 317 / 38.1
    lines = ["run,stream,position,token,round,source,t_ns", "0,0,0,5,-1,prefill,0"]
    for number in range(79):
        t = int((number + 1) / 79 * seconds * 1e9)
        lines += [f"0,0,{number + 1 + i},7,{number},verified,{t}" for i in range(4)]
    path = tmp_path / "ledger.csv"
    path.write_text("\n".join(lines) + "\n")
    assert main(["audit", str(path), "--claim", "38.1"]) == 1
    printed = capsys.readouterr().out
    for said in ("317", "83", "10.0", "DUPLICATE"):
        assert said in printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("parent", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_signal_ends_a_verb_whatever_the_parent_does_with_it(number, parent):
    """A shell starts a background job with SIGINT ignored."""
    code = (
        "import sys, time; from bench import cli\n"
        "cli.VERBS['doctor'] = lambda rest: print('here', flush=True) or time.sleep(60)\n"
        "sys.exit(cli.main(['doctor']))"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, preexec_fn=lambda: signal.signal(number, parent))  # fmt: skip
    assert child.stdout.readline() == "here\n"
    child.send_signal(number)
    _, errors = child.communicate(timeout=20)
    assert child.returncode == 130
    assert "interrupted" in errors


def test_an_unexpected_error_is_a_fault_of_the_harness_and_code_3(monkeypatch, capsys):
    def breaks(rest):
        return nearest(None, ["a"])  # an error inside a library, below our own code

    monkeypatch.setitem(VERBS, "doctor", breaks)
    assert main(["doctor"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("error: a fault of the harness, please report it: TypeError: ")
    assert said.count("\n") == 1 and "BENCH_TRACEBACK=1" in said
    assert re.search(r"\(errors\.py:\d+\);", said), "the innermost frame of our own code"
    monkeypatch.setenv("BENCH_TRACEBACK", "1")
    assert main(["doctor"]) == 3
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last)" in shown and "difflib.py" in shown and said in shown


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), RecursionError(), AssertionError(), EOFError("cut"), OSError(71, "EPROTO"),
     ModuleNotFoundError("no", name="bench.gone"), UnicodeDecodeError("a", b"", 0, 1, "c")],
)  # fmt: skip
def test_every_error_that_is_no_users_is_code_3(monkeypatch, capsys, error):
    def breaks(rest):
        raise error

    monkeypatch.setitem(VERBS, "doctor", breaks)
    assert main(["doctor"]) == 3
    assert type(error).__name__ in capsys.readouterr().err


@pytest.mark.parametrize("error", [EngineError("it does not load; run `make setup`"), ModelFileError("x is cut")])
def test_an_error_of_the_engine_is_for_the_user(monkeypatch, capsys, error):
    def breaks(rest):
        raise error

    monkeypatch.setitem(VERBS, "doctor", breaks)
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize("words", [["--help"], ["report", "--help"]])
def test_output_on_a_full_disk_is_a_sentence_and_code_2(words):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "bench", *words]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "error: a file or the output cannot be written (No space left on device); free some room and type the same "
        "again\n"
    )


def test_an_audit_whose_output_has_no_room_is_no_fault_of_the_audit() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "bench", "audit", "tests/fuzz/corpus/audit/ledger.csv"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "cannot be written (No space left on device)" in done.stderr


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(OSError(errno.ENAMETOOLONG, "File name too long", "x" * 5000), "xxx: the system refuses it (File name too long)"),
     (OSError(errno.EIO, "Input/output error"), "something that is needed: the system refuses it (Input/output error)"),
     (PermissionError(errno.EACCES, "Permission denied", "/a\x1b[2J"), "/a\ufffd[2J: the system refuses it"),
     (MemoryError(), "there is not enough memory for it")],
)  # fmt: skip
def test_what_the_system_refuses_is_no_fault_of_the_harness(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, sentence: str
) -> None:
    def breaks(rest: list[str]) -> int:
        raise error

    monkeypatch.setitem(VERBS, "doctor", breaks)
    assert main(["doctor"]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["audit", "rerun"])
def test_a_name_that_no_file_can_have_is_a_sentence(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert main([verb, "x" * 5000]) == 2
    assert len(capsys.readouterr().err) < 400


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_standard_stream_that_is_closed_is_nobodys_file(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """The next file that is opened would get its number, and every print with it."""
    words = "".join(f" {number}{'<' if number == 0 else '>'}&-" for number in closed)
    code = (
        "import os, sys; from bench import cli; "
        f"cli.VERBS['doctor'] = lambda rest: print('out') or os.write(os.open({str(tmp_path / 'file')!r}, "
        "os.O_WRONLY | os.O_CREAT), str(len(sys.stdin.read())).encode()) and 0; sys.exit(cli.main(['doctor']))"
    )
    done = subprocess.run(["sh", "-c", f'exec "$0" -c "$1"{words}', sys.executable, code], cwd=ROOT,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "file").read_text() == "0"
    assert done.stdout == ("" if 1 in closed else "out\n")


def test_a_reader_that_has_gone_is_not_the_answer_no():
    code = "import sys; from bench import cli; cli.VERBS['doctor'] = lambda rest: print('x' * 10**6) or 0; "
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    done = subprocess.run([sys.executable, "-c", code + "sys.exit(cli.main(['doctor']))"], cwd=ROOT,
                          stdout=reader.stdin, stderr=subprocess.PIPE)  # fmt: skip
    assert (done.returncode, done.stderr) == (141, b"")
