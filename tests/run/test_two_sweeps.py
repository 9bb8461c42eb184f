"""Two whole `sweep` commands at once, of two sessions and of two users: the second one refuses, or waits its turn.

The locks are where every user's are, under a device's name of the test's own. The cells are measured by a stand-in that
says when it begins and ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.host import device_lock
from bench.host.pins import ROOT
from bench.records.cells import StoredCell, load_cells

SWEEP = """
import subprocess, sys
from bench.cli import main
from bench.host import device_lock
device_lock.HOST = sys.argv[1]
real = subprocess.Popen
class Stub(real):
    def __init__(self, command, *given, **more):
        if command[1:3] == ["-m", "bench.run.cell_process"]:
            command = [sys.executable, "-c", WORKER, sys.argv[2]]
        super().__init__(command, *given, **more)
WORKER = '''
import json, sys, time
from pathlib import Path
from bench.records.cells import write_cell
job, place, begun = json.loads(sys.stdin.read()), Path(sys.argv[1]), time.monotonic()
(place / "begun").touch()
while not (place / "go").exists():
    time.sleep(0.05)
write_cell(Path(job["folder"]), config=job["config"], env=job["environment"], tables={},
           status={"state": "done", "reason": "", "seconds": 0.1, "begun": begun, "ended": time.monotonic()})
'''
subprocess.Popen = Stub
sys.exit(main(["sweep", "prompts=short", "profile=false", "n_predict=6", "streams=2", "machine=box", *sys.argv[3:]]))
"""
# Reads what the first user may, as the interpreter in a home folder, and writes nothing of that user's.
ANOTHER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+dac_read_search",
           "--ambient-caps=-all,+dac_read_search", "--bounding-set=-all,+dac_read_search")  # fmt: skip
MOST_S = 100


class Session:
    """One user's sweeps, with folders of their own."""

    def __init__(self, folder: Path, device: str, user: tuple[str, ...]) -> None:
        self.folder, self.device, self.user = folder, device, user
        for name in ("", "results", "home", "run"):
            (folder / name).mkdir()
            (folder / name).chmod(0o777)

    def sweep(self, *words: str) -> subprocess.Popen[str]:
        kept = {key: value for key, value in os.environ.items() if key != device_lock.VARIABLE}
        own = {"HOME": "home", "XDG_CACHE_HOME": "home", "TMPDIR": "run", "XDG_RUNTIME_DIR": "run"}
        command = [*self.user, sys.executable, "-c", SWEEP, self.device, str(self.folder)]
        return subprocess.Popen([*command, f"results={self.folder / 'results'}", *words], cwd=ROOT, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=kept | {key: str(self.folder / name) for key, name in own.items()})  # fmt: skip

    def cell(self) -> StoredCell:
        (cell,) = load_cells(self.folder / "results")
        assert isinstance(cell, StoredCell), cell
        return cell


@pytest.fixture
def device() -> Iterator[str]:
    name = f"test-{os.getpid()}"
    yield name
    (device_lock.PLACES[0] / f"pti-bench.{name}.lock").unlink(missing_ok=True)
    for place in device_lock.PLACES[1:]:
        (place / f"pti-bench.{name}.lock").unlink(missing_ok=True)


ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="another user needs root")


@pytest.mark.timeout(3 * MOST_S)
@pytest.mark.parametrize("user", [(), pytest.param(ANOTHER, marks=ROOT_ONLY)], ids=["session", "user"])
def test_the_second_sweep_refuses_or_waits(tmp_path: Path, device: str, user: tuple[str, ...]) -> None:
    tmp_path.chmod(0o755)
    first, second = Session(tmp_path / "one", device, ()), Session(tmp_path / "two", device, user)
    (second.folder / "go").touch()
    running = first.sweep()
    try:
        until = time.monotonic() + MOST_S
        while not (first.folder / "begun").exists() and running.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        refused = second.sweep()
        _, said = refused.communicate(timeout=MOST_S)
        assert refused.returncode == 2 and f"is being measured by process {running.pid} (" in said, said
        assert "wait=SECONDS" in said and not [*(second.folder / "results").iterdir()]
        waiting = second.sweep(f"wait={MOST_S}")
        assert waiting.stderr is not None and waiting.stderr.readline().startswith("waiting up to ")
        assert not (second.folder / "begun").exists()
        (first.folder / "go").touch()
        for sweep in (running, waiting):
            told, said = sweep.communicate(timeout=MOST_S)
            assert sweep.returncode == 0 and "1 of 1 cells done" in told, told + said
    finally:
        running.kill()
    one, other = first.cell(), second.cell()
    assert one.status["ended"] < other.status["begun"]
    owner = (second.folder / "results" / "box" / other.cell).stat().st_uid
    assert owner == (65534 if user else os.getuid())
