"""From configurations to cells: what each is, its id, and whether it is done already.

A cell's id is a hash of what it measures: the resolved configuration, the weights' hash, and the engine's build. Where
results go, what the model's file is called and where programs lie that ran beside do not change it. A model that no
configuration names goes by its file's name. It measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.plan import served, treatment
from bench.plan.compose import compose_points
from bench.plan.config import CONFIGS
from bench.plan.engines import ENGINES
from bench.plan.model_files import model_path
from bench.plan.settings import STOCK, Config, ModelConfig, PeersConfig
from bench.plan.work import work
from bench.records.cells import host_of, state_of
from bench.records.declaring import BASELINE, of_servers
from bench.records.drawing import CHAIN, CUTS, ENDS, PENALTIES, PLAIN, TEMPLATE, USUAL, WINDOW, drawn_words
from bench.records.identity import cell_id, name_of_file
from pti_loop.gguf.file_hash import sha256_of
from pti_loop.parameters import Parameter, declare, declared, parameters_of

_NOT_MEASURED = ("points", "results", "reports", "claims", "machine", "profile", "wait", "limit", "busy", "treatment",
                 "counters", "launcher")  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One unit of running, resuming and judging."""

    id: str
    kind: str
    """`contrast`, `trial` (of a build or a setting), `served` (of servers), `profile` or `counters`."""
    config: dict[str, Any]
    folder: Path
    model_path: Path
    peers: dict[str, Any]
    """Paths of the peer programs, which are no part of what is measured."""
    files: dict[str, Any]
    """Paths of the files that the method reads beside the model, by parameter."""
    builds: dict[str, str] = field(default_factory=dict[str, str])
    """Which build of the engine each arm has, as it was given; none: the usual one. Of servers the whole commands, or
    the addresses."""

    @property
    def state(self) -> str:
        """What `bench.records.cells.state_of` says of its folder."""
        return state_of(self.folder)

    @property
    def engine(self) -> str:
        """Name of the engine that runs it."""
        return str(self.config["model"]["engine"])

    @property
    def label(self) -> str:
        """What a person calls it."""
        config = self.config
        model = config["model"]["name"] + (" (synthetic)" if config["model"]["synthetic"] else "")
        told = ENGINES[self.engine].label
        model += f" ({told})" if told else ""
        if self.kind == "profile":
            return f"{model} step cost, bandwidth, memory"
        if self.kind == "counters":
            return f"{model} counters of a decode"
        words = [config["method"]["declaration"]["short"], f"T={config['temperature']:g}"]
        if config.get("depth"):
            words.append(f"behind {config['depth']} tokens")
        if drawn := drawn_words(config):
            words.append(drawn)
        if on_trial := config.get("treatment"):
            words.append(f"{on_trial['declaration']['words']} against {on_trial['declaration']['was']}")
        return f"{model} {', '.join(words)}" if len(words) > 2 else f"{model} {' '.join(words)}"

    @property
    def work(self) -> float:
        """Guess of its cost in arbitrary units, for the first ETA."""
        return work(self.kind, self.config)


def cells(configs: list[Config], root: Path, machine: str, build: str, weights: dict[Path, str],
          builds: Mapping[str, str] | None = None, host: str = "") -> list[Cell]:  # fmt: skip
    """Cells of a sweep in order, each once, a profile before the first cell that it prices. `weights` maps model paths
    to their hashes.

    `build` is the baseline's; `builds` has the names of those on trial, by how they were given. `host` is this host's
    key: where another host of the make has left the profile, this one gets a profile of its own.
    """
    found: dict[str, Cell] = {}
    for config in configs:
        tried = bool(treatment.changes(config))
        for kind in _kinds(config, tried):
            make = _VALUES[kind]
            path = model_path(config)
            values, files = make(config), method_files(config) if kind == "contrast" else {}
            values |= {"kind": "trial" if tried else kind, "weights": weights[path],
                       "files": {key: sha256_of([file]) for key, file in files.items()}}  # fmt: skip
            if served.is_served(config):
                values |= {"kind": served.KIND, "files": served.files(config)}
            if tried:
                values["treatment"] = treatment.stored(config, builds or {})
            name = cell_id(values, build)
            if kind == "profile" and host and host_of(root / machine / name) not in ("", host):
                values["host"] = host
                name = cell_id(values, build)
            folder = root / machine / name
            programs = {key: value for key, value in vars(config.peers).items() if key.startswith("llama_")}
            found.setdefault(name, Cell(name, values["kind"], values | {"machine": machine}, folder, path, programs,
                                        files, _builds(config)))  # fmt: skip
    return list(found.values())


