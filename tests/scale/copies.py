"""A results folder of any number of cells: real ones again and again, each a measurement of its own by its id.

    python -m tests.scale.copies FOLDER COUNT [--more N]

A copy differs from its original in the name of its prompt set, and with it in its id and its manifest. All other files
are links to one, so that a hundred thousand cells take a folder and two small files each. `--more N` adds N that
nothing has judged. Nothing can be concluded from such a folder but how long it takes to read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.host.pins import ROOT
from bench.records import manifest
from bench.records.cells import read_part, read_status
from bench.records.identity import cell_id
from bench.records.manifest import build_of

REFERENCE = ROOT / "results" / "reference"
CONTRASTS = 12
"""Cells that are copied in turn: the smallest contrasts that have a manifest."""
NAME = "name-of-the-prompts"
"""Stands in the text of a configuration for what each copy calls its prompt set."""


@dataclass
class Original:
    """A cell that is copied."""

    folder: Path
    config: dict[str, Any]
    env: dict[str, Any]
    status: dict[str, Any]
    text: str
    """Its cell.yaml, with `NAME` in it."""

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.stat().st_size for file in self.folder.iterdir())


def originals(kind: str) -> list[Original]:
    """The cells of the reference of a kind that have a manifest, smallest first."""
    found = []
    for folder in sorted(path.parent for path in REFERENCE.glob("*/*/status.json")):
        status, config = read_status(folder), read_part(folder, "cell.yaml")
        if status and manifest.KEY in status and config and config["kind"] == kind:
            named = {**config, **({"prompts": {**config["prompts"], "name": NAME}} if "prompts" in config else {})}
            text = yaml.dump(named, Dumper=yaml.CSafeDumper, sort_keys=True)
            found.append(Original(folder, config, read_part(folder, "env.json") or {}, status, text))
    return sorted(found, key=lambda one: one.size)


def make(root: Path, count: int, first: int = 0) -> None:
    """Write `count` cells below `root`, numbered from `first`: the profiles, then contrasts in turn."""
    contrasts, profiles = originals("contrast")[:CONTRASTS], originals("profile")
    for one in profiles if not first else []:
        _copy(root, one, None)
    for number in range(first, first + count - (0 if first else len(profiles))):
        _copy(root, contrasts[number % len(contrasts)], number)


def _copy(root: Path, original: Original, number: int | None) -> None:
    config, text = original.config, original.text
    if number is not None:
        name = f"{config['prompts']['name']}-{number}"
        config, text = {**config, "prompts": {**config["prompts"], "name": name}}, text.replace(NAME, name)
    made = root / original.folder.parent.name / cell_id(config, build_of(original.env))
    made.mkdir(parents=True, exist_ok=True)
    for file in original.folder.iterdir():
        if file.name not in ("cell.yaml", "status.json") and not (made / file.name).exists():
            _link(root / ".files" / f"{original.folder.name}-{file.name}", file, made / file.name)
    (made / "cell.yaml").write_text(text)
    old = original.status[manifest.KEY]
    told = {"bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    seal = {key: value for key, value in old.items() if key != "seal"} | {
        "cell": made.name, "measured": made.name, "files": {**old["files"], "cell.yaml": told}}  # fmt: skip
    rest = {key: value for key, value in original.status.items() if key != manifest.KEY}
    (made / "status.json").write_text(json.dumps(manifest.sealed(rest, seal), indent=1, sort_keys=True) + "\n")


def _link(shared: Path, source: Path, place: Path) -> None:
    shared.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(shared, place)
    except OSError:  # it is not there yet, or has as many names as a file can have
        shared.unlink(missing_ok=True)
        shared.write_bytes(source.read_bytes())
        os.link(shared, place)


def main() -> None:
    """Make them, and say where."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--more", type=int, default=0, metavar="N", help="add so many to a folder of COUNT")
    arguments = parser.parse_args()
    make(arguments.folder, arguments.more or arguments.count, arguments.count if arguments.more else 0)
    print(f"{arguments.folder}: {arguments.count + arguments.more} cells")


if __name__ == "__main__":
    main()
