"""Whether two files of one shape and format cost the same a step: `python -m bench.synth.compare REAL.gguf OTHER.gguf`.

The real file is copied into memory and mapped, and the weights of either are written into the mapped file by turns, a
block being A B B A. So both are decoded by one model in one place: of two copies of a file that are loaded apart, one
can be 5 % slower for where its pages lie. The ratio is the median over blocks of the second file's time over the first
one's; its interval is the one between order statistics, which assumes no distribution. It writes no record.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gguf import GGUFReader
from numpy.typing import NDArray

from bench.errors import UserError
from bench.host.cpus import available_cpus
from pti_loop.engine import ContextSpec, EngineError
from pti_loop.llama.model import LlamaModel

STEPS, WARM_UP = 10, 2
BLOCKS = 100
_MEMORY = Path("/dev/shm")


def interval_of_median(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Distribution-free interval of the median, from the binomial distribution of how many values lie below it.

    Needs six values or more for 95 %; with fewer it is the whole range.
    """
    from scipy.stats import binom

    ordered = sorted(values)
    below = max(int(binom.ppf((1 - confidence) / 2, len(ordered), 0.5)) - 1, 0)
    return ordered[below], ordered[-1 - below]


class Weights:
    """The tensors of a file by name: type, place in the file, and bytes. Raises `UserError` when it is not there."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"there is no model file {path}; give two that exist")
        read = GGUFReader(path).tensors
        self.types = {tensor.name: (tensor.tensor_type, tuple(tensor.shape.tolist())) for tensor in read}
        self.places = {tensor.name: int(tensor.data_offset) for tensor in read}
        self.bytes = {tensor.name: tensor.data.tobytes() for tensor in read}

    def put(self, file: int, places: dict[str, int]) -> None:
        """Write these weights into an open file that has its tensors at `places`."""
        for name, content in self.bytes.items():
            os.pwrite(file, content, places[name])


class Stepper:
    """One loaded model whose weights change under it."""

    def __init__(self, path: Path, width: int, threads: int) -> None:
        self.width = width
        self.model = LlamaModel(path, n_gpu_layers=0)
        self.ctx = self.model.context(ContextSpec(n_ctx=WARM_UP + STEPS, n_seq_max=width, threads=threads))

    def seconds(self) -> tuple[float, NDArray[np.float32]]:
        """Median seconds of a step of `width` sequences, and the last one's logits, float32 (n_vocab,)."""
        self.ctx.clear()
        taken = []
        for depth in range(WARM_UP + STEPS):
            began = self.ctx.clock()
            # The same ids for both.
            self.ctx.decode(range(1, self.width + 1), [depth] * self.width, range(self.width), None)
            taken.append(self.ctx.clock() - began)
        return statistics.median(taken[WARM_UP:]) / 1e9, self.ctx.logits()[0].copy()

    def close(self) -> None:
        """Free the context and the model."""
        self.ctx.close()
        self.model.close()


def compare(first: Path, second: Path, width: int, blocks: int, threads: int) -> list[tuple[float, float]]:
    """Seconds a step of each file, block by block. Raises `UserError` when they are not of one shape and format."""
    one, other = Weights(first), Weights(second)
    if one.types != other.types:
        names = [name for name in {**one.types, **other.types} if one.types.get(name) != other.types.get(name)]
        raise UserError(
            f"{first} and {second} differ in {len(names)} tensors, such as {names[0]}; give two of one shape and format"
        )
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        path = Path(shutil.copy(first, folder))
        stepper = Stepper(path, width, threads)
        file = os.open(path, os.O_WRONLY)
        try:
            return [_block(stepper, file, one, other) for _ in range(blocks)]
        finally:
            os.close(file)
            stepper.close()


def _block(stepper: Stepper, file: int, one: Weights, other: Weights) -> tuple[float, float]:
    turns = []
    for weights in (one, other, other, one):
        weights.put(file, one.places)
        turns.append(stepper.seconds())
    (a, said), (b, otherwise), (c, _), (d, _) = turns
    if np.array_equal(said, otherwise) and one.bytes != other.bytes:
        raise UserError("llama.cpp keeps a copy of the weights, so they cannot be changed under it; use the CPU build")
    return math.sqrt(a * d), math.sqrt(b * c)


def main(words: Sequence[str]) -> int:
    """Print the ratio; returns the exit code."""
    try:
        if not 2 <= len(words) <= 4 or not all(word.isdecimal() and int(word) for word in words[2:]):
            raise UserError(f"compare needs two model files, and may get blocks and a width: FILE FILE [{BLOCKS} [1]]")
        blocks, width = [int(word) for word in words[2:]] + [BLOCKS, 1][len(words) - 2 :]
        threads = available_cpus()
        times = compare(Path(words[0]), Path(words[1]), width, blocks, threads)
    except (UserError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    ratios = [treated / base for base, treated in times]
    low, high = interval_of_median(ratios)
    base, treated = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
    print(f"second over first: {statistics.median(ratios):.4f}, 95 % interval {low:.4f} to {high:.4f}; "
          f"{base:.3f} ms and {treated:.3f} ms a step of width {width}; {blocks} blocks of A B B A, "
          f"{STEPS} steps a turn, {threads} threads")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
