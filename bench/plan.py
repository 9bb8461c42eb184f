"""From configurations to cells: what each is, its id, and whether it is done already.

A cell's id is a hash of what it measures: the resolved configuration, the weights' hash, and the engine's build. Where
results go, what the model's file is called and where programs lie that ran beside do not change it. A model that no
configuration names goes by its file's name. It measures nothing.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.config import CONFIGS, Config, MethodConfig, ModelConfig, compose_points
from bench.errors import UserError, nearest
from bench.host.pins import model_groups
from bench.parameters import FILES, ONE_STREAM, STAGGER, own
from bench.parts import joined
from bench.store import DamagedCell, read_cell, read_status
from pti_loop.file_hash import sha256_of

_PART = re.compile(r"-\d{5}-of-\d{5}$")
"""How the name of a split file ends."""
_STAGGER = {key: getattr(MethodConfig(), key) for key in STAGGER}
_NOT_MEASURED = ("points", "results", "reports", "claims", "machine", "profile")


@dataclass(frozen=True)
class Cell:
    """One unit of running, resuming and judging."""

    id: str
    kind: str
    """`contrast` or `profile`."""
    config: dict
    folder: Path
    model_path: Path
    peers: dict
    """Paths of the peer programs, which are no part of what is measured."""
    files: dict
    """Paths of the files that the method reads beside the model, by parameter."""

    @property
    def state(self) -> str:
        """`done`, `failed`, `unsupported`, `missing`, or `damaged`: done once, with a file that cannot be read."""
        status = read_status(self.folder)
        if status is None:
            return "damaged" if (self.folder / "status.json").exists() else "missing"
        done = status["state"] == "done"
        return "damaged" if done and isinstance(read_cell(self.folder), DamagedCell) else status["state"]

    @property
    def engine(self) -> str:
        """Name of the engine that runs it."""
        return self.config["model"]["engine"]

    @property
    def label(self) -> str:
        """What a person calls it."""
        config = self.config
        model = config["model"]["name"] + (" (synthetic)" if config["model"]["synthetic"] else "")
        model += " (transformers)" if self.engine == "hf" else ""
        if self.kind == "profile":
            return f"{model} step cost, bandwidth, memory"
        method = config["method"]
        name = method["name"]
        told = [f"{key}={method[key]}" for key in own(method) if key != "draws"]
        if name in ONE_STREAM:
            return f"{model} {name} {' '.join(told)} T={config['temperature']:g}"
        if name == "stagger":
            name += f" {method['emission']}/{method['rebuild']}"
            name += f" {method['draws']}" if config["temperature"] else ""
        return " ".join([model, name, f"x{config['streams']}", *told, f"T={config['temperature']:g}"])

    @property
    def work(self) -> float:
        """Guess of its cost in arbitrary units, for the first ETA: decodes times their rough relative cost."""
        config = self.config
        if self.kind == "profile":
            measure, peers = config["measure"], config["peers"]
            # A pair is both programs' tokens, the batched one's at three widths.
            runs = bool(peers["llama_bench"]) + 6 * bool(peers["llama_batched_bench"])
            steps = measure["step_passes"] * measure["step_widths"] * (measure["step_widths"] / 4 + 3) * 6
            return steps + 2 * runs * peers["pairs"] * peers["n_gen"]
        blocks = len({item["class"] for item in config["prompts"]["items"]}) * config["measure"]["per_class"]
        streams = config["method"]["draft"] / 2 if config["method"]["name"] in ONE_STREAM else config["streams"]
        answers = config["streams"] if config["method"]["name"] == "packed" else 1
        rounds = 2 * answers + (1 + streams / 2) * (1.5 if config["temperature"] else 1)
        short = 2 * config["measure"].get("distribution", 0) * (1 + streams / 2)
        return 2 * blocks * config["measure"]["blocks_per_prompt"] * config["n_predict"] * (rounds + 1) + short


def model_path(config: Config) -> Path:
    """Where the weights are. Raises `UserError` when that is not said or the package is not installed."""
    model = config.model
    if model.path:
        return Path(model.path).expanduser().absolute()  # a link may say what the file behind it does not
    if not model.file:
        raise UserError(f"model={model.name} needs a file; give it with model.path=FILE")
    if not model.package:
        return _shipped(model.name, model.file)
    try:
        files = importlib.metadata.files(model.package) or []
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"the package {model.package} of model={model.name} is not installed; run `{_setup_of(model.name)}`"
        ) from None
    for file in files:
        if file.name == model.file:
            return Path(file.locate()).resolve()
    if model.sha256:
        return joined(model.package, model.file, model.sha256)
    raise UserError(f"the package {model.package} has no file {model.file}; run `make setup` again")


def _setup_of(name: str) -> str:
    """What installs a model: the plain set-up has the default one alone."""
    return f"make setup MODEL={name}" if name in model_groups() else "make setup"


def _shipped(name: str, file: str) -> Path:
    """A file of this repository."""
    path = CONFIGS.parent / file
    if not path.is_file():
        raise UserError(f"{file} of model={name} is not in this checkout; run `git checkout -- {file}`")
    return path.resolve()


def cells(configs: list[Config], root: Path, machine: str, build: str, weights: dict[Path, str]) -> list[Cell]:
    """Cells of a sweep in order, profiles first, each once. `weights` maps model paths to their hashes."""
    found: dict[str, Cell] = {}
    for kind, make in (("profile", _profile_values), ("contrast", _contrast_values)):
        for config in configs:
            if kind == "profile" and not config.profile:
                continue
            path = model_path(config)
            values, files = make(config), method_files(config) if kind == "contrast" else {}
            hashed = values | {"model": config.model.name}
            if files:
                hashed["files"] = {key: sha256_of([file]) for key, file in files.items()}
            name = _id(kind, hashed, weights[path], build)
            folder = root / machine / name
            programs = {key: value for key, value in asdict(config.peers).items() if key.startswith("llama_")}
            found.setdefault(name, Cell(name, kind, values | {"machine": machine}, folder, path, programs, files))
    return list(found.values())


def _id(kind: str, values: dict, weights: str, build: str) -> str:
    hashed = {**values, "kind": kind, "weights": weights, "build": build}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:12]


def _common(config: Config) -> dict:
    """Plain values, without what is not measured; one stream is plain decoding, whatever the method."""
    values = {key: value for key, value in asdict(config).items() if key not in _NOT_MEASURED}
    path = model_path(config)
    if not values["prompts"]["domain"]:
        del values["prompts"]["domain"]  # most sets name none, and are what they were without it
    values["model"]["path"] = path.name  # a folder says nothing about a model, and records travel
    if config.model.name == ModelConfig().name:
        values["model"]["name"] = _PART.sub("", path.stem)
    return values


def _used_items(config: Config) -> list[dict]:
    """Prompts that the cell decodes: the first of each wanted class, and what completes groups of independent ones."""
    more = config.streams - 1 if config.method.name == "packed" else 0
    classes = config.measure.classes or sorted({item["class"] for item in config.prompts.items})
    if not classes:
        raise UserError(f"the prompt set '{config.prompts.name}' has no prompts; choose another with prompts=NAME")
    used: list[dict] = []
    for name in classes:
        pool = [item for item in config.prompts.items if item["class"] == name]
        if not pool:
            raise UserError(f"measure.classes: the prompt set '{config.prompts.name}' has no class '{name}'; "
                            + nearest(name, {item["class"] for item in config.prompts.items}))  # fmt: skip
        if more and len(pool) < config.streams:
            return list(config.prompts.items)
        used += pool[: config.measure.per_class + more]
    return used


def _contrast_values(config: Config) -> dict:
    values = _common(config)
    values["prompts"]["items"] = _used_items(config)
    del values["peers"]
    for name in [name for name in values["measure"] if name.startswith("step_")]:
        del values["measure"][name]
    # Left out where it is off: what is not measured changes no id.
    if not (values["measure"]["distribution"] and config.temperature):
        del values["measure"]["distribution"]
    return values | _method_values(config)


def _method_values(config: Config) -> dict:
    """Method and streams. One stream is plain decoding, except for methods that have no streams."""
    given = asdict(config.method)
    name = given["name"]
    if name not in ONE_STREAM and (config.streams == 1 or name == "autoregressive"):
        return {"streams": 1, "method": {"name": "autoregressive", **_STAGGER}}
    names = STAGGER if name == "stagger" else own(given)
    values = {"name": name, **_STAGGER} | {key: given[key] for key in names}
    if config.temperature == 0:
        values["draws"] = _STAGGER["draws"]
    for key, path in method_files(config).items():
        values[key] = path.name
    return {"streams": 1 if name in ONE_STREAM else config.streams, "method": values}


def method_files(config: Config) -> dict[str, Path]:
    """Files that the method reads beside the model, by parameter: a path, or the name of a model's configuration.

    Raises `UserError` when one is not said or not there.
    """
    found = {}
    for key in set(own(asdict(config.method))) & set(FILES):
        given = getattr(config.method, key)
        if not given:
            raise UserError(f"method={config.method.name} needs a file; give it with method.{key}=FILE")
        if key == "draft_model" and (CONFIGS / "model" / f"{given}.yaml").is_file():
            found[key] = model_path(compose_points([f"model={given}"])[0])
            continue
        places = [Path(given).expanduser(), CONFIGS.parent / given]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            raise UserError(f"method.{key}={given} is no file; give the path of a GGUF file")
        found[key] = path.absolute()
    return found


def _profile_values(config: Config) -> dict:
    """Plain values of what a profile times: nothing in it is drawn, so that all seeds share one."""
    values = _common(config)
    for name in ("method", "streams", "temperature", "n_predict", "prompts", "seed"):
        del values[name]
    values["measure"] = {key: value for key, value in values["measure"].items() if key.startswith("step_")}
    for name in ("llama_bench", "llama_batched_bench"):
        if values["peers"][name]:  # where the program lies is no part of what is measured
            values["peers"][name] = Path(values["peers"][name]).name
    return values
