"""One cell in a process of its own: loads the model, measures, writes the cell. Started by `bench.run.cell_process`.

It prints a line `{"share": .., "label": ..}` as it goes on. A `GGML_ASSERT`, a kill or an exception here costs one
cell, not the sweep. It imports neither pandas nor Hydra.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.errors import UserError, innermost_frame
from bench.plan.config import Config, EngineConfig, MeasureConfig, MethodConfig, ModelConfig, PeersConfig, PromptsConfig
from bench.records.cells import write_cell
from bench.run.arms import Prompt
from bench.run.engines import engine, offloads
from pti_loop.engine import Model
from pti_loop.gguf.file import GgufFile

_GROUPS = {"model": ModelConfig, "engine": EngineConfig, "prompts": PromptsConfig, "measure": MeasureConfig,
           "peers": PeersConfig, "method": MethodConfig}  # fmt: skip

Measured = tuple[dict[str, Any], dict[str, list[Any]]]
"""Facts, and rows of each table."""
CONTEXTS_ON_A_GPU = 3
"""How many times contexts are made in a cell whose layers are offloaded: there two of one kind differ by 1 to 2 %."""
_FOLDER = re.compile(r"(?<![^\s'\"(])/(?=[^\s/])(?:[^/'\"\n]+/)*?(?=[^/'\"\n]*\.gguf)")


def config_of(values: dict[str, Any]) -> Config:
    """Config from the plain values of a job."""
    known = {key: value for key, value in values.items() if key in Config.__dataclass_fields__}
    known["measure"] = {"sharp": False} | dict(known.get("measure") or {})  # left out where it is off
    if "method" in known:
        known["method"] = {key: known["method"][key] for key in ("name", "parameters")}
    return Config(**{key: _GROUPS[key](**value) if key in _GROUPS else value for key, value in known.items()})


def progress(share: float, label: str) -> None:
    """Tell the parent how far this cell is."""
    print(json.dumps({"share": round(share, 3), "label": label}), flush=True)


def measure_cell(job: dict[str, Any]) -> Measured:
    """Measure one cell. Returns (facts, tables)."""
    from bench.host.clocks import Clocks
    from bench.host.neighbours import Neighbours
    from bench.run.sharp import grade_sharp
    from pti_loop.gguf import file as gguf_file

    config = config_of(job["config"])
    for key, path in job["files"].items():
        config.method.parameters[key] = path
    file = gguf_file.read(job["model_path"])
    progress(0.02, "loading the model")
    runs = engine(config.model.engine)
    model = runs.load(config, job["model_path"])
    sizes = runs.sizes(model, file, config)
    speed = _read_speed(model, config, sizes["step_bytes"], repeats=9)
    clocks = Clocks("gpu" if model.facts()["layers_offloaded"] else "cpu")

    neighbours = Neighbours(clocks.device)

    def sample() -> tuple[float, ...]:
        now, around = clocks.sample(), neighbours.look()
        return now.clock_mhz, now.temp_c, around.load, around.other_cpus, around.steal, around.gpu_others

    body = _profile if job["kind"] == "profile" else _contrast
    facts, tables = body(model, config, job, sizes, sample)
    again = _read_speed(model, config, sizes["step_bytes"], repeats=4)
    if speed and again:
        speed["repeats"] += again["repeats"]
        speed["read_gb_s"] = max(speed["read_gb_s"], again["read_gb_s"])
    facts |= {"model": _model_facts(model, file, config) | sizes, "bandwidth": speed, "clocks": clocks.note,
              "process": _process(facts, config.temperature)}  # fmt: skip
    prompts = tokenized(model, config) if job["kind"] == "contrast" else []
    on_card = bool(model.facts()["layers_offloaded"])
    model.close()
    if prompts:
        sharp = grade_sharp(runs, config, prompts, file, job["cell"], on_card, progress)
        facts |= {"sharp": sharp.facts} if sharp.facts else {}
        tables |= {"sharp": sharp.rows}
    return facts, tables


def _read_speed(model: Model, config: Config, step_bytes: int, repeats: int) -> dict[str, Any]:
    """Read bandwidth of the memory that holds the weights; empty when they are divided, or nothing can tell."""
    from bench.host import bandwidth, device_bandwidth

    facts = model.facts()
    if not facts["layers_offloaded"]:
        return bandwidth.measure(config.engine.threads, step_bytes, repeats).as_dict()
    try:
        whole = facts["layers_offloaded"] == facts["layers_offloadable"]
        return device_bandwidth.measure(repeats).as_dict() if whole else {}
    except device_bandwidth.NoDevice:
        return {}


def tokenized(model: Model, config: Config) -> list[Prompt]:
    """The prompts with their ids. Raises `UserError` when one does not fit a stream's context."""
    room = config.engine.n_ctx - config.n_predict - config.streams
    prompts = [Prompt(item["id"], item["class"], tuple(model.tokenize(item["text"]))) for item in config.prompts.items]
    for prompt in prompts:
        if len(prompt.tokens) > room:
            need = len(prompt.tokens) + config.n_predict + config.streams
            raise UserError(
                f"prompt '{prompt.id}' has {len(prompt.tokens)} tokens; with n_predict={config.n_predict} a stream "
                f"needs {need} and engine.n_ctx={config.engine.n_ctx}; set engine.n_ctx={need}"
            )
    return prompts


