"""One holder a device on the whole machine; the second is told who has it, or waits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.host import device_lock
from bench.host.device_lock import DeviceLock, DeviceLocks, lock_folder
from bench.host.pins import ROOT

HOLD = (
    "import os, sys, time; from bench.host.device_lock import DeviceLock\n"
    "os.setuid(int(os.environ.get('TEST_USER') or os.getuid()))\n"
    "lock = DeviceLock(sys.argv[1]).__enter__(); print('held', flush=True); time.sleep(float(sys.argv[2]))"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(device_lock.VARIABLE, str(tmp_path))
    return tmp_path


def hold(device: str, *words: str, **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, device, "30", *words]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, **more)
    assert holder.stdout.readline() == "held\n"
    return holder


def end(*children: subprocess.Popen) -> None:
    for child in children:
        child.kill()
        child.wait()


def test_second_holder_is_told_about_the_first_and_a_crash_frees(place: Path) -> None:
    holder = hold("cpu", "sweep", "streams=1,2")
    year = time.strftime("%Y-")
    with pytest.raises(UserError, match=rf"process {holder.pid} \(`.*sweep streams=1,2`, since {year}.*wait=SECONDS"):
        DeviceLock().__enter__()
    with DeviceLock("GPU-1"):
        pass
    end(holder)
    with DeviceLock(), pytest.raises(UserError, match=str(os.getpid())):
        DeviceLock().__enter__()
    with DeviceLock():
        pass


@pytest.mark.parametrize("wait", [float("nan"), -1.0])
def test_a_wait_that_would_never_end_is_refused(place: Path, wait: float) -> None:
    with pytest.raises(UserError, match="is no number of seconds to wait"):
        DeviceLocks(alone=True, wait=wait)


def test_what_a_session_says_of_itself_parts_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Login shell, cron, sudo: other runtime folders, other temporary ones, one lock."""
    monkeypatch.delenv(device_lock.VARIABLE)
    device = f"test-{os.getpid()}"
    holder = hold(device, env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": str(tmp_path), "HOME": "/"})
    try:
        assert not list(tmp_path.iterdir())
        with pytest.raises(UserError, match=f"process {holder.pid}"):
            DeviceLock(device).__enter__()
    finally:
        end(holder)
        DeviceLock(device).path.unlink()


@pytest.mark.skipif(os.getuid() != 0, reason="another user needs root")
def test_another_user_is_kept_out_and_can_lock_afterwards(place: Path) -> None:
    place.chmod(0o1777)
    with DeviceLock() as lock:
        assert lock.path.stat().st_mode & 0o777 == 0o666
    for parent in place.parents:  # pytest's own folders are the user's alone
        if parent.stat().st_uid == 0 and parent not in (Path("/"), Path("/tmp")):
            parent.chmod(0o755)
    holder = hold("cpu", env=os.environ | {"TEST_USER": "12345"})
    with pytest.raises(UserError, match=f"process {holder.pid}"):
        DeviceLock().__enter__()
    end(holder)
    with DeviceLock():
        pass


def test_the_folder_is_one_that_everybody_may_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(device_lock.VARIABLE)
    own, open_, sticky = (tmp_path / name for name in ("own", "open", "sticky"))
    for folder, mode in ((own, 0o755), (open_, 0o777), (sticky, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
    monkeypatch.setattr(device_lock, "PLACES", (tmp_path / "absent", own, open_, sticky))
    assert lock_folder() == sticky
    monkeypatch.setattr(device_lock, "PLACES", (own,))
    with pytest.raises(UserError, match="PTI_BENCH_LOCKS=FOLDER"):
        lock_folder()


def test_shared_and_alone(place: Path) -> None:
    with DeviceLocks(["GPU-a"], alone=False), DeviceLocks(["GPU-b"], alone=False):
        with pytest.raises(UserError, match="'cpu' is being measured"):
            DeviceLocks(alone=True).__enter__()
        with pytest.raises(UserError, match="'GPU-a' is being measured"):
            DeviceLocks(["GPU-a", "GPU-c"], alone=False).__enter__()
        with DeviceLock("GPU-c"):
            pass
    with DeviceLocks(alone=True), pytest.raises(UserError, match="'cpu'"):
        DeviceLocks(["GPU-a"], alone=False).__enter__()


def test_waiting_ends_with_the_lock_or_with_the_time(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = DeviceLock().__enter__()
    began = time.monotonic()
    with pytest.raises(UserError, match="is being measured"):
        DeviceLocks(alone=True, wait=0.5).__enter__()
    assert 0.5 <= time.monotonic() - began < 5
    timer = threading.Timer(0.5, lock.__exit__)
    timer.start()
    with DeviceLocks(alone=True, wait=30):
        timer.join()
    assert capsys.readouterr().err.count("waiting up to") == 2


def test_a_lock_is_not_inherited_by_chance(place: Path) -> None:
    with DeviceLock():
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        with DeviceLock():
            pass
    finally:
        end(child)


PASSES_ON = (
    "from bench.host.device_lock import held; import subprocess\n"
    "subprocess.Popen(['sleep', '30'], pass_fds=held()); print(len(held()), flush=True); input()"
)


def test_a_device_is_free_when_the_last_holder_has_ended(place: Path) -> None:
    with DeviceLock():
        assert len(device_lock.held()) == 1
        child = subprocess.Popen(
            [sys.executable, "-c", PASSES_ON], pass_fds=device_lock.held(), env=os.environ | device_lock.for_child(),
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert child.stdout.readline() == "1\n"
    assert device_lock.held() == ()
    end(child)  # the `sleep` that it started goes on
    with pytest.raises(UserError, match="another process"):
        DeviceLock().__enter__()
    os.killpg(child.pid, 9)
    with DeviceLock(wait=5):
        pass


def test_a_link_or_a_pipe_in_the_place_of_a_lock_is_not_followed(place: Path) -> None:
    precious, path = place / "precious", DeviceLock().path
    precious.write_text("kept")
    links = (lambda: path.symlink_to(precious), lambda: os.link(precious, path))
    for make in (*links, lambda: os.mkfifo(path), path.mkdir):
        make()
        with pytest.raises(UserError, match=r"cannot be written: .*PTI_BENCH_LOCKS"):
            DeviceLock().__enter__()
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert precious.read_text() == "kept"


def test_a_lock_that_was_removed_while_one_waits_is_taken_anew(place: Path) -> None:
    first = DeviceLock().__enter__()
    timer = threading.Timer(0.5, lambda: (first.path.unlink(), first.__exit__()))
    timer.start()
    with DeviceLock(wait=30) as lock:
        timer.join()
        assert lock.path.exists()
        with pytest.raises(UserError):
            DeviceLock().__enter__()


@pytest.mark.parametrize("text", ["", "[1]", '{"pid": "x"}', '{"pid": 1, "command": "", "since": 1e999}', "[" * 4000])
def test_unreadable_holder_is_still_a_sentence(place: Path, text: str) -> None:
    with DeviceLock() as lock:
        lock.path.write_text(text)
        with pytest.raises(UserError, match=r"by another process.*fuser"):
            DeviceLock().__enter__()
    with pytest.raises(UserError, match="cannot be written"):
        DeviceLock("cpu", Path("/proc/nowhere")).__enter__()


def test_what_a_holder_says_does_nothing_to_a_terminal(place: Path) -> None:
    with DeviceLock() as lock:
        lock.path.write_text('{"pid": 7, "command": "\\u001b[2J\\u202e", "since": 1}')
        with pytest.raises(UserError) as raised:
            DeviceLock().__enter__()
    assert str(raised.value).isprintable()
