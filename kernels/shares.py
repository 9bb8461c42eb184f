"""How a packed matrix is shared out among blocks of threads: whole units, in order. Knows no device.

A unit is 128 rows (a group of 8 row tiles) by 256 columns. See src/packed.cu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.layouts import GROUP_TILES, TILE_COLS, TILE_ROWS


@dataclass(frozen=True, slots=True)
class Plan:
    """`split`: parts of a tile, a warp each; `stages`: pipeline depth; `per_unit`: blocks of threads a multiprocessor.

    `pieces` > 0 cuts each row group into that many blocks of threads, where that fits the chip, and gives the last one
    `extra` units more: it has to wait for the sums of the others. 0 shares the units evenly.
    """

    split: int
    stages: int
    per_unit: int = 1
    pieces: int = 0
    extra: int = 0


def starts(plan: Plan, rows: int, cols: int, multiprocessors: int) -> np.ndarray:
    """int32 [blocks of threads + 1]: the first unit of each, and the number of units."""
    groups = -(-rows // (TILE_ROWS * GROUP_TILES))
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


def stage_bytes(bytes_256: int, streams: int) -> int:
    """Shared memory of one stage: a unit, and a chunk of activations (src/packed.h)."""
    width = streams if streams <= 2 else 4 if streams <= 4 else 8
    return GROUP_TILES * TILE_ROWS * bytes_256 + 256 * width + 64 * max(width, 2)
