"""A sweep: plans its cells, runs what is missing or failed, each in a child process, and says what became of them.

One sweep a device. Ctrl-C leaves whole cells only; the same command again goes on where it stopped. It reads no
measurement and judges nothing.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, is_own
from bench.host import builds, device_lock, process_group
from bench.host.device_lock import DeviceLocks
from bench.plan import served
from bench.plan.cells import Cell, cells
from bench.plan.compose import compose_points
from bench.plan.engines import ENGINES
from bench.plan.model_files import model_path
from bench.plan.settings import Config
from bench.plan.treatment import changes, is_apart, treated
from bench.records.cells import check_writable, read_status, write_cell
from bench.records.partial_cells import clear_leftovers
from bench.run import engines
from bench.run.served.program import check_servers, facts_of
from bench.run.watch import LEAST_S, Watch
from pti_loop.gguf.file import GgufFile

if TYPE_CHECKING:
    from bench.run.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
_LAST_WORDS = 3
_ROOM = 1 << 20
"""Bytes that a record may well need."""
MOST_OF_MEMORY = 0.7
"""What two copies of the weights may take of it."""
MANY_POINTS = 100
HUNG = "said nothing for"
MOST_NAMED = 4
NEWER = "a later release of pti-bench wrote it; update, or measure into another folder with results=FOLDER"
_ERROR = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)\b")
_CHILD = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
"""Progress comes at once, and a crash names the line that it happened in."""


@dataclass
class Outcome:
    """What became of a sweep."""

    cells: list[Cell]
    kept: list[Cell] = field(default_factory=list)
    failed: list[tuple[Cell, str]] = field(default_factory=list)
    unsupported: list[tuple[Cell, str]] = field(default_factory=list)
    untried: list[tuple[Cell, str]] = field(default_factory=list)
    """Nothing more could be written."""
    newer: list[tuple[Cell, str]] = field(default_factory=list)
    """Left as they are: records of a later release."""
    seconds: float = 0.0


Plan = tuple[list[Cell], list[Config], dict[str, dict[str, Any]]]
"""Cells, configurations, and the environment of each engine by its name."""


def prepare(overrides: Sequence[str], writes: bool = True) -> Plan:
    """Check everything that can be checked before a model is loaded, and plan the cells; say how many points if many.

    `writes` is whether records will be written. Raises `UserError`.
    """
    from bench.host import cpus, provenance
    from bench.run.peer_programs import check_peers

    configs = _with_builds(compose_points(list(overrides), _tell_points))
    first = configs[0]
    root = Path(first.results)
    if writes:
        check_writable(root)
    available = cpus.available_cpus()
    for config in configs:
        config.engine.threads = cpus.check_threads(config.engine.threads or available, available)
        if threads := config.treatment.engine.threads:
            cpus.check_threads(threads, available)
        check_peers(config)
        engines.engine(config.model.engine).check_installed()
        if served.is_served(config):
            check_servers(config)
    weights = check_models(configs)
    environments: dict[str, dict[str, Any]] = {}
    planned: dict[str, Cell] = {}
    names = {build: str(builds.facts(build)["build"]) for build in _on_trial(configs)}
    # In the order of the points, which is that of their worth where somebody wrote an experiment.
    for (engine, build), group in groupby(configs, _build_of):
        own = list(group)
        key = f"{engine} {build}"
        if key not in environments:
            facts = _engine_facts(engine, build, own[0].model.served)
            packages = ENGINES[engine].packages
            environments[key] = provenance.environment(first.machine or "", first.engine.threads, facts, packages)
        found = environments[key]
        for cell in cells(own, root, found["machine"]["name"], found["engine"]["build"], weights, names):
            planned.setdefault(cell.id, cell)
    return list(planned.values()), configs, environments


def _with_builds(configs: list[Config]) -> list[Config]:
    """The points whose builds of the engine are there; the others are told. Raises `UserError` where none is."""
    kept: list[Config] = []
    lacking: dict[str, int] = {}
    for config in configs:
        try:
            for build in (config.engine.build, treated(config).engine.build):
                builds.folder_of(build)
            kept.append(config)
        except UserError as error:
            lacking[str(error)] = lacking.get(str(error), 0) + 1
    if not kept:
        raise UserError(next(iter(lacking)))
    for why, count in lacking.items():
        print(f"left out, {count} of {len(configs)} points: {why}", flush=True)
    return kept


def _tell_points(count: int) -> None:
    """Many take a while to plan, and may be a slip of the hand."""
    if count >= MANY_POINTS:
        print(f"{count} points to plan", flush=True)


def _build_of(config: Config) -> tuple[str, str]:
    """The engine, and which of its builds the baseline has."""
    return config.model.engine, config.engine.server if served.is_served(config) else config.engine.build


def _environment_of(cell: Cell) -> str:
    return f"{cell.engine} {cell.builds.get(served.GIVEN) or cell.builds.get('baseline', builds.STOCK)}"


def _engine_facts(engine: str, build: str, model: str) -> Mapping[str, Any]:
    if engine == served.ENGINE:
        return facts_of(build, model)
    return engines.engine(engine).build() if build == builds.STOCK else builds.facts(build)


def _on_trial(configs: Sequence[Config]) -> list[str]:
    """The builds that some treatment has in place of its baseline's."""
    return list(dict.fromkeys(str(build) for config in configs if (build := changes(config).get("build"))))


