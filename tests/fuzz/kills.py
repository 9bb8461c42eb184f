"""`python -m tests.fuzz.kills [COUNT] [SEED] [SIGNAL]`: kill -9 at random points of a sweep, and what is left of it.

With a signal's name (INT, TERM, HUP) that one is sent instead, twice in a row, as somebody does who cannot wait.

The sweep is the real one; its cells are measured by a stand-in that decodes nothing, starts a peer program as the real
worker does and writes its cell by the real writer. The parent, the worker, the peer or a process that is just writing
is killed. Afterwards no process may be left, no lock held, no half cell readable, nothing foreign touched, and the same
command has to finish. The last line has the number of kills by what was killed, and of each kind of fault.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from bench.errors import UserError
from bench.host.device_lock import DeviceLock
from bench.records.cells import StoredCell, cell_folders, read_cell

MARK = "PTI_KILL_TEST"
WORDS = ["prompts=short", "profile=false", "n_predict=6", "streams=2,3,4", "machine=box"]
FOREIGN = (".git/HEAD", ".notes/mine", ".0123456789ab.elsewhere.1.abcdefgh.partial/cell.yaml", "notes.txt")
PATIENCE_S = 300
"""With a sweep; beside other work a start alone takes long."""
KINDS = ("parent", "worker", "peer", "writing")
FAULTS = ("half cells", "orphans", "foreign files touched", "locks held", "leftovers", "resumes wrong")


def worker() -> int:
    """The stand-in: a peer beside it, some progress, a cell."""
    from bench.records import partial_cells
    from bench.records.cells import write_cell
    from bench.records.rows import Step
    from bench.run.peer_programs import _start

    job = json.loads(sys.stdin.read())
    for share in range(3):
        print(json.dumps({"share": share / 3, "label": "x"}), flush=True)
        _start(["sleep", "0.5"])
    write_through = partial_cells.write_through

    def slowly(path: Path, content: bytes) -> None:
        time.sleep(0.1)
        write_through(path, content)

    partial_cells.write_through = slowly
    rows = [Step(1, number, 0, "tokens", 5, 3) for number in range(20_000)]
    write_cell(Path(job["folder"]), config=job["config"], env=job["environment"], tables={"steps": rows},
               status={"state": "done", "reason": "", "seconds": 0.1})  # fmt: skip
    return 0


def marked(mark: str) -> dict[int, str]:
    """Processes with this mark in their environment, and their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0") and state not in "ZX":
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return found


def below(pid: int) -> dict[str, int]:
    """The worker of a sweep and its peer, by kind: a look at every process would take longer than they live."""
    found = {"parent": pid}
    for kind in ("worker", "peer"):
        place = Path(f"/proc/{pid}/task")
        with suppress(OSError):
            for pid in [int(word) for task in place.iterdir() for word in (task / "children").read_text().split()]:
                if kind_of(_command(pid)) == kind:
                    found[kind] = pid
        if kind not in found:
            break
        pid = found[kind]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kind_of(command: str) -> str:
    return "peer" if command.startswith("sleep") else "worker" if command.rstrip().endswith("--worker") else "helper"


class StandIn(subprocess.Popen[str]):
    """Any child of a sweep, but for the one that measures."""

    def __init__(self, command: Any, *given: Any, **more: Any) -> None:
        if command[1:3] == ["-m", "bench.run.cell_process"]:
            command = [sys.executable, "-m", "tests.fuzz.kills", "--worker"]
        super().__init__(command, *given, **more)


