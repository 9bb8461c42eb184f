"""Which rows of the findings any claim of some sheets is about, so that the others need not be held. It judges none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.judge.claims.claim import Claim
from bench.judge.claims.names import KINDS, Names
from bench.judge.claims.rows import DEFAULTS, DEFAULTS_OF, matching, value_of
from bench.judge.columns import R
from bench.judge.findings import Findings


class Relevant:
    """The rows that `bench.judge.claims.rows.matching` finds for any of some claims; those that read alike are one."""

    def __init__(self, claims: Sequence[Claim], names: Names) -> None:
        self._names = names
        self._claims: dict[str, list[Claim]] = {}
        for claim in claims:
            if claim.table:
                self._claims.setdefault(claim.table, []).append(claim)
        self._keys: dict[str, tuple[str, ...]] = {}
        for table, own in self._claims.items():
            asked = {key for claim in own for key in claim.scope} | set(DEFAULTS_OF.get(table, DEFAULTS)) | set(KINDS)
            self._keys[table] = ("scope", "model", *sorted(asked - {"per"}))
        self._known: dict[tuple[str, tuple[Any, ...]], bool] = {}

    @property
    def tables(self) -> Sequence[str]:
        """The tables that some claim rests on."""
        return list(self._claims)

    def of(self, table: str, rows: Sequence[R]) -> list[R]:
        """Some rows of one table, without those that no claim is about."""
        return [row for row in rows if self._asked(table, row)]

    def _asked(self, table: str, row: R) -> bool:
        key = table, tuple(str(value_of(row, name)) for name in self._keys[table])
        if key not in self._known:
            one = Findings(**{table: [row]})
            self._known[key] = any(matching(claim, one, self._names) for claim in self._claims[table])
        return self._known[key]
