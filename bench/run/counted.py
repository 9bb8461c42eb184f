"""A cell of counters: what the kernels of a decode read from memory and through L2, by a profiler, and what it takes.

Decodes are timed in a child process without a profiler, with CUDA graphs as the engine has them and without, and then
decoded in others under the profiler, a process a width and pass. It judges nothing and writes no file of the cell.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.host import device_lock, devices, process_group
from bench.host.pins import ROOT
from bench.plan.settings import Config
from bench.records.rows import Launch
from bench.run.engines import offloads
from kernels import counters, profilers
from kernels.errors import KernelError
from kernels.profilers import PROFILERS, Profiler
from pti_loop.engine import EngineError, Unsupported

TIMED = 24
"""Decodes of a width without a profiler."""
RANGED, UNRANGED = 1, 3
"""Decodes of a width under one. Where it counts from the program's beginning, they have to be told from the rest."""
WARM_UP = 3
"""Decodes of a timed width before the first that counts: the engine captures its graph in them."""
WARM_UP_COUNTED = 1
"""Fewer than those that count under a profiler, so that these are the longest tail of alike decodes."""
BUDGET_S = 240.0
"""A pass: after which no further width is begun under a profiler."""
LIMIT_S = 600.0
NO_GRAPHS = {"GGML_CUDA_DISABLE_GRAPHS": "1"}
"""Under a profiler kernels are launched one by one; the same without one tells what that changes."""
_TICK_S = 2.0

Progress = Callable[[float, str], None]


def choose(asked: str) -> tuple[Profiler, str]:
    """The profiler and its program. Raises `Unsupported` where there is no GPU, or it is not installed."""
    makers = list(dict.fromkeys(gpu.vendor for gpu in devices.visible()))
    if not makers:
        raise Unsupported("counters are those of a GPU's kernels, and no GPU is visible here")
    fitting = [name for maker in makers for name in profilers.OF_VENDOR[maker]]
    names = fitting if asked == "auto" else [asked]
    if not set(names) & set(fitting):
        raise Unsupported(f"counters={asked} is no profiler of this GPU; take counters={fitting[0]}")
    for name in names:
        if path := profilers.program(name):
            return PROFILERS[name], path
    raise Unsupported(f"there is no {' and no '.join(names)} on the PATH, which would count; it comes with CUDA's "
                      "Nsight Compute, or with ROCm's profiler")  # fmt: skip


def measure(config: Config, job: Mapping[str, Any],
            progress: Progress) -> tuple[dict[str, Any], dict[str, list[Launch]]]:  # fmt: skip
    """Time and count. Returns facts and tables. Raises `Unsupported` where nothing can count here."""
    if not offloads(config):
        raise Unsupported("counters are those of a GPU's kernels, and this model decodes on the CPU")
    tool, path = choose(str(job["config"]["counters"]))
    widths = config.measure.counted_widths
    with tempfile.TemporaryDirectory(prefix="pti-bench-counters-") as temporary:
        child = _Child(Path(temporary), job, progress)
        answers = {graphs: child.timed(widths, graphs) for graphs in (True, False)}
        rows = [row | {"graphs": graphs} for graphs, answer in answers.items() for row in answer["decodes"]]
        about = answers[True]
        launches, left_out = _counted(child, tool, path, widths)
    facts = {"model": about["model"], "bandwidth": about["bandwidth"], "decodes": rows, "left_out": left_out,
             "tool": tool.name, "counters": [name for one in tool.passes for name in one]}  # fmt: skip
    return facts, {"launches": launches}


def _counted(child: _Child, tool: Profiler, path: str,
             widths: Sequence[int]) -> tuple[list[Launch], list[dict[str, Any]]]:  # fmt: skip
    """Launches of all widths, and the widths that have none with the reason. Raises `UserError` where none has any."""
    found: list[Launch] = []
    left_out: list[dict[str, Any]] = []
    began = time.monotonic()
    for place, width in enumerate(widths):
        child.label, child.share = f"{tool.name}, width {width}", 0.2 + 0.8 * place / len(widths)
        spent = time.monotonic() - began
        if spent > BUDGET_S * len(tool.passes):
            left_out.append({"width": width, "reason": f"the {tool.name} runs before took {spent:.0f} s"})
            continue
        try:
            decodes = _decodes_of(tool, [child.profiled(tool, path, one, width) for one in tool.passes])
        except KernelError as error:
            left_out.append({"width": width, "reason": str(error)})
            continue
        found += [_launch(width, number, order, one)
                  for number, decode in enumerate(decodes) for order, one in enumerate(decode)]  # fmt: skip
    if not found:
        raise UserError(f"{tool.name} counted nothing: {left_out[0]['reason']}")
    return found, left_out


