"""One cell in a process of its own: loads the model, measures, writes the cell. Started by `bench.run.cell_process`.

It prints a line `{"share": .., "label": ..}` as it goes on. A `GGML_ASSERT`, a kill or an exception here costs one
cell, not the sweep. It imports neither pandas nor Hydra.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.errors import UserError, innermost_frame
from bench.plan.served import is_address, is_served
from bench.plan.settings import (
    Config,
    EngineConfig,
    MeasureConfig,
    MethodConfig,
    ModelConfig,
    PeersConfig,
    PromptsConfig,
    TreatedEngineConfig,
    TreatmentConfig,
)
from bench.plan.treatment import is_apart, treated
from bench.records import taken
from bench.records.cells import write_cell
from bench.records.contexts import usual
from bench.records.drawing import PLAIN
from bench.run.arms import Prompt
from bench.run.card_room import no_room
from bench.run.contrast import Contrast
from bench.run.engines import engine, offloads
from bench.run.held import held
from bench.run.prompt_depth import each_behind
from bench.run.prompt_text import facts as template_facts
from bench.run.prompt_text import says, without_second_beginning
from bench.run.repeats import Repeats, free_cpus
from bench.run.run_rows import Around
from bench.run.side_words import About
from bench.run.trial import here
from pti_loop.engine import EngineError, Model, Unsupported
from pti_loop.gguf.file import GgufFile

_GROUPS = {"model": ModelConfig, "engine": EngineConfig, "prompts": PromptsConfig, "measure": MeasureConfig,
           "peers": PeersConfig, "method": MethodConfig}  # fmt: skip

Measured = tuple[dict[str, Any], dict[str, list[Any]]]
"""Facts, and rows of each table."""
_LEFT_OUT: dict[str, Any] = {"sharp": False, "chunk": 0, "repeats": 0.0}
"""Settings of `measure` that a configuration does not have where they are off."""
_FOLDER = re.compile(r"(?<![^\s'\"(])/(?=[^\s/])(?:[^/'\"\n]+/)*?(?=[^/'\"\n]*\.gguf)")


def config_of(values: dict[str, Any]) -> Config:
    """Config from the plain values of a job."""
    known = {key: value for key, value in values.items() if key in Config.__dataclass_fields__}
    if "treatment" in known:
        known["treatment"] = TreatmentConfig(TreatedEngineConfig(**known["treatment"]["engine"]))
    known["measure"] = _LEFT_OUT | dict(known.get("measure") or {})
    if "method" in known:
        known["method"] = {"name": known["method"]["name"], "parameters": dict(known["method"]["parameters"])}
    return Config(**{key: _GROUPS[key](**value) if key in _GROUPS else value for key, value in known.items()})


def progress(share: float, label: str) -> None:
    """Tell the parent how far this cell is."""
    print(json.dumps({"share": round(share, 3), "label": label}), flush=True)


def measure_cell(job: dict[str, Any]) -> Measured:
    """Measure one cell. Returns (facts, tables)."""
    from bench.run.sharp import grade_sharp
    from pti_loop.gguf import file as gguf_file

    config = job_config(job)
    if is_served(config):
        from bench.run.served.cell import measure_served

        addresses = all(map(is_address, job["builds"].values()))
        read = None if addresses else gguf_file.read(job["model_path"])
        return measure_served(config, read, job, progress, each_behind)
    file = gguf_file.read(job["model_path"])
    if reason := no_room(config, file, job["kind"]):
        raise Unsupported(reason)
    if job["kind"] == "counters":
        return _count(config, file, job)
    if is_apart(config):
        return _apart(config, file, job)
    progress(0.02, "loading the model")
    runs = engine(config.model.engine)
    model = runs.load(config, job["model_path"])
    sizes = runs.sizes(model, file, config)
    speed = read_speed(model, config, sizes["step_bytes"], repeats=9)
    sample, gauge, note = readers(model)
    prompts = [] if job["kind"] == "profile" else tokenized(model, config, file)
    if job["kind"] == "profile":
        facts, tables = _profile(model, config, job, sizes)
    else:
        _set_contexts(config)
        opened = here(model, config, sample, gauge, held)
        result = Contrast(None, config, prompts, job["cell"], sample, progress, opened).run()
        facts, tables = _with_memory(result.facts), result.tables
    again = read_speed(model, config, sizes["step_bytes"], repeats=4)
    about = _model_facts(model.facts(), file, config) | sizes
    facts |= {"model": about | _treated_sizes(config, file), "bandwidth": _best(speed, again), "clocks": note,
              "process": _process(facts, config.temperature)}  # fmt: skip
    on_card = bool(model.facts()["layers_offloaded"])
    model.close()
    if job["kind"] == "contrast":
        sharp = grade_sharp(runs, config, prompts, file, job["cell"], on_card, progress)
        facts |= {"sharp": sharp.facts} if sharp.facts else {}
        tables |= {"sharp": sharp.rows}
    return facts, tables


def _count(config: Config, file: GgufFile, job: dict[str, Any]) -> Measured:
    """Count what the kernels of a decode read. This process loads no model."""
    from bench.run import counted

    facts, tables = counted.measure(config, job, progress)
    return facts | {"model": _model_facts(facts["model"], file, config)}, dict(tables)


def job_config(job: dict[str, Any]) -> Config:
    """The configuration of a job, with the paths of the method's files; what the job says to store stays as it is."""
    config = config_of(job["config"])
    for key, path in job["files"].items():
        config.method.parameters[key] = path
    return config


