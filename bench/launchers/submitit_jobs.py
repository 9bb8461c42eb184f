"""Shards as jobs of Submitit: of Slurm, or processes of this machine. Slurm decides where and when each runs."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.host import devices
from bench.launchers.board import FolderBoard
from bench.launchers.worker import Report, ShardJob
from bench.plan.settings import LauncherConfig

TIMES_OVER = 10
"""How often a job that reached its minutes goes on."""
_USUAL_SHARDS = 8


class _Job:
    """A job of Submitit's."""

    def __init__(self, job: Any) -> None:
        self._job = job

    def ended(self) -> bool:
        return bool(self._job.done())

    def report(self) -> Report:
        """What the worker said; `lost` where it said nothing."""
        try:
            found: Report = self._job.result()
            return found
        except Exception as error:  # Submitit's own, or whatever the job raised
            said = "" if type(error).__module__.startswith("submitit") else f": {' '.join(str(error).split())[:300]}"
            return {"lost": f"job {self._job.job_id} ended without a word of its shard{said}"}

    def cancel(self) -> None:
        self._job.cancel(check=False)


class SubmititLauncher:
    """Submits shards, all at once or as many as there are devices of this machine. Raises `UserError`."""

    def __init__(self, asked: LauncherConfig, folder: Path) -> None:
        try:
            import submitit
        except ModuleNotFoundError:
            raise UserError("launcher=submitit needs Submitit, which is not installed; run `make setup EXTRA=launch`"
                            ) from None  # fmt: skip
        if asked.cluster == "slurm" and not (shutil.which("sbatch") and shutil.which("srun")):
            raise UserError("launcher=submitit: there is no Slurm on this machine (no sbatch and srun on the PATH); "
                            "type it on a login node, or add launcher.cluster=local for jobs of this machine")
        self._asked, self.board = asked, FolderBoard(folder)
        self._cards = _cards(asked) if asked.cluster == "local" else []
        devices_here = max(len(self._cards), 1)
        self.at_once = (asked.at_once or devices_here) if asked.cluster == "local" else 0
        self.usual_shards = 4 * self.at_once if asked.cluster == "local" else _USUAL_SHARDS
        self._excluded: list[str] = []
        self._executor = submitit.AutoExecutor(
            folder / "jobs", cluster=asked.cluster, slurm_max_num_timeout=TIMES_OVER, local_max_num_timeout=TIMES_OVER)
        self._executor.update_parameters(**_parameters(asked))

    def submit(self, jobs: Sequence[ShardJob]) -> list[_Job]:
        """Hand jobs over. Raises `UserError` where Slurm refuses them."""
        for job in jobs:
            if self._asked.cluster == "local":
                job.variables = self._cards_of(job)
        try:
            with warnings.catch_warnings(action="ignore"), self._executor.batch():
                handed = [self._executor.submit(job) for job in jobs]
        except Exception as error:  # Submitit's own for a refusal, and the system's
            why = " ".join(str(getattr(error, "stderr", "") or error).split())[-400:]
            raise UserError(f"Slurm took no job: {why}; mend launcher.partition and its like, and type the same again"
                            ) from error  # fmt: skip
        return [_Job(job) for job in handed]

    def avoid(self, place: str) -> bool:
        """Send nothing more to a host; whether others may be left."""
        if self._asked.cluster == "local":
            return False
        self._excluded.append(place)
        self._executor.update_parameters(slurm_exclude=",".join(self._excluded))
        return True

    def returned(self, job: ShardJob) -> None:
        """A job has ended, so that its cards are free."""
        if self._asked.cluster == "local" and self._asked.gpus:
            self._cards.append(dict(job.variables))

    def close(self) -> None:
        """Nothing to give back."""

    def _cards_of(self, job: ShardJob) -> dict[str, str | None]:
        """The variables of the next free cards; without cards, what Submitit sets is set back."""
        if self._asked.gpus:
            return self._cards.pop(0)
        return {name: os.environ.get(name) for name in devices.VARIABLES}


def _cards(asked: LauncherConfig) -> list[dict[str, str | None]]:
    """Groups of cards of this machine, as variables that leave one to a process. Raises `UserError`."""
    if not asked.gpus:
        return []
    found = devices.groups(asked.gpus)
    if not found:
        raise UserError(f"launcher.gpus={asked.gpus}: this machine leaves {len(devices.visible())} GPUs to this "
                        "process; lower it, or leave it out for shards of the CPU")  # fmt: skip
    return found


def _parameters(asked: LauncherConfig) -> dict[str, Any]:
    """What Submitit is told of every job. Raises `UserError`."""
    further = dict(_further(asked.options))
    slurm = {"partition": asked.partition, "account": asked.account, "qos": asked.qos}
    found: dict[str, Any] = {"timeout_min": asked.minutes, "name": "pti-bench", "mem_gb": asked.memory_gb or None,
                             "cpus_per_task": asked.cpus or None}  # fmt: skip
    found |= {f"slurm_{key}": value for key, value in slurm.items() if value}
    found |= {"slurm_additional_parameters": further} if further else {}
    found |= {"slurm_array_parallelism": asked.at_once} if asked.at_once else {}
    if asked.gpus:
        return found | {"slurm_gpus_per_node": asked.gpus}
    return found if asked.cpus else found | {"slurm_exclusive": True}


def _further(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word in options:
        key, equals, value = str(word).partition("=")
        if not equals or not key:
            raise UserError(f"launcher.options: '{word}' is no option of sbatch; write [reservation=NAME]")
        yield key.lstrip("-"), value


@contextmanager
def launcher(asked: LauncherConfig, folder: Path) -> Iterator[SubmititLauncher]:
    """A launcher, given back in the end."""
    yield SubmititLauncher(asked, folder)
