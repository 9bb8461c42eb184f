"""Whether cells that a launcher measured have the form of a plain sweep's: `python -m tests.launchers.forms WORDS ..`.

Both sweeps run on this machine, into folders of their own; what may differ is what was timed.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.host.pins import ROOT
from bench.records.cells import state_of

LAUNCHED = ("launcher=submitit", "launcher.cluster=local")
TIMED = {"time_utc"}


def differences(one: Path, other: Path) -> Iterator[str]:
    """What two folders of results differ in, but for what is measured anew each time."""
    cells = [sorted(path.parent.relative_to(root) for path in root.glob("*/*/status.json")) for root in (one, other)]
    if cells[0] != cells[1] or not cells[0]:
        yield f"cells {cells[0]} and {cells[1]}"
        return
    for cell in cells[0]:
        yield from _of_cell(one / cell, other / cell)


def _of_cell(one: Path, other: Path) -> Iterator[str]:
    names = [sorted(path.name for path in folder.iterdir()) for folder in (one, other)]
    if names[0] != names[1]:
        yield f"{one.name}: files {names[0]} and {names[1]}"
        return
    states = state_of(one), state_of(other)
    if states != ("done", "done"):
        yield f"{one.name}: {states}"
    if (one / "cell.yaml").read_bytes() != (other / "cell.yaml").read_bytes():
        yield f"{one.name}: cell.yaml"
    envs = [json.loads((folder / "env.json").read_text()) for folder in (one, other)]
    yield from (f"{one.name}: env.json {key}" for key in {*envs[0], *envs[1]} - TIMED
                if envs[0].get(key) != envs[1].get(key))  # fmt: skip
    facts = [_shape(json.loads((folder / "facts.json").read_text())) for folder in (one, other)]
    if facts[0] != facts[1]:
        yield f"{one.name}: facts.json {set(facts[0]) ^ set(facts[1])}"
    for name in [name for name in names[0] if name.endswith(".csv.gz")]:
        heads = [gzip.decompress((folder / name).read_bytes()).split(b"\n", 1)[0] for folder in (one, other)]
        if heads[0] != heads[1]:
            yield f"{one.name}: columns of {name}"


def _shape(value: Any, at: str = "") -> list[str]:
    """Every key and the kind of every value; of a list, that of its first one."""
    if isinstance(value, dict):
        return [line for key in sorted(value) for line in _shape(value[key], f"{at}.{key}")]
    if isinstance(value, list):
        return _shape(value[0], f"{at}[]") if value else [f"{at}[]"]
    return [f"{at}: {'number' if isinstance(value, int | float) else type(value).__name__}"]


def main() -> int:
    """Exit code 1 where a form differs."""
    with tempfile.TemporaryDirectory(prefix="pti-bench-forms-") as made:
        for name, more in (("plain", ()), ("launched", LAUNCHED)):
            words = [*sys.argv[1:], *more, f"results={Path(made) / name}", "wait=600"]
            done = subprocess.run([sys.executable, "-m", "bench", "sweep", *words], cwd=ROOT)
            if done.returncode:
                return done.returncode
        found = list(differences(Path(made) / "plain", Path(made) / "launched"))
    print("\n".join(found) or "every record has the form of a plain sweep's")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
