"""In what the treatment of a configuration differs from its baseline beside the method: a build, or one setting.

A contrast has one difference, or what it shows belongs to none. It measures nothing and knows no cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.plan import served
from bench.plan.config import check
from bench.plan.engines import ENGINES
from bench.plan.settings import Config, EngineConfig

PREFIX = "treatment.engine."
BUILD = "engine.build="
PLAIN = "autoregressive"
TOGETHER = ("type_k", "type_v")
"""Settings that are one difference where both become the same: the cache has one format then, too."""
APART = ("build", "n_gpu_layers", "split_mode", "main_gpu", "tensor_split", "repack")
"""What a process or a loaded model is made with, so that both arms cannot share one."""

ADDED_LATER = ("offload_kqv", "split_mode", "main_gpu", "tensor_split", "op_offload", "repack", *served.OWN)
UNSET = object()
USUAL_PARTS = ("/", ".", "..", "bin", "lib", "lib64", "build", "src", "llama_cpp", "site-packages")
"""Names that the folders of every build have."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is on trial."""

    key: str
    """A setting of the engine, or `build`."""
    was: str
    became: str
    words: str
    """In words, for labels: `type_k=q8_0`, `build native`."""

    def as_dict(self) -> dict[str, str]:
        """For the record."""
        return asdict(self)


def paired(overrides: list[str]) -> list[str]:
    """Overrides with `engine.build=A,B` as what it means: A is the baseline's build, every other one is on trial.

    Where a build or a setting is on trial and no method is named, both arms decode plainly.
    """
    found = []
    for item in overrides:
        key, comma, rest = item.partition(",")
        found += [key, f"treatment.{BUILD}{rest}"] if item.startswith(BUILD) and comma else [item]
    tried = any(item.startswith("treatment.") for item in found)
    named = any(item.lstrip("+").startswith(("method=", "experiment=")) for item in found)
    return [*found, f"method={PLAIN}"] if tried and not named else found


def changes(config: Config) -> dict[str, Any]:
    """The engine's settings in which the treatment differs, by name."""
    given = {key: value for key, value in vars(config.treatment.engine).items() if value is not None}
    return {key: value for key, value in given.items() if value != getattr(config.engine, key)}


def difference(config: Config) -> Difference | None:
    """The one difference beside the method; None where there is none. Raises `UserError` for more than one."""
    found = changes(config)
    if not found:
        return None
    keys = tuple(found)
    if len(keys) > 1 and not (keys == TOGETHER and len(set(found.values())) == 1):
        told = " and ".join(f"{PREFIX}{key}={value}" for key, value in found.items())
        raise UserError(f"{told} are {len(keys)} differences between the arms, and a contrast has one; leave all but "
                        f"one out, or give both arms the same with engine.{keys[-1]}={found[keys[-1]]}")  # fmt: skip
    was, became = (", ".join(dict.fromkeys(_word(key, values[key]) for key in keys)) for values in (
        asdict(config.engine), found))  # fmt: skip
    words = f"{', '.join(keys)}={became}"
    if keys in (("build",), ("server",)):
        words = f"{keys[0]} {became}"
    return Difference(", ".join(keys), was, became, words)


def _word(key: str, value: Any) -> str:
    if key == "server":
        return served.told(str(value))
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if key == "tensor_split":
        return text or "by free memory"
    # A folder tells about a machine only, and what it is called inside a build tree tells nothing.
    parts = [part for part in Path(text).parts if part not in USUAL_PARTS]
    return parts[-1] if "/" in text and parts else text


def is_apart(config: Config) -> bool:
    """Whether the arms need a process of this project's each."""
    return not served.is_served(config) and any(key in APART for key in changes(config))


def treated(config: Config) -> Config:
    """The configuration as the treatment has it."""
    found = changes(config)
    return replace(config, engine=replace(config.engine, **found)) if found else config


def check_treatment(config: Config) -> None:
    """Raise `UserError` for a treatment that cannot be run, or shows more than one thing."""
    served.check_served(config)
    found = difference(config)
    if found is None:
        if served.is_served(config):
            raise UserError(f"both arms are {served.told(config.engine.server)}, so that they differ in nothing; give "
                            "the other one with treatment.engine.server=COMMAND or ADDRESS")  # fmt: skip
        return
    if config.counters != "none":
        raise UserError(f"counters={config.counters} counts the kernels of one build and its settings; leave the "
                        f"treatment out, and give engine.{found.key}={found.became} for another cell")  # fmt: skip
    plain = config.method.name == PLAIN or (config.method.spec.answers != "one" and config.streams == 1)
    if not plain and found.key != "build":
        raise UserError(f"method={config.method.name} and {PREFIX}{found.key}={found.became} are two differences "
                        f"between the arms, and a contrast has one; write method={PLAIN}, or give both arms the "
                        f"setting with engine.{found.key}={found.became}")  # fmt: skip
    if not ENGINES[config.model.engine].trials:
        raise UserError(f"{found.words}: model.engine={config.model.engine} has no builds and no such settings; leave "
                        "the treatment out, or model.engine")  # fmt: skip
    if is_apart(config) and config.measure.distribution and config.temperature:
        raise UserError(f"measure.distribution counts draws in one process, and {found.words} needs two; set "
                        "measure.distribution=0")  # fmt: skip
    own = treated(config)
    try:
        check(own)
    except UserError as error:
        raise UserError(f"the treatment: {error}") from error


def stored(config: Config, builds: Mapping[str, str]) -> dict[str, Any]:
    """What a cell's configuration says of the treatment: values, of a build its name by its files; and in words."""
    found = difference(config)
    assert found is not None, "only asked of a configuration with a treatment"
    values = {key: builds[str(value)] if key == "build" else served.told(str(value)) if key == "server" else value
              for key, value in changes(config).items()}  # fmt: skip
    return {"engine": values, "declaration": found.as_dict()}


def told_engine(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's settings as a record has them: without the build, whose files are in env.json.

    Those that were added later are left out at their usual values, so that they change no id.
    """
    return {key: value for key, value in engine.items() if key != "build" and _USUAL.get(key, UNSET) != value}


_USUAL = {key: value for key, value in vars(EngineConfig()).items() if key in ADDED_LATER}
