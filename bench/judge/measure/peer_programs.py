"""Other programs on the same model and build, beside the baseline arm: medians of paired runs.

It does not run them, and it does not know why they would differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure.intervals import middle_of
from bench.judge.tables.machine import Peer

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


def peer_rows(case: Case) -> list[Peer]:
    """One row a tool and width; `ratio` is the median of ours over theirs, by pairs."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for pair in case.cell.facts.get("peers") or []:
        groups.setdefault((str(pair["tool"]), int(pair.get("width", 1))), []).append(pair)
    rows = []
    for (tool, width), pairs in sorted(groups.items()):
        theirs, ours, decodes = (np.array([float(pair.get(key, "nan")) for pair in pairs])
                                 for key in ("tok_s", "ours_tok_s", "ours_decode_tok_s"))  # fmt: skip
        middle, low, high = middle_of(ours / theirs)
        rows.append(
            Peer(**case.of_model, tool=tool, width=width, tok_s=float(np.median(theirs)),
                 ours_tok_s=float(np.median(ours)), ratio=middle, ci_low=low, ci_high=high,
                 decode_ratio=float(np.median(decodes / theirs)), pairs=len(pairs))
        )  # fmt: skip
    return rows
