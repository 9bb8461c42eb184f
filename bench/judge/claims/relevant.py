"""Which rows of the findings any claim of some sheets is about, so that the others need not be held. It judges none."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from bench.judge.claims.beside import STATIC
from bench.judge.claims.claim import Claim
from bench.judge.claims.names import KINDS, Names
from bench.judge.claims.rows import DEFAULTS, DEFAULTS_OF, in_scope, value_of
from bench.judge.columns import R
from bench.judge.findings import Findings

Question = tuple[Mapping[str, Any], str, Container[str]]
"""A scope, whose speed it is about, and what is compared elsewhere and may be any."""


class Relevant:
    """The rows that `bench.judge.claims.rows.in_scope` finds for any of some claims, or for what is told beside one.

    Rows that read alike are asked about once.
    """

    def __init__(self, claims: Sequence[Claim], names: Names) -> None:
        self._names = names
        self._asked: dict[str, list[Question]] = {}
        for claim in claims:
            for table, question in _questions(claim):
                self._asked.setdefault(table, []).append(question)
        self._keys = keys_of(claims)
        self._known: dict[tuple[str, tuple[Any, ...]], bool] = {}

    @property
    def digest(self) -> str:
        """Stands for what is asked, so that what was held for other sheets is known for it."""
        # In an order of their own: that of the names is another one in every process.
        names = sorted(self._names.alike.items()), sorted((name, sorted(said.items())) for name, said in
                                                          self._names.files.items())  # fmt: skip
        return hashlib.sha256(repr((self._asked, names)).encode(errors="surrogateescape")).hexdigest()

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
            self._known[key] = any(in_scope(table, scope, whose, one, self._names, told)
                                   for scope, whose, told in self._asked[table])  # fmt: skip
        return self._known[key]


def keys_of(claims: Sequence[Claim]) -> dict[str, tuple[str, ...]]:
    """The columns by which `in_scope` tells rows apart for some claims, by table."""
    found: dict[str, set[str]] = {}
    for claim in claims:
        for table, (scope, *_) in _questions(claim):
            found.setdefault(table, {*DEFAULTS_OF.get(table, DEFAULTS), *KINDS}).update(scope)
    return {table: tuple(sorted({"scope", *asked} - {"per"})) for table, asked in found.items()}


def _questions(claim: Claim) -> Iterator[tuple[str, Question]]:
    """Table and question: of the claim, and of each ratio that is told beside it."""
    if claim.table:
        yield claim.table, (claim.scope, claim.per, claim.conditions)
    for entry in claim.rule.beside:
        if entry["table"] == STATIC:  # of kernels, which lie in no cell
            continue
        for part in (entry, *([entry["over"]] if "over" in entry else [])):
            yield part["table"], (part["scope"], str(part["scope"].get("per", "answer")), ())
