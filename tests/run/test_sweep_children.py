"""What a sweep makes of its child processes: crashes, kills, words and interrupts, with children that run no model."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.records.cells import load_cells
from bench.run import sweep as sweep_module
from bench.run.progress import Progress
from bench.run.sweep import crash_sentence, sweep

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["prompts=short", "n_predict=6", "profile=false"]


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    """The tests' sweeps do not compete with a real one for the machine's lock."""
    monkeypatch.setenv("PTI_BENCH_LOCKS", str(tmp_path))


def child(tmp_path, monkeypatch, body: str) -> dict:
    """Run one cell whose child process does something else; `job` is what it is told. Returns the cell's status."""
    package = tmp_path / "fake"
    package.mkdir(exist_ok=True)
    head = "import json, os, signal, sys\nfrom pathlib import Path\njob = json.loads(sys.stdin.read())\n"
    (package / "crash.py").write_text(f"{head}{body}\n")
    real = subprocess.Popen
    monkeypatch.setattr(sweep_module.subprocess, "Popen",
                        lambda command, **more: real([sys.executable, str(package / "crash.py")], **more))  # fmt: skip
    outcome, _ = sweep([*SMALL, "streams=2", f"results={tmp_path / 'res'}", "machine=box"])
    monkeypatch.setattr(sweep_module.subprocess, "Popen", real)
    (cell,) = load_cells(tmp_path / "res")
    assert [reason for _, reason in outcome.failed] == ([cell.status["reason"]] if cell.status["reason"] else [])
    return cell.status


def test_an_assert_in_the_engine_is_a_failed_record_with_the_log(tmp_path, monkeypatch):
    body = 'print("ggml.c:12: GGML_ASSERT(x > 0) failed", file=sys.stderr)\nos.kill(os.getpid(), signal.SIGABRT)'
    status = child(tmp_path, monkeypatch, body)
    assert status["state"] == "failed"
    assert "SIGABRT" in status["reason"]
    assert "GGML_ASSERT(x > 0) failed" in status["reason"]
    (log,) = (tmp_path / "res").glob("box/*/engine.log.gz")
    assert b"GGML_ASSERT" in gzip.decompress(log.read_bytes())


def test_a_killed_child_is_a_failed_record(tmp_path, monkeypatch):
    assert "SIGKILL" in child(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGKILL)")["reason"]


def test_a_fault_of_the_engine_names_the_line_that_it_happened_in(tmp_path, monkeypatch):
    assert "in string_at" in child(tmp_path, monkeypatch, "import ctypes; ctypes.string_at(0)")["reason"]


def test_a_child_that_writes_nothing_has_failed_whatever_was_there_before(tmp_path, monkeypatch):
    assert "code 3" in child(tmp_path, monkeypatch, "sys.exit(3)")["reason"]
    assert "its record is not there" in child(tmp_path, monkeypatch, "sys.exit(0)")["reason"]


WRITES = """folder = Path(job["folder"]); folder.mkdir(parents=True)
(folder / "status.json").write_text(json.dumps({"state": "done", "reason": "", "seconds": 1.0}))
"""


def test_a_child_that_dies_after_its_cell_is_written_has_failed(tmp_path, monkeypatch):
    assert child(tmp_path, monkeypatch, WRITES + "sys.exit(4)")["state"] == "failed"


def test_what_a_child_prints_besides_its_progress_tells_why_it_died(tmp_path, monkeypatch):
    body = 'print(json.dumps({"share": 0.5, "label": "half"}))\nprint("[1]")\nprint("no room")\nsys.exit(5)'
    assert child(tmp_path, monkeypatch, body)["reason"] == "the process ended with code 5: [1] | no room"


def test_a_child_is_told_everything_and_has_a_session_of_its_own(tmp_path, monkeypatch):
    body = f"job['session'] = os.getsid(0) == os.getpid()\nopen({str(tmp_path / 'job')!r}, 'w').write(json.dumps(job))"
    child(tmp_path, monkeypatch, body)
    job = json.loads((tmp_path / "job").read_text())
    folder = Path(job["folder"])
    assert (folder.parent, folder.name) == ((tmp_path / "res" / "box").resolve(), job["cell"])
    assert job["kind"] == "contrast" and job["config"]["streams"] == 2
    assert Path(job["model_path"]).is_file()
    assert set(job["peers"]) == {"llama_bench", "llama_batched_bench"}
    assert job["environment"]["machine"]["name"] == "box"
    assert job["session"], "else Ctrl-C would reach it before its parent"


