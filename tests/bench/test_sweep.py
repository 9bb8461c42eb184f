"""A sweep on the real model: cells in child processes, crashes as records, resuming, the lock, and bad input."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import sweep as sweep_module
from bench.cli import main
from bench.errors import UserError
from bench.host.device_lock import DeviceLock
from bench.progress import Estimate
from bench.store import load_cells, write_cell
from bench.sweep import crash_sentence, prepare, sweep

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["prompts=short", "measure=quick", "n_predict=6", "measure.classes=[prose,question]", "measure.again_blocks=1",
         "engine.n_ctx=256", "profile=false"]  # fmt: skip
NAMED = b"\x05\0\0\0\0\0\0\0llama"
"""The architecture in a GGUF header: a length, then the text."""
QUIET = {"state": "done", "reason": "", "seconds": 0.1}


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    """The tests' sweeps do not compete with a real one for the machine's lock."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def no_children(monkeypatch):
    """Cells 'run' at once, so that planning and resuming can be tested without a model's time."""
    ran: list[str] = []

    def run_cell(cell, environment, progress):
        ran.append(cell.id)
        status = QUIET if cell.config["streams"] != 3 else QUIET | {"state": "failed", "reason": "planted"}
        write_cell(cell.folder, config=cell.config | {"kind": cell.kind}, env=environment, status=status)
        return status

    monkeypatch.setattr(sweep_module, "run_cell", run_cell)
    return ran


def test_only_what_is_missing_or_failed_runs_again(tmp_path, no_children):
    words = [*SMALL, "streams=1,2,3,4", f"results={tmp_path / 'res'}"]
    first, _ = sweep(words)
    assert len(no_children) == 4
    assert [reason for _, reason in first.failed] == ["planted"]
    no_children.clear()
    second, _ = sweep(words)
    assert no_children == [first.failed[0][0].id]
    assert len(second.kept) == 3
    assert any("failed: " in line and "planted" in line for line in sweep_module.summary(second))


def test_a_second_sweep_on_the_device_is_refused_and_names_the_first(tmp_path, no_children):
    with DeviceLock("cpu"), pytest.raises(UserError, match=f"process {os.getpid()} .*being measured|{os.getpid()}"):
        sweep([*SMALL, "streams=2", f"results={tmp_path / 'res'}"])
    assert no_children == []


def test_a_synthetic_model_is_marked_in_every_record(tmp_path):
    """The file says it, whatever the command line says; the plan, the record and the report pass it on."""
    path, results = tmp_path / "x.gguf", tmp_path / "res"
    assert main(["synth", "dense-mini", str(path)]) == 0
    words = [*SMALL, "model=gguf", f"model.path={path}", "model.synthetic=false", "streams=2", f"results={results}"]
    outcome, _ = sweep(words)
    assert not outcome.failed, outcome.failed
    assert outcome.cells[0].label.startswith("gguf (synthetic) stagger")
    (cell,) = load_cells(results)
    assert cell.config["model"]["synthetic"] is True
    assert cell.facts["model"]["synthetic"] is True
    assert main(["report", f"results={results}", f"reports={tmp_path / 'rep'}"]) == 0
    with (tmp_path / "rep" / "claims.csv").open() as file:
        verdicts = {row["claim_id"]: row for row in csv.DictReader(file)}
    refused = verdicts["pti.two_streams.speedup"]
    assert refused["verdict"] == "not_comparable"
    assert "gguf (synthetic) has random weights" in refused["reason"]
    assert "model gguf (synthetic) Q8_0" in (tmp_path / "rep" / "report.md").read_text()


def test_a_real_sweep_measures_and_reads_back(tmp_path):
    outcome, _ = sweep([*SMALL, "streams=2", f"results={tmp_path / 'res'}"])
    assert not outcome.failed, outcome.failed
    (cell,) = load_cells(tmp_path / "res")
    assert cell.status["state"] == "done"
    assert set(cell.runs["arm"]) == {"baseline", "again", "treatment", "sabotage", "oracle", "solo"}
    assert (cell.runs["n_prompt"] == cell.runs["n_prompt_evaluated"]).all()
    assert cell.facts["engine"]["treatment"]["n_seq_max"] == 2
    assert cell.facts["noise"]["positions"] > 0
    folder = tmp_path / "res" / cell.machine / cell.cell
    log = gzip.decompress((folder / "engine.log.gz").read_bytes()).decode()
    assert "SmolLM2-135M-Instruct.Q4_1.gguf" in log
    assert "site-packages" not in log + (folder / "cell.yaml").read_text(), "records do not tell where a model lay"
    beyond = cell.facts["process"]["anonymous_bytes"] - cell.facts["process"]["engine_buffer_bytes"]
    assert beyond < 250e6, "what a worker takes beside llama.cpp's own buffers"


def test_a_profile_measures_every_width_and_memory(tmp_path):
    words = [*SMALL[:-1], "streams=1", "measure.step_widths=3", "measure.step_passes=2", f"results={tmp_path / 'res'}"]
    outcome, _ = sweep(words)
    assert not outcome.failed, outcome.failed
    profile = next(cell for cell in load_cells(tmp_path / "res") if cell.config["kind"] == "profile")
    assert set(profile.steps["width"]) == {1, 2, 3}
    rows = {row["streams"]: row for row in profile.facts["memory_by_streams"]}
    assert rows[4]["kv_bytes"] == pytest.approx(4 * rows[1]["kv_bytes"], rel=0.01)
    assert rows[1]["kv_bytes"] == pytest.approx(rows[1]["computed_kv_bytes"], rel=0.01)


