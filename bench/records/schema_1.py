"""Cells of record schema 1, read as if they were of today's schema.

There every method carried the parameters of the stagger at their defaults, and nothing said what its rows are. Which
parameters a method really had is written down here as it was then; what it declares comes from its own file. Where no
file declares it any more, its declaration says nothing that would excuse it. It writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.records.identity import WRITTEN
from pti_loop.parameters import Declaration, declare, declared

_LOOKUP = ("draft", "ngram", "gate", "adaptive")
_OWN = {
    "stagger": ("emission", "rebuild", "draws", "stop"),
    "lookup": _LOOKUP,
    "draft": ("draft", "draft_model", "draws"),
    "twin": ("draft", "twin", "draws"),
    "adapter": ("draft", "adapter", "draws"),
    "mtp": ("draft", "draws"),
    "lookup_mtp": (*_LOOKUP, "head_draft", "draws"),
}
_ABSENT = {"stop": "tokens"}
"""Parameters that the first records did not write, and what they meant."""


def converted(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a cell of schema 1 as today's: the method with its own parameters and its declaration."""
    made = dict(config) | {WRITTEN: config}
    method = config.get("method")
    if isinstance(method, Mapping):
        made["method"], made["streams"] = _method(method, int(config.get("streams", 1)))
    return made


def _method(old: Mapping[str, Any], streams: int) -> tuple[dict[str, Any], int]:
    """The method, and the streams that it has."""
    name = str(old.get("name", ""))
    drafter = str(old.get("drafter", "none"))
    names: tuple[str, ...] = _OWN.get(name, ())
    parameters: dict[str, Any] = {}
    if name == "packed":
        parameters["drafter"] = drafter
        names = _OWN.get(drafter, ())
    if "jacobi" in (name, drafter):  # its window was the number of streams
        parameters["window"] = streams
        streams = 1 if name == "jacobi" else streams
    found = _ABSENT | dict(old)
    parameters |= {key: found[key] for key in names if key in found}
    if name not in ("autoregressive", "stagger") and (name, drafter) != ("packed", "none"):
        parameters["rollback"] = old.get("rollback", "auto")
    return {"name": name, "parameters": parameters,
            "declaration": _declaration(name, parameters, streams).as_dict()}, streams  # fmt: skip


def _declaration(name: str, parameters: Mapping[str, Any], streams: int) -> Declaration:
    if name in declared():
        return declare(name, parameters, streams)
    return Declaration("one", "tokens", True, False, False, name, name)