def load_side(job: dict[str, Any]) -> tuple[Model, Config, dict[str, Any], list[Prompt]]:
    """The model as one side of a contrast has it, with that side's configuration, sizes and prompts."""
    from pti_loop.gguf import file as gguf_file

    config = job_config(job)
    runs = engine(config.model.engine)
    own = treated(config) if job["side"] == "treatment" else config
    model = runs.load(own, job["model_path"])
    file = gguf_file.read(job["model_path"])
    return model, config, runs.sizes(model, file, config), tokenized(model, config, file)


def _apart(config: Config, file: GgufFile, job: dict[str, Any]) -> Measured:
    """Measure a cell each side of whose contrast has a process. This one loads no engine."""
    from bench.host import builds
    from bench.run.side import Side
    from bench.run.sides import BASELINE, TREATMENT, Sides

    sides = {name: Side(name, builds.child_environment(builds.folder_of(job["builds"].get(name, builds.STOCK))))
             for name in (BASELINE, TREATMENT)}  # fmt: skip
    together = job["together"]
    arms = Sides(sides, config, job, together)
    try:
        progress(0.02, "loading the model twice" if together else "loading the model")
        about = arms.load()
        check_builds(arms.about, job["environment"])
        size = about.sizes["step_bytes"]
        speed = arms.read_speed(size, 9)
        _set_contexts(config)
        result = Contrast(None, config, about.prompts, job["cell"], lambda: (), progress, arms.open)
        found = result.run(close=False)
        again = arms.read_speed(size, 4)
    finally:
        arms.close()
    kept = arms.kept()
    facts = _with_memory(found.facts) | {
        "model": _model_facts(about.model, file, config) | about.sizes | _treated_sizes(config, file),
        "bandwidth": _best(speed, again), "clocks": about.clocks, "sides": "together" if together else "in turn",
    }  # fmt: skip
    used = {key: sum(one["process"][key] for one in kept.values()) for key in ("peak_rss_bytes", "anonymous_bytes")}
    facts["process"] = used | {"engine_buffer_bytes": _buffers(facts)}
    facts["log"] = "".join(f"{name}:\n{one['log']}" for name, one in kept.items())
    return facts, found.tables


def check_builds(about: Mapping[str, About], environment: Mapping[str, Any]) -> None:
    """Raise `EngineError` where a side has loaded other libraries than those that the record will name."""
    for side, told in about.items():
        wanted = (environment.get(side) or environment["engine"])["build"]
        if told.build != wanted:
            raise EngineError(f"the {side}'s side has loaded the build {told.build}, and {wanted} was asked for")


def readers(model: Model) -> tuple[Around, Callable[[], float] | None, str]:
    """What reads the sensors right after a run, the counter of joules where there is one, and what is not told here."""
    from bench.run.sensors import sensors

    sample, meter, note = sensors("gpu" if model.facts()["layers_offloaded"] else "cpu")
    return sample, None if math.isnan(meter.joules()) else meter.joules, note


