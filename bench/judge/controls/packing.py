"""Whether an arm whose build packs weights packed any, and used them: a speed without is that of the usual kernels.

It knows no build by name: a context whose engine counts packed matrices tells the counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.judge.findings import OK, VOID, Control, rerun

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

PRODUCTS = ("packed_columns_1", "packed_columns_2_8", "packed_columns_9_32", "packed_wide")


def packing(case: Case) -> list[Control]:
    """One control an arm that tells counts; none where no engine tells any."""
    engines = case.cell.facts.get("engine") or {}
    found = ((arm, facts) for arm in ("baseline", "treatment") if (facts := engines.get(arm)))
    return [_of(case, arm, facts) for arm, facts in found if "packed_tensors" in facts]


def _of(case: Case, arm: str, facts: Mapping[str, Any]) -> Control:
    tensors, products = int(facts["packed_tensors"]), sum(int(facts.get(name, 0)) for name in PRODUCTS)
    counted = f"{tensors} matrices, {products} products of them evaluated or captured in graphs"
    if facts.get("repack", True) and not (tensors and products):
        told = f"the {arm}'s build packs weights and packed {counted}: its speed is that of the usual kernels"
        return Control("packing", VOID, f"{told}; take a model whose matrices pack, or engine.repack=false, and run "
                       f"{rerun(case.cell)}", float(tensors))  # fmt: skip
    if not facts.get("repack", True) and tensors:
        return Control("packing", VOID, f"the {arm} was asked to pack nothing and packed {counted}; {rerun(case.cell)}",
                       float(tensors))  # fmt: skip
    word = f"packed {counted}" if tensors else "packed nothing, as it was asked to"
    return Control("packing", OK, f"the {arm} {word}", float(tensors))