def _contrast(model: Model, config: Config, job: dict[str, Any], sizes: dict[str, Any],
              sample: Callable[[], tuple[float, ...]]) -> Measured:  # fmt: skip
    from bench.run.contrast import Contrast

    if not config.measure.contexts:
        config.measure.contexts = CONTEXTS_ON_A_GPU if offloads(config) else 1
    result = Contrast(model, config, tokenized(model, config), job["cell"], sample, progress).run()
    names = ("kv_bytes", "state_bytes", "compute_bytes", "output_bytes")
    result.facts["memory"] = {
        arm: {name: facts[name] for name in names} for arm, facts in result.facts["engine"].items()
    }
    return result.facts, result.tables


def _profile(model: Model, config: Config, job: dict[str, Any], sizes: dict[str, Any],
             sample: Callable[[], tuple[float, ...]]) -> Measured:  # fmt: skip
    from bench.run import step_times
    from bench.run.peer_programs import compare_with_peers

    held = sizes["kv_bytes_per_token"], sizes["state_bytes_per_sequence"]
    facts: dict[str, Any] = {
        "memory_by_streams": step_times.memory_by_streams(model, config, *held, look=_held)}
    steps = step_times.step_costs(model, config, job["cell"], progress)
    for name, program in job["peers"].items():
        setattr(config.peers, name, program)
    facts["peers"] = compare_with_peers(model, Path(job["model_path"]), config, progress)
    return facts, {"steps": steps}


def _held() -> dict[str, int]:
    """What this process holds (its share of what it shares, all that it maps), and what the cards hold."""
    from bench.host.card_memory import card_memory
    from bench.host.memory import give_back, process_memory

    give_back()
    process, card = process_memory(), card_memory()
    held = {"rss_bytes": process.rss, "process_bytes": process.pss or process.rss}
    return held | ({"card_bytes": card.used} if card else {})


def _model_facts(model: Model, file: GgufFile, config: Config) -> dict[str, Any]:
    return {
        "name": config.model.name, "sha256": file.sha256(), "architecture": file.architecture,
        "file_bytes": file.file_bytes, "memory_note": file.memory_note, "synthetic": file.synthetic, **model.facts(),
    }  # fmt: skip


def _process(facts: dict[str, Any], temperature: float) -> dict[str, Any]:
    """Peak resident bytes of this process and what of it llama.cpp's own buffers are, and what drew its tokens."""
    from bench.host.memory import process_memory
    from pti_loop.sampling import drawn_by

    used = process_memory()
    buffers = sum(
        engine[name] for engine in facts.get("engine", {}).values()
        for name in ("kv_bytes", "state_bytes", "compute_bytes", "output_bytes")
    )  # fmt: skip
    return {"peak_rss_bytes": used.peak_rss, "anonymous_bytes": used.anonymous, "engine_buffer_bytes": buffers,
            "draws": drawn_by() if temperature else "argmax"}  # fmt: skip


def run(job: dict[str, Any]) -> int:
    """Measure and write one cell. Exit code 0: the cell is written, whatever its state."""
    began = time.monotonic()
    facts: dict[str, Any] = {}
    tables: dict[str, list[Any]] = {}
    status: dict[str, Any]
    try:
        facts, tables = measure_cell(job)
        status = {"state": "done", "reason": ""}
    except Exception as error:
        status = _status_of(error)
    status["seconds"] = round(time.monotonic() - began, 3)
    environment = job["environment"] | {"time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    write_cell(
        Path(job["folder"]), config=job["config"], env=environment,
        status=status, facts=facts, tables=tables, log=_engine_log(),
    )  # fmt: skip
    return 0


def _status_of(error: Exception) -> dict[str, Any]:
    from pti_loop.engine import EngineError, Unsupported

    if isinstance(error, Unsupported):
        return {"state": "unsupported", "reason": _FOLDER.sub("", str(error))}
    if isinstance(error, (UserError, EngineError)):
        return {"state": "failed", "reason": _FOLDER.sub("", str(error))}
    return {"state": "failed", "reason": f"{type(error).__name__}: {error} ({innermost_frame(error)})"}


def _engine_log() -> str:
    """llama.cpp's log without the folders of model files: records travel, and a folder tells about a machine only."""
    from pti_loop.llama import model as llama

    return _FOLDER.sub("", llama.log().since())
