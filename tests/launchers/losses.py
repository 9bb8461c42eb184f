"""Launches of the toy engine in which workers are lost: `python -m tests.launchers.losses ray|submitit CELLS`.

A local Ray cluster of two nodes in processes loses a worker and a node; of Submitit's local jobs one is preempted and
one is killed. Every cell has to be there in the end, done, and written no more than once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.host.device_lock import VARIABLE
from bench.records.cells import read_status, state_of
from tests.launchers.toy_sweeps import Toy

PART = 0.3
"""Of the cells that are written before the first loss, and between it and the second."""


@contextmanager
def cluster(toy: Toy) -> Iterator[Any]:
    """A Ray cluster of two nodes, each with locks of its own as two hosts have them: (cluster, second node)."""
    from ray.cluster_utils import Cluster

    made = Cluster()
    try:
        nodes = [made.add_node(num_cpus=2, resources={"bench_host": 1}, include_dashboard=False,
                               env_vars=_node(toy, name))
                 for name in ("one", "two")]  # fmt: skip
        made.wait_for_nodes()
        yield made, nodes[1]
    finally:
        made.shutdown()


def _node(toy: Toy, name: str) -> dict[str, str]:
    folder = toy.folder / f"locks-{name}"
    folder.mkdir(exist_ok=True)
    return toy.environment | {VARIABLE: str(folder), "RAY_worker_niceness": "0"}


def shard_processes(toy: Toy) -> list[psutil.Process]:
    """The processes that measure shards of a folder's sweeps."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline()[1:3] == ["-m", "bench.launchers.shard_process"] and \
                    process.environ().get("TOY_LOG") == str(toy.log):  # fmt: skip
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_for(toy: Toy, sweep: subprocess.Popen[str], cells: int) -> None:
    """Until so many cells are written, or the sweep has ended."""
    while len(toy.written()) < cells and sweep.poll() is None:
        time.sleep(0.1)


def lost_on_ray(toy: Toy, cells: int, *more: str) -> subprocess.CompletedProcess[str]:
    """A sweep on a cluster of its own that loses a worker, and then a node."""
    with cluster(toy) as (made, second):
        return lost_on(toy, made, second, cells, *more)


def lost_on(toy: Toy, made: Any, second: Any, cells: int, *more: str) -> subprocess.CompletedProcess[str]:
    """The same on a cluster that is there."""
    sweep = toy.start(f"seed=range(0,{cells})", "launcher=ray", f"launcher.address={made.address}", *more)
    wait_for(toy, sweep, int(PART * cells))
    worker = shard_processes(toy)[0].parent()
    print(f"killing the worker {worker.pid} ({worker.name()}) after {len(toy.written())} cells", flush=True)
    worker.kill()
    wait_for(toy, sweep, int(2 * PART * cells))
    print(f"killing a node after {len(toy.written())} cells", flush=True)
    made.remove_node(second, allow_graceful=False)
    out, err = sweep.communicate()
    return subprocess.CompletedProcess(sweep.args, sweep.returncode, out, err)


def lost_by_submitit(toy: Toy, cells: int, *more: str) -> subprocess.CompletedProcess[str]:
    """A sweep by jobs of this machine, one of which is preempted, and one killed."""
    sweep = toy.start(f"seed=range(0,{cells})", "launcher=submitit", "launcher.cluster=local", *more)
    wait_for(toy, sweep, int(PART * cells))
    job = a_job(toy, sweep)
    print(f"preempting the job {job.pid} after {len(toy.written())} cells", flush=True)
    job.send_signal(signal.SIGUSR2)
    wait_for(toy, sweep, int(2 * PART * cells))
    job = a_job(toy, sweep)
    print(f"killing the job {job.pid} after {len(toy.written())} cells", flush=True)
    job.kill()
    out, err = sweep.communicate()
    return subprocess.CompletedProcess(sweep.args, sweep.returncode, out, err)


def a_job(toy: Toy, sweep: subprocess.Popen[str]) -> psutil.Process:
    """A job that measures: between two of them there is none for a while. Raises RuntimeError where the sweep ended."""
    while sweep.poll() is None:
        if found := shard_processes(toy):
            return found[0].parent()
        time.sleep(0.1)
    raise RuntimeError(f"the sweep ended before it lost a job (exit code {sweep.returncode}): {sweep.communicate()[1]}")


def faults(toy: Toy, cells: int) -> list[str]:
    """What is not as it has to be; nothing where every cell is there, whole, done, and was written once."""
    found = toy.cells()
    told = [f"{len(found)} cells are there, not {cells}"] if len(found) != cells else []
    told += [f"{folder.name} is {state_of(folder)}" for folder in found if state_of(folder) != "done"]
    told += [f"{name} was written {count} times" for name, count in toy.written().items() if count > 1]
    told += [f"{path} is left" for path in toy.results.glob("*/.*") if path.parent.name != ".launch"]
    return told


def main() -> int:
    """Exit code 1 where a cell is lost, or was measured twice."""
    kind, cells = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="pti-bench-losses-") as made:
        toy = Toy(Path(made))
        begun = time.monotonic()
        done = {"ray": lost_on_ray, "submitit": lost_by_submitit}[kind](toy, cells, *sys.argv[3:])
        print("\n".join(line for line in done.stdout.splitlines() if "stagger x2" not in line or "error" in line))
        print(done.stderr)
        seconds = [float((read_status(folder) or {}).get("seconds", 0)) for folder in toy.cells()]
        print(f"exit code {done.returncode}, {time.monotonic() - begun:.0f} s, {len(toy.cells())} cells, "
              f"{sum(toy.written().values())} writes, {sum(seconds):.0f} s in cells")
        wrong = faults(toy, cells)
        print("\n".join(wrong) or "every cell is there, done, and was written once")
    return 1 if wrong or done.returncode else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
