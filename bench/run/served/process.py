"""A server that is started here: its command line, its port, and its end with all that it started.

It knows the few options that every build of llama-server has, and nothing about requests.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from bench.host import process_group
from bench.run.served.client import Client, ServerFault

HOST = "127.0.0.1"
LOOK_S, PATIENCE_S = 0.02, 5.0
LAST_LINES = 200
_TELLING = ("error", "fail", "couldn't", "cannot", "GGML_ASSERT", "terminate")


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on a port."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
    return True


class Server:
    """The process of one command line, started anew as often as it is asked for.

    `words` are the command without a port; `fixed` is the port that its author chose, 0 for none. `load_s` is how long
    it may take to load its model.
    """

    def __init__(self, words: Sequence[str], log: Path, load_s: float, patience: float, fixed: int = 0,
                 keep: Sequence[int] = ()) -> None:  # fmt: skip
        self._words, self._log, self._load_s, self._patience = list(words), log, load_s, patience
        self._fixed, self._keep = fixed, keep
        self._process: subprocess.Popen[bytes] | None = None
        self._file: IO[bytes] | None = None
        self.started = 0

    def with_options(self, words: Sequence[str]) -> Server:
        """Another server of the same command, with options behind it that take the place of those before."""
        return Server([*self._words, *words], self._log, self._load_s, self._patience, self._fixed, self._keep)

    @property
    def is_up(self) -> bool:
        """Whether it was started, and not stopped."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process is not None, "the server is started first"
        return self._process.pid

    def start(self) -> Client:
        """Start it and wait until it answers. Raises `ServerFault` where it ends before, or never does."""
        port = self._fixed or free_port()
        if self._fixed and not is_free(port):
            raise ServerFault(f"cannot listen on port {port}: another program does")
        words = self._words if self._fixed else [*self._words, "--host", HOST, "--port", str(port)]
        self._file = self._log.open("ab")
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=self._file, stderr=subprocess.STDOUT, pass_fds=self._keep,
                preexec_fn=process_group.dies_with_parent(), env=os.environ | {"GGML_NO_BACKTRACE": "1"},
            )  # fmt: skip
        except OSError as error:
            raise ServerFault(f"does not start ({error.strerror})") from error
        self.started += 1
        client = Client(f"http://{HOST}:{port}", self._patience)
        try:
            self._wait(client)
        except BaseException:
            self.stop()
            raise
        return client

    def _wait(self, client: Client) -> None:
        began = time.monotonic()
        while True:
            self.check("before it answered")
            try:
                client.json("/health", patience=self._patience)
                return
            except ServerFault as fault:
                if time.monotonic() - began > self._load_s:
                    raise ServerFault(f"was not ready {self._load_s:.0f} s after its start: it {fault}") from fault
            time.sleep(LOOK_S)

    def check(self, when: str) -> None:
        """Raise `ServerFault` with its last words where it has ended."""
        assert self._process is not None, "the server is started first"
        code = self._process.poll()
        if code is None:
            return
        how = signal.Signals(-code).name if code < 0 else f"code {code}"
        raise ServerFault(f"ended with {how} {when}: {self.last_words()}")

    def ends_soon(self, within: float = 0.5) -> bool:
        """Whether it is ending: a connection breaks a moment before its process is gone."""
        assert self._process is not None, "the server is started first"
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within)
        return self._process.poll() is not None

    def last_words(self) -> str:
        """The line of its log that tells why it ended."""
        lines = [line.strip() for line in self.log().splitlines()[-LAST_LINES:] if line.strip()]
        telling = [line for line in lines if any(word.lower() in line.lower() for word in _TELLING)]
        return (telling or lines or ["it printed nothing"])[-1][:300]

    def log(self) -> str:
        """All that it printed so far."""
        try:
            return self._log.read_bytes().decode(errors="replace")
        except OSError:
            return ""

    def cpu_seconds(self) -> float:
        """CPU time of its processes; nan where the system does not tell."""
        with suppress(psutil.Error):
            return sum(sum(one.cpu_times()[:2]) for one in _tree(self.pid))
        return float("nan")

    def pause(self) -> None:
        """Stop it where it is, so that it takes no time of another server."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on."""
        self._signal(signal.SIGCONT)

    def _signal(self, kind: signal.Signals) -> None:
        if self._process is not None:
            for one in _tree(self._process.pid):
                with suppress(psutil.Error):
                    one.send_signal(kind)

    def stop(self) -> None:
        """End it and what it started. Calling twice is allowed."""
        if self._process is None:
            return
        tree = _tree(self._process.pid)
        for act in (lambda one: one.send_signal(signal.SIGCONT), psutil.Process.terminate):
            _each(tree, act)
        _, left = psutil.wait_procs(tree, PATIENCE_S)
        _each(left, psutil.Process.kill)
        self._process.wait()
        self._process = None
        if self._file is not None:
            self._file.close()


def _each(processes: Sequence[psutil.Process], act: Callable[[psutil.Process], Any]) -> None:
    for one in processes:
        with suppress(psutil.Error):
            act(one)


def _tree(pid: int) -> list[psutil.Process]:
    """A process and all that it started, a wrapper's server among them."""
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.Error:
        return []
