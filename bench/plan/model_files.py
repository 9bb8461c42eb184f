"""Where the weights of a configuration lie: a path, a file of an installed package, or one of this repository."""

from __future__ import annotations

import importlib.metadata
from functools import lru_cache
from pathlib import Path

from bench.errors import UserError
from bench.host.pins import model_groups
from bench.plan import served
from bench.plan.config import CONFIGS
from bench.plan.model_parts import joined
from bench.plan.settings import Config


def model_path(config: Config) -> Path:
    """Where the weights are; the bare name of a model that only its server knows.

    Raises `UserError` when that is not said or the package is not installed.
    """
    model = config.model
    if not served.needs_file(config):
        return Path(model.served)
    if model.path:
        return Path(model.path).expanduser().absolute()  # a link may say what the file behind it does not
    if not model.file:
        raise UserError(f"model={model.name} needs a file; give it with model.path=FILE")
    if not model.package:
        return _shipped(model.name, model.file)
    try:
        found = _in_package(model.package, model.file)
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"the package {model.package} of model={model.name} is not installed; run `{_setup_of(model.name)}`"
        ) from None
    if found is not None:
        return found
    if model.sha256:
        return joined(model.package, model.file, model.sha256)
    raise UserError(f"the package {model.package} has no file {model.file}; run `make setup` again")


@lru_cache
def _in_package(package: str, file: str) -> Path | None:
    """A file of a package, whose list of files is read once: every point of a sweep asks."""
    listed = importlib.metadata.files(package) or []
    return next((Path(one.locate()).resolve() for one in listed if one.name == file), None)


def _setup_of(name: str) -> str:
    """What installs a model: the plain set-up has the default one alone."""
    return f"make setup MODEL={name}" if name in model_groups() else "make setup"


def _shipped(name: str, file: str) -> Path:
    """A file of this repository."""
    path = CONFIGS.parent / file
    if not path.is_file():
        raise UserError(f"{file} of model={name} is not in this checkout; run `git checkout -- {file}`")
    return path.resolve()
