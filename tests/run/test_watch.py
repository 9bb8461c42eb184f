"""A child that has gone silent is ended with all that it started, and one that says something is not."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from bench.run import progress as progress_module
from bench.run import watch
from bench.run.progress import Progress
from bench.run.watch import LEAST_S, Watch, limit


def child(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "TICK_S", 0.05)


def test_a_silent_child_is_ended_with_its_own_children() -> None:
    one = child("import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)")
    seen = Watch(one, lambda: 0.5)
    began = time.monotonic()
    assert one.stdout.read() == ""  # the grandchild holds it open, too
    assert 0.4 < time.monotonic() - began < 20 and seen.ended_after > 0.5 and one.wait() < 0


def test_a_child_that_says_something_goes_on() -> None:
    one = child("import time\nfor _ in range(8): print(1, flush=True); time.sleep(0.2)")
    seen = Watch(one, lambda: 1.0)
    for _ in one.stdout:
        seen.heard()
    assert one.wait() == 0 and seen.ended_after is None


def test_a_stopped_child_is_ended_too() -> None:
    one = child("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    seen = Watch(one, lambda: 0.3)
    assert one.stdout.read() == "" and seen.ended_after is not None


def test_the_limit_comes_from_what_the_cell_should_take(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    assert limit(1.0) == LEAST_S and limit(1e4) == 1e5 and limit(1e4, asked=5.0) == 5.0
    weights = tmp_path / "w.gguf"
    with weights.open("wb") as file:
        file.truncate(20 * 10**9)
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr(progress_module, "time", clock)
    one, two = (SimpleNamespace(work=100.0, model_path=weights, label="x") for _ in range(2))
    bar = Progress([one, two], 0)
    bar.start(one)
    assert bar.expected() == pytest.approx(100 * 20.001)
    clock.now = 30.0
    bar.advance(0.25, "block")
    assert bar.expected() == pytest.approx(120.0)
    clock.now = 150.0
    bar.finish(one, {"state": "done", "reason": ""})
    bar.start(two)
    assert bar.expected() == pytest.approx(150.0) and bar.limit() == pytest.approx(1500.0)
    assert Progress([one], 0, limit=3.0).limit() == 3.0
