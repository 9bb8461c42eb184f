"""Anybody's own table of decode steps or of runs: CSV, TSV, Markdown or columns, with the names they chose.

One row is one decode step. It is a whole run where the file names arms, prompts, an order, a rate or prompt evaluations
and has no step, ids, width or phase. Steps with the same arm, run and prompt are one trial. Names: `columns`.

- `tokens`: ids of the emitted tokens between spaces, or, where every cell is one number of a whole run, how many.
- `stream` is the id of a stream; `streams` (concurrency, clients, np ..) is how many answers there were at once, unless
  its cells are lists or count up from 0.
- Without a prefill row, a file of durations counts every token; a file of clock times cannot time its first step.

It does not know what is wrong with a record; it refuses only what it cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from bench.audit.blocks import Block, Found, TableBlock, TableRow
from bench.audit.formats.columns import ALIASES, IGNORED, SETTINGS, Meaning, meaning
from bench.audit.formats.plain_runs import MORE_RATES, Row, run_trials
from bench.audit.formats.plain_steps import step_trial
from bench.audit.numbers import number, whole
from bench.errors import UserError

JUDGED = {
    "tokens",
    "emitted",
    "tok_s",
    "answer_tok_s",
    "aggregate_tok_s",
    "seconds",
    "ms",
    "us",
    "ns",
    "t_s",
    "t_ms",
    "t_us",
    "t_ns",
    "drafted",
    "n_prompt_evaluated",
    "tpot_ms",
    "pp",
}
STEP = {"step", "width", "phase", "positions"}
RUN = {"arm", "prompt", "order", "rounds", "n_prompt_evaluated", "streams", "category", "repetitions", *MORE_RATES}
LONGEST_NAME = 48
TIMES = ("seconds", "ms", "us", "ns", "t_s", "t_ms", "t_us", "t_ns")


@dataclass
class Columns:
    """The header, understood: the name of each column's meaning, the columns that are kept, those left out."""

    names: dict[str, Meaning] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    @property
    def known(self) -> set[str]:
        return {one.name for one in self.names.values()}


def sniff(block: Block) -> bool:
    if not isinstance(block, TableBlock):
        return False
    if any(len(name) > LONGEST_NAME or ":" in name for name in block.header):
        return False  # prose
    known = understood(block.header).known
    if not known & JUDGED:
        return False
    # Prose in columns or with commas has a word like `time` now and then; a table has two, or names its unit.
    strong = known & (JUDGED - {"seconds", "tokens", "t_s", "ms", "drafted"}) or len(known & (JUDGED | STEP | RUN)) > 1
    return bool(strong) and (block.form != "columns" or len(known) > 1)


def understood(header: Sequence[str]) -> Columns:
    """What the columns of a header are. The second of two that mean the same is a setting."""
    found = Columns()
    for column in header:
        one = meaning(column)
        taken = {(known.name, known.test) for known in found.names.values()}
        if one is not None and (one.name, one.test) not in taken:
            found.names[column] = one
        elif IGNORED.match(column.strip().lower()):
            found.ignored.append(column)
        else:
            found.kept.append(column)
    return found


def read(block: Block) -> Found:
    assert isinstance(block, TableBlock)
    columns = understood(block.header)
    found = Found("a table" if block.form != "csv" else "a CSV")
    if not block.rows:
        raise UserError(
            f"{block.name}, {block.cut or f'line {block.line}: has a header and no rows'}; a failed run is not 0 tok/s"
        )
    _check_times(block, columns)
    rows = _rows(block, columns)
    named = next((column for column, one in columns.names.items() if one.name == "tokens"), "")
    counts = _counts(rows, columns.known, named.strip().lower() != "tokens")
    steps = bool(columns.known & STEP) or ("tokens" in columns.known and not counts) or not columns.known & RUN
    if steps:
        found.trials = [step_trial(block, group) for group in _groups(rows)]
    else:
        found.trials = [trial for row in rows for trial in run_trials(block, row)]
    silent = columns.known & {"stream", "streams"} or block.options.streams
    if not silent and columns.known & {"tokens", "emitted"}:
        found.notes.append("no stream column: taken as one answer (--streams N)")
    if columns.ignored:
        found.notes.append(f"columns not used: {', '.join(columns.ignored[:8])}")
    if columns.kept:
        found.notes.append(f"columns kept as settings: {', '.join(columns.kept[:8])}{_hint(columns.kept)}")
    return found


