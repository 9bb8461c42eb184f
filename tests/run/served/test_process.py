"""Servers as processes: started on a free port, ended with all that they started, and gone when whoever asked is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench.run.served.client import ServerFault
from bench.run.served.process import Server, free_port

ROOT = Path(__file__).resolve().parents[3]


def server(program, tmp_path, *words, before=(), load_s=20.0, fixed=0):
    return Server([*before, program, *words], tmp_path / "log", load_s, 5.0, fixed)


def gone(pid, within=5.0):
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_a_server_is_started_anew_and_ended(program, tmp_path) -> None:
    one = server(program, tmp_path)
    pids = []
    for _ in range(2):
        assert one.start().json("/health") == {"status": "ok"}
        pids.append(one.pid)
        one.stop()
        one.stop()
    assert one.started == 2 and len(set(pids)) == 2 and all(map(gone, pids))


def test_one_that_a_wrapper_started_is_ended_too(program, tmp_path) -> None:
    shell = tmp_path / "wrapper"
    shell.write_text('#!/bin/sh\n"$@"\necho over\n')
    shell.chmod(0o755)
    one = server(program, tmp_path, before=(str(shell),))
    one.start()
    children = [child.pid for child in psutil.Process(one.pid).children(recursive=True)]
    assert children
    one.pause()
    one.stop()
    assert all(map(gone, children))


@pytest.mark.parametrize(("words", "says"), [
    (["--wrong", "exits"], "ended with code 1 before it answered: error: failed to load model"),
    (["--bogus"], "ended with code 1 before it answered: error: invalid argument: --bogus"),
    (["--wrong", "loads"], "was not ready 1 s after its start: it answers /health with HTTP 503"),
])  # fmt: skip
def test_one_that_does_not_come_up_says_why(program, tmp_path, words, says) -> None:
    one = server(program, tmp_path, *words, load_s=1.0 if "loads" in words else 20.0)
    with pytest.raises(ServerFault, match=says):
        one.start()
    assert not one.is_up


def test_a_port_of_ones_own_that_is_in_use_is_told(program, tmp_path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ServerFault, match=f"cannot listen on port {port}"):
            server(program, tmp_path, "--port", str(port), fixed=port).start()
    assert free_port() > 0


def test_no_server_outlives_whoever_started_it(program, tmp_path) -> None:
    text = (
        "import sys, time\nfrom pathlib import Path\nfrom bench.run.served.process import Server\n"
        f"one = Server([{program!r}], Path({str(tmp_path / 'log')!r}), 20.0, 5.0)\n"
        "one.start()\nprint(one.pid, flush=True)\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", text], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert psutil.pid_exists(pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert gone(pid)
