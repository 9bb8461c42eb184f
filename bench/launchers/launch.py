"""A sweep by a launcher: deals points, hands shards to workers, takes back what is lost, gathers what came of it.

Where and when a shard runs is Slurm's or Ray's business; what is measured and how, the host's that runs it.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.errors import UserError
from bench.launchers.board import FolderBoard
from bench.launchers.progress import LaunchProgress
from bench.launchers.worker import PATIENCE_S, Report, ShardJob
from bench.plan import shards
from bench.plan.compose import compose_points
from bench.plan.launchers import launcher_of, without
from bench.plan.settings import Config, LauncherConfig
from bench.records.cells import check_writable, read_status
from bench.records.folders import cell_folders
from bench.records.taken import clear_taken

FOLDER = ".launch"
"""Below the results: what a launch needs while it runs, and the logs of one that did not end well."""
LOOK_S = 0.3
_NOBODY_S = 20.0
_GROUPS = ("failed", "unsupported", "newer", "untried")


class Handed(Protocol):
    """A shard that a launcher has."""

    def ended(self) -> bool:
        """Whether it runs no more."""

    def report(self) -> Report:
        """What came of it, once it has ended."""

    def cancel(self) -> None:
        """End it at once."""


class Launcher(Protocol):
    """What runs shards."""

    at_once: int
    """How many may be handed over at a time; 0: all, and it queues them itself."""
    usual_shards: int
    board: Any

    def submit(self, jobs: Sequence[ShardJob]) -> Sequence[Handed]:
        """Hand shards over. Raises `UserError`."""

    def avoid(self, place: str) -> bool:
        """Send nothing more to a host that refused; whether another one is left."""

    def returned(self, job: ShardJob) -> None:
        """A shard has ended, well or not."""


@dataclass
class Launched:
    """What became of a launch."""

    cells: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Machine and label by id."""
    kept: set[str] = field(default_factory=set)
    groups: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in _GROUPS})
    """Reasons of cells that are not done, by id."""
    faults: list[str] = field(default_factory=list)
    """Sentences on hosts, workers and archives."""
    unmeasured: int = 0
    """Points of shards that nobody finished."""
    seconds: float = 0.0

    def take(self, report: Report) -> None:
        """Take in what a worker says of its shard."""
        outcome = report["outcome"]
        self.cells |= {name: (machine, label) for name, (machine, label) in outcome["cells"].items()}
        for name in outcome["cells"]:
            for group in self.groups.values():
                group.pop(name, None)
        for name in _GROUPS:
            self.groups[name] |= dict(outcome[name])