def _kinds(config: Config, tried: bool) -> tuple[str, ...]:
    """What is measured of a configuration: a profile is of the model alone, counters take the place of a contrast."""
    if config.counters != "none":
        return ("counters",)
    return ("profile", "contrast") if config.profile and not tried else ("contrast",)


def _builds(config: Config) -> dict[str, str]:
    """The builds that are not the usual one, by arm; of servers what starts them, or where they are."""
    if served.is_served(config):
        own, path = {"baseline": config, "treatment": treatment.treated(config)}, model_path(config)
        return {served.GIVEN: config.engine.server} | {
            arm: command if served.is_address(command) else served.full_command(own[arm], command, path)
            for arm, command in served.commands(config).items()}  # fmt: skip
    given = {"baseline": config.engine.build, "treatment": treatment.treated(config).engine.build}
    return {arm: build for arm, build in given.items() if build != STOCK}


def _common(config: Config) -> dict[str, Any]:
    """Plain values, without what is not measured."""
    values = {key: _plain(value) for key, value in vars(config).items() if key not in _NOT_MEASURED}
    values["engine"] = (served.stored_engine(config) if served.is_served(config)
                        else treatment.told_engine(values["engine"]))  # fmt: skip
    if not config.model.served:
        del values["model"]["served"]
    if not config.depth:
        del values["depth"]
    for name in _unused_draws(config):
        del values[name]
    path = model_path(config)
    if config.model.path:
        values["model"]["sha256"] = None  # the weights' own hash is in the id, whatever was asked for
    values["model"]["path"] = path.name  # a folder says nothing about a model, and records travel
    if config.model.name == ModelConfig().name:
        values["model"]["name"] = name_of_file(path.name)
    return values


def _unused_draws(config: Config) -> list[str]:
    """Settings of draws and ends that change nothing here: at their usual values, or cuts at temperature 0."""
    unused = [name for name in (*CHAIN, ENDS) if getattr(config, name) == USUAL[name]
              or (name in CUTS and not config.temperature)]  # fmt: skip
    if not config.repeat_last_n or all(name in unused for name in PENALTIES):
        unused += [*PENALTIES, WINDOW]
    return list(dict.fromkeys(unused))


def _plain(value: Any) -> Any:
    """A group of settings as a mapping of its own; prompts are read alone, and are not copied."""
    return {key: list(inner) if isinstance(inner, list) else inner for key, inner in vars(value).items()} \
        if is_dataclass(value) else value  # fmt: skip


def _used_items(config: Config) -> list[dict[str, Any]]:
    """Prompts that the cell decodes: the first of each wanted class, and what completes groups of independent ones."""
    more = config.streams - 1 if config.method.spec.answers == "independent" or served.is_served(config) else 0
    classes = config.measure.classes or sorted({item["class"] for item in config.prompts.items})
    if not classes:
        raise UserError(f"the prompt set '{config.prompts.name}' has no prompts; choose another with prompts=NAME, or "
                        "give a file or a folder of yours with prompts=PATH")  # fmt: skip
    used: list[dict[str, Any]] = []
    for name in classes:
        pool = [item for item in config.prompts.items if item["class"] == name]
        if not pool:
            raise UserError(f"measure.classes: the prompt set '{config.prompts.name}' has no class '{name}'; "
                            + nearest(name, {item["class"] for item in config.prompts.items}))  # fmt: skip
        if more and len(pool) < config.streams:
            return list(config.prompts.items)
        used += pool[: config.measure.per_class + (more or config.measure.texts)]
    return used


def _contrast_values(config: Config) -> dict[str, Any]:
    values = _common(config)
    values["prompts"] = _stored_prompts(config)
    del values["peers"]
    for name in [name for name in values["measure"] if name.startswith(("step_", "counted_"))]:
        del values["measure"][name]
    # Left out where it is off: what is not measured changes no id.
    if not (values["measure"]["distribution"] and config.temperature):
        del values["measure"]["distribution"]
    if not values["measure"]["texts"] or config.method.spec.answers == "independent":
        del values["measure"]["texts"]
    if values["measure"]["chunk"] <= 0:
        del values["measure"]["chunk"]
    if not values["measure"]["repeats"] or served.is_served(config) or treatment.is_apart(config):
        del values["measure"]["repeats"]
    if not values["measure"]["until"]:
        del values["measure"]["until"], values["measure"]["budget"]
    if not values["measure"]["contexts"]:
        del values["measure"]["contexts"]
    if not values["measure"]["sharp"] or treatment.changes(config):  # a build or a setting is graded by its own rule
        del values["measure"]["sharp"]
    return values | _method_values(config)


