"""What a cell is called: a hash of what it measures. Knows nothing about planning, files or running."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

NOT_HASHED = ("machine", "schema", "declaration")
"""Where a cell ran, in which form it was written and what its method or treatment says of itself change nothing of
what it is."""
WRITTEN = "written"
"""Where a configuration that was read from schema 1 keeps its own form, which its id is a hash of."""
FILES_1 = ("adapter", "draft_model")
"""Parameters of a method that were files in schema 1; it did not keep their hashes."""
_PART = re.compile(r"-\d{5}-of-\d{5}$")
"""How the name of a split file ends."""


def name_of_file(path: str) -> str:
    """What a model is called that nobody named: its file's name, without which part of it that is."""
    return _PART.sub("", PurePath(path).stem)


def cell_id(config: Mapping[str, Any], build: str) -> str:
    """Twelve hex digits of the configuration as it is stored, weights' and files' hashes among it, and the build.

    A name that somebody gave the model or the prompts counts; what a file is called does not, since the weights' hash
    and the texts are there.
    """
    hashed = {key: value for key, value in config.items() if key not in NOT_HASHED}
    for part in ("method", "treatment"):
        if isinstance(own := hashed.get(part), Mapping):
            hashed[part] = {key: value for key, value in own.items() if key not in NOT_HASHED}
    if isinstance(model := hashed.pop("model", None), Mapping):
        name = model.get("name")
        hashed["model"] = "" if name == name_of_file(str(model.get("path") or "")) else name
    if isinstance(prompts := hashed.get("prompts"), Mapping) and prompts.get("path"):
        hashed["prompts"] = _prompts_by_path(prompts)
    text = json.dumps(hashed | {"build": build}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _prompts_by_path(prompts: Mapping[str, Any]) -> dict[str, Any]:
    """Prompts of a file without what it is called, and without the hash of what else is in it: the texts are there."""
    name = prompts.get("name")
    return {key: value for key, value in prompts.items() if key not in ("path", "sha256")} | {
        "name": "" if name == name_of_file(str(prompts["path"])) else name}


def stored_id(config: Mapping[str, Any], build: str, weights: str) -> str | None:
    """What a stored cell is called by what it holds; None where its record does not tell all that its id rests on.

    Of schema 1 that is a cell whose method reads a file of its own, and one that has forgotten how it was written.
    """
    if config.get("schema") == 1:
        written = config.get(WRITTEN)
        method = (written or {}).get("method") or {}
        if written is None or any(method.get(key) for key in FILES_1):
            return None
        hashed = {key: value for key, value in written.items() if key not in NOT_HASHED}
        hashed |= {"model": (written.get("model") or {}).get("name"), "weights": weights, "build": build}
        return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:12]
    return cell_id(config, build) if "schema" in config else None