def child(tmp_path, monkeypatch, body: str) -> dict:
    """Run one cell whose child process does something else."""
    package = tmp_path / "fake"
    package.mkdir()
    (package / "crash.py").write_text(f"import os, signal, sys\nsys.stdin.read()\n{body}\n")
    real = subprocess.Popen
    monkeypatch.setattr(sweep_module.subprocess, "Popen",
                        lambda command, **more: real([sys.executable, str(package / "crash.py")], **more))  # fmt: skip
    outcome, _ = sweep([*SMALL, "streams=2", f"results={tmp_path / 'res'}"])
    (cell,) = load_cells(tmp_path / "res")
    assert outcome.failed[0][1] == cell.status["reason"]
    return cell.status


def test_an_assert_in_the_engine_is_a_failed_record(tmp_path, monkeypatch):
    body = 'print("ggml.c:12: GGML_ASSERT(x > 0) failed", file=sys.stderr)\nos.kill(os.getpid(), signal.SIGABRT)'
    status = child(tmp_path, monkeypatch, body)
    assert status["state"] == "failed"
    assert "SIGABRT" in status["reason"]
    assert "GGML_ASSERT(x > 0) failed" in status["reason"]


def test_a_killed_child_is_a_failed_record(tmp_path, monkeypatch):
    assert "SIGKILL" in child(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGKILL)")["reason"]


def test_a_child_that_writes_nothing_has_failed(tmp_path, monkeypatch):
    assert "code 0" in child(tmp_path, monkeypatch, "sys.exit(0)")["reason"]


@pytest.mark.parametrize(
    ("code", "errors", "sentence"),
    [(-4, "", "`make setup NATIVE=0`"), (-9, "", "memory"), (3, "a\nb\nc\nd\n", "b | c | d"),
     (1, "", "printed nothing"),
     (-11, 'Fatal Python error: Segmentation fault\n\n  File "llama.py", line 78 in load\n  File "x.py"\n', "line 78")],
)  # fmt: skip
def test_why_a_child_died(code, errors, sentence):
    assert sentence in crash_sentence(code, errors)


def test_interrupting_leaves_whole_cells_only_and_no_child(tmp_path):
    results = tmp_path / "res"
    process = subprocess.Popen(
        [sys.executable, "-m", "bench", "sweep", *SMALL, "streams=2,3", f"results={results}", "n_predict=60"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not _workers(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = _workers(process.pid)
    assert workers, "the sweep never started its child"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in errors
    for folder in results.glob("*/*"):
        assert (folder / "status.json").exists(), f"{folder} is half a cell"
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def _workers(parent: int) -> list[int]:
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def gguf(tmp_path, smollm2, edit) -> Path:
    path = tmp_path / "model.gguf"
    shutil.copy(smollm2, path)
    edit(path)
    return path


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda path: path.unlink(), "model.gguf"),
        (lambda path: os.truncate(path, 30_000_000), "truncated|beyond|shorter|ends"),
        (lambda path: path.write_bytes(b"<!DOCTYPE html><html></html>"), "HTML"),
        (lambda path: path.write_bytes(b"\0" * 4096), "zero"),
        (lambda path: path.write_bytes(b"GGUF\x63\0\0\0" + path.read_bytes()[8:]), "version"),
        (lambda path: path.write_bytes(path.read_bytes().replace(NAMED, NAMED.replace(b"llama", b"qqqqq"), 1)),
         "qqqqq|architecture"),
    ],
    ids=["missing", "truncated", "html", "zeros", "version", "architecture"],
)  # fmt: skip
def test_a_bad_model_file_is_a_sentence_before_anything_runs(tmp_path, smollm2, edit, sentence):
    path = gguf(tmp_path, smollm2, edit)
    with pytest.raises(UserError, match=sentence):
        prepare([*SMALL, "streams=2", "model=gguf", f"model.path={path}", f"results={tmp_path / 'res'}"])
    assert not list((tmp_path / "res").glob("*/*"))


@pytest.mark.parametrize(
    ("override", "sentence"),
    [("engine.n_ctx=90000000", "lower engine.n_ctx or streams"), ("engine.threads=4096", "engine.threads is 4096"),
     ("results=/proc/none", "cannot be written"), ("peers.llama_bench=/no/such", "build it with `make peers`")],
)  # fmt: skip
def test_what_cannot_run_is_refused_before_a_model_is_loaded(override, sentence):
    with pytest.raises(UserError, match=sentence):
        prepare([*SMALL, "streams=2", override])


def test_a_prompt_that_does_not_fit_is_a_failed_cell_with_the_way_out(tmp_path):
    words = [*SMALL, "streams=2", "engine.n_ctx=16", f"results={tmp_path / 'res'}"]
    outcome, _ = sweep(words)
    assert "set engine.n_ctx=" in outcome.failed[0][1]
    status = json.loads(next((tmp_path / "res").glob("*/*/status.json")).read_text())
    assert status["state"] == "failed"


def test_the_estimate_says_nothing_before_it_knows_and_then_scales():
    estimate = Estimate(total_work=100)
    assert estimate.left(10, 0.0, 1.0) is None
    estimate.add(10, 20.0)
    assert estimate.left(0, 0, 0) == pytest.approx(180)
    assert estimate.left(10, 0.5, 10.0) == pytest.approx(170)


def test_sampling_in_the_engine_is_graded_as_well(tmp_path):
    """Replays need logits, which such a context does not keep."""
    words = [*SMALL, "streams=2", "method=packed", "engine.sampler=backend", f"results={tmp_path / 'res'}"]
    outcome, _ = sweep(words)
    assert not outcome.failed, outcome.failed
    (cell,) = load_cells(tmp_path / "res")
    assert cell.facts["noise"]["disagreements"] == 0
    assert all(row["first_difference"] is None for row in cell.facts["lossless"])
