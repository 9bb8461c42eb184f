"""Rows of somebody's own table that are decode steps of one run, as a trial with its emitted tokens.

It knows columns by their meaning, not by their name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bench.audit.blocks import TableBlock
from bench.audit.emits import Emits, count, together, window_seconds
from bench.audit.formats.plain_runs import DURATIONS, Row
from bench.audit.numbers import NAN
from bench.audit.trials import Step, Trial
from bench.errors import UserError

CLOCKS = {"t_s": 10**9, "t_ms": 10**6, "t_us": 10**3, "t_ns": 1}
PHASES = ("prefill", "warmup", "startup", "steady")
COUNTERS = ("rounds", "width", "drafted", "verified", "accepted", "emitted")


@dataclass(frozen=True)
class _Step:
    """One parsed row; None where the file does not say."""

    row: Row
    phase: str
    seconds: float | None
    clock_ns: int | None
    emits: list[tuple[int, int, int]]
    """(stream, position, token); position -1 where the file has none."""
    counters: dict[str, int]


def step_trial(block: TableBlock, rows: list[Row]) -> Trial:
    """The trial of a run's steps."""
    steps = [_parse(block, row) for row in rows]
    first = rows[0]
    label = " ".join(part for part in (first.cells.get(name, "") for name in ("arm", "run", "prompt")) if part)
    timed = [step for step in steps if step.phase in ("startup", "steady")]
    printed = {
        name: found.value
        for name in ("tok_s", "acceptance", "mean_length")
        if (found := first.value(block, name)) is not None
    }
    temperature, clock = first.value(block, "temperature"), first.value(block, "clock_mhz")
    values: dict[str, Any] = {
        "place": f"line {first.line}" if len(rows) == 1 else f"lines {first.line}-{rows[-1].line}",
        "line": first.line,
        "label": label or "whole file",
        "arm": first.cells.get("arm", ""),
        "prompt": first.cells.get("prompt", ""),
        "category": first.cells.get("category", ""),
        "rounds": _rounds(timed),
        "settings": first.settings,
        "printed": printed,
        "depth": first.whole(block, "depth"),
        "temperature": temperature.value if temperature else None,
        "clock_mhz": clock.value if clock else None,
        "requested": first.whole(block, "requested") or None,
    }
    values |= _prompt_values(block, steps) | _token_values(steps, timed, block.options.streams)
    for name, target in (("drafted", "drafted"), ("verified", "tested"), ("accepted", "accepted")):
        known = [step.counters[name] for step in timed if name in step.counters]
        values[target] = sum(known) if known else None
    values["steps"] = tuple(_step(step) for step in timed)
    return Trial(**values)


def _step(step: _Step) -> Step:
    emitted = step.counters.get("emitted", len(step.emits) if "tokens" in step.row.cells else None)
    rounds = step.counters.get("rounds", len({owner for owner, _, _ in step.emits}) or 1)
    return Step(
        step.row.line,
        NAN if step.seconds is None else step.seconds,
        step.counters.get("width"),
        rounds,
        step.counters.get("drafted"),
        step.counters.get("verified"),
        step.counters.get("accepted"),
        emitted,
    )


def _parse(block: TableBlock, row: Row) -> _Step:
    phase = row.cells.get("phase", "") or "steady"
    if phase not in PHASES:
        raise UserError(f"{block.name}, line {row.line}: phase is '{phase[:40]}', expected one of {', '.join(PHASES)}")
    duration = next((found.value * unit for name, unit in DURATIONS.items() if (found := row.value(block, name))), None)
    clock = next(
        (round(found.value * unit) for name, unit in CLOCKS.items() if (found := row.value(block, name, None))), None
    )
    if clock is None and any(name in row.cells for name in CLOCKS):
        raise UserError(f"{block.name}, line {row.line}: has no time")
    counters = {name: value for name in COUNTERS if (value := row.whole(block, name)) is not None}
    skipped = row.whole(block, "skipped")
    if skipped is not None and "drafted" in counters and "verified" not in counters:
        counters["verified"] = max(counters["drafted"] - skipped, 0)
    return _Step(row, phase, duration, clock, _emits(block, row), counters)


def _integers(block: TableBlock, row: Row, name: str) -> list[int]:
    text = row.cells[name].strip("[]").replace(",", " ")
    try:
        return [int(part) for part in text.split()]
    except ValueError:
        raise UserError(
            f"{block.name}, line {row.line}: {name} is '{text[:60]}', expected whole numbers between spaces"
        ) from None


