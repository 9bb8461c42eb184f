"""Builds of the engine beside the one that set-up installed: where their libraries lie, and whether one fits here.

A build is looked at in a child process that loads its libraries in place of the usual ones: one that does not fit kills
the process that loads it. It knows nothing about cells, and decodes nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bench.errors import UserError, nearest
from bench.host.pins import ROOT

STOCK = "stock"
FOLDER = ROOT / "builds"
"""Builds that have a name: each is a folder here, or a link to one."""
LIBRARIES = ("libllama.so", "libllama.dylib")
PLACES = (".", "bin", "lib", "lib64", "build/bin", "build/lib", "build/src", "llama_cpp/lib",
          "lib/python3*/site-packages/llama_cpp/lib")  # fmt: skip
"""Where below a given folder the libraries may lie: of a build tree, an installation, or a whole environment."""
_TIMEOUT_S = 120


def folder_of(given: str) -> Path | None:
    """The folder of a build's libraries, by a name of `builds/` or a path; None for the usual build.

    Raises `UserError` where there is none.
    """
    if given == STOCK:
        return None
    for place in (FOLDER / given, Path(given).expanduser(), ROOT / given):
        if found := _libraries_below(place):
            return found
    if Path(given).expanduser().is_dir():
        raise UserError(f"engine.build={given}: there is no {' or '.join(LIBRARIES)} in this folder, nor in its "
                        f"{', '.join(PLACES[1:5])}; give the folder of a build's libraries")  # fmt: skip
    raise UserError(f"engine.build={given} is no folder and no name in builds/; {nearest(given, [STOCK, *listed()])}")


def _libraries_below(place: Path) -> Path | None:
    found = (folder.resolve() for part in PLACES for folder in ([place] if part == "." else sorted(place.glob(part))))
    return next((folder for folder in found if any((folder / name).exists() for name in LIBRARIES)), None)


def listed() -> dict[str, Path]:
    """The builds that have a name, with the folders of their libraries."""
    folders = sorted(FOLDER.iterdir()) if FOLDER.is_dir() else []
    return {path.name: found for path in folders if (found := _libraries_below(path))}


def child_environment(folder: Path | None) -> dict[str, str]:
    """What a child process needs in its environment to load the libraries of a folder; nothing for the usual ones."""
    if folder is None:
        return {}
    # A library that was copied may look for the others where it came from; this comes before its own RUNPATH.
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"LLAMA_CPP_LIB_PATH": str(folder), "LD_LIBRARY_PATH": os.pathsep.join(paths)}


@cache
def facts(given: str) -> Mapping[str, Any]:
    """A build as `bench.host.provenance.engine` describes it. Raises `UserError` where it does not fit."""
    found = looked_at(folder_of(given), given)
    stock = found if given == STOCK else looked_at(None, STOCK)
    if fault := misfit(stock, found):
        raise UserError(f"engine.build={given}: {fault}; build it from llama.cpp at the commit that the binding is for")
    engine: Mapping[str, Any] = found["engine"]
    return engine


def looked_at(folder: Path | None, given: str) -> dict[str, Any]:
    """What the child says of a build. Raises `UserError` with a sentence where it does not load."""
    command = [sys.executable, "-m", "bench.host.look_at_build", str(folder or "")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, cwd=ROOT,
                              env=os.environ | child_environment(folder))  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise UserError(f"engine.build={given}: its libraries do not load in {_TIMEOUT_S} s") from error
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        hint = "; it was built for another CPU" if name == "SIGILL" else ""
        raise UserError(f"engine.build={given}: loading its libraries ends the process with {name}{hint}")
    try:
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise UserError(f"engine.build={given}: its libraries do not load: {last}") from error
    if fault := found.get("fault"):
        raise UserError(f"engine.build={given}: {fault}")
    return found


def misfit(stock: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Why the binding, made for `stock`, cannot talk to another build; empty where nothing shows that.

    The binding hands structures over by value. Where a field stands in another place, defaults come back wrong.
    """
    for struct, usual in stock["defaults"].items():
        for name, value in usual.items():
            told = other["defaults"].get(struct, {}).get(name)
            if told != value:
                return f"{struct}.{name} is {told} by default and the binding expects {value}, so structures differ"
    return ""
