"""A shard in the hands of a worker: the process that measures it, ended when asked, and its cells brought home.

The same for every launcher: it is called in a job of Submitit's and in a task of Ray's. Where the worker sees the
folder of the launch, cells go straight to the results; else they come back as an archive. It measures nothing itself.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bench.errors import UserError
from bench.host import process_group
from bench.host.pins import ROOT
from bench.launchers.agreement import agree
from bench.launchers.board import Board, FolderBoard
from bench.records.process_table import name_of_host

LOOK_S = 1.0
PATIENCE_S = 30.0
"""A sweep that is asked to end waits for the process of its cell."""
_LAST_LINES = 3

Report = dict[str, Any]
"""What a worker says of its shard: `place` and `host` in any case, and `outcome`, `refused`, `lost` or `stopped`."""


@dataclass
class ShardJob:
    """A shard, ready to be sent; calling it measures it. It can be pickled and called again, and then goes on."""

    number: int
    overrides: list[str]
    points: tuple[int, ...]
    digest: str
    done: list[str]
    """Ids of cells that are done where the results are."""
    results: str
    folder: str
    """Of the launch, as the host that began it sees it."""
    mark: str
    board: Any = None
    """A `Board` where it is no folder."""
    variables: dict[str, str | None] = field(default_factory=dict)
    """Of the environment, such as the GPUs of this shard; None: not set."""
    place: str = ""
    """What the launcher calls the host, where the job does not know it by itself."""

    def __call__(self) -> Report:
        """Measure; whatever happens becomes a report."""
        folder = FolderBoard(Path(self.folder))
        is_shared = folder.is_marked(self.mark)
        board: Board = self.board if self.board is not None else folder
        report: Report = {"shard": self.number, "host": name_of_host(), "place": self.place or _place(), "warnings": []}
        if board.is_stopped():
            return report | {"stopped": True}
        results = Path(self.results) if is_shared else self._own_results()
        try:
            with self._log(is_shared) as log:
                report |= self._run(results, [] if is_shared else self.done, board, report, log)
        except OSError as error:
            return report | {"refused": f"{report['host']} cannot run it: {error.strerror or error}"}
        if not is_shared:
            report["archive"] = packed(results)
            if "outcome" in report:
                shutil.rmtree(results, ignore_errors=True)
        return report

    def checkpoint(self) -> Any:
        """What Submitit calls when the job is preempted or its time is over: the same again, which goes on."""
        from submitit.helpers import DelayedSubmission

        self._end()
        return DelayedSubmission(self)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}

    def _own_results(self) -> Path:
        """A folder of this host, the same for a shard that comes here again."""
        return Path(tempfile.gettempdir()) / f"pti-bench-{os.getuid()}" / self.mark / str(self.number)

    def _log(self, is_shared: bool) -> IO[str]:
        if is_shared:
            return (Path(self.folder) / f"shard-{self.number}.log").open("a+")
        return tempfile.TemporaryFile("a+")

    def _run(self, results: Path, done: list[str], board: Board, about: Report, log: IO[str]) -> Report:
        begins = log.tell()
        words = [word for word in self.overrides if not word.startswith("results=")]
        job = {"overrides": [*words, f"results={results}"], "points": self.points, "digest": self.digest,
               "done": done}  # fmt: skip
        environment = {key: value for key, value in (os.environ | self.variables).items() if value is not None}
        child = subprocess.Popen([sys.executable, "-m", "bench.launchers.shard_process"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, env=environment,
                                 start_new_session=True, preexec_fn=process_group.dies_with_parent())  # fmt: skip
        self._child = child
        ended = threading.Event()
        threading.Thread(target=_end_when_stopped, args=(child, board, ended), daemon=True).start()
        try:
            found = self._listen(child, json.dumps(job), board, about)
            child.wait()
        except BaseException:
            self._end()
            raise
        finally:
            ended.set()
        if found:
            return found
        if child.returncode == 130 or board.is_stopped():
            return {"stopped": True}
        log.seek(begins)
        said = [line.strip() for line in log.read().splitlines() if line.strip()]
        return {"lost": f"its process ended with {child.returncode}: {' | '.join(said[-_LAST_LINES:])[-500:]}"}

    def _listen(self, child: subprocess.Popen[str], job: str, board: Board, about: Report) -> Report:
        """Give the process its job, answer its question, and pass on how far it is; returns what it says in the end."""
        assert child.stdin and child.stdout, "they were asked for as pipes"
        with suppress(BrokenPipeError):
            child.stdin.write(job + "\n")
            child.stdin.flush()
        ended, found = 0, Report()
        for line in child.stdout:
            told = json.loads(line)
            if "facts" in told:
                answer = self._answer(told["facts"], board, about)
                with suppress(BrokenPipeError):
                    child.stdin.write(json.dumps(answer) + "\n")
                    child.stdin.flush()
            elif "cell" in told:
                ended += 1
                board.tell(self.number, ended, str(told["label"]))
            else:
                found = told
        return found

    def _answer(self, facts: Mapping[str, str], board: Board, about: Report) -> dict[str, str]:
        try:
            about["warnings"] = agree(facts, board, f"host {about['host']}")
        except UserError as error:
            return {"refused": str(error)}
        return {"go": "on"}

    def _end(self) -> None:
        """Have the process end, with whole cells."""
        child = vars(self).get("_child")
        if child is not None:
            _ask_to_end(child)
            process_group.end(child)


def _end_when_stopped(child: subprocess.Popen[str], board: Board, ended: threading.Event) -> None:
    while not ended.wait(LOOK_S):
        if board.is_stopped():
            _ask_to_end(child)
            process_group.end(child)
            return


def _ask_to_end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE_S)


def _place() -> str:
    """What Slurm calls this host, else its own name."""
    return os.environ.get("SLURMD_NODENAME") or name_of_host()


def packed(results: Path) -> bytes:
    """The cells of a folder as one archive; empty where there is none. Raises `OSError`."""
    from bench.records.archives import PackedCell, write_archive
    from bench.records.cells import whole_contents
    from bench.records.folders import cell_folders

    folders = cell_folders(results)
    if not folders:
        return b""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "cells.tar"
        cells = (PackedCell(one.parent.name, one.name, whole_contents(one)) for one in folders)
        write_archive(path, cells, {})
        return path.read_bytes()
