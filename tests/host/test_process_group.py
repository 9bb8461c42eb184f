"""A child and what it started end together, also when the child does not want to."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.host import process_group

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
    deadline = time.monotonic() + 10
    while not gone(grandchild) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert gone(grandchild)
    process_group.end(child)  # once more is no error