class Sweep:
    """A whole `sweep` in a process of its own: a copy of this one, since what it has to load takes longest."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.output = folder / "output"
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._run(folder, mark)

    def _run(self, folder: Path, mark: str) -> NoReturn:
        code = 70
        try:
            from bench.cli import main

            for number in (1, 2):
                os.dup2(os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
            os.environ |= {MARK: mark, "PTI_BENCH_LOCKS": str(folder / "locks")}
            subprocess.Popen = StandIn  # type: ignore[misc]
            code = main(["sweep", *WORDS, f"results={folder / 'results'}"])
        finally:
            sys.stdout.flush()
            os._exit(code)

    def poll(self) -> int | None:
        if self.code is None and (found := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.code = os.waitstatus_to_exitcode(found[1])
        return self.code

    def wait(self) -> str:
        """What it printed, once it has ended. Raises TimeoutError."""
        until = time.monotonic() + PATIENCE_S
        while self.poll() is None:
            if time.monotonic() > until:
                raise TimeoutError(self.output.read_text())
            time.sleep(0.05)
        return self.output.read_text()


def kill_some(draw: random.Random, sweep: Sweep, box: Path, kind: signal.Signals) -> list[str]:
    """Kills in one sweep, at most one a cell, until the sweep itself is killed or ends; returns what was killed."""
    killed: list[str] = []
    worker, seen, tried, until = 0, 0.0, False, time.monotonic() + PATIENCE_S
    wanted, wait = draw.choice(KINDS), draw.random() * 1.5
    while sweep.poll() is None and time.monotonic() < until:
        time.sleep(0.01 if worker else 0.1)
        kinds = below(sweep.pid)
        if kinds.get("worker", worker) != worker:
            worker, seen, tried = kinds["worker"], time.monotonic(), False
        writing = [path for path in box.glob(".*.partial") if "elsewhere" not in path.name]
        target = kinds.get(draw.choice(("worker", "parent")) if wanted == "writing" and writing else wanted)
        if not worker or tried or time.monotonic() - seen < wait or not target or (wanted == "writing" and not writing):
            continue
        with suppress(ProcessLookupError):
            os.kill(target, kind)
            killed.append(wanted)
            if kind != signal.SIGKILL:
                time.sleep(draw.random() * 0.3)
                with suppress(ProcessLookupError):
                    os.kill(target, kind)
            if target == sweep.pid:
                break
        tried, wanted, wait = True, draw.choice(KINDS), draw.random() * 1.5
    return killed


def once(draw: random.Random, folder: Path, mark: str, kind: signal.Signals) -> tuple[list[str], list[str]]:
    """Some kills; returns what was killed and what is wrong afterwards."""
    box = folder / "results" / "box"
    for name in FOREIGN:
        (box / name).parent.mkdir(parents=True, exist_ok=True)
        (box / name).write_text("foreign")
    foreign = {name: _state(box / name) for name in FOREIGN}
    sweep = Sweep(folder, mark)
    killed = kill_some(draw, sweep, box, kind)
    sweep.wait()  # where it lives, it goes on with the other cells
    time.sleep(0.3)
    wrong = [f"orphans: {kind_of(command)}" for command in marked(mark).values()]
    wrong += _left(folder, box, foreign)
    (folder / "output").unlink()
    again = Sweep(folder, f"{mark}-again")
    said = again.wait()
    if again.code or "3 of 3 cells done" not in said or len(cell_folders(folder / "results")) != 3:
        wrong.append(f"resumes wrong: {said[-300:]}")
    wrong += _left(folder, box, foreign)
    if len(list(box.glob(".*"))) != 3:
        wrong.append(f"leftovers: {[path.name for path in box.glob('.*')]}")
    return killed, wrong


def _state(path: Path) -> tuple[object, ...]:
    """What a touched file has another one of; empty for one that is gone."""
    if not path.is_file():
        return ()
    found = path.stat()
    return path.read_bytes(), found.st_ino, found.st_mtime_ns, found.st_mode


def _left(folder: Path, box: Path, foreign: Mapping[str, object]) -> list[str]:
    wrong = [f"half cells: {found}" for place in cell_folders(folder / "results")
             if not isinstance(found := read_cell(place), StoredCell)]  # fmt: skip
    wrong += [f"foreign files touched: {name}" for name, was in foreign.items() if _state(box / name) != was]
    try:
        with DeviceLock("cpu", folder / "locks"):
            pass
    except UserError as error:
        wrong.append(f"locks held: {error}")
    return wrong


def many() -> int:
    if "--worker" in sys.argv:
        return worker()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    import bench.run.sweep
    from bench.plan.compose import compose_points

    assert bench.run.sweep and compose_points(WORDS)  # what a sweep loads, once for all
    killed: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    kind = signal.Signals[f"SIG{sys.argv[3]}"] if len(sys.argv) > 3 else signal.SIGKILL
    number = 0
    while killed.total() < count:
        folder = Path(tempfile.mkdtemp(prefix="kills"))
        what, found = once(draw, folder, f"{os.getpid()}-{number}", kind)
        killed.update(what)
        wrong.update(one.partition(":")[0] for one in found)
        shutil.rmtree(folder)
        number += 1
        print(f"{number} sweeps, {killed.total()} kills", flush=True)
        for one in found:
            print(f"{number}, {' '.join(what)} killed: {one}", flush=True)
    print(summary(number, killed, wrong), flush=True)
    return int(bool(wrong))


def summary(sweeps: int, killed: Counter[str], wrong: Counter[str]) -> str:
    """The last line: `12 kills in 7 sweeps (3 parent, ..), 7 resumes: 0 half cells, 0 orphans, ..`."""
    kinds = ", ".join(f"{killed[kind]} {kind}" for kind in KINDS)
    faults = ", ".join(f"{wrong[fault]} {fault}" for fault in FAULTS)
    return f"{killed.total()} kills in {sweeps} sweeps ({kinds}), {sweeps} resumes: {faults}"


if __name__ == "__main__":
    sys.exit(many())