def _emits(block: TableBlock, row: Row) -> list[tuple[int, int, int]]:
    if "tokens" not in row.cells:
        return []
    where = f"{block.name}, line {row.line}"
    tokens = _integers(block, row, "tokens")
    positions = _integers(block, row, "positions") if "positions" in row.cells else [-1] * len(tokens)
    if len(positions) != len(tokens):
        raise UserError(f"{where}: {len(tokens)} tokens and {len(positions)} positions; expected one position a token")
    owners = _integers(block, row, "stream") if row.cells.get("stream") else [0]
    owners = owners * len(tokens) if len(owners) == 1 else owners
    if len(owners) != len(tokens):
        raise UserError(f"{where}: {len(tokens)} tokens and {len(owners)} streams; expected one stream, or one a token")
    if any(position < -1 for position in positions) or any(owner < 0 for owner in owners):
        raise UserError(f"{where}: a position or a stream is below 0")
    return list(zip(owners, positions, tokens, strict=True))


def _rounds(timed: list[_Step]) -> int | None:
    """Decode steps of a trial."""
    if timed and "rounds" in timed[0].row.cells:
        return sum(step.counters.get("rounds", 0) for step in timed) or None
    return len(timed) or None


def _prompt_values(block: TableBlock, steps: list[_Step]) -> dict[str, Any]:
    seconds = [step.seconds for step in steps if step.phase == "prefill" and step.seconds is not None]
    told = [value for step in steps if (value := step.row.whole(block, "n_prompt")) is not None]
    evaluated = [value for step in steps if (value := step.row.whole(block, "n_prompt_evaluated")) is not None]
    return {
        "prompt_tokens": told[0] if told else 0,
        "evaluated": evaluated[0] if evaluated else None,
        "prefill_seconds": sum(seconds) if seconds else NAN,
    }


def _token_values(steps: list[_Step], timed: list[_Step], streams: int | None) -> dict[str, Any]:
    durations = [step.seconds for step in timed if step.seconds is not None]
    values: dict[str, Any] = {"seconds": sum(durations) if durations else NAN}
    said = [step.counters["emitted"] for step in timed if "emitted" in step.counters]
    values["emitted"] = sum(said) if said else None
    startup = [step for step in timed if step.phase == "startup"]
    values["startup_seconds"] = sum(step.seconds or 0.0 for step in startup)
    row = steps[0].row
    told = row.cells.get("streams", "")
    number = int(told) if told.isdecimal() and int(told[:9]) > 0 else None
    known = bool(row.cells.get("stream")) or number is not None
    values |= {"streams_known": known, "streams": number or streams or 1}
    kept = [step for step in steps if step.phase != "warmup"]
    if "tokens" not in row.cells:
        clocked = bool(timed) and timed[0].clock_ns is not None
        values["startup_counted"] = values["startup_distinct"] = sum(one.counters.get("emitted", 0) for one in startup)
        values |= {"counted": sum(said), "distinct": sum(said)}
        return values | (_clocked_counts(timed) if clocked and said else {})
    return values | _from_ids(kept, timed, known)


def _clocked_counts(timed: list[_Step]) -> dict[str, Any]:
    """Counts under clock readings: the first row's tokens have no time of their own."""
    moments = [step.clock_ns or 0 for step in timed]
    first = timed[0].counters.get("emitted", 0)
    inside = sum(step.counters.get("emitted", 0) for step in timed[1:])
    return {"first": first, "counted": inside, "distinct": inside, "seconds": (max(moments) - moments[0]) / 1e9 or NAN}


def _from_ids(kept: list[_Step], timed: list[_Step], known: bool) -> dict[str, Any]:
    clocked = bool(timed) and timed[0].clock_ns is not None
    placed = any(position >= 0 for step in kept for _, position, _ in step.emits)
    emits = Emits(clocked, placed)
    following: dict[int, int] = {}
    for number, step in enumerate(kept):
        prefill = step.phase == "prefill"
        for owner, position, token in step.emits:
            place = following.get(owner, 0) if position < 0 else position
            following[owner] = place + 1
            try:
                emits.add(owner, place, token, -1 if prefill else number, step.clock_ns or 0, prefill, True)
            except OverflowError:
                raise UserError(
                    f"line {step.row.line}: a number that is larger than any token id, position or time"
                ) from None
    emits.mark_first()
    counts = count(emits, {number for number, step in enumerate(kept) if step.phase == "startup"})
    values: dict[str, Any] = {
        "emits": emits,
        "counted": counts.counted,
        "distinct": counts.distinct,
        "first": counts.first,
        "startup_counted": counts.startup_counted,
        "startup_distinct": counts.startup_distinct,
    }
    if clocked:
        values["seconds"] = window_seconds(emits)
    if known:
        # Without a clock, streams of one step are decoded together: that is all the file says about time.
        by_step = max((len({owner for owner, _, _ in step.emits}) for step in kept), default=1)
        values["streams"] = together(list(counts.answers.values())) if clocked else max(by_step, 1)
    if not math.isfinite(values.get("seconds", 0.0)):
        values.pop("seconds")
    return values
