"""Launches of counted decodes: that all are there, each with a place of its own, and that decodes are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.measure.tokens import arrays

if TYPE_CHECKING:
    from bench.judge.measure.case import Case


def launches_are_there(case: Case) -> str | None:
    """Every configured width was counted or left out with a reason, and timed; launches are numbered from 0."""
    facts, table = case.cell.facts, arrays(case.cell.launches)
    wanted = {int(width) for width in (case.cell.config.get("measure") or {}).get("counted_widths") or []}
    counted = {int(width) for width in np.unique(table["width"])}
    left_out = {int(row.get("width") or 0) for row in facts.get("left_out") or []}
    if counted | left_out != wanted or counted & left_out:
        return (f"widths {sorted(wanted)} were configured, {sorted(counted)} are counted and {sorted(left_out)} are "
                "told as left out")  # fmt: skip
    timed = {(int(row.get("width") or 0), bool(row.get("graphs"))) for row in facts.get("decodes") or []}
    if timed != {(width, graphs) for width in wanted for graphs in (True, False)}:
        return "a width was not decoded without a profiler, with CUDA graphs and without"
    for width in counted:
        if fault := _alike(table, width):
            return fault
    return None


def _alike(table: dict[str, np.ndarray], width: int) -> str | None:
    """The decodes of a width launch the same kernels in the same order, none twice."""
    mine = table["width"] == width
    lists = []
    for decode in np.unique(table["decode"][mine]):
        own = mine & (table["decode"] == decode)
        if not np.array_equal(np.sort(table["order"][own]), np.arange(own.sum())):
            return f"the launches of decode {int(decode)} of width {width} are not numbered from 0"
        lists.append([str(name) for name in table["kernel"][own][np.argsort(table["order"][own])]])
    if any(one != lists[0] for one in lists):
        return f"the decodes of width {width} launch different kernels"
    if (table["us"][mine] < 0).any():
        return f"a launch of width {width} takes less than no time"
    return None


def times_make_sense(case: Case) -> str | None:
    """No decode takes no time, and none is queued after it has ended."""
    for row in case.cell.facts.get("decodes") or []:
        whole, queued = row.get("ns") or [], row.get("queued_ns") or []
        if not whole or len(whole) != len(queued) or min(whole) <= 0:
            return f"the decodes of width {row.get('width')} have no times, or not one each"
        if any(not 0 <= first <= last for first, last in zip(queued, whole, strict=True)):
            return f"a decode of width {row.get('width')} is queued after it has ended"
    return None
