"""The points of a sweep dealt into shards, and what says that two hosts mean the same points.

A point is one contrast with what prices it, so that dealing points splits none. It plans no cell.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench.errors import UserError
from bench.plan.settings import Config, LauncherConfig, PromptsConfig


@dataclass(frozen=True, slots=True)
class Shard:
    """Some points of a sweep, by their places in the order in which it composes them."""

    points: tuple[int, ...]
    digest: str
    """Of all points of the sweep."""


def deal(count: int, shards: int, digest: str) -> list[Shard]:
    """`count` points in turns, so that every shard begins with what is worth most and all have the same to do."""
    return [Shard(tuple(range(start, count, shards)), digest) for start in range(min(shards, count))]


def chosen(configs: Sequence[Config], shard: Shard) -> list[Config]:
    """The configurations of a shard. Raises `UserError` where this host composes other points."""
    if digest(configs) != shard.digest:
        raise UserError("the same words make other points of a sweep here than on the host that began it; have both at "
                        "the same commit, with the same files in configs/")  # fmt: skip
    return [configs[place] for place in shard.points]


def digest(configs: Sequence[Config]) -> str:
    """SHA-256 of all that the points say, but where and by whom they are measured."""
    found, prompts = hashlib.sha256(), dict[int, str]()
    for config in configs:
        items = config.prompts.items
        if id(items) not in prompts:
            prompts[id(items)] = _text(items)
        rest = replace(config, launcher=LauncherConfig(), prompts=PromptsConfig(), results="", reports="", wait=0.0)
        found.update(f"{_text(asdict(rest))}{prompts[id(items)]}\n".encode())
    return found.hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
