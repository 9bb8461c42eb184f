"""What kind of value stands where in the files of a cell that are no tables: a list is no mapping, a text no number.

Every key may be absent or null, as the judge takes it; which numbers make sense is the judge's business. It reads no
file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.records.rows import STATUSES

SCALAR = (str, int, float, bool)
NUMBER = (int, float)
_FLAT = {"*": SCALAR}
_ROWS = [{"*": object}]

SHAPES: dict[str, Any] = {
    "cell.yaml": {
        "schema": int, "kind": str, "machine": str, "streams": int, "temperature": NUMBER, "n_predict": int,
        "seed": int, "model": _FLAT, "engine": _FLAT, "peers": {"widths": [int], "*": SCALAR},
        "method": {"parameters": _FLAT, "declaration": _FLAT, "*": SCALAR},
        "treatment": {"engine": _FLAT, "declaration": _FLAT}, "depth": int,
        "prompts": {"items": [_FLAT], "*": SCALAR}, "measure": {"classes": [str], "counted_widths": [int], "*": SCALAR},
    },
    "env.json": {
        "machine": {"gpus": [_FLAT], "*": SCALAR}, "engine": {"backends": [str], "*": object}, "packages": _FLAT,
        "time_utc": str, "python": str, "harness_commit": str, "threads": int, "host": str, "device": str,
    },
    "facts.json": {
        "model": _FLAT, "bandwidth": {"repeats": [NUMBER], "*": SCALAR}, "engine": {"*": _FLAT}, "memory": {"*": _FLAT},
        "noise": {"*": object}, "process": _FLAT, "clocks": str, "lossless": _ROWS, "memory_by_streams": _ROWS,
        "peers": _ROWS, "drafter": {"*": object}, "rollback": {"*": object},
        "untimed": [{"prompt": str, "class": str, "tokens": int, "rounds": [{"*": int}]}],
        "ends": [int], "turns": {"chunk": int, "arms": [str]},
        "decodes": [{"width": int, "graphs": bool, "ns": [int], "queued_ns": [int]}],
        "left_out": [{"width": int, "reason": str}],
        "repeated": {"share": NUMBER, "free_cpus": NUMBER, "lasting": bool, "seconds": NUMBER,
                     "attempts": _ROWS},
        "stopping": {"why": str, "seconds": NUMBER, "passes": _ROWS},
        "sharp": {"lossless": _ROWS, "noise": {"*": object}, "*": SCALAR},
    },
    "status.json": {"state": str, "reason": str, "seconds": NUMBER, "manifest": {"*": object}},
}  # fmt: skip
"""By file: a mapping by key (`*` is any other key), a list of one shape, or types."""


def fault_in(file: str, value: Any) -> str:
    """Why the content of a cell's file cannot be one, as `model is a list, a mapping is expected`; empty if it can."""
    if not isinstance(value, Mapping):
        return f"it holds {'nothing' if value is None else _kind(value)}, a mapping is expected"
    fault = _fault(value, SHAPES[file], "")
    if not fault and file == "status.json" and value.get("state") not in STATUSES:
        return f"state is '{value.get('state')}', it is one of {', '.join(STATUSES)}"
    return fault


def _fault(value: Any, shape: Any, path: str) -> str:
    if value is None or shape is object:
        return ""
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            return f"{path} is {_kind(value)}, a mapping is expected"
        parts = [(shape.get(key, shape.get("*", object)), key, part) for key, part in value.items()]
        faults = (_fault(part, inner, f"{path}.{key}".lstrip(".")) for inner, key, part in parts)
        return next((fault for fault in faults if fault), "")
    if isinstance(shape, list):
        if not isinstance(value, Sequence) or isinstance(value, str):
            return f"{path} is {_kind(value)}, a list is expected"
        faults = (_fault(part, shape[0], f"{path}[{place}]") for place, part in enumerate(value))
        return next((fault for fault in faults if fault), "")
    if isinstance(value, bool) and bool not in (shape if isinstance(shape, tuple) else (shape,)):
        return f"{path} is a truth value, {_expected(shape)} is expected"
    return "" if isinstance(value, shape) else f"{path} is {_kind(value)}, {_expected(shape)} is expected"


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return f"'{str(value)[:40]}'"


def _expected(shape: Any) -> str:
    if shape is SCALAR:
        return "a text or a number"
    return {str: "a text", int: "a whole number"}.get(shape, "a number")
