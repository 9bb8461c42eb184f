"""A row of somebody's own table that is a whole run, as trials: one, or one for each test that has a column.

It knows columns by their meaning, not by their name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bench.audit.blocks import TableBlock
from bench.audit.numbers import NAN, Measured, measured, whole
from bench.audit.trials import Step, Trial
from bench.errors import UserError

MORE_RATES = ("tok_s", "answer_tok_s", "aggregate_tok_s")
DURATIONS = {"seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
EMPTY = ("", "-", "--", "n/a", "na", "nan", "none", "null", "\u2014", "\u2013", "x")
_UNITS = {"ms": 1e-3, "s": 1.0, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "sec": 1.0, "min": 60.0}


@dataclass
class Row:
    """One row by meaning. `tests` has the cells of columns that name a test, as PP512 does."""

    line: int
    cells: dict[str, str]
    tests: dict[str, str]
    settings: dict[str, str]
    extra: dict[str, str]
    comma: bool

    def has(self, name: str) -> bool:
        """Whether there is something in a cell."""
        return self.cells.get(name, "").lower() not in EMPTY

    def value(self, block: TableBlock, name: str, low: float | None = 0.0) -> Measured | None:
        """The number of a cell, None where it is empty. UserError where it is something else, or below `low`."""
        return self.parsed(block, name, self.cells.get(name, ""), low)

    def parsed(self, block: TableBlock, name: str, text: str, low: float | None = 0.0) -> Measured | None:
        """The number in a text, None where it is empty."""
        if text.lower().strip("*") in EMPTY:
            return None
        found = measured(text, self.comma)
        if found is None:
            raise UserError(f"{block.name}, line {self.line}: {name} is '{text[:60]}', expected a number")
        if low is not None and found.value < low:
            raise UserError(f"{block.name}, line {self.line}: {name} is {found.value:g}, expected {low:g} or more")
        return found

    def whole(self, block: TableBlock, name: str) -> int | None:
        """The count in a cell, None where it is empty."""
        found = self.value(block, name)
        if found is None:
            return None
        if found.value != int(found.value):
            raise UserError(
                f"{block.name}, line {self.line}: {name} is '{self.cells[name][:60]}', expected a whole number"
            )
        return int(found.value)

    def needed_whole(self, block: TableBlock, name: str) -> int:
        """The count in a cell that has to be there."""
        found = self.whole(block, name)
        if found is None:
            raise UserError(f"{block.name}, line {self.line}: {name} is empty, expected a whole number")
        return found


def run_trials(block: TableBlock, row: Row) -> list[Trial]:
    """The trials of a row."""
    values = _values(block, row)
    rates = _rates(block, row)
    tests = [(test, found) for test, text in row.tests.items() if (found := row.parsed(block, test, text)) is not None]
    trials = []
    if rates or not tests or values["emitted"] is not None:
        trials.append(_trial(row, values, rates, row.cells.get("test", "")))
    for test, found in tests:
        kind = "pp" if test.startswith("pp") else "tok_s"
        trials.append(_trial(row, values | {"emitted": None, "counted": 0, "distinct": 0}, {kind: found}, test))
    return trials


def _trial(row: Row, values: dict[str, Any], rates: dict[str, Measured], test: str) -> Trial:
    values = dict(values)
    printed = {name: one.value for name, one in rates.items() if math.isfinite(one.value)}
    main = next((rates[name] for name in ("answer_tok_s", "tok_s") if name in rates), None)
    spread = main.spread if main is not None else NAN
    if math.isfinite(spread):
        values["spread"] = spread
    label = " ".join(part for part in (*(row.cells.get(name, "") for name in ("arm", "run", "prompt")), test) if part)
    return Trial(
        place=f"line {row.line}",
        line=row.line,
        label=label[:80]
        or (
            f"{values['streams']} answer{'s' * (values['streams'] > 1)} at once" if values["streams_known"] else "a row"
        ),
        test=test,
        printed=printed | values.pop("other_rates"),
        **values,
    )


def _rates(block: TableBlock, row: Row) -> dict[str, Measured]:
    """The rates of a row. Beside a rate in sum, one that does not say which it is is the sum's."""
    found = {name: one for name in MORE_RATES if (one := row.value(block, name)) is not None}
    if "aggregate_tok_s" in found:
        found["tok_s"] = found.pop("aggregate_tok_s")
    tpot = row.value(block, "tpot_ms")
    if tpot is not None and tpot.value > 0 and "answer_tok_s" not in found:
        found["answer_tok_s"] = Measured(1e3 / tpot.value)
    return found


def _seconds(block: TableBlock, row: Row, names: dict[str, float]) -> float:
    for name, unit in names.items():
        found = row.value(block, name)
        if found is not None:
            return found.value * _UNITS.get(found.unit.lower(), unit)
    return NAN


def _values(block: TableBlock, row: Row) -> dict[str, Any]:
    emitted = row.whole(block, "emitted")
    drafted, accepted = row.whole(block, "drafted"), row.whole(block, "accepted")
    tested = row.whole(block, "verified")
    skipped = row.whole(block, "skipped")
    if tested is None and drafted is not None and skipped is not None:
        tested = max(drafted - skipped, 0)
    rounds = row.whole(block, "rounds") or None
    seconds = _seconds(block, row, DURATIONS)
    others = {
        name: _share(one) for name in ("acceptance", "mean_length", "speedup", "pp") if (one := row.value(block, name))
    }
    sd = row.value(block, "sd")
    depth = row.whole(block, "depth")
    streams = row.whole(block, "streams")
    step = Step(
        row.line,
        seconds,
        None,  # a table with widths is one of steps
        rounds or 1,
        drafted,
        tested,
        accepted,
        emitted if rounds is not None else None,
    )
    return {
        "arm": row.cells.get("arm", ""),
        "prompt": row.cells.get("prompt", "") or row.cells.get("category", ""),
        "category": row.cells.get("category", ""),
        "depth": depth,
        "streams": streams or block.options.streams or _listed(row) or 1,
        "streams_known": bool(streams or row.has("stream")),
        "emitted": emitted,
        "counted": emitted or 0,
        "distinct": emitted or 0,
        "seconds": seconds,
        "drafted": drafted,
        "accepted": accepted,
        "tested": tested,
        "rounds": rounds,
        "prompt_tokens": row.whole(block, "n_prompt") or 0,
        "evaluated": row.whole(block, "n_prompt_evaluated"),
        "requested": row.whole(block, "requested") or None,
        "temperature": (found.value if (found := row.value(block, "temperature")) else None),
        "clock_mhz": (found.value if (found := row.value(block, "clock_mhz")) else None),
        "prefill_seconds": _seconds(block, row, {"prefill_s": 1.0, "prefill_ms": 1e-3}) or NAN,
        "total_seconds": _seconds(block, row, {"total_s": 1.0, "total_ms": 1e-3}),
        "settings": row.settings | {f"{name}*": value for name, value in row.extra.items()},
        "repetitions": row.whole(block, "repetitions"),
        "spread": sd.value if sd else NAN,
        "steps": (step,) if drafted is not None or math.isfinite(seconds) else (),
        "other_rates": others,
    }


def _share(found: Measured) -> float:
    return found.value / 100 if found.unit == "%" else found.value


def _listed(row: Row) -> int | None:
    """How many streams a list of their ids names."""
    ids = row.cells.get("stream", "").strip("[]").replace(",", " ").split()
    return len(set(ids)) if len(ids) > 1 and all(whole(one) is not None for one in ids) else None
