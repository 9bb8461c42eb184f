"""`python -m bench report`: judges what is stored, writes the report, and says the answer on one screen.

What it makes of bad input: the report of whatever there is, with what is missing, and an exit code that tells. It
measures nothing and decides nothing.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import comparing
from bench.errors import UserError, nearest
from bench.plain_text import plain_text

if TYPE_CHECKING:
    from bench.judge.summary import Summary
    from bench.stored import Judged
    from bench.stored.chosen import Chosen

HELP = """[KEY=VALUE ..] [--short | --json | -o md|json|jsonl|csv | --check BASE]

Judges stored results and writes reports/: a page, figures and a CSV file a table. Nothing is measured.
  results=FOLDER            where the records lie; results by default
  results=A,B               side by side instead, each figure of B with its ratio over A's: compare.md and compare.csv
  reports=FOLDER            where to write; reports by default
  claims=FILE,..            sheets to judge, shipped ones by name; all of them by default
  machine= model= method=   only such cells; several names joined by commas
Prints, and writes nothing:
  --short                   Markdown to paste into a post
  --json                    everything, as docs/report.schema.json describes it
  -o md|json|jsonl|csv      the rows of one table, as llama-bench prints them; table=NAME, speedup by default
  --check BASE              what is worse than in the results folder BASE beyond its interval
Exit code: 0; 1 where a cell is damaged, or --check finds something worse; 2 where the input lacks something, which the
report says, or nothing can be compared."""
KEYS = ("results", "reports", "claims", "machine", "model", "method", "table")
FORMATS = ("md", "json", "jsonl", "csv")
OPTIONS = ("--short", "--json", "--check")
SHORT, WHOLE = "short", "whole"
INCOMPLETE, DAMAGED_CELLS = 2, 1


@dataclass
class Options:
    """What was asked for."""

    results: list[Path] = field(default_factory=list)
    reports: Path = Path("reports")
    claims: str = "all"
    machine: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    table: str = ""
    format: str = ""
    """One of `FORMATS`, `SHORT` or `WHOLE`; empty to write the report."""
    check: Path | None = None
    """The results folder to check against."""

    @property
    def chosen(self) -> Chosen:
        """The cells that are asked for."""
        from bench.stored.chosen import Chosen

        return Chosen(self.machine, self.model, self.method)


def main(rest: Sequence[str]) -> int:
    """Do what the words ask for; returns the exit code. Raises `UserError` for words that ask for nothing known."""
    asked = options(rest)
    with without_collector():
        if asked.check is not None:
            return comparing.check(asked.check, asked.results[0], asked.chosen)
        if len(asked.results) > 1:
            return comparing.side_by_side(asked.results, asked.chosen, asked.reports)
        found = judged_of(asked)
        if asked.format:
            return _printed(asked, found)
        return write(found, asked.reports, asked.results[0])


def options(rest: Sequence[str]) -> Options:
    """What the words say, without the cost of Hydra. Raises `UserError` for the first that says nothing."""
    from bench.plan.settings import Config

    usual = Config()
    made = Options(reports=Path(usual.reports), claims=usual.claims)
    words = list(rest)
    while words:
        word = words.pop(0)
        if word in ("--short", "--json"):
            _set_format(made, SHORT if word == "--short" else WHOLE)
        elif word in ("-o", "--output"):
            _set_format(made, _valued(word, words, FORMATS))
        elif word == "--check":
            made.check = Path(_valued(word, words))
        elif word.startswith("--check="):
            made.check = Path(_valued("--check", [part for part in [word.removeprefix("--check=")] if part]))
        else:
            _set(made, word)
    made.results = made.results or [Path(usual.results)]
    if made.table and made.format not in FORMATS:
        raise UserError(f"table={made.table} goes with -o {'|'.join(FORMATS)}; write for example -o csv")
    if made.format and (made.check is not None or len(made.results) > 1):
        raise UserError("a comparison is printed in one way; leave out --short, --json and -o; compare.csv has all")
    if made.check is not None and len(made.results) > 1:
        raise UserError("--check holds one results folder against BASE; give one folder with results=")
    return made


def _set_format(made: Options, name: str) -> None:
    if made.format and made.format != name:
        raise UserError("only one of --short, --json and -o can be printed at once; leave the others out")
    made.format = name


def _valued(word: str, words: list[str], choices: Sequence[str] = ()) -> str:
    if not words:
        raise UserError(f"{word} needs a value{': one of ' + ', '.join(choices) if choices else ''}")
    value = words.pop(0)
    if choices and value not in choices:
        raise UserError(f"{word} {value} is not known; {nearest(value, choices)}")
    return value


def _set(made: Options, word: str) -> None:
    key, _, value = word.partition("=")
    if key not in KEYS or not value:
        raise UserError(f"'{word}' is no setting of a report; {nearest(key, (*KEYS, *OPTIONS))}")
    if key == "results":
        made.results = _folders(value)
    elif key == "reports":
        made.reports = Path(value)
    elif key in ("claims", "table"):
        setattr(made, key, value)
    else:
        setattr(made, key, tuple(part for part in value.split(",") if part))


def _folders(value: str) -> list[Path]:
    """One folder, whose own name may have a comma, or several."""
    parts = [value] if Path(value).is_dir() else value.split(",")
    if not all(parts):
        raise UserError(f"results={value} names a folder and an empty word; give two, as results=A,B")
    return [Path(part) for part in parts]


@contextmanager
def without_collector() -> Iterator[None]:
    """Hundreds of thousands of rows are made and kept; the cycle collector would walk all of them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def judged_of(asked: Options) -> Judged:
    """What the one results folder says. Raises `UserError` where it cannot be looked into."""
    from bench.stored import judged

    return judged(asked.results[0], asked.claims, asked.chosen, shown=not asked.format)


