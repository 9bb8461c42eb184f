"""What one cell has to share with another to be compared with it, and what may differ and is told. Knows no figure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.judge.arm import arm_of
from bench.machine_name import make_of
from bench.records.drawing import drawn_words

if TYPE_CHECKING:
    from bench.records.cells import StoredCell

KEY, PARAMETERS, SAME, TOLD = "key", "parameters", "same", "told"
"""What the cell is about, in words; its arm's parameters; what has to be equal; what is told where it is not."""
UNKNOWN = ""
_MINUTES = len("2026-11-29T15:58")


def about(cell: StoredCell) -> dict[str, Any]:
    """What `differences` and the matching of cells need of one cell, as plain values."""
    config, arm = cell.config, arm_of(cell)
    model, prompts = config.get("model") or {}, config.get("prompts") or {}
    tried = (config.get("treatment") or {}).get("declaration") or {}
    key = (config.get("kind"), model.get("name"), arm.method, arm.short, config.get("streams", 1),
           float(config.get("temperature") or 0), config.get("n_predict"), prompts.get("name"),
           int(config.get("depth") or 0), tried.get("key"), tried.get("words"))  # fmt: skip
    return {KEY: json.dumps(key, default=str), PARAMETERS: dict(arm.parameters), SAME: _same(cell), TOLD: _told(cell)}


def _same(cell: StoredCell) -> dict[str, str]:
    """By the words for it: what another value of makes another measurement. Empty where the record does not tell."""
    config = cell.config
    weights = (cell.facts.get("model") or {}).get("sha256") or config.get("weights") or UNKNOWN
    files = config.get("files") or {}
    return {
        "weights": str(weights)[:12], "texts": _texts(cell),
        "draws": drawn_words(config) or "usual", "sampler": str((config.get("engine") or {}).get("sampler") or UNKNOWN),
        **{f"file of {name}": str(told)[:12] for name, told in sorted(files.items())},
    }  # fmt: skip


def _texts(cell: StoredCell) -> str:
    """A digest of the texts of the prompts that were run."""
    items = (cell.config.get("prompts") or {}).get("items") or []
    run = {name for names in set(map(str, cell.runs["prompt"])) for name in names.split("+")}
    used = sorted((str(one.get("id")), str(one.get("text"))) for one in items if not run or str(one.get("id")) in run)
    return hashlib.sha256(json.dumps(used).encode()).hexdigest()[:12] if used else UNKNOWN


def _told(cell: StoredCell) -> dict[str, str]:
    config, env = cell.config, cell.env
    engine, machine = env.get("engine") or {}, env.get("machine") or {}
    tried = config.get("treatment") or {}
    gpus = ", ".join(str(one.get("name", "")) for one in machine.get("gpus") or [])
    found: dict[str, Any] = {
        "machine": make_of(cell.machine), "host": env.get("host"), "processor": machine.get("cpu"), "graphics": gpus,
        "operating system": machine.get("os"), "build": engine.get("build"),
        "llama.cpp": engine.get("llama_cpp_commit"), "compiler": engine.get("compiler"),
        "harness": env.get("harness_commit"), "date": str(env.get("time_utc") or "")[:_MINUTES],
        "seed": config.get("seed"), "build on trial": (tried.get("engine") or {}).get("build"),
        **{f"baseline's {key}": was for key, was in _of(tried, "was")},
        **_settings("engine", config.get("engine") or {}), **_settings("measure", config.get("measure") or {}),
        "proof of its files": "none" if cell.note else "whole",
    }  # fmt: skip
    return {name: _word(value) for name, value in found.items() if value is not None and value != UNKNOWN}


def _of(tried: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    told = tried.get("declaration") or {}
    return [(str(told["key"]), told[name])] if told.get("key") and name in told else []


def _settings(group: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{group}.{name}": value for name, value in values.items() if name != "sampler"}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def other(base: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Sentences on what makes two cells different measurements; empty where they are one."""
    ours, theirs = present[SAME], base[SAME]
    return [f"other {name}: {theirs[name]} and {ours[name]}" for name in theirs
            if theirs[name] != ours.get(name, UNKNOWN) and theirs[name] and ours.get(name)]  # fmt: skip


def changes(base: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """`build a -> b` for whatever both cells tell and tell differently, in the order in which a cell tells it."""
    theirs, ours = base[TOLD], present[TOLD]
    return [f"{name} {theirs[name]} -> {ours[name]}" for name in theirs if name in ours and theirs[name] != ours[name]]


def conflict(base: Mapping[str, Any], present: Mapping[str, Any]) -> bool:
    """Whether a parameter of the arm that both cells know has two values."""
    theirs, ours = base[PARAMETERS], present[PARAMETERS]
    return any(theirs[name] != ours[name] for name in theirs if name in ours)
