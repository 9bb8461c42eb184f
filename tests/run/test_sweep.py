"""A sweep on the real model: what runs and what is kept, the lock, memory, interrupts, and bad input."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from bench.cli import main
from bench.errors import UserError
from bench.host import cpus, devices, memory
from bench.host.device_lock import DeviceLock
from bench.host.devices import Gpu
from bench.plan.compose import compose_points
from bench.records.cells import load_cells, write_cell
from bench.records.process_table import host
from bench.records.rows import SCHEMA
from bench.run import sweep as sweep_module
from bench.run.prepared import check_models, prepare
from bench.run.progress import Estimate
from bench.run.sweep import sweep
from pti_loop.gguf import file as gguf_file
from tests.pti_loop.gguf.test_model_memory import write_hybrid

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["prompts=short", "measure=quick", "n_predict=6", "measure.classes=[prose,question]", "measure.again_blocks=1",
         "engine.n_ctx=256", "profile=false"]  # fmt: skip
ONE_CORE = "engine.threads=1"
"""Where time or memory is looked at, or much is decoded: decodes on all cores wait for each other once a neighbour has
one of them."""
NAMED = b"\x05\0\0\0\0\0\0\0llama"
"""The architecture in a GGUF header: a length, then the text."""
QUIET = {"state": "done", "reason": "", "seconds": 0.1}
ODD = {3: {"state": "failed", "reason": "planted"}, 5: {"state": "unsupported", "reason": "no rewind"}}
"""What becomes of cells that do not run, by their streams."""


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    """The tests' sweeps do not compete with a real one for the machine's lock."""
    monkeypatch.setenv("PTI_BENCH_LOCKS", str(tmp_path))


@pytest.fixture
def no_children(monkeypatch):
    """Cells 'run' at once, so that planning and resuming can be tested without a model's time."""
    ran: list[str] = []

    def run_cell(cell, environment, progress):
        ran.append(cell.id)
        status = QUIET | ODD.get(cell.config["streams"], {})
        write_cell(cell.folder, config=cell.config, env=environment, status=status)
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


def test_what_cannot_run_is_no_failure_and_is_listed_with_its_reason(tmp_path, no_children):
    outcome, _ = sweep([*SMALL, "streams=2,5", f"results={tmp_path / 'res'}"])
    assert [reason for _, reason in outcome.unsupported] == ["no rewind"]
    assert not outcome.failed
    first, *others = sweep_module.summary(outcome)
    assert first.startswith("1 of 2 cells done (0 were there before)")
    (other,) = others
    assert other.startswith("unsupported: ") and other.endswith("x5 emission=published T=0: no rewind")


def test_a_sweep_clears_half_written_cells_away_and_nothing_else(tmp_path, no_children):
    words = [*SMALL, "streams=2", f"results={tmp_path / 'res'}", "machine=box"]
    sweep(words)
    box, dead = tmp_path / "res" / "box", subprocess.Popen(["true"])
    dead.wait()
    half = box / f".0123456789ab.{host()}.{dead.pid}.a1b2c3d4.partial"
    for folder in (half, box / ".git", box / ".notes", box / ".cell.half"):
        folder.mkdir()
    for more in ([], ["n_predict=7"]):
        outcome, _ = sweep([*words, *more])
        assert {path.name for path in box.iterdir() if path.name.startswith(".")} == {".git", ".notes", ".cell.half"}
    assert len(list(box.iterdir())) == 5
    assert outcome.cells[0].folder.parent == box


@pytest.mark.parametrize(("file", "text"), [("env.json", ""), ("status.json", '{"state"'), ("runs.csv.gz", "cut")])
def test_a_damaged_cell_is_measured_again(tmp_path, no_children, capsys, file, text):
    words = [*SMALL, "streams=2,4", f"results={tmp_path / 'res'}"]
    cell = sweep(words)[0].cells[0]
    no_children.clear()
    (cell.folder / file).write_text(text)
    capsys.readouterr()
    outcome, _ = sweep(words)
    assert no_children == [cell.id]
    assert len(outcome.kept) == 1
    assert f"damaged, measured again: {cell.id} " in capsys.readouterr().out
    assert cell.state == "done"


