"""Servers as engines in a configuration: command lines and addresses, what they are called, and the options they get.

`engine.server` is the baseline's and `treatment.engine.server` that on trial. It starts nothing and asks nobody.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.errors import UserError
from bench.plan.hydra_words import QUOTES, quoted
from bench.plan.settings import Config, EngineConfig
from pti_loop.gguf.file_hash import sha256_of

ENGINE, KIND = "server", "served"
"""As in `model.engine`; and the kind of a cell of servers."""
GIVEN = "server"
"""Under which name a cell keeps the baseline's command as it was given."""
KEYS = ("engine.server=", "treatment.engine.server=")
QUIET = ("measure.sharp=false", "profile=false", "streams=1", "method=autoregressive")
"""What a contrast of servers has unless it is given: nothing that needs the weights here, one request at a time."""
MODEL = ("-m", "--model", "-hf", "-hfr", "--hf-repo", "-mu", "--model-url")
PORT = ("--port",)
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "n_ctx": ("-c", "--ctx-size"), "streams": ("-np", "--parallel"), "threads": ("-t", "--threads"),
    "n_batch": ("-b", "--batch-size"), "n_ubatch": ("-ub", "--ubatch-size"), "type_k": ("-ctk", "--cache-type-k"),
    "type_v": ("-ctv", "--cache-type-v"), "flash_attn": ("-fa", "--flash-attn"),
    "n_gpu_layers": ("-ngl", "--gpu-layers", "--n-gpu-layers"), "split_mode": ("-sm", "--split-mode"),
    "main_gpu": ("-mg", "--main-gpu"), "tensor_split": ("-ts", "--tensor-split"),
}  # fmt: skip
"""Options of llama-server by the setting that they are; the first name is the one that is written."""
ALWAYS = ("n_ctx", "streams", "threads")
"""Given to every server; all others where a configuration has them at another than their usual value."""
FLAGS = {"kv_unified": (True, "-kvu"), "offload_kqv": (False, "-nkvo"), "op_offload": (False, "--no-op-offload")}
"""Settings that are options without a value."""
OWN = ("server", "cache_prompt", "kept")
"""Settings that only servers have."""


def overrides(given: Sequence[str]) -> list[str]:
    """Overrides with what a server implies; the command is taken as it stands, commas and all.

    A value in quotes is left to Hydra, so that several quoted ones, separated by commas, are swept.
    """
    found = [_whole(item) if item.startswith(KEYS) else item for item in given]
    if not any(item.startswith(KEYS) for item in given):
        return found
    words = [f"model.engine={ENGINE}", *QUIET]
    names = {item.split("=", 1)[0].lstrip("+") for item in given}
    return [*found, *(word for word in words if word.split("=", 1)[0] not in names)]


def _whole(item: str) -> str:
    key, _, value = item.partition("=")
    return item if value.startswith(QUOTES) or not value else f"{key}={quoted(value)}"


def is_served(config: Config) -> bool:
    """Whether servers decode."""
    return config.model.engine == ENGINE


def is_address(given: str) -> bool:
    """Whether it is the address of a server, and no command."""
    return bool(re.match(r"https?://", given))


def needs_file(config: Config) -> bool:
    """Whether the weights are read here: all but two addresses do."""
    return not (is_served(config) and all(map(is_address, commands(config).values())))


def commands(config: Config) -> dict[str, str]:
    """The command line or address of each side, as it was given."""
    own = config.treatment.engine.server
    return {"baseline": config.engine.server, "treatment": config.engine.server if own is None else own}


def words_of(command: str) -> list[str]:
    """The words of a command line. Raises `UserError` where it cannot be divided into words."""
    try:
        return shlex.split(command)
    except ValueError as error:
        why = f"it cannot be read as a command ({error}); close its quotes"
        raise UserError(f"engine.server={command}: {why}") from error


def told(given: str) -> str:
    """A command or an address as a record has it: without folders, which tell about a machine only, and passwords."""
    if is_address(given):
        parts = urlsplit(given)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}".rstrip("/")
    return shlex.join(Path(word).name if "/" in word and not word.startswith("-") else word for word in words_of(given))


