"""Long commands, one after the other: the step, the time and the build's own progress are shown, output goes to a log.

Standard library only. Knows nothing about what the commands do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from bench.durations import clock_text
from bench.errors import UserError
from bench.host import process_group

POLL_S = 0.2
QUIET_S = 30
"""How often a line is printed where lines cannot be overwritten."""
_NINJA = re.compile(rb"\[(\d+)/(\d+)\]")
_NETWORK = re.compile(
    r"NameResolutionError|NewConnectionError|ConnectTimeoutError|ProxyError|Temporary failure in name|"
    r"No matching distribution"
)


class Steps:
    """`run` a known number of commands, whose output goes to `log`."""

    def __init__(self, total: int, log: Path, out: TextIO | None = None) -> None:
        self.total, self.log, self.out = total, log, out or sys.stdout
        self.done = 0
        self._terminal = self.out.isatty()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")

    def run(self, label: str, command: Sequence[object], env: Mapping[str, str] | None = None) -> None:
        """Run one command to its end. Ctrl-C stops its whole process group, so that no compiler stays behind.

        Raises `UserError` with the log's last lines when it fails.
        """
        self.done += 1
        start = time.monotonic()
        with self.log.open("ab") as log:
            log.write(f"\n$ {' '.join(map(str, command))}\n".encode())
            log.flush()
            offset = log.tell()
            process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env=dict(env) if env is not None else None, start_new_session=True,
            )  # fmt: skip
        try:
            self._watch(process, label, start, offset)
        except BaseException:
            process_group.end(process)
            raise
        if process.returncode:
            self._print(label, start, "failed", end=True)
            raise UserError(self._failure(label, process.returncode))
        self._print(label, start, "", end=True)

    def skip(self, label: str, why: str) -> None:
        """Count a step that has nothing to do."""
        self.done += 1
        self.out.write(f"[{self.done}/{self.total}] {label}: {why}\n")
        self.out.flush()

    def _watch(self, process: subprocess.Popen[bytes], label: str, start: float, offset: int) -> None:
        shown = start if not self._terminal else 0.0
        while True:
            try:
                process.wait(POLL_S)
                return
            except subprocess.TimeoutExpired:
                pass
            now = time.monotonic()
            if now - shown >= (1 if self._terminal else QUIET_S):
                shown = now
                self._print(label, start, self._compiled(offset))

    def _compiled(self, offset: int) -> str:
        """`137/250 files` from the newest line of ninja in the log."""
        with self.log.open("rb") as log:
            log.seek(max(offset, log.seek(0, os.SEEK_END) - 4096))
            found = _NINJA.findall(log.read())
        return f"{int(found[-1][0])}/{int(found[-1][1])} files" if found else ""

    def _print(self, label: str, start: float, detail: str, end: bool = False) -> None:
        text = f"[{self.done}/{self.total}] {label}: {clock_text(time.monotonic() - start)}"
        text += f", {detail}" if detail else ""
        if self._terminal:
            self.out.write(f"\r\x1b[2K{text}" + ("\n" if end else ""))
        else:
            self.out.write(text + "\n")
        self.out.flush()

    def _failure(self, label: str, code: int) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()[-12:]
        tail = "\n".join("    " + line[:200] for line in lines)
        if _NETWORK.search(tail):
            hint = "the package index cannot be reached or lacks this version; check network and pip's index settings"
        elif code < 0:
            hint = f"it was ended by signal {-code}; if memory ran out, try `CMAKE_BUILD_PARALLEL_LEVEL=1 make setup`"
        else:
            hint = "mend what it says and run `make setup` again; finished steps are kept"
        return f"{label} failed with code {code}; {hint}. Whole log: {self.log}\n{tail}"