def test_threads_are_as_asked_and_else_all_of_them(tmp_path):
    def threads(*words: str) -> int:
        return prepare([*SMALL, "streams=2", f"results={tmp_path}", *words])[0][0].config["engine"]["threads"]

    assert threads("engine.threads=1") == 1
    assert threads() == cpus.available_cpus()


def test_turns_are_as_asked_and_else_taken_where_answers_have_one_length(tmp_path):
    def turns(*words: str) -> int | None:
        cell = prepare([*SMALL, "streams=2", f"results={tmp_path}", *words])[0][0]
        return cell.config["measure"].get("chunk")

    assert (turns(), turns("measure.chunk=5"), turns("measure.chunk=0")) == (8, 5, None)
    assert turns("ignore_eos=false") is None


@pytest.mark.parametrize("interval", [2, 4])
def test_caches_have_to_fit_to_the_byte(tmp_path, monkeypatch, interval):
    """Streams and two baselines, each with its cache and its recurrent state."""
    path = write_hybrid(tmp_path / "hybrid.gguf", layers=4, interval=interval)
    (config,) = compose_points(["model=gguf", f"model.path={path}", "streams=3", "engine.n_ctx=512"])
    file = gguf_file.read(path)
    need = 5 * (512 * file.kv_bytes_per_token() + file.state_bytes_per_sequence())
    monkeypatch.setattr(memory, "usable_memory", lambda: need)
    assert list(check_models([config])) == [path]
    monkeypatch.setattr(memory, "usable_memory", lambda: need - 1)
    with pytest.raises(UserError, match=r"3 streams and two baselines of engine\.n_ctx=512 tokens"):
        check_models([config])
    monkeypatch.setattr("bench.run.engines.offloads", lambda config: True)
    assert check_models([config]), "a device's memory is the engine's to check"


CARDS = [Gpu("nvidia", 0, "GPU-aa", "H200"), Gpu("nvidia", 1, "GPU-bb", "H200")]


