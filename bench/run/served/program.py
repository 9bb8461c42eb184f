"""Whether a command line is a server's, which files it is, and what answers at an address: asked before a cell runs.

It loads no model. A command is run with `--version` and `--help` behind it, which also shows an option that it lacks.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench import build_name
from bench.errors import UserError, nearest
from bench.host import libraries, provenance
from bench.host.process_group import dies_with_parent
from bench.plan import served
from bench.plan.settings import Config
from bench.run.served.client import Client, ServerFault
from bench.run.served.process import is_free

TIMEOUT_S = 30.0
_VERSION = re.compile(r"^version: *(.+)$", re.MULTILINE)
_COMMIT = re.compile(r"\bcommit (\w{7,40})|\((\w{7,40})\)|-(\w{7,40})$")


def check_servers(config: Config) -> None:
    """Put down where programs and files are, since a cell runs in another folder, and see that both sides can answer.

    Raises `UserError` for a command that is no server, a port in use, and an address where nothing answers.
    """
    sides = served.commands(config)
    for side, command in sides.items():
        if served.is_address(command):
            facts_of(command, config.model.served)
            continue
        words = _absolute(served.words_of(command))
        _check_program(shlex.join(words))
        if (port := served.port_of(command)) and not is_free(port):
            raise UserError(f"engine.server={served.told(command)}: port {port} is in use by another program; end it, "
                            "or leave --port out, and a free one is found")  # fmt: skip
        if side == "baseline":
            config.engine.server = shlex.join(words)
        elif config.treatment.engine.server is not None:
            config.treatment.engine.server = shlex.join(words)


def facts_of(command: str, model: str = "") -> Mapping[str, Any]:
    """A server's build as `bench.host.provenance.engine` describes one. Raises `UserError`."""
    return _address_facts(command, model) if served.is_address(command) else _program_facts(command)


def _absolute(words: Sequence[str]) -> list[str]:
    """The command with programs and files by their whole paths."""
    found = [str(Path(word).absolute()) if (Path(word).exists() and "/" in word) or Path(word).is_file() else word
             for word in words]  # fmt: skip
    at = _place_of_program(words)
    return [*found[:at], _program(words[at]), *found[at + 1 :]]


def _place_of_program(words: Sequence[str]) -> int:
    """Which word is the server: the first that is called so, behind programs that start it (numactl, env); else the
    first of all."""  # fmt: skip
    return next((at for at, word in enumerate(words) if "server" in Path(word).name and not word.startswith("-")), 0)


def _program(word: str) -> str:
    found = shutil.which(Path(word).expanduser()) or shutil.which(word, path=Path(sys.prefix) / "peers")
    if found is None:
        raise UserError(f"engine.server: '{word}' is not a program that can be run; give the path of a llama-server, "
                        "or build one with `make peers`")  # fmt: skip
    return str(Path(found).absolute())


@lru_cache
def _check_program(command: str) -> str:
    """The version that it prints. Raises `UserError` where it is no server."""
    version = _VERSION.search(_printed(command, "--version"))
    if version is None or "--port" not in _printed(command, "--help"):
        raise UserError(f"engine.server={served.told(command)} is no llama-server: it prints no version and no option "
                        "--port; give a llama-server with its options, or an address as http://HOST:PORT")  # fmt: skip
    return version[1].strip()


def _printed(command: str, option: str) -> str:
    """What it prints with an option behind it. Raises `UserError` where it does not start, or refuses its options."""
    try:
        done = subprocess.run([*shlex.split(command), option], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT_S, preexec_fn=dies_with_parent())  # fmt: skip
    except OSError as error:
        raise UserError(f"engine.server={served.told(command)} does not start ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"engine.server={served.told(command)} does not end in {TIMEOUT_S:.0f} s with {option}, so it "
                        "is no llama-server; give one, or an address as http://HOST:PORT") from error  # fmt: skip
    text = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode and not _VERSION.search(text):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        why = next((line for line in lines if "error" in line.lower()), (lines or ["it printed nothing"])[-1])
        raise UserError(f"engine.server={served.told(command)} refuses its options: {why[:200]}")
    return text


@lru_cache
def _program_facts(command: str) -> Mapping[str, Any]:
    words = shlex.split(command)
    version = _check_program(command)
    program = Path(words[_place_of_program(words)])
    files = libraries.hashes([program, *_linked(program)])
    said = _COMMIT.search(version)
    commit = provenance.full_commit(next(filter(None, said.groups())) if said else "")
    return {"build": f"llama-server-{commit or 'unknown'}+{build_name.digest(files)}", "llama_cpp_commit": commit,
            "version": version, "libraries": files, "server": served.told(command)}  # fmt: skip


def _linked(program: Path) -> list[Path]:
    """llama.cpp's libraries that a program loads, as the system's loader finds them."""
    try:
        told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=TIMEOUT_S).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return libraries.of_the_engine(Path(path) for path in re.findall(r"=> (/\S+)", told))


@lru_cache
def _address_facts(url: str, model: str) -> Mapping[str, Any]:
    """What the server at an address says of itself. Raises `UserError` where none answers, or none with this model."""
    try:
        client = Client(url, TIMEOUT_S)
        listed = names_at(client)
    except ValueError as error:
        raise UserError(f"engine.server={url}: {error}") from error
    except ServerFault as fault:
        raise UserError(f"engine.server={url}: it {fault}; start the server there, or mend the address") from fault
    if model not in listed:
        raise UserError(f"engine.server={url} has no model '{model}'; {nearest(model, listed)}")
    build = ""
    for path, key in (("/props", "build_info"), ("/version", "version")):
        try:
            build = build or str(client.json(path).get(key) or "")
        except (ServerFault, AttributeError):
            continue
    said = _COMMIT.search(build)
    commit = provenance.full_commit(next(filter(None, said.groups()))) if said else ""
    return {"build": f"address {commit or build or 'unknown'}", "llama_cpp_commit": commit, "version": build,
            "libraries": {}, "server": served.told(url)}  # fmt: skip


def names_at(client: Client) -> list[str]:
    """Names of the models that a server lists. Raises `ServerFault`."""
    told = client.json("/v1/models")
    try:
        return [str(one["id"]) for one in told["data"]]
    except (TypeError, LookupError) as error:
        raise ServerFault("lists no models at /v1/models, so it is no OpenAI-compatible server") from error
