"""Rows of the table of stalls, and the control that names disturbed runs.

What a stall is, `bench.judge.measure.stalls` says. It knows nothing about what took the time; where a
run's record has load and steal time, the row tells them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.judge.findings import OK, WARNING, Control, origin
from bench.judge.measure.stalls import WHOLE
from bench.judge.tables.contrast import Stall

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

TOLD = 3
"""Stalls that the control's sentence names; the table has all."""


def stall_rows(case: Case) -> list[Stall]:
    """One row a stall that took 5 % of its run or more."""
    found, table = case.stalls, case.runs
    return [
        Stall(
            **origin(case.cell), cell=case.cell.cell, run=int(table.run[one.run]), arm=str(table.arm[one.run]),
            block=int(table.block[one.run]), prompt=str(table.prompt[one.run]), round=one.round, rounds=one.rounds,
            lost_ms=1e3 * one.lost, took_ms=1e3 * one.took, other_ms=1e3 * one.other, share=one.share,
            held_against="the other run" if found.paired[one.run] else "rounds of the same shape",
            load=_beside(case, "load", one.run), steal=_beside(case, "steal", one.run),
            other_cpus=_beside(case, "other_cpus", one.run),
        )
        for one in found.stalls
    ]  # fmt: skip


def _beside(case: Case, name: str, run: int) -> float:
    """What a run's record says of the machine beside it; nan where it says nothing."""
    return float(case.cell.runs[name][run]) if name in case.cell.runs else float("nan")


def stalls(case: Case) -> list[Control]:
    """The control: no run lost time that its twin did not."""
    found = case.stalls
    share = found.share
    if not found.stalls:
        return [Control("stall", OK, f"no run lost 5 % of its time to a stall; {100 * share:.2f} % in all", share)]
    worst = sorted(found.stalls, key=lambda one: -one.lost)[:TOLD]
    names = [f"run {case.runs.run[one.run]} ({case.runs.arm[one.run]}) {_where(one.round, one.rounds)} "
             f"lost {one.lost:.2f} s" for one in worst]  # fmt: skip
    runs = len({one.run for one in found.stalls})
    more = f", and {len(found.stalls) - len(worst)} more" if len(found.stalls) > len(worst) else ""
    if found.own:
        sentence = (f"{runs} of {len(case.runs.run)} runs were held up, those of {found.own} more often than chance "
                    f"has it: {'; '.join(names)}{more}; it is that arm's own, and inside the estimate")  # fmt: skip
        return [Control("stall", WARNING, sentence, share)]
    inside = any(one.round == WHOLE for one in found.stalls)
    kept = ", but for runs that were slow throughout, which make its intervals wider" if inside else ""
    sentence = (f"{runs} of {len(case.runs.run)} runs were disturbed, {100 * share:.1f} % of the time in all: "
                f"{'; '.join(names)}{more}; it is outside the estimate{kept}")  # fmt: skip
    return [Control("stall", WARNING, sentence, share)]


def _where(number: int | None, rounds: int) -> str:
    if number is None:
        return f"in {rounds} rounds"
    if number == WHOLE:
        return "throughout"
    return "between rounds" if number < 0 else f"in round {number}"
