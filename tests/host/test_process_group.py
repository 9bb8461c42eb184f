"""A child and what it started end together, also when the child does not want to."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.host import process_group

ROOT = Path(__file__).resolve().parents[2]

CODE = """
import signal, subprocess, sys, time
{first}
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(grandchild.pid, flush=True)
time.sleep(60)
"""


def gone(pid: int) -> bool:
    """Ended, if not collected yet by whoever inherited it."""
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def goes(pid: int) -> bool:
    """Whether it ends within ten seconds."""
    deadline = time.monotonic() + 10
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return gone(pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here, as on a Mac without a GPU driver")
@pytest.mark.parametrize("first", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_nothing_of_the_group_is_left(first: str, monkeypatch) -> None:
    monkeypatch.setattr(process_group, "PATIENCE_S", 0.5)
    child = subprocess.Popen(
        [sys.executable, "-c", CODE.format(first=first)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    grandchild = int(child.stdout.readline())
    process_group.end(child)
    assert child.returncode == (-15 if not first else -9)
    assert goes(grandchild)
    process_group.end(child)  # once more is no error


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here, as on a Mac without a GPU driver")
def test_what_a_child_that_ends_well_leaves_behind_is_killed() -> None:
    stubborn = "trap '' TERM; echo; sleep 60"
    code = (
        "import subprocess, time\n"
        f"left = subprocess.Popen(['sh', '-c', {stubborn!r}], stdout=subprocess.PIPE)\n"
        "left.stdout.readline()\nprint(left.pid, flush=True)\ntime.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    left = int(child.stdout.readline())
    process_group.end(child)
    assert child.returncode == -signal.SIGTERM
    assert goes(left)


PEER = """
import sys
from bench.run.peer_programs import _start
_start(["sh", "-c", "echo $$ > $0.part; mv $0.part $0; exec sleep 60", sys.argv[1]])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end, GPU or not")
def test_a_peer_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Its process group is not told: a sweep that was killed cannot do that."""
    worker = subprocess.Popen([sys.executable, "-c", PEER, str(tmp_path / "pid")], cwd=ROOT)
    deadline = time.monotonic() + 20
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    peer = int((tmp_path / "pid").read_text())
    assert not gone(peer)
    worker.kill()
    worker.wait()
    assert goes(peer)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end, GPU or not")
def test_a_child_whose_parent_ended_before_it_could_be_asked_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_group.os, "getpid", lambda: 1)
    ask = process_group.dies_with_parent()
    assert subprocess.run([sys.executable, "-c", "print(1)"], preexec_fn=ask, capture_output=True).stdout == b""
