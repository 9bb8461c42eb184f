"""From configurations to cells: what each is, its id, and whether it is done already.

A cell's id is a hash of what it measures: the resolved configuration, the weights' hash, and the engine's build. Where
results go and what programs ran beside do not change it. It measures nothing.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.config import CONFIGS, Config
from bench.errors import UserError, nearest
from bench.store import read_status

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

    @property
    def state(self) -> str:
        """`done`, `failed`, `unsupported`, or `missing`."""
        status = read_status(self.folder)
        return status["state"] if status else "missing"

    @property
    def label(self) -> str:
        """What a person calls it."""
        config = self.config
        if self.kind == "profile":
            return f"{config['model']['name']} step cost, bandwidth, memory"
        method = config["method"]
        name = method["name"]
        if name == "stagger":
            name += f" {method['emission']}/{method['rebuild']}"
            name += f" {method['draws']}" if config["temperature"] else ""
        return f"{config['model']['name']} {name} x{config['streams']} T={config['temperature']:g}"

    @property
    def work(self) -> float:
        """Guess of its cost in arbitrary units, for the first ETA: decodes times their rough relative cost."""
        config = self.config
        if self.kind == "profile":
            measure = config["measure"]
            return measure["step_passes"] * measure["step_widths"] * (measure["step_widths"] / 4 + 3) * 6
        blocks = len({item["class"] for item in config["prompts"]["items"]}) * config["measure"]["per_class"]
        streams = config["streams"]
        answers = streams if config["method"]["name"] == "packed" else 1
        rounds = 2 * answers + (1 + streams / 2) * (1.5 if config["temperature"] else 1)
        return 2 * blocks * config["measure"]["blocks_per_prompt"] * config["n_predict"] * (rounds + 1)


def model_path(config: Config) -> Path:
    """Where the weights are. Raises `UserError` when that is not said or the package is not installed."""
    model = config.model
    if model.path:
        return Path(model.path).expanduser().resolve()
    if not model.file:
        raise UserError(f"model={model.name} needs a file; give it with model.path=FILE")
    if not model.package:
        return _shipped(model.name, model.file)
    try:
        files = importlib.metadata.files(model.package) or []
    except importlib.metadata.PackageNotFoundError:
        sentence = f"the package {model.package} of model={model.name} is not installed; run `make setup`"
        raise UserError(sentence) from None
    for file in files:
        if file.name == model.file:
            return Path(file.locate()).resolve()
    raise UserError(f"the package {model.package} has no file {model.file}; run `make setup` again")


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
            values = make(config)
            name = _id(kind, values, weights[path], build)
            folder = root / machine / name
            programs = {key: value for key, value in asdict(config.peers).items() if key.startswith("llama_")}
            found.setdefault(name, Cell(name, kind, values | {"machine": machine}, folder, path, programs))
    return list(found.values())


def _id(kind: str, values: dict, weights: str, build: str) -> str:
    hashed = {**values, "model": values["model"]["name"], "kind": kind, "weights": weights, "build": build}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:12]


def _common(config: Config) -> dict:
    """Plain values, without what is not measured; one stream is plain decoding, whatever the method."""
    values = {key: value for key, value in asdict(config).items() if key not in _NOT_MEASURED}
    values["model"]["path"] = model_path(config).name  # a folder says nothing about a model, and records travel
    return values


def _used_items(config: Config) -> list[dict]:
    """Prompts that the cell decodes: the first of each wanted class, and what completes groups of independent ones."""
    more = config.streams - 1 if config.method.name == "packed" else 0
    classes = config.measure.classes or sorted({item["class"] for item in config.prompts.items})
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
    if config.streams == 1 or config.method.name == "autoregressive":
        values["streams"] = 1
        values["method"] = asdict(type(config.method)(name="autoregressive"))
    elif config.method.name != "stagger":  # the only one with parameters of its own
        values["method"] = asdict(type(config.method)(name=config.method.name))
    elif config.temperature == 0:
        values["method"]["draws"] = "independent"
    return values


def _profile_values(config: Config) -> dict:
    values = _common(config)
    for name in ("method", "streams", "temperature", "n_predict", "prompts"):
        del values[name]
    values["measure"] = {key: value for key, value in values["measure"].items() if key.startswith("step_")}
    for name in ("llama_bench", "llama_batched_bench"):
        if values["peers"][name]:  # where the program lies is no part of what is measured
            values["peers"][name] = Path(values["peers"][name]).name
    return values
