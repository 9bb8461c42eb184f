"""One cell of servers: opens both sides, has the contrast run, and puts its facts and tables together.

This process loads no engine, so what only a loaded model shows (bandwidth, the contexts' memory) is not in the facts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.host import device_lock
from bench.plan import served
from bench.plan.settings import Config
from bench.records.drawing import PLAIN
from bench.run.arms import Prompt
from bench.run.contrast import Progress
from bench.run.engines import offloads
from bench.run.engines.server import sizes
from bench.run.prompt_text import says, without_second_beginning
from bench.run.sensors import sensors
from bench.run.served.arms import ServedArms
from bench.run.served.contrast import ServedContrast
from bench.run.served.draws import draws_of
from bench.run.served.side import Side, Wanted
from bench.run.sides import BASELINE, TREATMENT
from pti_loop.engine import EngineError
from pti_loop.gguf.file import GgufFile

SILENCE = 0.5
"""Share of the silence that would end this whole process after which a server counts as hung."""

Measured = tuple[dict[str, Any], dict[str, list[Any]]]


def measure_served(config: Config, file: GgufFile | None, job: Mapping[str, Any], progress: Progress,
                   behind: Callable[[list[Prompt], int], list[Prompt]]) -> Measured:  # fmt: skip
    """Facts and tables of a cell. `behind` puts prompts behind other text. Raises `EngineError`, `UserError`."""
    silence = SILENCE * float(job["silence"])
    name, vocabulary, parameters = (Path(job["model_path"]).name, file.n_vocab, file.n_params) if file else ("", 0, 0)
    wanted = Wanted(config.engine.cache_prompt, config.engine.kept, config.model.served, name, vocabulary, parameters,
                    silence, silence, draws_of(config))  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="pti-bench-servers-") as folder:
        sides = {name: Side(name, job["builds"][name], wanted, Path(folder) / name, device_lock.held())
                 for name in (BASELINE, TREATMENT)}  # fmt: skip
        around, _, note = sensors("gpu" if offloads(config) else "cpu")
        arms = ServedArms(sides, config, around)
        try:
            progress(0.02, "starting the servers")
            prompts = behind(_prompts(arms, config, file), config.depth)
            result = ServedContrast(config, prompts, job["cell"], progress, arms).run(close=False)
        finally:
            arms.close()
            log = "".join(f"{name}:\n{side.log()}" for name, side in sides.items())
    facts = {key: value for key, value in result.facts.items() if key not in ("padded", "rollback")}
    facts |= {"model": _model(config, file), "clocks": note, "log": log,
              "sides": "kept" if config.engine.kept else "fresh"}  # fmt: skip
    if not all(side.is_here for side in sides.values()):
        facts["sides"] = "at addresses"
    return facts, result.tables | {"served": arms.rows}


def _prompts(arms: ServedArms, config: Config, file: GgufFile | None) -> list[Prompt]:
    """The prompts as both servers divide them. Raises `EngineError` where the two do not agree."""
    found, said, special = [], says(config, file), config.prompts.template != PLAIN
    for name in (BASELINE, TREATMENT):
        with arms.alone(name) as side:
            side.open()
            ids = [side.tokenize(said(item)) for item in config.prompts.items]
            found.append([without_second_beginning(one, file) if special else tuple(one) for one in ids])
    ways = {side.way for side in arms.sides.values()}
    for item, ours, theirs in zip(config.prompts.items, *found, strict=True):
        if ours != theirs and len(ways) == 1:
            raise EngineError(f"the two servers divide the prompt '{item['id']}' into other tokens, so their models "
                              "have different vocabularies")  # fmt: skip
        room = config.engine.n_ctx - config.n_predict
        if len(ways) == 1 and arms.sides[BASELINE].has_logits and len(ours) > room:
            need = len(ours) + config.n_predict
            raise UserError(f"prompt '{item['id']}' has {len(ours)} tokens; with n_predict={config.n_predict} a "
                            f"request needs {need} and engine.n_ctx={config.engine.n_ctx}; set engine.n_ctx={need}")
    if len(ways) > 1:
        raise EngineError("one server is a llama-server, that takes ids, and the other takes text; ask both alike")
    return [Prompt(item["id"], item["class"], tokens) for item, tokens in zip(config.prompts.items, found[0],
                                                                               strict=True)]  # fmt: skip


def _model(config: Config, file: GgufFile | None) -> dict[str, Any]:
    """What is known of the model: by its file, or by its name alone."""
    if file is None:
        return {"name": config.model.name, "sha256": served.name_digest(config.model.served)}
    return {
        "name": config.model.name, "sha256": file.sha256(), "architecture": file.architecture,
        "file_bytes": file.file_bytes, "synthetic": file.synthetic, "n_vocab": file.n_vocab,
        **sizes(None, file, config),
    }  # fmt: skip
