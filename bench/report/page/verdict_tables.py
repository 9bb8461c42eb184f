"""The tables of verdicts of the Markdown page, one a kind of evidence. Decides nothing.

The page tells each verdict in one sentence; the whole reason, the scope and the figures are in `claims.csv`.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.summary.evidence import KINDS, kind_of
from bench.report.page.section import Column, Table, tabulate
from bench.report.tables import verdicts
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.values import Row, cells_of, get, line, plain

CLAIMS_INTRO = (
    "By what they rest on, each in one sentence with its two numbers. The whole reason, the scope, the source and what "
    "would bring another verdict are in `claims.csv`."
)
_ANYWHERE = "any"


def verdict_tables(claims: Sequence[Row], index: CellIndex) -> list[Table]:
    """A table for each kind of evidence that there is, its verdicts in their usual order."""
    ordered = verdicts.ordered(claims)
    groups = [(kind, [claim for claim in ordered if kind_of(claim) == kind]) for kind in KINDS]
    return [_table(kind, members, index) for kind, members in groups if members]


def _table(kind: str, claims: Sequence[Row], index: CellIndex) -> Table:
    columns: list[Column] = [
        ("verdict", lambda claim: f"**{verdicts.verdict_of(claim)}**"),
        ("claim", lambda claim: f"`{line(claim.get('claim_id'))}`"),
        ("it says", lambda claim: line(claim.get("says"))),
        ("why", lambda claim: line(get(claim, "why", "reason"))),
    ]
    if any(line(claim.get("machine")) != _ANYWHERE for claim in claims):
        columns.insert(2, ("machine", _where if verdicts.on_several(claims) else _machine))
    if any(plain(claim.get("author_status")) is not None for claim in claims):
        columns.append(("its author since", verdicts.author_status))
    measured = [claim for claim in claims if cells_of(claim)]
    told = f"{kind}, {len(claims)} verdicts: {_counts(claims)}"
    told += f". Conditions: {condition(measured, index)}" if measured else ""
    return tabulate(claims, columns, told, "claims.csv", limit=len(claims))


def _counts(claims: Sequence[Row]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.totals(claims) if count)


def _machine(claim: Row) -> str:
    return line(claim.get("machine"))


def _where(claim: Row) -> str:
    return f"{_machine(claim)} ({line(claim.get('build'))})"
