"""What a sweep is about to do: its points checked for all that can be known before a model is loaded, and its cells.

It runs none of them, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.host import builds
from bench.plan import served
from bench.plan.cells import Cell, cells
from bench.plan.compose import compose_points
from bench.plan.engines import ENGINES
from bench.plan.model_files import model_path
from bench.plan.settings import Config
from bench.plan.shards import Shard, chosen
from bench.plan.treatment import changes, treated
from bench.records.cells import check_writable
from bench.run import engines
from bench.run.served.program import check_servers, facts_of
from pti_loop.gguf.file import GgufFile

MANY_POINTS = 100
TURN = 8
"""Tokens of a turn on a CPU: a tenth of a second of a small model, where load comes in bursts of a second."""

Plan = tuple[list[Cell], list[Config], dict[str, dict[str, Any]]]
"""Cells, configurations, and the environment of each engine by its name."""


def prepare(overrides: Sequence[str], writes: bool = True, shard: Shard | None = None) -> Plan:
    """Check everything that can be checked before a model is loaded, and plan the cells; say how many points if many.

    `writes` is whether records will be written, `shard` which of the points are meant. Raises `UserError`.
    """
    from bench.host import cpus, provenance
    from bench.run.peer_programs import check_peers

    points = compose_points(list(overrides), _tell_points)
    campaign = any(item.lstrip("+").startswith("experiment=") for item in overrides)
    configs = _that_can_run(chosen(points, shard) if shard else points, campaign)
    first = configs[0]
    root = Path(first.results)
    if writes:
        check_writable(root)
    available = cpus.available_cpus()
    for config in configs:
        config.engine.threads = cpus.check_threads(config.engine.threads or available, available)
        if threads := config.treatment.engine.threads:
            cpus.check_threads(threads, available)
        check_peers(config)
        engines.engine(config.model.engine).check_installed()
        _set_turns(config)
        if served.is_served(config):
            check_servers(config)
    weights = check_models(configs)
    environments: dict[str, dict[str, Any]] = {}
    planned: dict[str, Cell] = {}
    names = {build: str(builds.facts(build)["build"]) for build in _on_trial(configs)}
    # In the order of the points, which is that of their worth where somebody wrote an experiment.
    for (engine, build), group in groupby(configs, _build_of):
        own = list(group)
        key = f"{engine} {build}"
        if key not in environments:
            facts = _engine_facts(engine, build, own[0].model.served)
            packages = ENGINES[engine].packages
            environments[key] = provenance.environment(first.machine or "", first.engine.threads, facts, packages)
        found = environments[key]
        for cell in cells(own, root, found["machine"]["name"], found["engine"]["build"], weights, names,
                          found["host"]):  # fmt: skip
            planned.setdefault(cell.id, cell)
    _tell_uncontrolled(list(planned.values()))
    return list(planned.values()), configs, environments


def _set_turns(config: Config) -> None:
    """How long a turn is where nobody said it: none for servers, for answers that end by themselves, and where a GPU
    pays for it."""
    if config.measure.chunk < 0:
        whole = served.is_served(config) or not config.ignore_eos or engines.offloads(config)
        config.measure.chunk = 0 if whole else TURN


def _that_can_run(configs: list[Config], campaign: bool) -> list[Config]:
    """The points whose builds of the engine are there; the others are told. Raises `UserError` where none is.

    Of a campaign, an experiment's lines, those without their model's file are left out likewise: somebody may have one
    of several large files. Elsewhere a file that is not there is a slip.
    """
    kept: list[Config] = []
    lacking: dict[str, int] = {}
    for config in configs:
        try:
            for build in (config.engine.build, treated(config).engine.build):
                builds.folder_of(build)
            if campaign and config.model.path and not (path := model_path(config)).is_file():
                raise UserError(f"model={config.model.name} needs {path.name}, which is not here; configs/model says "
                                "how it is made, or give another with model=gguf model.path=FILE")  # fmt: skip
            kept.append(config)
        except UserError as error:
            lacking[str(error)] = lacking.get(str(error), 0) + 1
    if not kept:
        raise UserError(next(iter(lacking)))
    for why, count in lacking.items():
        print(f"left out, {count} of {len(configs)} points: {why}", flush=True)
    return kept


def _tell_points(count: int) -> None:
    """Many take a while to plan, and may be a slip of the hand."""
    if count >= MANY_POINTS:
        print(f"{count} points to plan", flush=True)


def _tell_uncontrolled(planned: Sequence[Cell]) -> None:
    """Whoever waits for a cell should know before that it will count for nothing."""
    lacking = {"again_blocks": 0, "control_blocks": 0}
    for cell in planned:
        measure, method = cell.config["measure"], cell.config.get("method") or {}
        guesses = bool((method.get("declaration") or {}).get("guesses"))
        for name in lacking:
            lacking[name] += measure.get(name) == 0 and (guesses or name == "again_blocks")
    for name, count in lacking.items():
        if count:
            print(f"void from the start, {count} of {len(planned)} cells: measure.{name}=0 leaves out a control "
                  "without which nothing that they measure counts", flush=True)  # fmt: skip


def _build_of(config: Config) -> tuple[str, str]:
    """The engine, and which of its builds the baseline has."""
    return config.model.engine, config.engine.server if served.is_served(config) else config.engine.build


def _engine_facts(engine: str, build: str, model: str) -> Mapping[str, Any]:
    if engine == served.ENGINE:
        return facts_of(build, model)
    return engines.engine(engine).build() if build == builds.STOCK else builds.facts(build)


def _on_trial(configs: Sequence[Config]) -> list[str]:
    """The builds that some treatment has in place of its baseline's."""
    return list(dict.fromkeys(str(build) for config in configs if (build := changes(config).get("build"))))


