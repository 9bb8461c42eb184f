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


@dataclass(frozen=True, slots=True)
class Shares:
    """`blocks` of threads; with `pieces`, so many a row group, of `piece` units each, the last with the rest."""

    blocks: int
    pieces: int
    piece: int

    def starts(self, rows: int, cols: int) -> np.ndarray:
        """int64 [blocks + 1]: the first unit of each block of threads, and the number of units. As in src/packed.cu."""
        index, per_group = np.arange(self.blocks + 1, dtype=np.int64), cols // TILE_COLS
        if self.pieces:
            return index // self.pieces * per_group + index % self.pieces * self.piece
        return index * groups_of(rows) * per_group // self.blocks


def groups_of(rows: int) -> int:
    return -(-rows // (TILE_ROWS * GROUP_TILES))


def share(plan: Plan, rows: int, cols: int, multiprocessors: int) -> Shares:
    """Pieces where the plan wants them and they fit the chip, even shares elsewhere; no block without a unit."""
    groups, per_group = groups_of(rows), cols // TILE_COLS
    blocks = multiprocessors * plan.per_unit
    if plan.pieces and plan.pieces * groups <= blocks and plan.pieces + plan.extra <= per_group:
        return Shares(plan.pieces * groups, plan.pieces, (per_group - plan.extra) // plan.pieces)
    return Shares(min(blocks, groups * per_group), 0, 0)


def stage_bytes(bytes_256: int, streams: int) -> int:
    """Shared memory of one stage: a unit, and a chunk of activations (src/packed.h)."""
    width = streams if streams <= 2 else 4 if streams <= 4 else 8
    return GROUP_TILES * TILE_ROWS * bytes_256 + 256 * width + 64 * max(width, 2)
