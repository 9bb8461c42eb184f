"""What `sweep launcher=NAME` prints in the end, and its exit code. It launches nothing itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.errors import UserError
from bench.launchers.launch import Launched, launch
from bench.plain_text import plain_text
from bench.plan.settings import Config
from bench.records.cells import state_of
from bench.run.sweep import totals


def run(overrides: Sequence[str]) -> tuple[int, Config, list[Path]]:
    """Launch; returns the exit code, the configuration, and the folders of the finished cells.

    Raises `UserError` where nothing was measured.
    """
    found, config = launch(overrides)
    if found.faults and not found.cells:
        raise UserError("nothing was measured; " + "; ".join(found.faults))
    print("\n".join(map(plain_text, summary(found))), flush=True)
    for sentence in found.faults:
        print(f"error: {plain_text(sentence)}", file=sys.stderr)
    root = Path(config.results)
    folders = [root / machine / name for name, (machine, _) in found.cells.items()]
    is_bad = found.unmeasured or found.faults or any(found.groups[name] for name in ("failed", "newer", "untried"))
    return (1 if is_bad else 0), config, [folder for folder in folders if state_of(folder) == "done"]


def summary(found: Launched) -> list[str]:
    """Lines for the end of a launch: counts, then every cell that did not work, with its reason."""
    names = {"newer": "left as it is", "untried": "not tried"}
    groups = [(names.get(name, name), [(cell, found.cells[cell][1], why) for cell, why in group.items()])
              for name, group in found.groups.items()]  # fmt: skip
    lines = totals(len(found.cells), len(found.kept), found.seconds, groups)
    if found.unmeasured:
        lines.append(f"{found.unmeasured} points were measured by nobody; the same command goes on from there")
    return lines