def check_models(configs: Iterable[Config]) -> dict[Path, str]:
    """Hashes of the model files, whose headers must be sound and whose caches must fit. Raises `UserError`."""
    from bench.host.memory import usable_memory
    from pti_loop.gguf import file as gguf_file
    from pti_loop.gguf.header import ModelFileError

    weights: dict[Path, str] = {}
    files = {}
    room = usable_memory()
    for config in configs:
        path = model_path(config)
        if not served.needs_file(config):
            weights[path] = served.name_digest(config.model.served)
            continue
        if path not in files:
            try:
                files[path] = gguf_file.read(path)
            except ModelFileError as error:
                raise UserError(str(error)) from error
            weights[path] = files[path].sha256()
        if config.model.path and config.model.sha256 and weights[path] != config.model.sha256.lower():
            raise UserError(f"{path} has SHA-256 {weights[path][:12]}.., and model.sha256 asks for "
                            f"{config.model.sha256[:12]}..; get the file again, or leave model.sha256 out")  # fmt: skip
        config.model.synthetic = files[path].synthetic
        _check_room(config, files[path], room)
    return weights


def _check_room(config: Config, file: GgufFile, room: int) -> None:
    """Raise `UserError` when a cell holds more than `room` bytes at once. A device checks its own memory."""
    n_ctx = config.engine.n_ctx + config.depth
    runs = engines.engine(config.model.engine)
    kv = runs.kv_bytes_per_token(file, config) * n_ctx
    need = (kv + file.state_bytes_per_sequence()) * (config.streams + 2)
    weights = runs.weight_bytes(file)
    if need + weights > room and not engines.offloads(config):
        widened = f", beside {weights / 1e9:.1f} GB of weights in float32" if weights else ""
        raise UserError(
            f"the KV caches of {config.streams} streams and two baselines of engine.n_ctx={n_ctx} tokens "
            f"take {need / 1e9:.1f} GB{widened}, this machine lets a process use {room / 1e9:.1f} GB; lower "
            "engine.n_ctx or streams"
        )