def check_models(configs: Iterable[Config]) -> dict[Path, str]:
    """Hashes of the model files, whose headers must be sound and whose caches must fit. Raises `UserError`."""
    from bench.host.memory import usable_memory
    from pti_loop.gguf import file as gguf_file
    from pti_loop.gguf.header import ModelFileError

    weights: dict[Path, str] = {}
    files = {}
    room = usable_memory()
    for config in configs:
        path = model_path(config)
        if not served.needs_file(config):
            weights[path] = served.name_digest(config.model.served)
            continue
        if path not in files:
            try:
                files[path] = gguf_file.read(path)
            except ModelFileError as error:
                raise UserError(str(error)) from error
            weights[path] = files[path].sha256()
        if config.model.path and config.model.sha256 and weights[path] != config.model.sha256.lower():
            raise UserError(f"{path} has SHA-256 {weights[path][:12]}.., and model.sha256 asks for "
                            f"{config.model.sha256[:12]}..; get the file again, or leave model.sha256 out")  # fmt: skip
        config.model.synthetic = files[path].synthetic
        _check_room(config, files[path], room)
    return weights


def _check_room(config: Config, file: GgufFile, room: int) -> None:
    """Raise `UserError` when a cell holds more than `room` bytes at once. A device checks its own memory."""
    n_ctx = config.engine.n_ctx + config.depth
    runs = engines.engine(config.model.engine)
    kv = runs.kv_bytes_per_token(file, config) * n_ctx
    need = (kv + file.state_bytes_per_sequence()) * (config.streams + 2)
    weights = runs.weight_bytes(file)
    if need + weights > room and not _offloads(config):
        widened = f", beside {weights / 1e9:.1f} GB of weights in float32" if weights else ""
        raise UserError(
            f"the KV caches of {config.streams} streams and two baselines of engine.n_ctx={n_ctx} tokens "
            f"take {need / 1e9:.1f} GB{widened}, this machine lets a process use {room / 1e9:.1f} GB; lower "
            "engine.n_ctx or streams"
        )


def _offloads(config: Config) -> bool:
    return engines.offloads(config)


def sweep(overrides: Sequence[str]) -> tuple[Outcome, Config]:
    """Plan and run. Raises `UserError` before anything runs; a failing cell does not stop the others."""
    from bench.run.progress import Progress

    planned, configs, environments = prepare(overrides)
    outcome = Outcome(planned)
    began = time.monotonic()
    with locks(configs):
        check_alone(configs)
        clear_leftovers(planned[0].folder.parent)
        states = {cell.id: cell.state for cell in planned}
        outcome.kept = [cell for cell in planned if states[cell.id] == "done"]
        outcome.newer = [(cell, NEWER) for cell in planned if states[cell.id] == "newer"]
        todo = [cell for cell in planned if states[cell.id] not in ("done", "newer")]
        for cell in todo:
            if states[cell.id] == "damaged":
                print(f"damaged, measured again: {cell.id} {cell.label}", flush=True)
        with Progress(todo, len(outcome.kept), configs[0].limit) as progress:
            for place, cell in enumerate(todo):
                progress.start(cell)
                status = run_cell(cell, environments[_environment_of(cell)], progress)
                progress.finish(cell, status)
                if status["state"] == "failed":
                    outcome.failed.append((cell, status["reason"]))
                elif status["state"] == "unsupported":
                    outcome.unsupported.append((cell, status["reason"]))
                if status["state"] == "failed" and (why := _full(cell.folder.parent)):
                    outcome.untried = [(left, why) for left in todo[place + 1 :]]
                    break
    outcome.seconds = time.monotonic() - began
    return outcome, configs[0]


