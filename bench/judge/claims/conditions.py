"""In what a row's conditions differ from those that a claim names. Knows no test and no verdict."""

from __future__ import annotations

import math
from typing import Any

from bench.judge.claims.claim import Claim
from bench.judge.claims.names import KINDS, Names, without_mark
from bench.judge.claims.rows import Row, figure
from bench.judge.claims.sheet import CONDITION_KEYS
from bench.judge.claims.synthetic import of_another_model

BASELINE_MARGIN = 0.10
"""How far the baseline may be from the claim's: the published ones of one card and model spread by 9 % over days."""


def differing(claim: Claim, row: Row, names: Names) -> list[str]:
    """Conditions of the claim that the row does not share, each as a phrase."""
    phrases = []
    for key in CONDITION_KEYS:
        if key in claim.conditions and not _shared(claim, key, row, names):
            found = row.get(key)
            shown = found if found not in (None, "") else "not recorded"
            shown = f"{shown:.4g}" if isinstance(shown, float) else shown
            phrases.append(f"{key} (claim: {claim.conditions[key]}, here: {shown})")
    return phrases


class Elsewhere:
    """In what rows differ from a claim's conditions. Of those that read alike in all that it names, one is asked."""

    def __init__(self, claim: Claim, names: Names) -> None:
        self._claim, self._names = claim, names
        named = [key for key in CONDITION_KEYS if key in claim.conditions]
        self._keys = (*named, "model", "synthetic") if named else ()
        self._known: dict[tuple[Any, ...], str] = {}

    def told(self, row: Row) -> str:
        """Sentence that lists the differing conditions; empty when there are none."""
        values = [row.get(key) for key in self._keys]
        alike = (*map(type, values), *map(str, values))
        if alike not in self._known:
            self._known[alike] = self._asked(row)
        return self._known[alike]

    def _asked(self, row: Row) -> str:
        differences = differing(self._claim, row, self._names)
        return f" Conditions that differ: {'; '.join(differences)}." if differences else ""


def _shared(claim: Claim, key: str, row: Row, names: Names) -> bool:
    claimed = claim.conditions[key]
    if key == "model" and of_another_model(claim.table, row):
        return False
    if key in KINDS:
        found = names.of_row(key, row)
        return names.same(key, claimed, without_mark(found) if key == "model" else found)
    if key == "baseline_tok_s":
        rate = figure(row, key)
        return rate is not None and abs(rate - float(claimed)) <= BASELINE_MARGIN * float(claimed)
    return _equal(claimed, row.get(key))


def _equal(claimed: Any, found: Any) -> bool:
    """One number, one truth value, or one word."""
    if found is None or found == "":
        return False
    if isinstance(claimed, bool) or isinstance(found, bool):
        return claimed is found
    if isinstance(claimed, (int, float)):
        return isinstance(found, (int, float)) and math.isclose(claimed, found)
    return str(claimed).strip().lower() == str(found).strip().lower()
