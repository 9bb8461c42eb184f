"""Shards on this machine: by jobs of Submitit, one preempted and one killed; interrupted; refused; brought home."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.collecting import collect_archive
from bench.host import devices
from bench.launchers.board import FolderBoard
from bench.launchers.worker import ShardJob
from bench.plan.compose import compose_points
from bench.plan.shards import deal, digest
from tests.launchers.losses import faults, lost_by_submitit, shard_processes, wait_for
from tests.launchers.toy_sweeps import Toy

LOCAL = ("launcher=submitit", "launcher.cluster=local")


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


@pytest.mark.timeout(600)
def test_a_preempted_job_resumes_and_a_killed_one_gives_its_cells_back(toy: Toy) -> None:
    done = lost_by_submitit(toy, 9, "launcher.shards=3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert faults(toy, 9) == []
    assert "9 of 9 cells done (0 were there before)" in done.stdout and "its cells go to another" in done.stdout
    assert not (toy.results / ".launch").exists(), "nothing is left of a launch that ended well"
    again = toy.sweep("seed=range(0,9)", *LOCAL, "launcher.shards=1")
    assert "9 of 9 cells done (9 were there before)" in again.stdout and faults(toy, 9) == []


@pytest.mark.timeout(600)
def test_an_interrupt_ends_the_jobs_and_loses_nothing(toy: Toy) -> None:
    sweep = toy.start("seed=range(0,8)", *LOCAL, "launcher.shards=2", TOY_SECONDS="0.3")
    wait_for(toy, sweep, 2)
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=120)
    assert sweep.returncode == 130, out + err
    until = time.monotonic() + 60
    while shard_processes(toy) and time.monotonic() < until:
        time.sleep(0.1)
    assert not shard_processes(toy)
    kept = len(toy.cells())
    assert 2 <= kept < 8 and faults(toy, kept) == []
    done = toy.sweep("seed=range(0,8)", *LOCAL, "launcher.shards=1")
    assert done.returncode == 0 and f"8 of 8 cells done ({kept} were there before)" in done.stdout
    assert faults(toy, 8) == []


@pytest.mark.timeout(600)
def test_a_sweep_of_this_process_and_jobs_share_the_cells_of_a_folder(toy: Toy) -> None:
    """With locks of their own, as two hosts have them."""
    other = Toy(toy.folder)
    other.environment = toy.environment | {"PTI_BENCH_LOCKS": str(toy.folder / "others")}
    both = [toy.start("seed=range(0,8)"), other.start("seed=range(0,8)", *LOCAL, "launcher.shards=1")]
    told = [sweep.communicate(timeout=400) for sweep in both]
    assert [sweep.returncode for sweep in both] == [0, 0], told
    assert all("8 of 8 cells done" in out for out, _ in told) and faults(toy, 8) == []


@pytest.mark.timeout(300)
def test_a_model_that_is_not_there_is_one_sentence_and_nothing_is_left(toy: Toy) -> None:
    toy.model.unlink()
    done = toy.sweep("seed=1,2", *LOCAL)
    assert done.returncode == 2 and "nothing was measured; " in done.stderr and "toy.gguf" in done.stderr
    assert done.stderr.count("\n") == 1 and toy.cells() == []


def shard_job(toy: Toy, launch: Path, mark: str, *more: str) -> ShardJob:
    words = toy.words("seed=range(0,3)", *more)
    points = compose_points(words)
    (shard,) = deal(len(points), 1, digest(points))
    launch.mkdir(exist_ok=True)
    FolderBoard(launch).mark("launch-1")
    return ShardJob(1, words, shard.points, shard.digest, [], str(toy.results), str(launch), mark,
                    variables=dict(toy.environment))  # fmt: skip


@pytest.fixture
def toy_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy engine in this process, too."""
    from bench.plan import settings
    from bench.plan.engines import ENGINES, Listed

    monkeypatch.setitem(ENGINES, "toy", Listed("toy", "toy_engine", "toy"))
    monkeypatch.setitem(settings.CHOICES, "model.engine", (*settings.CHOICES["model.engine"], "toy"))


@pytest.mark.timeout(300)
def test_a_worker_that_does_not_see_the_results_sends_them(toy: Toy, tmp_path: Path, monkeypatch, toy_words) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    report = shard_job(toy, tmp_path / "launch", "launch-2")()
    assert "outcome" in report, report
    assert toy.cells() == [] and len(report["outcome"]["cells"]) == 3
    (tmp_path / "back.tar").write_bytes(report["archive"])
    found = collect_archive(tmp_path / "back.tar", tmp_path / "results", "shard 1")
    assert len(found.added) == 3 and found.faults == [] and faults(toy, 3) == []
    assert not list(tmp_path.glob("pti-bench-*/*/*")), "what came home is not kept on the worker's host"
    job = shard_job(toy, tmp_path / "launch", "launch-2")
    job.done = [folder.name for folder in found.added]
    again = job()
    assert again["outcome"]["kept"] == sorted(job.done, key=again["outcome"]["kept"].index) and not again["archive"]
    assert set(toy.written().values()) == {1}, "what is done at home is not measured again"


@pytest.mark.timeout(300)
def test_another_host_with_another_build_is_refused_before_it_measures(toy: Toy, tmp_path: Path, toy_words) -> None:
    first = shard_job(toy, tmp_path / "launch", "launch-1")()
    assert "outcome" in first, first
    second = shard_job(toy, tmp_path / "launch", "launch-1", "n_predict=5")
    second.variables["TOY_BUILD"] = "toy-2"
    report = second()
    assert "has the build toy-2 of the engine" in report["refused"] and faults(toy, 3) == []
    other = shard_job(toy, tmp_path / "launch", "launch-1")
    other.overrides.append("seed=5")
    assert "make other points of a sweep here" in other()["refused"]


@pytest.mark.parametrize(("name", "module"), [("submitit", "submitit"), ("ray", "ray")])
def test_a_launcher_that_is_not_installed_is_one_sentence(tmp_path, monkeypatch, capsys, name, module) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["sweep", f"launcher={name}", f"results={tmp_path / 'results'}"]) == 2
    told = capsys.readouterr().err
    assert "is not installed; run `make setup EXTRA=launch`" in told and told.count("\n") == 1
    assert not [*(tmp_path / "results").iterdir()]


def test_no_slurm_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["sweep", "launcher=submitit", f"results={tmp_path / 'results'}"]) == 2
    assert "there is no Slurm on this machine" in capsys.readouterr().err


def test_cards_that_are_not_there_are_one_sentence(tmp_path: Path, monkeypatch, capsys: Any) -> None:
    monkeypatch.setattr(devices, "present", lambda *_: [])
    assert main(["sweep", *LOCAL, "launcher.gpus=2", f"results={tmp_path / 'results'}"]) == 2
    assert "launcher.gpus=2: this machine leaves 0 GPUs to this process" in capsys.readouterr().err
    assert main(["sweep", *LOCAL, "launcher.options=[x]", f"results={tmp_path / 'results'}"]) == 2
    assert "'x' is no option of sbatch" in capsys.readouterr().err