class Launch:
    """One launch while it runs."""

    def __init__(self, launcher: Launcher, jobs: Sequence[ShardJob], retries: int, progress: LaunchProgress,
                 results: Path) -> None:  # fmt: skip
        self._launcher, self._progress, self._results = launcher, progress, results
        self._queue = list(jobs)
        self._left = {job.number: retries for job in jobs}
        self._running: list[tuple[ShardJob, Handed]] = []
        self._nobody_since: float | None = None
        self._has_begun = False
        self.result = Launched()

    def run(self) -> Launched:
        """Until every shard has ended. On KeyboardInterrupt workers end with whole cells, which are kept."""
        try:
            while self._queue or self._running:
                self._hand_over()
                self._gather()
                self._progress.look(self._launcher.board.told())
                self._look_for_workers()
                time.sleep(LOOK_S)
        except BaseException:
            self._stop()
            raise
        return self.result

    def _hand_over(self) -> None:
        room = self._launcher.at_once - len(self._running) if self._launcher.at_once else len(self._queue)
        now, self._queue = self._queue[: max(room, 0)], self._queue[max(room, 0) :]
        if not now:
            return
        try:
            self._running += zip(now, self._launcher.submit(now), strict=True)
        except UserError as error:
            if not self._has_begun:
                raise
            self._fault(str(error))
            for job in now:
                self._give_up(job, "no worker takes it")
        self._has_begun = True

    def _gather(self) -> None:
        for job, handed in [one for one in self._running if one[1].ended()]:
            self._running = [one for one in self._running if one[1] is not handed]
            self._launcher.returned(job)
            self._judge(job, handed.report())

    def _judge(self, job: ShardJob, report: Report) -> None:
        """What a report means: done, to be done by another worker, or given up."""
        host = f"host {report['host']}" if report.get("host") else "its worker"
        self._bring_home(report)
        for sentence in report.get("warnings", ()):
            self._fault(sentence)
        if "outcome" in report:
            self.result.take(report)
            counts = report["outcome"]
            bad = ", ".join(f"{len(counts[name])} {name}" for name in _GROUPS if counts[name])
            words = f"shard {job.number} on {host}: {len(counts['cells'])} cells{f', {bad}' if bad else ''}"
            self._progress.ended(job.number, words)
        elif "refused" in report:
            self._fault(str(report["refused"]))
            if self._launcher.avoid(str(report["place"])):
                self._queue.append(job)
            else:
                self._give_up(job, "no other host is left to take it")
        else:
            self._lost(job, host, report.get("lost", "it was ended"))

    def _lost(self, job: ShardJob, host: str, why: str) -> None:
        if self._left[job.number] > 0:
            self._left[job.number] -= 1
            self._progress.say(f"shard {job.number}: {host} was lost, its cells go to another ({why})")
            self._queue.append(job)
        else:
            self._fault(f"shard {job.number}: {host} was lost, as others before it ({why})")
            self._give_up(job, "launcher.retries=N has it tried more often")

    def _give_up(self, job: ShardJob, why: str) -> None:
        self.result.unmeasured += len(job.points)
        self._progress.ended(job.number, f"shard {job.number}: given up, {why}")

    def _fault(self, sentence: str) -> None:
        if sentence not in self.result.faults:
            self.result.faults.append(sentence)
            self._progress.say(f"error: {sentence}")

    def _bring_home(self, report: Report) -> None:
        """Put the cells that came as an archive among the results."""
        content = report.get("archive")
        if not content:
            return
        from bench.collecting import collect_archive

        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            file.write(content)
            file.flush()
            for sentence in collect_archive(Path(file.name), self._results, f"shard {report['shard']}").faults:
                self._fault(sentence)

    def _look_for_workers(self) -> None:
        """Give up where nobody is left who could take what is handed over."""
        is_left = getattr(self._launcher, "is_left", None)
        if is_left is None or not self._running or is_left():
            self._nobody_since = None
            return
        self._nobody_since = self._nobody_since or time.monotonic()
        if time.monotonic() - self._nobody_since < _NOBODY_S:
            return
        self._fault("no node is left that could measure; start one, and type the same again")
        for job, handed in self._running:
            handed.cancel()
            self._give_up(job, "no node is left")
        for job in self._queue:
            self._give_up(job, "no node is left")
        self._running, self._queue = [], []

    def _stop(self) -> None:
        """Have the workers end with whole cells, bring home what they have, and cancel what does not answer."""
        with suppress(Exception):  # what went wrong is told, and not what goes wrong beside it
            self._launcher.board.stop()
        until = time.monotonic() + PATIENCE_S
        print(f"ending {len(self._running)} shards; a second Ctrl-C waits for none", flush=True)
        try:
            while self._running and time.monotonic() < until:
                ended = [handed for _, handed in self._running if handed.ended()]
                self._running = [one for one in self._running if one[1] not in ended]
                for handed in ended:
                    self._bring_home(handed.report())
                time.sleep(LOOK_S)
        finally:
            for _, handed in self._running:
                handed.cancel()


def launch(overrides: Sequence[str]) -> tuple[Launched, Config]:
    """Run a sweep by the launcher that it names. Raises `UserError` before anything runs, where nothing could run."""
    configs = compose_points(list(overrides))
    asked = launcher_of(configs)
    results = Path(configs[0].results).absolute()
    check_writable(results)
    mark = secrets.token_hex(8)
    folder = results / FOLDER / mark
    folder.mkdir(parents=True)
    begun = time.monotonic()
    try:
        FolderBoard(folder).mark(mark)
        done = _done(results)
        with _launcher(asked, folder, configs) as runs:
            dealt = shards.deal(len(configs), asked.shards or runs.usual_shards, shards.digest(configs))
            jobs = [ShardJob(number, without(overrides), shard.points, shard.digest, sorted(done), str(results),
                             str(folder), mark) for number, shard in enumerate(dealt, start=1)]  # fmt: skip
            sizes = {job.number: len(job.points) for job in jobs}
            with LaunchProgress(sizes, f"by launcher={asked.name}") as progress:
                found = Launch(runs, jobs, asked.retries, progress, results).run()
    except BaseException as error:
        is_told = isinstance(error, KeyboardInterrupt) or not list(folder.glob("shard-*.log"))
        _tidy(folder, well=is_told)
        raise
    for machine in {machine for machine, _ in found.cells.values()}:
        clear_taken(results / machine)
    found.kept, found.seconds = done & found.cells.keys(), time.monotonic() - begun
    _tidy(folder, well=not found.unmeasured and not found.faults)
    return found, configs[0]


def _launcher(asked: LauncherConfig, folder: Path, configs: Sequence[Config]) -> AbstractContextManager[Launcher]:
    if asked.name == "ray":
        from bench.launchers import ray_tasks

        return ray_tasks.launcher(asked, folder, any(config.engine.n_gpu_layers for config in configs))
    from bench.launchers import submitit_jobs

    return submitit_jobs.launcher(asked, folder)


def _done(results: Path) -> set[str]:
    """Ids of the cells that say that they are done; a host that sees their folders looks closer."""
    return {folder.name for folder in cell_folders(results)
            if (status := read_status(folder)) is not None and status["state"] == "done"}  # fmt: skip


def _tidy(folder: Path, well: bool) -> None:
    """Remove what a launch needed; where something went wrong its logs stay."""
    if not well:
        return
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()
