"""The cell's texts once more on F16 weights of the same file, untimed: where a lossless loop has to say the same.

Quantised kernels round the activations to eight bits in every layer, so that on some devices a change of width moves
logits by half a logit and more; on F16 weights it moves them some forty times less, and whether a loop is lossless does
not depend on the type of the weights. It grades nothing: it writes what was said, the gaps and the noise, as for the
user's own file, and the judge compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bench.plan.settings import Config
from bench.records.arms import SHARP_ARMS
from bench.records.rows import Sharp
from bench.run.arms import Prompt
from bench.run.contrast import Contrast, Progress
from bench.run.engines import Engine
from pti_loop.engine import EngineError, Model
from pti_loop.gguf.file import GgufFile, read

MARGIN = 1.15
"""Over what is computed: compute buffers, and what a drafter brings along."""
SAME, GRADED, LEFT_OUT = "same", "graded", "left out"
"""What became of the grade: the cell's own weights are as wide, it was made, or it was not."""


@dataclass
class SharpResult:
    """What a cell stores of it: nothing where it was not asked for."""

    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    rows: list[Sharp] = field(default_factory=list[Sharp])


def grade_sharp(runs: Engine, config: Config, prompts: list[Prompt], file: GgufFile, name: str, on_card: bool,
                progress: Progress) -> SharpResult:
    """Run both arms on F16 weights where they fit. Nothing that fails here costs the cell its times.

    `prompts` are tokenized, `name` is the cell's, `on_card` whether its weights were put on a card.
    """
    if not config.measure.sharp:
        return SharpResult()
    if runs.is_wide(file):
        return SharpResult({"state": SAME, "type": file.quantization, "sha256": file.sha256()})
    need, free = needed(runs, config, file), _free(on_card)
    about = {"state": LEFT_OUT, "needed_bytes": need, "free_bytes": free}
    if free is not None and need > free:
        reason = f"F16 weights and their caches take {need / 1e9:.2f} GB, {free / 1e9:.2f} GB are free"
        return SharpResult(about | {"reason": reason})
    progress(0.99, "F16 weights")
    try:
        wide = read(runs.wide_file(str(file.path)))
        model = runs.load(config, str(wide.path))
        try:
            rows, facts = SharpContrast(model, config, prompts, name, lambda: (0.0, 0.0), progress).graded()
        finally:
            model.close()
    except (EngineError, MemoryError) as error:
        return SharpResult(about | {"reason": str(error).replace(f"{file.path.parent}/", "")})
    made = {"type": wide.quantization, "sha256": wide.sha256(), "bytes": wide.file_bytes}
    return SharpResult(about | facts | made | {"state": GRADED}, rows)


def _free(on_card: bool) -> int | None:
    from bench.host.card_memory import free_memory

    return free_memory(on_card)


def needed(runs: Engine, config: Config, file: GgufFile) -> int:
    """Bytes that the weights and the contexts take at once, computed before anything is loaded."""
    held = config.engine.n_ctx + config.depth
    sequence = runs.kv_bytes_per_token(file, config) * held + file.state_bytes_per_sequence()
    return round(MARGIN * (runs.wide_bytes(file) + sequence * (config.streams + 2)))


class SharpContrast(Contrast):
    """Each prompt of the cell once in both arms: no block, no clock, no control, the same replays."""

    def __init__(self, model: Model, config: Config, prompts: list[Prompt], name: str, sample: Any,
                 progress: Progress) -> None:
        super().__init__(model, config, prompts, name, sample, progress)
        once = {task.prompts: task for task in reversed(self.tasks)}
        self.tasks = [replace(task, block=block) for block, task in enumerate(once.values())]

    def graded(self) -> tuple[list[Sharp], dict[str, Any]]:
        """(what was said, facts with the rows of the comparison and the noise). The contexts are freed in the end."""
        rows: list[Sharp] = []
        try:
            for done, task in enumerate(self.tasks):
                seed = self._seed(task, 0)
                for arm in SHARP_ARMS:
                    trace = self.arms.run(arm, task, seed, -1)
                    self.texts[task.block, 0, arm] = trace
                    for stream, prompt in enumerate(task.prompts):
                        said = trace.text(stream) if arm == "baseline" else trace.said(stream)
                        rows += [Sharp(arm, prompt.id, stream, seed, place, int(token))
                                 for place, token in enumerate(said)]  # fmt: skip
                self.progress(0.99, f"F16 weights, prompt {done + 1} of {len(self.tasks)}")
            lossless, noise = self._replays()
        finally:
            self.arms.close()
        return rows, {"lossless": lossless, "noise": noise}
