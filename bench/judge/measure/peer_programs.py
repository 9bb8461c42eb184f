"""Other programs on the same model and build, beside the baseline arm: medians of paired runs.

It does not run them, and it does not know why they would differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.claims.synthetic import about_model
from bench.judge.findings import Row, origin
from bench.judge.measure.intervals import mean_estimate

if TYPE_CHECKING:
    from bench.records.cells import StoredCell


def peer_rows(cell: StoredCell) -> list[Row]:
    """One row a tool and width; `ratio` is the median of ours over theirs, the interval that of the geometric mean."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for pair in cell.facts.get("peers") or []:
        groups.setdefault((str(pair["tool"]), int(pair.get("width", 1))), []).append(pair)
    rows = []
    for (tool, width), pairs in sorted(groups.items()):
        theirs, ours = (np.array([float(pair[key]) for pair in pairs]) for key in ("tok_s", "ours_tok_s"))
        low, high = mean_estimate(np.log(ours / theirs), "pairs").interval()
        rows.append(
            {
                **origin(cell),
                **about_model(cell),
                "tool": tool,
                "width": width,
                "tok_s": float(np.median(theirs)),
                "ours_tok_s": float(np.median(ours)),
                "ratio": float(np.median(ours / theirs)),
                "ci_low": low,
                "ci_high": high,
                "pairs": len(pairs),
            }
        )
    return rows
