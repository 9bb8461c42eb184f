"""From a path to a record: which blocks a text has, who reads each, and what was skipped. It judges nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.audit.blocks import Block, Found, JsonBlock, LinesBlock, Options, TableBlock
from bench.audit.formats import reader_of, readers_of_lines
from bench.audit.paste import Paste
from bench.audit.text import STDIN, WHAT, Source, head_of, lines_of, read_source
from bench.audit.trials import Flag, Record
from bench.errors import UserError
from bench.records.archives import is_archive

SHOWN = 3
"""Lines skipped that are shown; the rest are counted."""


def read_record(path: Path | str, streams: int | None = None) -> Record:
    """A record in whichever form it has; UserError says what was found where it is none.

    `streams` is what a reader says where the record has no stream column.
    """
    name = str(path)
    if name != STDIN:
        path = Path(path)
        if path.is_dir():
            from bench.audit.formats.own_cell import read_cell

            return read_cell(path)
        if not path.exists() and not path.is_symlink():
            raise UserError(f"{path}: no such file; {WHAT}")
        if is_archive(path):
            raise UserError(f"{path}: is an archive of cells; audit it alone: python -m bench audit {path}")
        head = head_of(path)
        if head.startswith(b"SQLite format 3\0"):
            from bench.audit.formats.profile_database import read_database

            return read_database(path)
        if _is_ledger(head):
            from bench.audit.formats.own_ledger import read_ledger

            return read_ledger(path)
    return record_of(read_source(path), streams)


def read_records(paths: Sequence[Path | str], streams: int | None = None) -> Record:
    """Several files as one record; blocks keep their numbers apart. UserError as `read_record`."""
    records = [read_record(path, streams) for path in paths]
    if len(records) == 1:
        return records[0]
    trials = []
    first = 0
    for record in records:
        trials += [
            replace(trial, block=first + trial.block, place=f"{record.path.name}, {trial.place}")
            for trial in record.trials
        ]
        first += 1 + max((trial.block for trial in record.trials), default=0)
    return Record(
        Path(" + ".join(str(record.path) for record in records)),
        ", ".join(dict.fromkeys(record.format for record in records)),
        tuple(trials),
        tuple(f"{record.path.name}: {note}" for record in records for note in record.notes),
        tuple(flag for record in records for flag in record.flags),
        tuple(launch for record in records for launch in record.launches),
    )


def _is_ledger(head: bytes) -> bool:
    """Whether a file begins as a ledger does, after its mark and comments: only such a file is streamed."""
    for line in head.removeprefix(b"\xef\xbb\xbf").splitlines()[:20]:
        if line.strip() and not line.startswith(b"#"):
            names = {name.strip() for name in line.split(b",")}
            return {b"run", b"stream", b"position", b"token", b"round", b"source", b"t_ns"} <= names
    return False


def record_of(source: Source, streams: int | None = None) -> Record:
    """The record in a text."""
    lines = lines_of(source.text)
    options = Options(streams)
    paste = Paste(source.name, lines, lambda block: reader_of(block) is not None, options)
    found: list[tuple[int, Found]] = []
    used: set[int] = set()
    for block in paste.split():
        for order, one in _read(block):
            found.append((order, one))
            used |= one.used
    if not any(one.trials or one.launches or one.flags for _, one in found):
        raise UserError(_nothing(source, lines, paste))
    found.sort(key=lambda pair: pair[0])
    return _record(source, paste.lines, [one for _, one in found], used)


def _read(block: Block) -> list[tuple[int, Found]]:
    """What a block's readers find, each with the first line of it."""
    if isinstance(block, LinesBlock):
        results = [reader.read(block) for reader in readers_of_lines(block)]
        return [(min(one.used, default=0), one) for one in results if one.trials or one.flags or one.notes]
    reader = reader_of(block)
    assert reader is not None and isinstance(block, JsonBlock | TableBlock)
    one = reader.read(block)
    first = block.first if isinstance(block, JsonBlock) else block.line
    one.used |= set(range(first, block.last + 1))
    if block.cut and not any(flag.code == "CUT" for flag in one.flags):
        one.flags.append(Flag("CUT", f"{block.name}, {block.cut}"))
    return [(first, one)]


def _record(source: Source, lines: list[str], found: list[Found], used: set[int]) -> Record:
    trials = []
    blocks: dict[tuple[int, int], int] = {}
    for index, one in enumerate(found):
        for trial in one.trials:  # a reader of lines may have found several runs
            known = {name: value for name, value in trial.printed.items() if math.isfinite(value)}
            trials.append(replace(trial, block=blocks.setdefault((index, trial.block), len(blocks)), printed=known))
    skipped = [number for number, line in enumerate(lines, 1) if line.strip() and number not in used]
    notes = [*source.notes, *dict.fromkeys(note for one in found for note in one.notes)]
    if len(found) > 1 or skipped:
        notes.insert(0, "read " + "; ".join(f"{one.name} ({_span(one.used)})" for one in found))
    if skipped:
        shown = "; ".join(f"{number}: {lines[number - 1].strip()[:60]}" for number in skipped[:SHOWN])
        notes.append(f"skipped {len(skipped)} line(s): {shown}" + (" .." if len(skipped) > SHOWN else ""))
    return Record(
        Path(source.name),
        ", ".join(dict.fromkeys(one.name for one in found if one.trials or one.launches)) or found[0].name,
        tuple(trials),
        tuple(notes),
        tuple(flag for one in found for flag in one.flags),
        tuple(launch for one in found for launch in one.launches),
    )


def _span(used: set[int]) -> str:
    if not used:
        return "no line"
    low, high = min(used), max(used)
    return f"line {low}" if low == high else f"lines {low}-{high}"


def _nothing(source: Source, lines: list[str], paste: Paste) -> str:
    """Why a text has nothing to judge, in one sentence."""
    if paste.broken:
        return f"{source.name}, {paste.broken[0]}; {WHAT}"
    if any(line.lstrip().startswith(("- id:", "rule:")) for line in lines):
        return f"{source.name}: is a claim sheet, not a record; run: python -m bench report claims={source.name}"
    if source.text.startswith("version https://git-lfs"):
        return f"{source.name}: is a pointer of git-lfs, not the file; run: git lfs pull"
    full = [number for number, line in enumerate(lines, 1) if line.strip()]
    first = lines[full[0] - 1].strip()[:60] if full else ""
    return (
        f"{source.name}: nothing in its {len(full)} line(s) is known, line {full[0] if full else 1} is '{first}'; "
        f"{WHAT}"
    )