def test_the_environment_of_a_cell_has_its_own_threads(tmp_path, monkeypatch):
    """Every cell's, the failed one's too, and not those of the first point."""
    body = f"""import os, sys, json
job = json.loads(sys.stdin.read())
with open({str(tmp_path / "told")!r}, "a") as file:
    file.write(f"{{job['config']['engine']['threads']}}={{job['environment']['threads']}} ")"""
    (tmp_path / "told.py").write_text(body)
    monkeypatch.setattr("bench.host.cpus.check_threads", lambda threads, _: threads)
    real = subprocess.Popen
    monkeypatch.setattr(sweep_module.subprocess, "Popen",
                        lambda command, **more: real([sys.executable, str(tmp_path / "told.py")], **more))  # fmt: skip
    sweep([*SMALL, "streams=2", "engine.threads=2,1,3", f"results={tmp_path / 'res'}", "machine=box"])
    assert (tmp_path / "told").read_text().split() == ["2=2", "1=1", "3=3"]
    stored = load_cells(tmp_path / "res")
    assert sorted(cell.env["threads"] for cell in stored) == [1, 2, 3]
    assert all(cell.env["threads"] == cell.config["engine"]["threads"] for cell in stored)


def test_a_child_that_died_before_it_was_told_anything_is_no_error_of_ours():
    dead = subprocess.Popen([sys.executable, "-c", "import sys; sys.exit('gone')"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    while dead.poll() is None:
        time.sleep(0.01)
    assert sweep_module._feed(dead, "x" * 10**6, None) == "gone\n"


UNCAUGHT = f"""Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "{ROOT}/bench/worker.py", line 9, in run
    write_cell(folder)
    ~~~~~~~~~~^^^^^^^^
  File "/usr/lib/python3.11/pathlib.py", line 1045, in write_bytes
    return f.write(view)
OSError: [Errno 27] File too large
"""
CHAINED = f"""Traceback (most recent call last):
  File "{ROOT}/bench/plan.py", line 2, in g
KeyError: 'first'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "{ROOT}/bench/store.py", line 4, in f
ValueError: second
"""
FAULT = f"""Fatal Python error: Aborted

Current thread 0x00007f (most recent call first):
  File "/x/site-packages/llama_cpp/llama_cpp.py", line 3 in decode
  File "{ROOT}/bench/worker.py", line 7 in run
  File "<frozen runpy>", line 88 in _run_code
"""


@pytest.mark.parametrize(
    ("code", "errors", "sentence"),
    [(-4, "", "`make setup NATIVE=0`"), (-9, "", "memory"), (3, "a\nb\nc\nd\n", "b | c | d"),
     (1, "", "printed nothing"), (-6, "a.c:1: GGML_ASSERT(x)\n#0 backtrace\n#1 main\n", ": a.c:1: GGML_ASSERT(x)"),
     (1, UNCAUGHT, ": OSError: [Errno 27] File too large (File "), (1, UNCAUGHT, '(File "worker.py", line 9, in run)'),
     (1, CHAINED, "ended with code 1: ValueError: second (File "), (1, CHAINED, '(File "store.py", line 4, in f)'),
     (-6, FAULT, ': File "worker.py", line 7 in run'),
     (-11, 'Fatal Python error: Segmentation fault\n\n  File "llama.py", line 78 in load\n  File "x.py"\n', "line 78")],
)  # fmt: skip
def test_why_a_child_died(code, errors, sentence):
    assert sentence in crash_sentence(code, errors)


def test_an_interrupt_ends_the_child_and_what_it_started_and_leaves_no_trace(tmp_path, monkeypatch):
    class Interrupting:
        def advance(self, share, label):
            self.pids = [int(word) for word in label.split()]
            raise KeyboardInterrupt

    body = """import subprocess, time
sys.path.insert(0, os.getcwd())
from bench.records.partial_cells import make_partial
make_partial(Path(job["folder"]))
peer = subprocess.Popen(["sleep", "60"])
print(json.dumps({"share": 0.1, "label": f"{os.getpid()} {peer.pid}"}), flush=True)
time.sleep(60)"""
    watch = Interrupting()
    monkeypatch.setattr(Progress, "advance", lambda self, share, label: share and watch.advance(share, label))
    with pytest.raises(KeyboardInterrupt):
        child(tmp_path, monkeypatch, body)
    assert len(watch.pids) == 2
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in watch.pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(_runs(pid) for pid in watch.pids)
    assert list((tmp_path / "res" / "box").iterdir()) == []


@pytest.mark.parametrize("ends", ["os.kill(os.getpid(), signal.SIGKILL)", "os.abort()", "sys.exit(0)"])
def test_whatever_ends_a_child_ends_what_it_started(tmp_path, monkeypatch, ends):
    """The peer has the child's standard output, and ignores what it may."""
    body = f"""import subprocess
peer = subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 60"])
open({str(tmp_path / "pid")!r}, "w").write(str(peer.pid))
{ends}"""
    began = time.monotonic()
    assert child(tmp_path, monkeypatch, body)["state"] == "failed"
    assert time.monotonic() - began < 30, "the peer's end of the pipe was waited for"
    assert not _runs(int((tmp_path / "pid").read_text()))


def _runs(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
