"""Try every fault of the catalogue and print what became of it: `make faults`. Exit code 1 when one was not caught."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.faults.catalogue import catalogue


def main() -> int:
    """One line a fault: kind, verdict, check, name."""
    missed = 0
    for fault in catalogue():
        with tempfile.TemporaryDirectory() as folder:
            why = fault.fails(Path(folder))
        missed += bool(why)
        print(f"{fault.kind:7} {'MISSED' if why else fault.verdict:10} {fault.check[:24]:24} {fault.name}"
              + (f": {why}" if why else ""), flush=True)  # fmt: skip
    print(f"{len(catalogue()) - missed} of {len(catalogue())} faults caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