def _hint(kept: list[str]) -> str:
    """What a column that is kept may have been meant to be."""
    for column in kept[:20]:
        close = get_close_matches(column.strip().lower(), [*ALIASES], n=1, cutoff=0.85)
        if close:
            return f" (did you mean '{close[0]}'? '{column}' is not read)"
    return ""


def _check_times(block: TableBlock, columns: Columns) -> None:
    times = [name for name in TIMES if name in columns.known]
    if len(times) > 1:
        raise UserError(f"{block.name}, line {block.line}: {' and '.join(times)} both give the time; keep one")


def _rows(block: TableBlock, columns: Columns) -> list[Row]:
    """Rows by meaning. A table without an arm takes its first column of words that differ for one."""
    stands_in = _arm_column(block, columns) if "arm" not in columns.known else None
    rows = []
    for row in block.rows:
        cells: dict[str, str] = {}
        tests: dict[str, str] = {}
        for column, one in columns.names.items():
            text = row.cells[column].strip()
            if one.test:
                tests[one.test] = text
            else:
                cells[one.name] = text
        if stands_in:
            cells["arm"] = row.cells[stands_in].strip()
        settings = {name: cells[name] for name in SETTINGS if cells.get(name) and name != stands_in}
        extra = {column: row.cells[column].strip() for column in columns.kept if column != stands_in}
        rows.append(Row(row.line, cells, tests, settings, extra, block.comma))
    if "order" in columns.known:
        rows.sort(key=lambda row: row.needed_whole(block, "order"))
    return rows


def _arm_column(block: TableBlock, columns: Columns) -> str | None:
    wide = columns.known & set(MORE_RATES) or any(one.test for one in columns.names.values())
    if not wide or columns.known & STEP or len(block.rows) < 2:
        return None
    prompt = next((column for column, one in columns.names.items() if one.name == "prompt"), None)
    for column in (*columns.kept, *(name for name, one in columns.names.items() if one.name in SETTINGS)):
        values = [(row.cells[prompt] if prompt else "", row.cells[column].strip()) for row in block.rows]
        by_prompt = [len({value for one, value in values if one == name}) for name, _ in values]
        if min(by_prompt) > 1 and all(value and number(value) is None for _, value in values):
            return column
    return None


def _counts(rows: list[Row], known: set[str], ids: bool) -> bool:
    """Settle what `tokens` and `streams` hold; True where `tokens` are counts. Moves the cells to where they belong.

    `ids` says that the column is called so (token, token_ids), whatever is in it.
    """
    counted = (
        not ids
        and "tokens" in known
        and "positions" not in known
        and not known & STEP
        and "emitted" not in known
        and all(whole(row.cells.get("tokens", "")) is not None for row in rows)
        and bool(known & (RUN | {"tok_s"}))
    )
    for row in rows:
        if counted:
            row.cells["emitted"] = row.cells.pop("tokens")
    if "streams" in known and _are_ids(rows, "streams"):
        for row in rows:
            row.cells.setdefault("stream", row.cells.pop("streams"))
    elif "stream" in known and "streams" not in known and not _are_ids(rows, "stream"):
        for row in rows:
            row.cells["streams"] = row.cells.pop("stream")
    return counted


def _are_ids(rows: list[Row], name: str) -> bool:
    """Whether cells name streams: lists, or numbers of one arm from 0 on or, in a column of ids, from 1 on."""
    groups: dict[str, set[int]] = {}
    for row in rows:
        text = row.cells.get(name, "")
        value = whole(text)
        if value is None and text:
            return True
        if value is not None:
            groups.setdefault(row.cells.get("arm", ""), set()).add(value)
    if any(0 in values for values in groups.values()):
        return True
    if name == "streams":
        return False
    if any("tokens" in row.cells and "emitted" not in row.cells for row in rows):
        return True
    return all(values == set(range(1, len(values) + 1)) for values in groups.values())


def _groups(rows: list[Row]) -> list[list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.cells.get(name, "") for name in ("arm", "run", "prompt")), []).append(row)
    return list(groups.values())


def table_of(block: Any, header: list[str], rows: list[TableRow], line: int) -> TableBlock:
    """A table of flat JSON objects."""
    return TableBlock(block.name, block.index, block.options, header, rows, line=line, last=block.last)
