"""One measuring process a device at a time: two of them would measure each other.

A GPU is locked by its UUID, and the host by all: shared where a GPU works, for itself alone where the CPU does. The
locks lie in one place a machine, whoever measures and from whatever session; a container shares them where it shares
that folder. They are the kernel's (`flock`): held by every process that has the descriptor, and gone with the last of
them, however that ends. Knows nothing about sweeps.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bench.errors import UserError

VARIABLE = "PTI_BENCH_LOCKS"
"""Names the folder of the locks where a container has none of the usual ones in common with its neighbours."""
PLACES = (Path("/run/lock"), Path("/dev/shm"), Path("/tmp"))
HOST = "cpu"
_PASSED = "PTI_BENCH_HELD"
_STICKY = 0o1777
_MOST_BYTES = 4096
_POLL_S = 0.2
_TELL_S = 60.0
_held: list[int] = []


def held() -> tuple[int, ...]:
    """Descriptors of the locks that this process holds, or was given: for `pass_fds` of a child that measures.

    A device is free when the last process that has its descriptor is gone, whichever that is.
    """
    given = [int(word) for word in os.environ.get(_PASSED, "").split(",") if word.isdecimal()]
    return tuple(dict.fromkeys(number for number in (*_held, *given) if _is_open(number)))


def for_child() -> dict[str, str]:
    """What a child's environment needs for `held` to tell it what it was given."""
    return {_PASSED: ",".join(map(str, held()))}


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except (OSError, OverflowError):
        return False
    return True


def lock_folder() -> Path:
    """The folder of the machine's locks: the first of `PLACES` that everybody may write and nobody may clear.

    What a session's environment says does not count, or two sessions would not see each other. Raises `UserError`.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    for place in PLACES:
        with suppress(OSError):
            mode = os.stat(place).st_mode
            if stat.S_ISDIR(mode) and mode & _STICKY == _STICKY:
                return place
    raise UserError(
        "this machine has no folder that every user may write (/run/lock, /dev/shm, /tmp), so nothing can keep two "
        f"measurements apart; name one with {VARIABLE}=FOLDER"
    )


class DeviceLock:
    """Context manager that holds a device: `cpu`, the host itself, or a GPU's UUID.

    With `shared` others may hold it so, too. `wait` is how many seconds to wait for it. Raises `UserError` with the
    holder's process id, command and start time when another process has it.
    """

    def __init__(self, device: str = HOST, folder: Path | None = None, *, shared: bool = False,
                 wait: float = 0.0) -> None:  # fmt: skip
        if not wait >= 0:  # nan is not, either, and would be waited for
            raise UserError(f"wait={wait} is no number of seconds to wait; write wait=600")
        self.device, self.shared, self.wait = device, shared, wait
        name = re.sub(r"[^A-Za-z0-9.-]", "-", device)
        self.path = (folder or lock_folder()) / f"pti-bench.{name}.lock"
        self._descriptor: int | None = None

    def __enter__(self) -> DeviceLock:
        descriptor = self._opened()
        self._descriptor = descriptor
        _held.append(descriptor)
        with suppress(OSError):  # a full disk takes the sentence for others away, not the lock
            os.ftruncate(descriptor, 0)
            holder = {"pid": os.getpid(), "command": " ".join(sys.argv)[:1000], "since": time.time()}
            os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        return self

    def _opened(self) -> int:
        """The descriptor of the lock, taken. Whoever removed the file meanwhile has others lock another one."""
        while True:
            descriptor = _open(self.path)
            try:
                self._take(descriptor)
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.lstat(self.path)):
                        return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        mode = fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX
        began, told = time.monotonic(), -_TELL_S
        while True:
            try:
                fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                waited = time.monotonic() - began
            sentence = self._taken(descriptor)
            if waited >= self.wait:
                raise UserError(sentence)
            if waited - told >= _TELL_S:
                print(f"waiting up to {self.wait - waited:.0f} s: {sentence}", file=sys.stderr, flush=True)
                told = waited
            time.sleep(min(_POLL_S, self.wait - waited))

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            # The file stays: removing it would let a third process lock a new one while a second waits on the old.
            with suppress(OSError):
                if not self.shared:  # of several, another may have written it
                    os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            _held.remove(self._descriptor)
            self._descriptor = None

    def _taken(self, descriptor: int) -> str:
        try:
            holder = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(holder["since"])))
            # Anybody may write into the file, and what stands there goes to a terminal.
            command = "".join(letter if letter.isprintable() else " " for letter in str(holder["command"]))[:300]
            pid = int(holder["pid"])
            who = f"process {pid} (`{command}`, since {since})"
            hint = f"wait for it with wait=SECONDS, or stop it with `kill {pid}`"
        except (ValueError, KeyError, TypeError, OSError, OverflowError, RecursionError):
            who, hint = "another process", f"find it with `fuser {self.path}`, or wait for it with wait=SECONDS"
        return f"the device '{self.device}' is being measured by {who}; two at once would measure each other; {hint}"


def _open(path: Path) -> int:
    """The lock's file, made where there is none, for every user. Never a link, so that nothing else can be cut."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        if not path.parent.exists() and os.environ.get(VARIABLE):
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Without O_CREAT first: in a folder like /tmp the system refuses it for another user's file.
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            try:
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(descriptor, 0o666)
            except FileExistsError:  # another process was quicker
                descriptor = os.open(path, flags)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            os.close(descriptor)
            raise OSError(errno.EEXIST, "it is no file of its own")
    except OSError as error:
        raise UserError(f"the lock {path} cannot be written: {error.strerror}; remove it, or name another folder with "
                        f"{VARIABLE}=FOLDER for all that measure here") from error  # fmt: skip
    return descriptor


class DeviceLocks:
    """Context manager that holds a host and some GPUs, or nothing where one of them is taken.

    `alone` is whether the CPU itself measures.
    """

    def __init__(self, gpus: Iterable[str] = (), *, alone: bool, wait: float = 0.0, folder: Path | None = None) -> None:
        # Everybody takes them in one order, so that two that wait do not wait for each other.
        self._locks = [DeviceLock(HOST, folder, shared=not alone, wait=wait)]
        self._locks += [DeviceLock(gpu, folder, wait=wait) for gpu in sorted(set(gpus))]
        self._wait = wait

    def __enter__(self) -> DeviceLocks:
        held: list[DeviceLock] = []
        until = time.monotonic() + self._wait
        try:
            for lock in self._locks:
                lock.wait = max(until - time.monotonic(), 0.0)
                held.append(lock.__enter__())
        except BaseException:
            for lock in held:
                lock.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for lock in self._locks:
            lock.__exit__()