def _stored_prompts(config: Config) -> dict[str, Any]:
    """The prompts that the cell decodes, and of a file of the user's what it is called and its hash."""
    values: dict[str, Any] = {**_plain(config.prompts), "items": _used_items(config)}
    if config.prompts.template == PLAIN:
        del values[TEMPLATE]
    if config.prompts.path is None:
        return {key: value for key, value in values.items() if key not in ("path", "sha256")}
    return values | {"path": Path(config.prompts.path).name}


def _method_values(config: Config) -> dict[str, Any]:
    """Method and streams. One stream is plain decoding, except for methods that have no streams."""
    if served.is_served(config):
        return _served_values(config)
    name, streams = config.method.name, config.streams if config.method.spec.answers != "one" else 1
    given = config.method.parameters
    if config.method.spec.answers != "one" and streams == 1:
        name, given = BASELINE, {}
    own = {one.name: one for one in parameters_of(declared()[name], given)}
    values = {key: value for key, value in given.items() if config.temperature > 0 or not own[key].warm}
    values |= {key: path.name for key, path in method_files(config).items() if key in values}
    declaration = declare(name, values, streams).as_dict()
    return {"streams": streams, "method": {"name": name, "parameters": values, "declaration": declaration}}


def _served_values(config: Config) -> dict[str, Any]:
    """Requests at once are answers of their own, and what a server does inside is not known to guess."""
    return {"streams": config.streams, "method": {"name": BASELINE, "parameters": {},
                                                  "declaration": of_servers(config.streams)}}  # fmt: skip


def _files(config: Config) -> list[Parameter]:
    """Parameters of the method that are files."""
    own = parameters_of(config.method.spec, config.method.parameters)
    return [one for one in own if one.kind in ("file", "model")]


def method_files(config: Config) -> dict[str, Path]:
    """Files that the method reads beside the model, by parameter: a path, or the name of a model's configuration.

    Raises `UserError` when one is not said or not there.
    """
    found = {}
    for parameter in _files(config):
        key, given = parameter.name, str(config.method.parameters[parameter.name])
        if not given and parameter.optional:
            continue
        if not given:
            raise UserError(f"method={config.method.name} needs a file; give it with method.{key}=FILE")
        if parameter.kind == "model" and (CONFIGS / "model" / f"{given}.yaml").is_file():
            found[key] = model_path(compose_points([f"model={given}"])[0])
            continue
        places = [Path(given).expanduser(), CONFIGS.parent / given]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            raise UserError(f"method.{key}={given} is no file; give the path of a GGUF file")
        found[key] = path.absolute()
    return found


def _profile_values(config: Config) -> dict[str, Any]:
    """Plain values of what a profile times: nothing in it is drawn, so that all seeds share one."""
    values = _common(config)
    for name in ("method", "streams", "temperature", "n_predict", "depth", "prompts", "seed", ENDS, *CHAIN):
        values.pop(name, None)
    values["measure"] = {key: value for key, value in values["measure"].items()
                         if key.startswith("step_") or (key == "repeats" and value)}  # fmt: skip
    # Left out where they are the usual ones or not used: what is not measured changes no id.
    if not values["peers"]["llama_batched_bench"] or values["peers"]["widths"] == PeersConfig().widths:
        del values["peers"]["widths"]
    for name in ("llama_bench", "llama_batched_bench"):
        if values["peers"][name]:  # where the program lies is no part of what is measured
            values["peers"][name] = Path(values["peers"][name]).name
    return values


def _counter_values(config: Config) -> dict[str, Any]:
    """Plain values of what a profiler counts: those of a profile, with the widths and the tool."""
    values = _profile_values(config)
    del values["peers"]
    values["measure"] = {key: getattr(config.measure, key) for key in ("step_depth", "counted_widths")}
    return values | {"counters": config.counters}


_VALUES = {"profile": _profile_values, "contrast": _contrast_values, "counters": _counter_values}
