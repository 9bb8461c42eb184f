"""What would judge a claim: by which rule, which stored cells do, and which command measures it, in how many minutes.

It gives no verdict and runs nothing: `report` judges, a sweep measures.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.durations import clock_text
from bench.errors import UserError
from bench.judge.claims.claim import Claim
from bench.judge.claims.command import SWEEP, needed
from bench.judge.claims.conditions import differing
from bench.judge.claims.facts import load_facts
from bench.judge.claims.mechanism import mechanism, missing
from bench.judge.claims.names import Names
from bench.judge.claims.rows import Row, cells, matching
from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from bench.plan.config import CONFIGS
from bench.records.cells import whole_cells
from bench.records.kernels import kernel_folders
from bench.stored import judge_stored

WIDTH = 100
SHOWN = 6
"""Ids of cells that are named."""


def outlook(claims: Sequence[Claim], results: Path) -> Iterator[str]:
    """A few lines a claim. Raises `UserError` for facts that cannot be read."""
    facts = load_facts(CONFIGS / "facts")
    findings = _findings(results) if any(claim.rule.kind == "records" for claim in claims) else Findings()
    planned: dict[str, str] = {}
    for claim in claims:
        for line in (f"{claim.id}: {_how(claim)}", *_details(claim, findings, facts.names, results, planned)):
            indent = "" if line.startswith(f"{claim.id}: ") else "  "
            yield from textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent="    ",
                                     break_on_hyphens=False, break_long_words=False)  # fmt: skip


def _findings(results: Path) -> Findings:
    if not results.is_dir():
        return Findings()
    return judge_kernels(judge_stored(whole_cells(results)), kernel_folders(results))


def _how(claim: Claim) -> str:
    if claim.rule.kind == "records":
        return f"judged on stored cells by test '{claim.rule.test}' of {claim.table}.{claim.column}, " \
               f"{mechanism(claim).why}"  # fmt: skip
    if claim.rule.kind == "projection":
        return "a projection: nothing judges it until somebody measures it"
    return f"judged by {'arithmetic' if claim.rule.kind == 'arithmetic' else 'a fact with a source'}, without any cell"


def _details(claim: Claim, findings: Findings, names: Names, results: Path, planned: dict[str, str]) -> Iterator[str]:
    if claim.rule.kind == "projection":
        yield f"it would take: {claim.rule.needs}"
    if claim.rule.kind != "records":
        return
    if absent := missing(claim):
        yield (f"it would be not_comparable anywhere: it names no {', '.join(absent)}; add "
               + " ".join(f"conditions.{key}=.." for key in absent))  # fmt: skip
    rows = matching(claim, findings, names)
    near = [row for row in rows if mechanism(claim).anywhere or not differing(claim, row, names)]
    yield _named("judge it", near) or f"no stored cell of {results} judges it"
    if far := _named("are about it under other conditions, and say nothing", [row for row in rows if row not in near]):
        yield far
    words = needed(claim)
    yield f"what measures it: {words}"
    command = words.split("`")[1]
    if command not in planned:
        planned[command] = _minutes(command, results)
    yield planned[command]


def _named(what: str, rows: Sequence[Row]) -> str:
    """The cells of some rows in words; empty where there are none."""
    found = cells(rows)
    machines = ", ".join(sorted({str(row.get("machine")) for row in rows}))
    return f"{len(found)} stored cells {what} ({machines}): {_listed(found)}" if found else ""


def _listed(ids: Sequence[str]) -> str:
    return " ".join(ids[:SHOWN]) + (f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else "")


def _minutes(command: str, results: Path) -> str:
    """How long a command takes here, and how much of it is done; why nobody can tell, where nobody can."""
    if not command.startswith(SWEEP):
        return "how long that takes depends on the GPU; it tells as it goes"
    from bench.run.preview import plan_of

    try:
        planned = plan_of([*shlex.split(command.removeprefix(SWEEP)), f"results={results}"])
    except UserError as error:
        return f"on this machine that cannot be planned: {error}"
    todo = planned.todo
    if not todo:
        return f"on this machine all of its {len(planned.cells)} cells are stored"
    low, middle, high = planned.seconds
    ids = _listed([cell.id for cell in todo])
    return (f"on this machine: {len(todo)} of {len(planned.cells)} cells to run ({ids}), about {clock_text(middle)} "
            f"({clock_text(low)} to {clock_text(high)})")  # fmt: skip
