"""Whether two models cost the same a step: `python -m bench.synth.compare REAL.gguf OTHER.gguf [BLOCKS [WIDTH]]`.

They take turns, a block being A B B A, so that drift hits both. For every turn a model is loaded anew, alone, and read
rather than mapped: of two copies of one file in memory at once, the one loaded first was 5 % slower, and how a file's
pages lie in the system's cache depends on how it was written. Loaded one after the other, both get the same memory. The
ratio is the median over blocks of the second model's time over the first one's; its interval is the one between order
statistics, which assumes no distribution. It knows nothing about what the models are, and writes no record.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import UserError
from bench.host.cpus import available_cpus
from pti_loop.engine import ContextSpec, EngineError
from pti_loop.llama import LlamaModel

STEPS, WARM_UP = 12, 3
BLOCKS = 30


def interval_of_median(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Distribution-free interval of the median, from the binomial distribution of how many values lie below it.

    Needs six values or more for 95 %; with fewer it is the whole range.
    """
    from scipy.stats import binom

    ordered = sorted(values)
    below = max(int(binom.ppf((1 - confidence) / 2, len(ordered), 0.5)) - 1, 0)
    return ordered[below], ordered[-1 - below]


def step_seconds(path: Path, width: int, threads: int) -> float:
    """Median seconds of a step of `width` sequences, of a model loaded for it alone."""
    model = LlamaModel(path, mapped=False)
    ctx = model.context(ContextSpec(n_ctx=WARM_UP + STEPS, n_seq_max=width, threads=threads))
    try:
        taken = []
        for depth in range(WARM_UP + STEPS):
            began = ctx.clock()
            # The same ids for every model: what a step costs does not depend on them.
            ctx.decode(range(1, width + 1), [depth] * width, range(width), None)
            taken.append(ctx.clock() - began)
        return statistics.median(taken[WARM_UP:]) / 1e9
    finally:
        ctx.close()
        model.close()


def compare(first: Path, second: Path, width: int, blocks: int, threads: int) -> tuple[float, float, list[float]]:
    """Median seconds a step of each model, and the ratio of second to first in each block."""
    times: list[tuple[float, float]] = []
    for _ in range(blocks):
        a, b, c, d = (step_seconds(path, width, threads) for path in (first, second, second, first))
        times.append((math.sqrt(a * d), math.sqrt(b * c)))
    base, treated = (statistics.median(column) for column in zip(*times, strict=True))
    return base, treated, [b / a for a, b in times]


def main(words: Sequence[str]) -> int:
    """Print the ratio; returns the exit code."""
    try:
        if not 2 <= len(words) <= 4 or not all(word.isdecimal() for word in words[2:]):
            raise UserError("compare needs two model files, and may get blocks and a width: FILE FILE [30 [1]]")
        blocks, width = [int(word) for word in words[2:]] + [BLOCKS, 1][len(words) - 2 :]
        threads = available_cpus()
        base, treated, ratios = compare(Path(words[0]), Path(words[1]), width, blocks, threads)
        low, high = interval_of_median(ratios)
        print(f"second over first: {statistics.median(ratios):.4f}, 95 % interval {low:.4f} to {high:.4f}; "
              f"{1e3 * base:.3f} ms and {1e3 * treated:.3f} ms a step of width {width}; {blocks} blocks of A B B A, "
              f"{STEPS} steps a turn, {threads} threads")  # fmt: skip
    except (UserError, EngineError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