def test_every_points_device_is_locked(tmp_path, no_children, monkeypatch):
    """Not that of the first point: this one goes to the GPU, and another measures the CPU."""
    words = [*SMALL, "streams=2", f"results={tmp_path / 'res'}"]
    monkeypatch.setattr("bench.run.engines.offloads", lambda config: config.engine.n_gpu_layers != 0)
    monkeypatch.setattr(devices, "present", lambda *_: CARDS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with DeviceLock(shared=True), DeviceLock("GPU-aa"):
        sweep([*words, "engine.n_gpu_layers=99"])
        with pytest.raises(UserError, match="'cpu' is being measured"):
            sweep([*words, "engine.n_gpu_layers=99,0"])
    with DeviceLock("GPU-bb"), pytest.raises(UserError, match="'GPU-bb' is being measured"):
        sweep([*words, "engine.n_gpu_layers=0,99"])
    with DeviceLock(), pytest.raises(UserError, match="'cpu' is being measured"):
        sweep([*words, "engine.n_gpu_layers=99"])
    sweep([*words, "engine.n_gpu_layers=99,0"])
    assert {cell.env["device"] for cell in load_cells(tmp_path / "res") if "device" in cell.env} <= {"cpu"}


def test_a_sweep_waits_when_it_is_asked_to(tmp_path, no_children, monkeypatch, capsys):
    words = [*SMALL, "streams=2", f"results={tmp_path / 'res'}"]
    lock = DeviceLock().__enter__()
    real = sweep_module.locks

    def locks(configs):  # planning takes a while: the other holder ends once the sweep has come to the lock
        threading.Timer(1.0, lock.__exit__).start()
        return real(configs)

    monkeypatch.setattr(sweep_module, "locks", locks)
    outcome, _ = sweep([*words, "wait=60"])
    assert len(no_children) == 1 and outcome.seconds < 50
    assert "waiting up to 60 s: the device 'cpu' is being measured by process" in capsys.readouterr().err
    monkeypatch.setattr(sweep_module, "locks", real)
    assert sweep([*words, "wait=7", "limit=9"])[0].kept, "how long one waits is nothing that is measured"


def newer(folder):
    path = folder / "cell.yaml"
    path.write_text(path.read_text().replace(f"schema: {SCHEMA}", f"schema: {SCHEMA + 1}"))
    (folder / "status.json").write_text('{"state": "sublime"}')


def test_a_cell_of_a_later_release_is_left_and_named(tmp_path, no_children):
    words = [*SMALL, "streams=2,4", f"results={tmp_path / 'res'}"]
    cell = sweep(words)[0].cells[0]
    no_children.clear()
    newer(cell.folder)
    before = {path.name: path.read_bytes() for path in cell.folder.iterdir()}
    outcome, _ = sweep(words)
    assert no_children == [] and [left.id for left, _ in outcome.newer] == [cell.id]
    assert {path.name: path.read_bytes() for path in cell.folder.iterdir()} == before
    first, told = sweep_module.summary(outcome)
    assert first.startswith("1 of 2 cells done") and told.startswith(f"left as it is: {cell.id}") and "results=" in told
    with pytest.raises(UserError, match="later release"):
        write_cell(cell.folder, config={}, env={}, status=QUIET)


def test_a_full_disk_names_what_was_not_tried(tmp_path, no_children, monkeypatch):
    monkeypatch.setattr(sweep_module, "run_cell", lambda *given: {"state": "failed", "reason": "no room"})
    monkeypatch.setattr(sweep_module, "_ROOM", 1 << 10)
    real, seen = tempfile.TemporaryFile, []

    def full(dir):
        seen.append(dir)
        if len(seen) > 1:
            raise OSError(28, "No space left on device")
        return real(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    outcome, _ = sweep([*SMALL, "streams=2,4,3", f"results={tmp_path / 'res'}"])
    assert (len(outcome.failed), len(outcome.untried)) == (2, 1)
    assert "not tried, since" in sweep_module.summary(outcome)[-1] and "No space left" in outcome.untried[0][1]


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
    assert outcome.cells[0].label.startswith("x (synthetic) stagger")
    (cell,) = load_cells(results)
    assert cell.config["model"]["synthetic"] is True
    assert cell.facts["model"]["synthetic"] is True
    assert main(["report", f"results={results}", f"reports={tmp_path / 'rep'}"]) == 0
    with (tmp_path / "rep" / "claims.csv").open() as file:
        verdicts = {row["claim_id"]: row for row in csv.DictReader(file)}
    refused = verdicts["pti.two_streams.speedup"]
    assert refused["verdict"] == "not_comparable"
    assert "x (synthetic) has random weights" in refused["reason"]
    assert "model x (synthetic) Q8_0" in (tmp_path / "rep" / "report.md").read_text()


def test_a_real_sweep_measures_and_reads_back(tmp_path):
    outcome, _ = sweep([*SMALL, ONE_CORE, "streams=2", f"results={tmp_path / 'res'}"])
    assert not outcome.failed, outcome.failed
    (cell,) = load_cells(tmp_path / "res")
    assert cell.status["state"] == "done"
    assert set(cell.runs["arm"]) == {"baseline", "again", "treatment", "sabotage", "oracle", "solo", "carry"}
    assert (cell.runs["n_prompt"] == cell.runs["n_prompt_evaluated"]).all()
    assert cell.facts["engine"]["treatment"]["n_seq_max"] == 2
    assert cell.facts["noise"]["positions"] > 0
    _memory_of_each_arm(cell.facts["memory"], cell.facts["model"]["tensor_bytes"])
    folder = tmp_path / "res" / cell.machine / cell.cell
    log = gzip.decompress((folder / "engine.log.gz").read_bytes()).decode()
    assert "SmolLM2-135M-Instruct.Q4_1.gguf" in log
    assert "site-packages" not in log + (folder / "cell.yaml").read_text(), "records do not tell where a model lay"
    beyond = cell.facts["process"]["anonymous_bytes"] - cell.facts["process"]["engine_buffer_bytes"]
    assert beyond < 250e6, "what a worker takes beside llama.cpp's own buffers"


def _memory_of_each_arm(memory, weights):
    """What an arm took of the process is its own buffers, twice the cache for two streams, and no weights.

    All pages count whole: a share of the weights' pages shrinks while another process maps the same file.
    """
    assert set(memory) == {"baseline", "again", "treatment"}
    took = {arm: one["rss_bytes"] - one["rss_bytes_before"] for arm, one in memory.items()}
    own = {arm: sum(one[name] for name in ("kv_bytes", "state_bytes", "compute_bytes", "output_bytes"))
           for arm, one in memory.items()}  # fmt: skip
    assert memory["treatment"]["kv_bytes"] == pytest.approx(2 * memory["baseline"]["kv_bytes"], rel=0.01)
    for arm, one in memory.items():
        untouched = one["compute_bytes"] + one["output_bytes"]
        assert own[arm] - untouched - 4e6 < took[arm] < own[arm] + 0.1 * weights, (arm, took, own)
    assert abs(took["again"] - took["baseline"]) < 0.1 * weights
    assert took["treatment"] > took["again"]


def test_a_profile_measures_every_width_and_memory(tmp_path):
    words = [*SMALL[:-1], ONE_CORE, "streams=1", "measure.step_widths=3", "measure.step_passes=2",
             f"results={tmp_path / 'res'}"]  # fmt: skip
    outcome, _ = sweep(words)
    assert not outcome.failed, outcome.failed
    profile = next(cell for cell in load_cells(tmp_path / "res") if cell.config["kind"] == "profile")
    assert set(profile.steps["width"]) == {1, 2, 3}
    rows = {row["streams"]: row for row in profile.facts["memory_by_streams"]}
    assert rows[4]["kv_bytes"] == pytest.approx(4 * rows[1]["kv_bytes"], rel=0.01)
    assert rows[1]["kv_bytes"] == pytest.approx(rows[1]["computed_kv_bytes"], rel=0.01)
    own = sum(rows[8][name] - rows[1][name] for name in ("kv_bytes", "state_bytes", "compute_bytes", "output_bytes"))
    took = {n: rows[n]["rss_bytes"] - rows[n]["rss_bytes_before"] for n in (1, 8)}
    slack = rows[1]["compute_bytes"]
    assert own - slack < took[8] - took[1] < own + slack + 0.1 * profile.facts["model"]["tensor_bytes"]
    assert rows[1]["rss_bytes"] >= rows[1]["process_bytes"] > 0


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
    words = [*SMALL, ONE_CORE, "streams=2", "method=packed", "engine.sampler=backend", f"results={tmp_path / 'res'}"]
    outcome, _ = sweep(words)
    assert not outcome.failed, outcome.failed
    (cell,) = load_cells(tmp_path / "res")
    assert cell.facts["noise"]["disagreements"] == 0
    assert all(row["first_difference"] is None for row in cell.facts["lossless"])


def test_a_method_with_a_file_of_its_own_is_a_sound_cell_that_tells_no_folder(tmp_path):
    tiny = ROOT / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"
    results = f"results={tmp_path / 'res'}"
    assert main(["sweep", *SMALL, ONE_CORE, "model=pti-tiny", "method=draft", f"method.draft_model={tiny}",
                 "method.draft=2", results]) == 0  # fmt: skip
    (cell,) = load_cells(tmp_path / "res")
    assert cell.config["method"]["parameters"]["draft_model"] == tiny.name
    assert main(["report", results, f"reports={tmp_path / 'rep'}"]) == 0
    with (tmp_path / "rep" / "controls.csv").open() as stream:
        controls = {row["control"]: row["sentence"] for row in csv.DictReader(stream)}
    assert controls, "the cell is judged, and stalls beside it may void it; its id holds all the same"
    assert "id" not in controls, controls["id"]
    text = "".join(path.read_text() for path in (tmp_path / "res").rglob("*.yaml"))
    assert str(tiny.parent) not in text
