"""Times all contenders of one matrix in balanced blocks: each once, in random order, every second block reversed.

It knows launches and graphs, and nothing of formats, files or verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernels.device import Args, Buffer, Device, Timed
from kernels.errors import KernelError

CACHES = ("cold", "warm")
LEAST_LAUNCHES = 8  # of a graph: the gap between graphs is far longer than the one between kernels


@dataclass
class Contender:
    """`times`: microseconds of one launch, a block each."""

    name: str
    launcher: str
    args: list[Args]
    times: list[float] = field(default_factory=list)


def graph_args(args: list[Args], cache: str) -> list[Args]:
    """Cold: every copy of the operands in turn. Warm: the first one again and again."""
    turns = -(-LEAST_LAUNCHES // len(args))
    return args * turns if cache == "cold" else args[:1] * max(LEAST_LAUNCHES, len(args))


def run(device: Device, contenders: list[Contender], cache: str, blocks: int, rng: np.random.Generator) -> None:
    """Fills the contenders' times. Warm-up replays are not kept."""
    timed = [Timed(device, c.launcher, graph_args(c.args, cache)) for c in contenders]
    for each in timed:
        each.replay(), each.replay()
    order = np.arange(len(contenders))
    for block in range(blocks):
        order = order[::-1] if block % 2 else rng.permutation(len(contenders))
        for i in order:
            contenders[i].times.append(timed[i].replay())


def ceilings(
    device: Device, buffers: list[Buffer], size: int, scratch: Buffer, cache: str
) -> tuple[list[Contender], Contender]:
    """The fastest plain reads of `size` bytes among many launch shapes, and a plain copy of them.

    KernelError where no shape fits so few bytes.
    """
    size = size // 16 * 16
    tried: list[tuple[float, Timed, list[Args]]] = []
    for kind, block, grid in _read_shapes(size, device.facts.multiprocessors, scratch.size):
        args = [Args(w=b.address, y=scratch.address, bytes=size, grid=grid, block=block, kind=kind) for b in buffers]
        timed = Timed(device, "read", graph_args(args, cache))
        tried.append((_median(timed, 4), timed, args))
    if not tried:
        raise KernelError(f"no shape of a plain read fits {size} bytes; choose a larger matrix.")
    tried.sort(key=lambda each: each[0])
    few = sorted(tried[:8], key=lambda each: _median(each[1], 24))[:3]  # a few replays tell the good ones, not the best
    part = min(size, scratch.size) // 16 * 16
    copy = [
        Args(w=b.address, y=scratch.address, bytes=part, grid=device.facts.multiprocessors * 8, block=512)
        for b in buffers
    ]
    return [Contender("read ceiling", "read", args) for _, _, args in few], Contender("copy ceiling", "copy", copy)


def _median(timed: Timed, replays: int) -> float:
    return float(np.median([timed.replay() for _ in range(replays)][1:]))


def _read_shapes(size: int, multiprocessors: int, scratch: int) -> list[tuple[int, int, int]]:
    """Loads in flight a thread, threads, blocks: enough for all bytes at once, or a few for each multiprocessor."""
    shapes = []
    for kind in (2, 4, 8):
        for block in (128, 256, 512, 1024):
            grids = {max(1, size // 16 // (block * kind)), *(multiprocessors * each for each in (4, 8, 16))}
            shapes += [(kind, block, grid) for grid in sorted(grids) if grid * block // 8 <= scratch]
    return shapes