def locks(configs: Sequence[Config]) -> DeviceLocks:
    """The locks of all devices that some configurations measure on; those of the first say how long to wait."""
    from bench.host import devices

    offloads = [_offloads(config) for config in configs]
    gpus = [gpu.id for gpu in devices.visible()] if any(offloads) else []
    if any(offloads) and not gpus:
        # Of a kind whose driver is not asked here, or none, and then the CPU works in its place.
        return DeviceLocks(["gpu"], alone=True, wait=configs[0].wait)
    return DeviceLocks(gpus, alone=not all(offloads), wait=configs[0].wait)


def check_alone(configs: Sequence[Config]) -> None:
    """Raise `UserError` with the names of other processes on the GPUs that are measured on, where nobody allowed them.

    A lock keeps other measurements away, and nobody else's work.
    """
    from bench.host import gpu_users

    if not any(_offloads(config) for config in configs) or not (names := gpu_users.others()):
        return
    told = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
    if not configs[0].busy:
        raise UserError(f"the GPU is in use by {told}, which would be in every figure; end it, or measure all the same "
                        "with busy=true")  # fmt: skip
    print(f"measured beside {told}, which is in every figure", flush=True)


def _full(folder: Path) -> str:
    """Why nothing more can be written into a folder; empty when it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM))
    except OSError as error:
        return f"not tried, since {folder} cannot be written ({error.strerror}); free some room and type the same again"
    return ""


def run_cell(cell: Cell, environment: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Run one cell in a child process; a crash becomes a failed record. Returns the cell's status.

    KeyboardInterrupt ends the child and leaves no trace of the cell.
    """
    if cell.kind == served.KIND:
        environment = environment | {"treatment": facts_of(cell.builds["treatment"], _served_model(cell))}
    elif "treatment" in cell.builds or cell.config.get("treatment", {}).get("engine", {}).get("build"):
        environment = environment | {"treatment": builds.facts(cell.builds.get("treatment", builds.STOCK))}
    # Points of a sweep may differ in these.
    environment = environment | {"threads": cell.config["engine"]["threads"], "device": _device(cell)}
    if programs := _programs(cell):
        environment["programs"] = programs
    job = {"cell": cell.id, "kind": cell.kind, "config": cell.config, "model_path": str(cell.model_path),
           "peers": cell.peers, "files": {key: str(path) for key, path in cell.files.items()},
           "builds": cell.builds, "together": _both_fit(cell), "folder": str(cell.folder.resolve()),
           "environment": environment, "silence": progress.limit()}  # fmt: skip
    stamp = _stamp(cell)
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.run.cell_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True,
        env=os.environ | _CHILD | device_lock.for_child() | _build_environment(cell), pass_fds=device_lock.held(),
        preexec_fn=process_group.dies_with_parent(),
    )  # fmt: skip
    try:
        errors = _feed(child, json.dumps(job), progress)
    except BaseException:
        process_group.end(child)  # a peer program that it runs must not go on measuring
        clear_leftovers(cell.folder.parent)
        raise
    if child.returncode == 0 and _stamp(cell) not in (0, stamp) and (written := read_status(cell.folder)):
        return written
    reason = crash_sentence(child.returncode, errors)
    status: dict[str, Any] = {"state": "failed", "reason": reason, "seconds": 0.0}
    try:
        write_cell(cell.folder, config=cell.config, env=environment, status=status, log=errors)
    except OSError as error:  # the others are tried all the same, and this one is missing, so it runs again
        status["reason"] += f"; and no record of it can be written ({error.strerror or error})"
    return status


def _served_model(cell: Cell) -> str:
    return str(cell.config["model"].get("served") or "")


def _build_environment(cell: Cell) -> dict[str, str]:
    """What the child needs to load the baseline's build, which is the treatment's where they share a process.

    Nothing where each has its own: a child without any would hand its own down to the usual build.
    """
    from bench.run.worker import config_of

    if cell.kind == served.KIND or is_apart(config_of(cell.config)):
        return {}
    return builds.child_environment(builds.folder_of(cell.builds.get("baseline", builds.STOCK)))


def _both_fit(cell: Cell) -> bool:
    """Whether the model fits twice into the memory that it is loaded into, with half of it to spare for the caches."""
    from bench.host import memory, provenance
    from bench.run.worker import config_of
    from pti_loop.gguf import file as gguf_file

    if cell.kind == served.KIND:  # one server at a time, or those that are asked to be kept
        return True
    room = memory.usable_memory()
    if _offloads(config_of(cell.config)):
        room = sum(int(gpu["memory_bytes"]) for gpu in provenance.gpus()) or room
    return bool(2 * gguf_file.read(cell.model_path).file_bytes < MOST_OF_MEMORY * room)


