"""Decodes of some widths in a process of its own: what a profiler is put around, and what is timed without one.

The job is a JSON file: the configuration, the model's path, widths, how often each is decoded, and whether the runtime
is told where to count. The answer is another file. It knows no profiler.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pti_loop.load_first import load_first

if TYPE_CHECKING:
    from bench.plan.settings import Config
    from pti_loop.llama.model import LlamaModel

LEAST_CONTEXT = 16


def main() -> int:
    """Returns the exit code of the process; the job's path is its one argument."""
    load_first()
    path = Path(sys.argv[1])
    job = json.loads(path.read_text())
    answer = path.with_suffix(".answer")
    answer.write_text(json.dumps(run(job)))
    return 0


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Decode as the job says. Raises `EngineError`."""
    from bench.host import device_bandwidth
    from bench.run.engines import llama
    from bench.run.worker import config_of, read_speed
    from pti_loop.gguf import file as gguf_file

    config = config_of(job["config"])
    model: Any = llama.load(config, job["model_path"])
    around: Callable[[], AbstractContextManager[None]] = device_bandwidth.profiled if job["ranged"] else nullcontext
    try:
        rows = [{"width": width, **_decodes(model, config, width, job["decodes"], job["warm_up"], around)}
                for width in job["widths"]]  # fmt: skip
        sizes = llama.sizes(model, gguf_file.read(job["model_path"]), config)
        speed = read_speed(model, config, sizes["step_bytes"], 9) if job["bandwidth"] else {}
        return {"decodes": rows, "model": model.facts() | sizes, "bandwidth": speed}
    finally:
        model.close()


def _decodes(model: LlamaModel, config: Config, width: int, decodes: int, warm_up: int,
             around: Callable[[], AbstractContextManager[None]]) -> dict[str, list[int]]:  # fmt: skip
    """Nanoseconds of each decode, one token in each of `width` sequences, and until it was queued."""
    from dataclasses import replace

    from bench.run.specs import context_spec
    from bench.run.step_times import TEXT
    from pti_loop.engine import prefill

    held = config.measure.step_depth
    room = max(held + warm_up + decodes + 1, LEAST_CONTEXT)
    spec = replace(context_spec(config, width, width), n_ctx=max(room, config.engine.n_ctx))
    text = model.tokenize(TEXT)
    ctx: Any = model.context(spec)
    try:
        prefill(ctx, (text * (held // len(text) + 1))[:held], 0)
        for sequence in range(1, width):
            ctx.copy(0, sequence)
        tokens = ctx.greedy() * width
        for past in range(held, held + warm_up):
            ctx.decode(tokens, [past] * width, range(width), None)
        found: dict[str, list[int]] = {"ns": [], "queued_ns": []}
        with around():
            for past in range(held + warm_up, held + warm_up + decodes):
                began = ctx.clock()
                ctx.queue(tokens, [past] * width, range(width))
                queued = ctx.clock()
                ctx.wait()
                found["ns"].append(ctx.clock() - began)
                found["queued_ns"].append(queued - began)
        return found
    finally:
        ctx.close()


if __name__ == "__main__":
    sys.exit(main())
