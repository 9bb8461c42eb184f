"""Whether cells of the same weights say the same of them: what one file holds does not change from cell to cell.

Of those that differ, the few are void; where neither are the fewer, all of them, since nothing tells which is wrong. It
knows no model and looks at no run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.judge.findings import VOID, origin, rerun
from bench.judge.invariants.settings import WIDENED
from bench.judge.tables.cell import ControlRow

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

NAME = "weights"
OF_THE_FILE = ("architecture", "quantization", "synthetic", "n_params", "n_vocab", "tensor_bytes", "file_bytes",
               "step_bytes", "state_bytes_per_sequence")  # fmt: skip
"""What a file's header says, whatever engine or build loads it: how many layers one counts may differ."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one cell says of its weights."""

    about: Mapping[str, Any]
    """Machine, build and cell id."""
    weights: tuple[str, bool]
    """Their digest, and whether an engine widens what the file has."""
    facts: Mapping[str, str]
    again: str
    """What measures the cell again."""


def said_of(case: Case) -> Said | None:
    """What a finished cell says of its weights; None where it does not tell their digest."""
    model = case.cell.facts.get("model") or {}
    if not case.done or not model.get("sha256"):
        return None
    widened = WIDENED in str(model.get("quantization"))
    cache = tuple(str((case.cell.config.get("engine") or {}).get(name)) for name in ("type_k", "type_v"))
    facts = {name: str(model[name]) for name in OF_THE_FILE if model.get(name) is not None}
    if model.get("kv_bytes_per_token") is not None:
        facts[f"kv_bytes_per_token of {'/'.join(cache)}"] = str(model["kv_bytes_per_token"])
    return Said(origin(case.cell), (str(model["sha256"]), widened), facts, rerun(case.cell))


def weight_checks(said: Sequence[Said]) -> list[ControlRow]:
    """One check for each cell that is void by it; none where all agree."""
    alike: dict[tuple[str, bool], list[Said]] = {}
    for one in said:
        alike.setdefault(one.weights, []).append(one)
    return [row for members in alike.values() if len(members) > 1 for row in _checks(members)]


def _checks(members: Sequence[Said]) -> list[ControlRow]:
    told: dict[str, Counter[str]] = {}
    for one in members:
        for name, value in one.facts.items():
            told.setdefault(name, Counter())[value] += 1
    usual = {name: _usual(values) for name, values in told.items() if len(values) > 1}
    rows = []
    for one in members:
        odd = [name for name, value in usual.items() if name in one.facts and one.facts[name] != value]
        if odd:
            rows.append(_row(one, odd, told[odd[0]]))
    return rows


def _usual(values: Counter[str]) -> str | None:
    """The value that more cells say than any other; None where there is no such value."""
    (first, most), (_, second) = values.most_common(2)
    return first if most > second else None


def _row(one: Said, odd: Sequence[str], values: Counter[str]) -> ControlRow:
    own = one.facts[odd[0]]
    others = ", ".join(f"{value} in {count}" for value, count in values.most_common() if value != own)
    more = f", and {len(odd) - 1} more facts differ" if len(odd) > 1 else ""
    sentence = (f"facts.json says {odd[0]} {own} of weights {one.weights[0][:12]}, and other cells of the same weights "
                f"say {others}{more}: one file is one thing; {one.again}")  # fmt: skip
    return ControlRow(**one.about, cell=one.about["cells"][0], control=NAME, ok=False, severity=VOID, value=math.nan,
                      ci_low=math.nan, ci_high=math.nan, sentence=sentence)  # fmt: skip