def _decodes_of(tool: Profiler, passes: Sequence[counters.Profile]) -> list[list[counters.Launch]]:
    """The launches of the decodes that count, with the counters of all passes."""
    if not all(one.launches for one in passes):
        raise KernelError("it saw no launch of a kernel")
    if tool.ranged:
        return [profilers.joined([one.launches for one in passes])]
    split = [profilers.of_decodes(one.launches, UNRANGED) for one in passes]
    return [profilers.joined(decode) for decode in zip(*split, strict=True)]


def _launch(width: int, decode: int, order: int, one: counters.Launch) -> Launch:
    told = counters.summarize(one)
    if told.us is None:
        raise KernelError(f"a launch of {one.kernel[:60]} has no time")
    values = {name: value for name in ("dram_bytes", "dram_write_bytes", "l2_bytes", "l2_hit_rate")
              if (value := getattr(told, name)) is not None}  # fmt: skip
    return Launch(width, decode, order, counters.short_name(one.kernel), told.us, **values)


class _Child:
    """Runs `bench.run.decode_widths`, alone or under a profiler, and tells the parent that it still does."""

    def __init__(self, folder: Path, job: Mapping[str, Any], progress: Progress) -> None:
        self._folder, self._progress = folder, progress
        self._job = {"config": job["config"], "model_path": job["model_path"]}
        self.label, self.share = "", 0.0

    def timed(self, widths: Sequence[int], graphs: bool) -> dict[str, Any]:
        """The answer of a run without a profiler. Raises `EngineError`."""
        self.label, self.share = "decodes without a profiler", 0.05 if graphs else 0.12
        job = self._write(widths=widths, decodes=TIMED, warm_up=WARM_UP, ranged=False, bandwidth=graphs)
        try:
            code, _, errors = self._run(self._words(job), {} if graphs else NO_GRAPHS, self._folder)
        except KernelError as error:
            raise EngineError(f"decoding without a profiler: {error}") from error
        if code:
            raise EngineError(f"decoding without a profiler failed: {profilers.last_error(errors)}")
        answer: dict[str, Any] = json.loads(job.with_suffix(".answer").read_text())
        return answer

    def profiled(self, tool: Profiler, path: str, names: Sequence[str], width: int) -> counters.Profile:
        """What one pass of a profiler collected. Raises `Unsupported` where it may not count, `KernelError`."""
        decodes = RANGED if tool.ranged else UNRANGED
        job = self._write(widths=[width], decodes=decodes, warm_up=WARM_UP_COUNTED, ranged=tool.ranged, bandwidth=False)
        with tempfile.TemporaryDirectory(dir=self._folder) as place:
            words = profilers.command(tool, path, names, Path(place), self._words(job))
            code, printed, errors = self._run(words, NO_GRAPHS, Path(place))
            if why := profilers.denied(printed + errors):
                raise Unsupported(f"{tool.name} may not read the counters: {why}")
            if code:
                raise KernelError(f"{tool.name} ended with {code}: {profilers.last_error(errors + printed)}")
            found = profilers.read(tool, Path(place), printed)
        if found.rejected:
            raise KernelError(f"line {found.rejected[0].line} of what {tool.name} printed {found.rejected[0].reason}")
        return found

    def _words(self, job: Path) -> list[str]:
        return [sys.executable, "-m", "bench.run.decode_widths", str(job)]

    def _write(self, **values: Any) -> Path:
        path = self._folder / "job.json"
        path.write_text(json.dumps(self._job | values))
        return path

    def _run(self, words: Sequence[str], environment: Mapping[str, str], folder: Path) -> tuple[int, str, str]:
        """Exit code and what was printed. Files take it: a profiler prints megabytes."""
        began = time.monotonic()
        paths = (folder / "printed", folder / "errors")
        with paths[0].open("wb") as printed, paths[1].open("wb") as errors:
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=printed, stderr=errors, cwd=ROOT,
                env=os.environ | environment | device_lock.for_child(), pass_fds=device_lock.held(),
                preexec_fn=process_group.dies_with_parent(),
            )  # fmt: skip
            try:
                while child.poll() is None:
                    self._progress(self.share, self.label)
                    if time.monotonic() - began > LIMIT_S:
                        raise KernelError(f"it did not end in {LIMIT_S:.0f} s")
                    time.sleep(_TICK_S if time.monotonic() - began > _TICK_S else _TICK_S / 20)
            except BaseException:
                _end(child)
                raise
        told = [path.read_text(errors="replace") for path in paths]
        return child.returncode, told[0], told[1]


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a profiler and the program below it. Both are of this process's group, which goes on."""
    from psutil import NoSuchProcess, Process

    with suppress(NoSuchProcess):
        for one in Process(child.pid).children(recursive=True):
            with suppress(NoSuchProcess):
                one.kill()
    child.kill()
    child.wait()