def write(found: Judged, reports: Path, results: Path) -> int:
    """Write the report and print its first screen; returns the exit code. `results` is where the records lie."""
    from rich.console import Console

    from bench.host.cpus import available_cpus
    from bench.records.cells import records_root
    from bench.report import print_summary, write_report
    from bench.report.tables.streamed_files import write_streamed

    summary, csv = summary_of(found, shown=True), None
    if found.many is not None:
        csv = partial(write_streamed, found.many, found.findings, available_cpus(), found.claims)
    write_report(found.findings, found.claims, reports, processes=available_cpus(), summary=summary,
                 results=records_root(results), csv=csv)  # fmt: skip
    print_summary(summary, reports, Console())
    return told(found, summary)


def summary_of(found: Judged, shown: bool = False) -> Summary:
    """The first screen: of all cells; where some are `shown` on a page, with how few that may be."""
    from bench.judge.summary import summarize
    from bench.judge.summary.missing import LEFT_OUT, Missing

    if found.many is None:
        return summarize(found.findings, found.claims, found.faults, found.only)
    made = summarize(found.many.light, found.claims, found.faults, found.only)
    if not shown:
        return made
    whole, few = found.many.cells, len(found.findings.cells)
    sentence = (f"Page, figures and report.md show {few} of {whole} cells, the first of each arm, and no panels; the "
                "CSV files have all. `report model=NAME method=NAME machine=NAME` shows what it is asked for.")
    return replace(made, missing=(*made.missing, Missing(LEFT_OUT, sentence, whole - few)))


def told(found: Judged, summary: Summary) -> int:
    """Say on standard error what is damaged and what is missing; returns the exit code."""
    from bench.judge.summary.missing import NO_CELLS
    from bench.report.page.damaged import damaged_lines

    damaged = damaged_lines((found.many.light if found.many else found.findings).cells)
    lacks = [one.sentence for one in summary.missing if one.kind == NO_CELLS] + list(found.faults)
    for line in damaged + [f"error: {plain_text(sentence)}" for sentence in lacks]:
        print(line, file=sys.stderr)
    return INCOMPLETE if lacks else DAMAGED_CELLS if damaged else 0


def _printed(asked: Options, found: Judged) -> int:
    """Print instead of writing."""
    from bench.host.cpus import available_cpus
    from bench.report.paste import document, rows, short

    summary, many, claims, out = summary_of(found), found.many, found.claims, sys.stdout
    table, count = asked.table or "speedup", available_cpus()
    if asked.format == SHORT:
        print(short.text(summary, many.held(short.TABLES, count) if many else found.findings), end="")
    elif asked.format == WHOLE and many:
        document.write_streamed(summary, many, found.findings, claims, out, count)
    elif asked.format == WHOLE:
        document.write(summary, found.findings, claims, out)
    elif many:
        rows.write_streamed(table, asked.format, many, found.findings, claims, out, count)
    else:
        rows.write(table, asked.format, found.findings, claims, out)
    return told(found, summary)
