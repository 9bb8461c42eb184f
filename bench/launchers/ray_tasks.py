"""Shards as tasks of Ray, on a cluster or on this machine. Ray decides where and when each runs.

A shard of GPUs asks for Ray's own resource, one of a CPU for a resource by which a host says that it is free to be
measured on. It knows nothing about what a shard does.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.launchers.worker import Report, ShardJob
from bench.plan.settings import LauncherConfig

RESOURCE = "bench_host"
"""What a node declares, once, whose CPU may be measured on."""
START = "ray start --address=HEAD:6379 --resources='{\"bench_host\": 1}'"
_NICE = "RAY_worker_niceness"
_OF_RAY = ("OMP_NUM_THREADS",)
"""What Ray sets for a task of one CPU, which a measurement is not to inherit."""


class _Notes:
    """The actor behind a `RayBoard`: what `bench.launchers.board.Board` says, in memory."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, str]] = {}
        self._told: dict[int, tuple[int, str]] = {}
        self._stopped = False

    def first(self, key: str, value: str, who: str) -> tuple[str, str]:
        return self._first.setdefault(key, (value, who))

    def tell(self, shard: int, ended: int, what: str) -> None:
        self._told[shard] = (ended, what)

    def told(self) -> dict[int, tuple[int, str]]:
        return self._told

    def stop(self) -> None:
        self._stopped = True

    def is_stopped(self) -> bool:
        return self._stopped


class RayBoard:
    """A board that needs no disk in common: an actor beside whoever began the launch."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def _ask(self, name: str, *given: Any) -> Any:
        import ray

        return ray.get(getattr(self._actor, name).remote(*given))

    def first(self, key: str, value: str, who: str) -> tuple[str, str]:
        """See `Board`."""
        told, by = self._ask("first", key, value, who)
        return str(told), str(by)

    def tell(self, shard: int, ended: int, what: str) -> None:
        """See `Board`."""
        self._ask("tell", shard, ended, what)

    def told(self) -> dict[int, tuple[int, str]]:
        """See `Board`."""
        return dict(self._ask("told"))

    def stop(self) -> None:
        """See `Board`."""
        self._ask("stop")

    def is_stopped(self) -> bool:
        """See `Board`. An actor that has gone has nobody any more who waits."""
        try:
            return bool(self._ask("is_stopped"))
        except Exception:  # Ray's own errors are of many kinds
            return True


def measure(job: ShardJob) -> Report:
    """A task: the shard, at the priority of an ordinary process."""
    import ray

    job.place = ray.get_runtime_context().get_node_id()
    slow = ""
    if os.getpriority(os.PRIO_PROCESS, 0) > 0:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        except OSError:
            slow = (f"host {os.uname().nodename} runs Ray's workers at a lower priority, which is in every figure "
                    f"where it does other work; start its node with {_NICE}=0")  # fmt: skip
    report = job()
    report["warnings"] = [*report["warnings"], *([slow] if slow else [])]
    return report


class _Task:
    """A task of Ray's."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def ended(self) -> bool:
        import ray

        return bool(ray.wait([self._reference], timeout=0)[0])

    def report(self) -> Report:
        """What the worker said; `lost` where it said nothing."""
        import ray

        try:
            found: Report = ray.get(self._reference)
            return found
        except Exception as error:  # Ray's own, or whatever the task raised
            words = " ".join(str(error).split())
            return {"lost": f"{type(error).__name__}: {words[:300]}"}

    def cancel(self) -> None:
        import ray

        with suppress(Exception):  # it may have ended, or its node may be gone
            ray.cancel(self._reference, force=True)


class RayLauncher:
    """Hands shards to a cluster, all at once. Raises `UserError`."""

    at_once = 0

    def __init__(self, asked: LauncherConfig, offloads: bool) -> None:
        try:
            import ray
        except ModuleNotFoundError:
            raise UserError("launcher=ray needs Ray, which is not installed; run `make setup EXTRA=launch`") from None
        self._ray, self._asked, self._avoided = ray, asked, list[str]()
        _connect(ray, asked)
        devices = self._devices()
        if not asked.gpus and offloads and ray.cluster_resources().get("GPU", 0):
            raise UserError("launcher.gpus=0, and nodes of the cluster have GPUs, which Ray hides from such shards; "
                            "write launcher.gpus=1 for cells on a card, or engine.n_gpu_layers=0 for cells on the CPU")
        if not devices and asked.gpus:
            raise UserError(f"launcher.gpus={asked.gpus}: no node of the Ray cluster has so many GPUs; lower it")
        if not devices:
            raise UserError("no node of the Ray cluster says that its CPU may be measured on; start each with "
                            f"`{START}`")  # fmt: skip
        self.usual_shards = 4 * devices
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False)
        self.board = RayBoard(ray.remote(_Notes).options(num_cpus=0, scheduling_strategy=here).remote())
        self._measure = ray.remote(measure)

    def submit(self, jobs: Sequence[ShardJob]) -> list[_Task]:
        """Hand jobs over."""
        wanted: dict[str, Any] = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": "SPREAD"}
        wanted |= {"num_gpus": self._asked.gpus} if self._asked.gpus else {"resources": {RESOURCE: 1}}
        if self._avoided:
            wanted["label_selector"] = {"ray.io/node-id": f"!in({','.join(self._avoided)})"}
            del wanted["scheduling_strategy"]
        for job in jobs:
            job.board = self.board
            job.variables = {name: os.environ.get(name) for name in _OF_RAY}
        return [_Task(self._measure.options(**wanted).remote(job)) for job in jobs]

    def avoid(self, place: str) -> bool:
        """Send nothing more to a node; whether others are left."""
        self._avoided.append(place)
        return bool(self._devices())

    def returned(self, job: ShardJob) -> None:
        """Ray itself knows what is free."""

    def is_left(self) -> bool:
        """Whether any node is left that shards can go to."""
        return bool(self._devices())

    def close(self) -> None:
        """Leave the cluster, or end it where it is this process's own."""
        self._ray.shutdown()

    def _devices(self) -> int:
        """How many shards the nodes could run at once."""
        nodes = [node["Resources"] for node in self._ray.nodes()
                 if node["Alive"] and node["NodeID"] not in self._avoided]  # fmt: skip
        if self._asked.gpus:
            return sum(int(one.get("GPU", 0)) // self._asked.gpus for one in nodes)
        return sum(int(one.get(RESOURCE, 0)) for one in nodes)


def _connect(ray: Any, asked: LauncherConfig) -> None:
    """Join the cluster that is meant, or start Ray here. Raises `UserError`."""
    if ray.is_initialized():
        return
    address = asked.address or os.environ.get("RAY_ADDRESS") or "local"
    own: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address == "local":
        os.environ.setdefault(_NICE, "0")
        own |= {"resources": {RESOURCE: 1}, "include_dashboard": False}
    try:
        ray.init(address=address, **own)
    except Exception as error:  # Ray raises its own kinds, ConnectionError, ValueError and RuntimeError among them
        words = " ".join(str(error).split())[:300]
        raise UserError(f"launcher.address={address}: there is no Ray cluster to join ({words}); start one with `ray "
                        "start --head`, or leave launcher.address out for Ray on this machine") from error  # fmt: skip


@contextmanager
def launcher(asked: LauncherConfig, folder: Path, offloads: bool) -> Iterator[RayLauncher]:
    """A launcher, given back in the end."""
    made = RayLauncher(asked, offloads)
    try:
        yield made
    finally:
        made.close()
