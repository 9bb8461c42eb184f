"""The cells of a sweep that no other sweep measures at this moment, one by one; the others when they are free.

It runs none of them, and knows nothing about devices.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext

from bench.plain_text import plain_text
from bench.plan.cells import Cell
from bench.records.taken import Holder, take

LOOK_S = 2.0
FINISHED = ("done", "newer")


def free_cells(todo: Sequence[Cell]) -> Generator[Cell, None, None]:
    """Each cell once, taken while the caller has it; those that others measure come last, once they are free.

    What another sweep has finished meanwhile comes, too, for the caller to see. Where nothing can be written nothing
    can be taken: the caller will find out why.
    """
    left, told = list(todo), False
    while left:
        later: list[Cell] = []
        for cell in left:
            try:
                got: Holder | AbstractContextManager[object] = take(cell.folder)
            except OSError:
                got = nullcontext()
            if isinstance(got, Holder):
                later.append(cell)
                holder = got
                continue
            with got:
                yield cell
        if later and len(later) == len(left):
            if not told:
                print(f"waiting for {len(later)} cells that other sweeps measure: {later[0].id} "
                      f"{plain_text(later[0].label)} by {plain_text(holder.words)}", flush=True)  # fmt: skip
                told = True
            time.sleep(LOOK_S)
        left = later
