"""Claims that a report of some cells cannot judge, while all cells would. Judges nothing anew, and reads no record."""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.columns import changed
from bench.judge.tables.claims import VERDICTS, Verdict

LEFT_OUT, NOT_RUN = "left_out", "not_run"


def tell_left_out(verdicts: Sequence[Verdict], whole: Sequence[Verdict], only: str) -> list[Verdict]:
    """The verdicts of a report over some cells; one that is not run for want of the others says what leaves them out.

    `whole` are the verdicts over all cells, `only` is what was asked for, as `machine=h200`.
    """
    found: dict[str, list[Verdict]] = {}
    for row in whole:
        if row.verdict != NOT_RUN and row.cells:
            found.setdefault(row.claim_id, []).append(row)
    return [_left_out(row, found[row.claim_id], only) if row.verdict == NOT_RUN and row.claim_id in found else row
            for row in verdicts]  # fmt: skip


def _left_out(row: Verdict, whole: Sequence[Verdict], only: str) -> Verdict:
    by = {verdict: sorted({one.machine for one in whole if one.verdict == verdict}) for verdict in VERDICTS}
    told = "; ".join(f"{verdict} on {', '.join(machines)}" for verdict, machines in by.items() if machines)
    why = f"{only} leaves out the cells that tell. By them it is {told}."
    return changed(row, verdict=LEFT_OUT, reason=why, why=why, would_change=f"the report without {only}")
