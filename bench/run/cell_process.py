"""Entry of the process that measures one cell: reads its job, has the engine's library loaded first, and hands over.

The job is one JSON object on standard input (`bench.run.sweep.run_cell`). It knows nothing about measuring, and imports
nothing that brings numpy along.
"""

from __future__ import annotations

import json
import sys

from pti_loop.load_first import load_first


def main() -> int:
    """Returns the process's exit code."""
    job = json.loads(sys.stdin.read())
    if job["config"]["model"]["engine"] == "llama":
        load_first()
    from bench.run.worker import run

    return run(job)


if __name__ == "__main__":
    sys.exit(main())
