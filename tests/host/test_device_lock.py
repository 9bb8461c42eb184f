"""One holder a device; the second is told who has it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.host import device_lock
from bench.host.pins import ROOT

HOLD = (
    "import sys, time; from pathlib import Path; from bench.host.device_lock import DeviceLock\n"
    "lock = DeviceLock('cpu', Path(sys.argv[1])).__enter__(); print('held', flush=True); time.sleep(30)"
)


def test_second_holder_is_told_about_the_first_and_a_crash_frees(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path), "sweep", "streams=1,2"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert holder.stdout.readline() == "held\n"
    year = time.strftime("%Y-")
    with pytest.raises(UserError, match=rf"process {holder.pid} \(`.*sweep streams=1,2`, since {year}"):
        device_lock.DeviceLock("cpu", tmp_path).__enter__()
    with device_lock.DeviceLock("cuda0", tmp_path):
        pass
    holder.kill()
    holder.wait()
    with device_lock.DeviceLock("cpu", tmp_path), pytest.raises(UserError, match=str(os.getpid())):
        device_lock.DeviceLock("cpu", tmp_path).__enter__()
    with device_lock.DeviceLock("cpu", tmp_path):
        pass


def test_lock_is_not_inherited_by_children(tmp_path: Path) -> None:
    with device_lock.DeviceLock("cpu", tmp_path):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        with device_lock.DeviceLock("cpu", tmp_path):
            pass
    finally:
        child.kill()
        child.wait()


def test_unreadable_holder_is_still_a_sentence(tmp_path: Path) -> None:
    with device_lock.DeviceLock("cpu", tmp_path) as lock:
        lock._file.truncate(0)
        with pytest.raises(UserError, match=r"by another process.*fuser"):
            device_lock.DeviceLock("cpu", tmp_path).__enter__()
    with pytest.raises(UserError, match="cannot be written"):
        device_lock.DeviceLock("cpu", Path("/proc/nowhere")).__enter__()
