"""The process that measures a shard: an ordinary sweep of some points, on the host where it runs.

Its job is the first line of standard input; standard output has one JSON object a line, and what a sweep prints goes to
standard error. It is asked to end by SIGTERM, and then leaves whole cells only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from bench.errors import UserError
from bench.host import interrupts
from pti_loop.load_first import load_first

WAIT_S = 7 * 24 * 3600
"""For a device: the jobs of one host queue for it, whoever starts them."""
INTERRUPTED = 130


def main() -> int:
    """Returns the process's exit code: 0 where an outcome was told, 2 where the shard was refused, 130 interrupted."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    interrupts.answer()
    job = json.loads(sys.stdin.readline())

    def say(**what: Any) -> None:
        channel.write(json.dumps(what) + "\n")

    try:
        if "model.engine=hf" not in job["overrides"]:
            load_first()
        say(outcome=_measured(job, say))
    except UserError as error:
        say(refused=str(error))
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _measured(job: Mapping[str, Any], say: Any) -> dict[str, Any]:
    from bench.plan.shards import Shard
    from bench.run.share import Share
    from bench.run.sweep import sweep

    def agree(facts: Mapping[str, str]) -> None:
        say(facts=dict(facts))
        answer = json.loads(sys.stdin.readline() or "{}")
        if "go" not in answer:
            raise UserError(answer.get("refused", "the worker of this shard has gone"))

    share = Share(Shard(tuple(job["points"]), job["digest"]), frozenset(job["done"]), agree,
                  lambda cell, state: say(cell=cell.id, label=cell.label, state=state))  # fmt: skip
    words = list(job["overrides"])
    if not any(word.startswith("wait=") for word in words):
        words.append(f"wait={WAIT_S}")
    outcome, _ = sweep(words, share)
    named = {cell.id: [cell.folder.parent.name, cell.label] for cell in outcome.cells}
    groups = ("failed", "unsupported", "untried", "newer")
    return {"cells": named, "kept": [cell.id for cell in outcome.kept],
            **{name: [[cell.id, reason] for cell, reason in getattr(outcome, name)] for name in groups}}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