def full_command(config: Config, command: str, path: Path) -> str:
    """The command with its model and the settings of `config`, except where it has options of its own for them."""
    words, engine = words_of(command), config.engine
    added: list[object] = [] if _has(words, MODEL) else ["-m", path]
    values = asdict(engine) | {"n_ctx": (engine.n_ctx + config.depth) * config.streams, "streams": config.streams}
    usual = asdict(EngineConfig())
    for key, names in OPTIONS.items():
        if (key in ALWAYS or values[key] != usual.get(key)) and not _has(words, names):
            added += [names[0], values[key]]
    for key, (value, name) in FLAGS.items():
        if values[key] == value and name not in words:
            added.append(name)
    return shlex.join([*words, *map(str, added)])


def _has(words: Sequence[str], names: Sequence[str]) -> bool:
    return any(word in names or word.startswith(tuple(f"{name}=" for name in names if name.startswith("--")))
               for word in words)  # fmt: skip


def port_of(command: str) -> int:
    """The port that a command chooses itself; 0 for none. Raises `UserError` for one that is no number."""
    words = words_of(command)
    for place, word in enumerate(words):
        if word in PORT or word.startswith("--port="):
            value = word.partition("=")[2] or (words[place + 1] if place + 1 < len(words) else "")
            if not value.isdigit() or not 0 < int(value) < 65536:
                raise UserError(f"engine.server={command}: --port {value} is no port; leave it out, and one is found")
            return int(value)
    return 0


def files(config: Config) -> dict[str, str]:
    """Hashes of the files that the commands name beside the model: draft models, adapters, templates."""
    found = {}
    for side, command in commands(config).items():
        for word in [] if is_address(command) else words_of(command)[1:]:
            if (path := Path(word)).is_file():
                found[f"{side} {path.name}"] = sha256_of([path])
    return found


def stored_engine(config: Config) -> dict[str, Any]:
    """The settings as a record has them: those that servers were given, and none that they were not."""
    engine, usual = asdict(config.engine), asdict(EngineConfig())
    found = {key: engine[key] for key in (*OPTIONS, *FLAGS) if key in engine
             and (key in ALWAYS or engine[key] != usual[key])}  # fmt: skip
    return found | {"server": told(config.engine.server)} | {
        key: engine[key] for key in OWN[1:] if engine[key] != usual[key]}  # fmt: skip


def name_digest(name: str) -> str:
    """What stands for the weights of a model that only its server knows: a hash of its name."""
    return hashlib.sha256(f"served {name}".encode()).hexdigest()


def check_served(config: Config) -> None:
    """Raise `UserError` for a combination that servers cannot be asked for."""
    sides = commands(config)
    if not is_served(config):
        if given := [key for key in OWN if getattr(config.engine, key) or getattr(config.treatment.engine, key, None)]:
            raise UserError(f"engine.{given[0]} is a setting of servers, and model.engine={config.model.engine}; write "
                            f"model.engine={ENGINE}, or leave it out")  # fmt: skip
        return
    for side, key in zip(sides, KEYS, strict=True):
        if not sides[side].strip():
            raise UserError(f"{key.rstrip('=')} names no server; give a command, as in {key}llama-server, or an "
                            f"address, as in {key}http://127.0.0.1:8080")  # fmt: skip
    wrong = {
        f"method={config.method.name}": config.method.name != "autoregressive",
        f"measure.distribution={config.measure.distribution}": config.measure.distribution > 0,
        f"measure.chunk={config.measure.chunk}": config.measure.chunk > 0,
        f"measure.texts={config.measure.texts}": config.measure.texts > 0,
        f"engine.build={config.engine.build}": config.engine.build != EngineConfig().build,
        f"engine.sampler={config.engine.sampler}": config.engine.sampler != EngineConfig().sampler,
    }
    for told_as, given in wrong.items():
        if given:
            raise UserError(f"{told_as} is nothing that a server can be asked for here: it decodes in its own way, in "
                            "whole runs, and tells neither its random numbers nor all probabilities; leave it out")
    if any(map(is_address, sides.values())) and not config.model.served:
        raise UserError("an address does not say which model it is asked for; give the name that its server has for "
                        "it with model.served=NAME")  # fmt: skip
    config.measure.sharp = config.profile = False
