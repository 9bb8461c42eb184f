"""How a packed matrix is shared out among blocks of threads: whole units, in order. Knows no device.

A unit is `tiles` row tiles of 16 rows by 256 columns; a row group is all units of the same rows. See src/packed.cu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.layouts import TILE_COLS, TILE_ROWS


@dataclass(frozen=True, slots=True)
class Plan:
    """`tiles`, `split`: the kernel's shape; `stages`: pipeline depth; `per_unit`: blocks of threads a multiprocessor.

    `pieces` > 0 cuts each row group into that many blocks of threads, where that fits the chip, and gives the last one
    `extra` units more: it has to wait for the sums of the others. 0 shares the units evenly.
    """

    tiles: int
    split: int
    stages: int
    per_unit: int = 1
    pieces: int = 0
    extra: int = 0


def starts(plan: Plan, rows: int, cols: int, multiprocessors: int) -> np.ndarray:
    """int32 [blocks of threads + 1]: the first unit of each, and the number of units."""
    groups = -(-rows // (TILE_ROWS * plan.tiles))
    per_group = cols // TILE_COLS
    blocks = multiprocessors * plan.per_unit
    if plan.pieces and plan.pieces * groups <= blocks and plan.pieces <= per_group:
        return _pieces(groups, per_group, plan.pieces, plan.extra)
    units = groups * per_group
    blocks = min(blocks, units)
    return (np.arange(blocks + 1, dtype=np.int64) * units // blocks).astype(np.int32)


def _pieces(groups: int, per_group: int, pieces: int, extra: int) -> np.ndarray:
    even = max(1, (per_group - extra) // pieces) if pieces > 1 else per_group
    cuts = np.arange(pieces) * even
    return np.append((np.arange(groups)[:, None] * per_group + cuts).ravel(), groups * per_group).astype(np.int32)


def stage_bytes(plan: Plan, bytes_256: int, streams: int) -> int:
    """Shared memory of one stage: the tiles, and a chunk of activations (src/packed.h)."""
    return plan.tiles * TILE_ROWS * bytes_256 + 256 * streams + 64 * (streams + streams % 2)
