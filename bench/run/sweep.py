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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, is_own
from bench.host import builds, device_lock, process_group
from bench.host.device_lock import DeviceLocks
from bench.plan import served
from bench.plan.cells import Cell
from bench.plan.settings import Config
from bench.plan.treatment import is_apart
from bench.records import taken
from bench.records.cells import read_status, write_cell
from bench.records.partial_cells import clear_leftovers
from bench.run import engines
from bench.run.free_cells import FINISHED, free_cells
from bench.run.prepared import prepare
from bench.run.served.program import facts_of
from bench.run.share import Share, facts
from bench.run.watch import LEAST_S, Watch

if TYPE_CHECKING:
    from bench.run.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
_LAST_WORDS = 3
_ROOM = 1 << 20
"""Bytes that a record may well need."""
MOST_OF_MEMORY = 0.7
"""What two copies of the weights may take of it."""
HUNG = "said nothing for"
MOST_NAMED = 4
GIVEN_UP = ("another sweep took the cell over, since nothing was heard of this one for long; what was measured here is "
            "not kept")  # fmt: skip
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


def _environment_of(cell: Cell) -> str:
    return f"{cell.engine} {cell.builds.get(served.GIVEN) or cell.builds.get('baseline', builds.STOCK)}"


def sweep(overrides: Sequence[str], share: Share | None = None) -> tuple[Outcome, Config]:
    """Plan and run, all of it or a share. Raises `UserError` before anything runs; a failing cell stops no other."""
    from bench.run.progress import Progress

    planned, configs, environments = prepare(overrides, shard=share.shard if share else None)
    if share:
        share.agree(facts(planned, environments))
    outcome = Outcome(planned)
    began = time.monotonic()
    with locks(configs):
        check_alone(configs)
        clear_leftovers(planned[0].folder.parent)
        taken.clear_taken(planned[0].folder.parent)
        done = share.done if share else frozenset()
        states = {cell.id: "done" if cell.id in done else cell.state for cell in planned}
        outcome.kept = [cell for cell in planned if states[cell.id] == "done"]
        outcome.newer = [(cell, NEWER) for cell in planned if states[cell.id] == "newer"]
        todo = [cell for cell in planned if states[cell.id] not in FINISHED]
        for cell in todo:
            if states[cell.id] == "damaged":
                print(f"damaged, measured again: {cell.id} {cell.label}", flush=True)
        with Progress(todo, len(outcome.kept), configs[0].limit) as progress, closing(free_cells(todo)) as free:
            _run_all(free, environments, progress, outcome, share.tell if share else lambda cell, state: None)
    outcome.seconds = time.monotonic() - began
    return outcome, configs[0]


def _run_all(free: Iterable[Cell], environments: Mapping[str, dict[str, Any]], progress: Progress, outcome: Outcome,
             tell: Callable[[Cell, str], None]) -> None:  # fmt: skip
    """Run the cells as they come, but those that another sweep has finished meanwhile."""
    found = {cell.id for cell in outcome.kept} | {cell.id for cell, _ in outcome.newer}
    for cell in free:
        progress.start(cell)
        found.add(cell.id)
        if cell.state in FINISHED:
            progress.finish(cell, {"state": "done elsewhere", "reason": ""})
            outcome.kept.append(cell)
            continue
        status = run_cell(cell, environments[_environment_of(cell)], progress)
        progress.finish(cell, status)
        tell(cell, status["state"])
        if status["state"] == "failed":
            outcome.failed.append((cell, status["reason"]))
        elif status["state"] == "unsupported":
            outcome.unsupported.append((cell, status["reason"]))
        if status["state"] == "failed" and (why := _full(cell.folder.parent)):
            outcome.untried = [(left, why) for left in outcome.cells if left.id not in found]
            break


def locks(configs: Sequence[Config]) -> DeviceLocks:
    """The locks of all devices that some configurations measure on; those of the first say how long to wait."""
    from bench.host import devices

    offloads = [engines.offloads(config) for config in configs]
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

    if not any(engines.offloads(config) for config in configs) or not (names := gpu_users.others()):
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
           "environment": environment, "silence": progress.limit(),
           "taken": str(taken_by.resolve()) if (taken_by := taken.file_of(cell.folder)) else ""}  # fmt: skip
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
    if taken_by and not taken.is_newest(taken_by):
        return {"state": "failed", "reason": GIVEN_UP, "seconds": 0.0}
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
    if engines.offloads(config_of(cell.config)):
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

    if not engines.offloads(config_of(cell.config)):
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
    groups = (("failed", outcome.failed), ("unsupported", outcome.unsupported), ("left as it is", outcome.newer),
              ("not tried", outcome.untried))  # fmt: skip
    told = [(name, [(cell.id, cell.label, reason) for cell, reason in group]) for name, group in groups]
    return totals(len(outcome.cells), len(outcome.kept), outcome.seconds, told)


def totals(cells: int, kept: int, seconds: float,
           groups: Sequence[tuple[str, list[tuple[str, str, str]]]]) -> list[str]:  # fmt: skip
    """The same from counts, and from id, label and reason of the cells of each group that are not done."""
    done = cells - sum(len(group) for _, group in groups)
    lines = [f"{done} of {cells} cells done ({kept} were there before) in {seconds:.0f} s"]
    for name, group in groups:
        lines += [f"{name}: {cell} {label}: {reason}" for cell, label, reason in group]
    return lines
