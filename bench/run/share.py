"""What one host is to measure of a sweep that several share, and how it tells the others what it measures with.

It knows nothing about who the others are, and how they are reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.host.devices import host_key
from bench.plan.cells import Cell
from bench.plan.shards import Shard
from bench.records.process_table import boot, name_of_host

BUILD, WEIGHTS, COMMIT, MACHINE, KEY, NAME = "build", "weights", "commit", "machine", "key", "name"
"""Kinds of facts; each is told of something, as `build llama stock`."""


@dataclass(frozen=True)
class Share:
    """A host's share of a sweep."""

    shard: Shard
    done: frozenset[str]
    """Ids of cells that are done where the records are collected, whatever lies here."""
    agree: Callable[[Mapping[str, str]], None]
    """Is told what this host measures with; raises `UserError` where others measure with something else."""
    tell: Callable[[Cell, str], None]
    """Is told of every cell that ends, with its state."""


def facts(planned: Sequence[Cell], environments: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What hosts that share a sweep have to agree in, by what it is of."""
    first = next(iter(environments.values()))
    machine, key = first["machine"], str(first.get("host") or host_key())
    cards = ", ".join(str(gpu["name"]) for gpu in machine["gpus"])
    weights: dict[str, set[str]] = {}
    for cell in planned:
        weights.setdefault(cell.config["model"]["path"], set()).add(str(cell.config["weights"]))
    return {
        **{f"{BUILD} {name}": str(found["engine"]["build"]) for name, found in environments.items()},
        # Of two files of one name in a sweep, another shard may have only one.
        **{f"{WEIGHTS} {name}": found.pop() for name, found in weights.items() if len(found) == 1},
        # Whether it was changed may change while a sweep runs, and every record says it.
        f"{COMMIT} pti-bench": str(first["harness_commit"]).removesuffix("-dirty"),
        f"{MACHINE} {machine['name']}": f"{machine['cpu']}, {machine['cores']} CPUs" + (f", {cards}" if cards else ""),
        **({f"{KEY} {key}": boot()} if key and boot() else {}),
        f"{NAME} {name_of_host()}": key,
    }  # fmt: skip
