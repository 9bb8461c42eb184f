"""What is asked of a launcher, and what is no setting of it. It launches nothing, and knows no package of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields

from bench.errors import UserError
from bench.plan.settings import Config, LauncherConfig

LOCAL = "local"
_COMMON = ("name", "shards", "gpus", "retries")


def is_launched(overrides: Sequence[str]) -> bool:
    """Whether a command line asks for other workers than this process, or says how they shall be."""
    return any(word.lstrip("+").startswith(("launcher=", "launcher.")) and word != f"launcher={LOCAL}"
               for word in overrides)  # fmt: skip


def without(overrides: Sequence[str]) -> list[str]:
    """The overrides that are about what is measured, and not about who does."""
    return [word for word in overrides if not word.lstrip("+").startswith(("launcher=", "launcher."))]


def launcher_of(configs: Sequence[Config]) -> LauncherConfig:
    """The one launcher of a sweep. Raises `UserError` for several, and for a setting that another launcher has."""
    found = configs[0].launcher
    for config in configs[1:]:
        if config.launcher != found:
            raise UserError("launcher has several values, and a sweep has one; give it once, and commas to what is "
                            "measured")  # fmt: skip
    usual = asdict(LauncherConfig())
    for item in fields(LauncherConfig):
        of = str(item.metadata["help"]).partition(":")[0] if item.name not in _COMMON else ""
        if getattr(found, item.name) == usual[item.name] or item.name == "name" or of == found.name:
            continue
        if found.name == LOCAL or of:
            raise UserError(f"launcher.{item.name} is no setting of launcher={found.name}; write launcher="
                            f"{of or 'submitit or launcher=ray'} with it, or leave it out")  # fmt: skip
    return found