def _best(speed: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """Two readings of one bandwidth as one."""
    if not speed or not again:
        return speed
    return speed | {"repeats": [*speed["repeats"], *again["repeats"]],
                    "read_gb_s": max(speed["read_gb_s"], again["read_gb_s"])}  # fmt: skip


def _treated_sizes(config: Config, file: GgufFile) -> dict[str, Any]:
    """Bytes of a token in the treatment's cache, where its format is another one."""
    own = treated(config)
    if (own.engine.type_k, own.engine.type_v) == (config.engine.type_k, config.engine.type_v):
        return {}
    return {"treated_kv_bytes_per_token": engine(config.model.engine).kv_bytes_per_token(file, own)}


def read_speed(model: Model, config: Config, step_bytes: int, repeats: int) -> dict[str, Any]:
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


def tokenized(model: Model, config: Config, file: GgufFile) -> list[Prompt]:
    """The prompts with their ids, each behind `depth` tokens. Raises `UserError` where one does not fit a stream."""
    room = config.engine.n_ctx - config.n_predict - config.streams
    said, special = says(config, file), config.prompts.template != PLAIN
    prompts = []
    for item in config.prompts.items:
        ids = model.tokenize(said(item), special)
        tokens = without_second_beginning(ids, file) if special else tuple(ids)
        prompts.append(Prompt(item["id"], item["class"], tokens))
    for prompt in prompts:
        if len(prompt.tokens) > room:
            need = len(prompt.tokens) + config.n_predict + config.streams
            raise UserError(
                f"prompt '{prompt.id}' has {len(prompt.tokens)} tokens; with n_predict={config.n_predict} a stream "
                f"needs {need} and engine.n_ctx={config.engine.n_ctx}; set engine.n_ctx={need}"
            )
    return each_behind(prompts, config.depth)


def _set_contexts(config: Config) -> None:
    if not config.measure.contexts:
        config.measure.contexts = usual(offloads(config))


def _with_memory(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with what each arm's context takes: by the engine's buffers, and of process and cards."""
    names, found = ("kv_bytes", "state_bytes", "compute_bytes", "output_bytes"), facts.pop("held", {})
    return facts | {"memory": {arm: {name: one[name] for name in names} | found.get(arm, {})
                               for arm, one in facts["engine"].items()}}  # fmt: skip


def _profile(model: Model, config: Config, job: dict[str, Any], sizes: dict[str, Any]) -> Measured:
    from bench.run import step_times
    from bench.run.peer_programs import compare_with_peers

    of_shape = sizes["kv_bytes_per_token"], sizes["state_bytes_per_sequence"]
    facts: dict[str, Any] = {
        "memory_by_streams": step_times.memory_by_streams(model, config, *of_shape, look=held)}
    repeats = Repeats(config.measure.repeats, free_cpus(config)) if config.measure.repeats else None
    steps = step_times.step_costs(model, config, job["cell"], progress, repeats)
    facts |= {"repeated": repeats.facts()} if repeats else {}
    for name, program in job["peers"].items():
        setattr(config.peers, name, program)
    facts["peers"] = compare_with_peers(model, Path(job["model_path"]), config, progress)
    return facts, {"steps": steps}


def _model_facts(model: dict[str, Any], file: GgufFile, config: Config) -> dict[str, Any]:
    return {
        "name": config.model.name, "sha256": file.sha256(), "architecture": file.architecture,
        "file_bytes": file.file_bytes, "memory_note": file.memory_note, "synthetic": file.synthetic, **model,
        **template_facts(config, file),
    }  # fmt: skip


def _process(facts: dict[str, Any], temperature: float) -> dict[str, Any]:
    """Peak resident bytes of this process and what of it llama.cpp's own buffers are, and what drew its tokens."""
    from bench.host.memory import process_memory
    from pti_loop.sampling import drawn_by

    used = process_memory()
    return {"peak_rss_bytes": used.peak_rss, "anonymous_bytes": used.anonymous, "engine_buffer_bytes": _buffers(facts),
            "draws": drawn_by() if temperature else "argmax"}  # fmt: skip


def _buffers(facts: dict[str, Any]) -> int:
    names = ("kv_bytes", "state_bytes", "compute_bytes", "output_bytes")
    return sum(one[name] for one in facts.get("engine", {}).values() for name in names)


def run(job: dict[str, Any]) -> int:
    """Measure and write one cell. Exit code 0: the cell is written, whatever its state; 1: it was taken over."""
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
    if (taken_by := job.get("taken")) and not taken.is_newest(Path(taken_by)):
        print("another sweep took the cell over", file=sys.stderr)
        return 1
    environment = job["environment"] | {"time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    write_cell(
        Path(job["folder"]), config=job["config"], env=environment,
        status=status, facts=facts, tables=tables,
        log=_FOLDER.sub("", facts.pop("log", "")) or engine_log(),
    )  # fmt: skip
    return 0


def _status_of(error: Exception) -> dict[str, Any]:
    if isinstance(error, Unsupported):
        return {"state": "unsupported", "reason": _FOLDER.sub("", str(error))}
    if isinstance(error, (UserError, EngineError)):
        return {"state": "failed", "reason": _FOLDER.sub("", str(error))}
    return {"state": "failed", "reason": f"{type(error).__name__}: {error} ({innermost_frame(error)})"}


def engine_log() -> str:
    """llama.cpp's log without the folders of model files: records travel, and a folder tells about a machine only."""
    from pti_loop.llama import model as llama

    return _FOLDER.sub("", llama.log().since())
