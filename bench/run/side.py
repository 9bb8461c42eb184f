"""A process that holds one side of a contrast, as whoever tells it what to do sees it. It knows no arm."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.host import process_group
from bench.run.side_words import END, FAULT, ROW
from pti_loop.engine import EngineError

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 5


class Side:
    """A process that holds one side, stopped while nothing is asked of it."""

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self.name, self._environment = name, environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def start(self) -> None:
        """A fresh process, which has loaded nothing yet."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.run.side_process", str(theirs.fileno())], cwd=ROOT,
                pass_fds=(theirs.fileno(),), env=os.environ | dict(self._environment), stdin=subprocess.DEVNULL,
                preexec_fn=process_group.dies_with_parent(),
            )  # fmt: skip
            self._connection = Connection(ours.detach())

    def call(self, name: str, *arguments: Any) -> Any:
        """What the side answers to one call. Raises the error that it ended with there, or `EngineError` if it died."""
        with self._awake():
            self._send(name, arguments)
            kind, value = self._receive()
        if kind == FAULT:
            raise value
        return value

    def rows(self, name: str, *arguments: Any) -> Iterator[Any]:
        """The rows that the side answers with, as they come; all are taken, whoever asked for them."""
        with self._awake():
            self._send(name, arguments)
            kind, value = self._receive()
            try:
                while kind == ROW:
                    yield value
                    kind, value = self._receive()
            finally:
                while kind == ROW:
                    kind, value = self._receive()
        if kind != END:
            raise value

    def cpu_seconds(self) -> float:
        """CPU time of the process with all its threads; nan where the system does not tell."""
        assert self._process is not None
        try:
            words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return float("nan")

    def close(self) -> None:
        """End the process. Calling twice is allowed."""
        if self._process is None:
            return
        self._connection.close()
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    @contextmanager
    def _awake(self) -> Iterator[None]:
        """The process may run inside."""
        assert self._process is not None, f"the {self.name}'s side is not open"
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it died; the next call says so
            if self._process is not None:
                self._process.send_signal(number)

    def _send(self, name: str, arguments: tuple[Any, ...]) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it died; the answer that does not come tells
            self._connection.send((name, arguments))

    def _receive(self) -> tuple[str, Any]:
        try:
            kind, value = self._connection.recv()
        except (EOFError, ConnectionResetError) as error:
            assert self._process is not None
            code = self._process.wait()
            name = signal.Signals(-code).name if code < 0 else f"code {code}"
            raise EngineError(f"the process of the {self.name}'s build ended with {name}; its log says more") from error
        return kind, value
