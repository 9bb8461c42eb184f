"""What else ran: counted from the kernel's own counters, and unknown where it does not tell."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.host import neighbours
from bench.host.neighbours import Neighbours


def stat(proc: Path, user: int, idle: int, stolen: int, guest: int = 0) -> None:
    (proc / "stat").write_text(f"cpu  {user} 0 0 {idle} 5 0 0 {stolen} {guest} 0\ncpu0 1 1 1 1\n")


def test_busy_time_of_others_and_stolen_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    now = {"monotonic": 10.0, "process_time": 1.0}
    monkeypatch.setattr(neighbours.time, "monotonic", lambda: now["monotonic"])
    monkeypatch.setattr(neighbours.time, "process_time", lambda: now["process_time"])
    stat(tmp_path, 100 * ticks, 50 * ticks, 2 * ticks)
    (tmp_path / "loadavg").write_text("1.25 0.5 0.1 1/99 1234\n")
    around = Neighbours(proc=tmp_path)
    now.update(monotonic=14.0, process_time=4.0)
    stat(tmp_path, 109 * ticks, 70 * ticks, 4 * ticks, guest=9 * ticks)
    found = around.look()
    assert (found.load, found.gpu_others) == (1.25, -1)
    assert found.other_cpus == pytest.approx((9 - 3) / 4) and found.steal == pytest.approx(2 / 4)
    now.update(monotonic=15.0)
    assert around.look().other_cpus == 0.0


@pytest.mark.parametrize("text", ["", "cpu a b", "cpu 1 2"])
def test_what_is_not_told_is_unknown(tmp_path: Path, text: str) -> None:
    (tmp_path / "stat").write_text(text)
    found = Neighbours("gpu", tmp_path).look()
    assert math.isnan(found.load) and math.isnan(found.other_cpus) and math.isnan(found.steal)


def test_a_neighbour_shows() -> None:
    around = Neighbours()
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(1.0)
    found = around.look()
    other.kill()
    other.wait()
    assert found.other_cpus > 0.3
