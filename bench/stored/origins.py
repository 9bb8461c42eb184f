"""Machine, build and host of a cell by its status.json, so that a hundred thousand can be asked. It judges nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.judge.hosts import Origin
from bench.records import manifest
from bench.records.cells import read_part, read_status


def origin_of(folder: Path) -> Origin:
    """Where a cell was measured. One of an older schema has that in its env.json alone."""
    made = (read_status(folder) or {}).get(manifest.KEY)
    if not isinstance(made, Mapping):
        env = read_part(folder, "env.json") or {}
        made = {"build": manifest.build_of(env), "host": env.get("host")}
    return Origin(folder.parent.name, str(made.get("build") or ""), str(made.get("host") or ""))