def _programs(cell: Cell) -> dict[str, str]:
    """SHA-256 of the programs that run beside the loop, by name: a version says nothing of one that was changed."""
    from pti_loop.gguf.file_hash import sha256_of

    return {name: sha256_of([Path(path)]) for name, path in cell.peers.items() if path and Path(path).is_file()}


def _device(cell: Cell) -> str:
    """The devices of a cell, in letters that say nothing about them but whether two are the same."""
    from bench.host import devices
    from bench.run.worker import config_of

    if not _offloads(config_of(cell.config)):
        return devices.CPU
    return " ".join(devices.key(gpu.id) for gpu in devices.visible()) or "gpu"


def _stamp(cell: Cell) -> int:
    """When the cell's record was written, in nanoseconds; 0 when there is none."""
    try:
        return (cell.folder / "status.json").stat().st_mtime_ns
    except OSError:
        return 0


def _feed(child: subprocess.Popen[str], job: str, progress: Progress | None) -> str:
    """Give the child its job, pass on its progress, and return what it wrote to standard error."""
    import threading

    assert child.stdin and child.stdout and child.stderr, "they were asked for as pipes"
    errors: list[str] = []
    listener = threading.Thread(target=errors.extend, args=(child.stderr,), daemon=True)
    listener.start()
    cleared = process_group.clear_after(child)  # else a peer would go on, beside the next cell
    watch = Watch(child, progress.limit if progress else lambda: LEAST_S)
    try:
        child.stdin.write(job)
        child.stdin.close()
    except BrokenPipeError:  # it died before reading; the exit code tells
        pass
    for line in child.stdout:
        watch.heard()
        try:
            told = json.loads(line)
            if progress:
                progress.advance(told["share"], told["label"])
        except (ValueError, KeyError, TypeError):
            errors.append(line)
    cleared.join()
    listener.join(timeout=5)
    if watch.ended_after is not None:
        errors.append(f"{HUNG} {watch.ended_after:.0f} s, far longer than it should take, and was ended; give it more "
                      "with limit=SECONDS\n")  # fmt: skip
    return "".join(errors)


def crash_sentence(code: int, errors: str) -> str:
    """Why a child died, from its exit code and the last lines that it wrote."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if lines and lines[-1].startswith(HUNG):
        return f"the process {lines[-1]}"
    if code == 0 and not lines:
        return "the process ended well, and its record is not there: something removed it, or its folder, meanwhile"
    asserted = [line for line in lines if "GGML_ASSERT" in line]
    said = asserted[-1] if asserted else _place(lines) or " | ".join(lines[-_LAST_WORDS:]) or "it printed nothing"
    if code < 0:
        name = signal.Signals(-code).name
        hint = {
            "SIGILL": "; the engine was built for another CPU: run `make setup NATIVE=0`",
            "SIGKILL": "; the system may have run out of memory: lower engine.n_ctx or streams",
        }.get(name, "")
        return f"the process was ended by {name}: {said}{hint}"
    return f"the process ended with code {code}: {said}"


def _place(lines: list[str]) -> str:
    """Where a child failed, from what Python printed: the innermost frame of our own code, else of any.

    The fault handler prints frames innermost first, a traceback has them last, with the error below.
    """
    begins = [place for place, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    lines = lines[begins[-1] :] if begins else lines
    frames = [(place, line) for place, line in enumerate(lines) if line.startswith("File ")]
    own = [(place, line) for place, line in frames if is_own(line.partition('"')[2].partition('"')[0])] or frames
    if not own:
        return ""
    where = re.sub(r'"[^"]*/', '"', own[-1 if begins else 0][1])  # records travel, and a folder tells about a machine
    error = next((line for line in lines[frames[-1][0] + 1 :] if _ERROR.match(line)), lines[-1])
    return f"{error} ({where})" if begins else where


def summary(outcome: Outcome) -> list[str]:
    """Lines for the end of a sweep: counts, then every cell that did not work, with its reason."""
    done = len(outcome.cells) - len(outcome.failed) - len(outcome.unsupported) - len(outcome.newer)
    done -= len(outcome.untried)
    lines = [f"{done} of {len(outcome.cells)} cells done ({len(outcome.kept)} were there before) "
             f"in {outcome.seconds:.0f} s"]  # fmt: skip
    groups = (("failed", outcome.failed), ("unsupported", outcome.unsupported), ("left as it is", outcome.newer),
              ("not tried", outcome.untried))  # fmt: skip
    for name, group in groups:
        lines += [f"{name}: {cell.id} {cell.label}: {reason}" for cell, reason in group]
    return lines
