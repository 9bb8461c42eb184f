"""Which rows of the findings any claim of some sheets is about, so that the others need not be held. It judges none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.judge.claims.beside import STATIC
from bench.judge.claims.claim import Claim
from bench.judge.claims.names import KINDS, Names
from bench.judge.claims.rows import DEFAULTS, DEFAULTS_OF, in_scope, value_of
from bench.judge.columns import R
from bench.judge.findings import Findings

Question = tuple[Mapping[str, Any], str]
"""A scope, and whose speed it is about."""


class Relevant:
    """The rows that `bench.judge.claims.rows.in_scope` finds for any of some claims, or for what is told beside one.

    Rows that read alike are asked about once.
    """

    def __init__(self, claims: Sequence[Claim], names: Names) -> None:
        self._names = names
        self._asked: dict[str, list[Question]] = {}
        for claim in claims:
            for table, scope, whose in _questions(claim):
                self._asked.setdefault(table, []).append((scope, whose))
        self._keys: dict[str, tuple[str, ...]] = {}
        for table, own in self._asked.items():
            asked = {key for scope, _ in own for key in scope} | set(DEFAULTS_OF.get(table, DEFAULTS)) | set(KINDS)
            self._keys[table] = ("scope", "model", *sorted(asked - {"per"}))
        self._known: dict[tuple[str, tuple[Any, ...]], bool] = {}

    @property
    def tables(self) -> Sequence[str]:
        """The tables that some claim rests on."""
        return list(self._asked)

    def of(self, table: str, rows: Sequence[R]) -> list[R]:
        """Some rows of one table, without those that no claim is about."""
        return [row for row in rows if self._is_asked(table, row)]

    def _is_asked(self, table: str, row: R) -> bool:
        key = table, tuple(str(value_of(row, name)) for name in self._keys[table])
        if key not in self._known:
            one = Findings(**{table: [row]})
            self._known[key] = any(in_scope(table, scope, whose, one, self._names)
                                   for scope, whose in self._asked[table])  # fmt: skip
        return self._known[key]


def _questions(claim: Claim) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Table, scope and whose speed: of the claim, and of each ratio that is told beside it."""
    if claim.table:
        yield claim.table, claim.scope, claim.per
    for entry in claim.rule.beside:
        if entry["table"] == STATIC:  # of kernels, which lie in no cell
            continue
        for part in (entry, *([entry["over"]] if "over" in entry else [])):
            yield part["table"], part["scope"], str(part["scope"].get("per", "answer"))
