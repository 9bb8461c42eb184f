"""The harness's own ledger, alone, read as a foreign record: nothing is taken on trust.

It recounts; it does not use what a cell's report said. A ledger alone has no prefill time and no arms. A file is read
line by line, so its size is bounded by the rows of its runs and not by its text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from bench.audit.blocks import Block, Found, TableBlock
from bench.audit.emits import Emits, count, together, window_seconds
from bench.audit.own_tables import Rows, table
from bench.audit.text import opened
from bench.audit.trials import Record, Trial
from bench.errors import UserError
from pti_loop.ledger import SOURCES

COLUMNS = ("run", "stream", "position", "token", "round", "source", "t_ns")
MOST_RUNS = 100_000
NOTE = "a ledger alone has no prefill time and no arm names"


def sniff(block: Block) -> bool:
    return isinstance(block, TableBlock) and block.has(*COLUMNS)


def read(block: Block) -> Found:
    """A ledger inside a pasted text."""
    assert isinstance(block, TableBlock)
    rows = ((row.line, [row.cells[name] for name in COLUMNS]) for row in block.rows)
    runs = runs_of(block.name, rows)
    return Found("ledger", [trial(run, emits) for run, emits in runs.items()], [NOTE])


def read_ledger(path: Path) -> Record:
    """A ledger file; one trial a run. UserError names the line of the first row that is not one."""
    with opened(path) as stream:
        runs = runs_of(str(path), table(path, stream, COLUMNS))
    trials = []
    for run in list(runs):
        trials.append(trial(run, runs.pop(run)))
    return Record(path, "ledger", tuple(trials), (NOTE,))


def runs_of(name: str, rows: Rows) -> dict[int, Emits]:
    """Rows of a ledger by run, in the order in which runs begin."""
    runs: dict[int, Emits] = {}
    emits, current = Emits(True), -1
    line = 0
    try:
        for line, (run, stream, position, token, round_, source, t_ns) in rows:
            number = int(run)
            if number != current or not runs:
                current = number
                emits = runs.setdefault(number, Emits(True))
                if number < 0 or len(runs) > MOST_RUNS:
                    raise UserError(
                        f"{name}, line {line}: run is {number}, expected a run of 0 or more, and few of them"
                    )
                streams, positions, tokens, rounds, times = emits.columns
                prefills = emits.prefill
            stream_, position_, round_n = int(stream), int(position), int(round_)
            if source not in SOURCES and source.strip() not in SOURCES:
                raise UserError(f"{name}, line {line}: source is '{source[:40]}', expected one of {', '.join(SOURCES)}")
            if stream_ < 0 or position_ < 0 or round_n < -1:
                raise UserError(_below(name, line, stream_, position_, round_n))
            prefill = round_n < 0 or source.strip() == "prefill"
            tokens(int(token))
            times(int(t_ns))
            streams(stream_)
            positions(position_)
            rounds(-1 if prefill else round_n)
            prefills.append(prefill)
            if source.strip() == "unverified":
                emits.unverified += 1
    except ValueError:
        raise UserError(_bad(name, line, (run, stream, position, token, round_, source, t_ns))) from None
    except OverflowError:
        raise UserError(f"{name}, line {line}: a number that is larger than any token id, position or time") from None
    return runs


def _below(name: str, line: int, stream: int, position: int, round_: int) -> str:
    what, value, low = (
        ("stream", stream, 0) if stream < 0 else ("position", position, 0) if position < 0 else ("round", round_, -1)
    )
    return f"{name}, line {line}: {what} is {value}, expected {low} or more"


def _bad(name: str, line: int, cells: Iterable[str]) -> str:
    for column, text in zip(COLUMNS, cells, strict=True):
        if column != "source":
            try:
                int(text)
            except ValueError:
                return f"{name}, line {line}: {column} is '{text[:40]}', expected a whole number"
    return f"{name}, line {line}: is no row of a ledger"


def trial(run: int, emits: Emits, startup: Collection[int] = (), **more: Any) -> Trial:
    """A run as its rows tell of it, with what else is known of it; rounds of `startup` are counted apart."""
    emits.mark_first()
    counts = count(emits, set(startup))
    values: dict[str, Any] = {
        "place": f"run {run}",
        "label": f"run {run}",
        "emits": emits,
        "streams_known": True,
        "streams": together(list(counts.answers.values())),
        "seconds": window_seconds(emits),
        "rounds": counts.rounds,
        "counted": counts.counted,
        "distinct": counts.distinct,
        "first": counts.first,
        "startup_counted": counts.startup_counted,
        "startup_distinct": counts.startup_distinct,
    }
    return Trial(**values | more)
