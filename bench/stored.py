"""Reads what is stored and has it judged, on all processors at hand: each cell in a child process, then forgotten.

It knows nothing about what is judged. The findings are those of `bench.judge.judge`, in the same order; with few cells
everything happens in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.children import children
from bench.errors import UserError
from bench.host.cpus import available_cpus
from bench.judge import merge
from bench.judge.cell import JudgedCell, Profile
from bench.judge.claims.claim import Claim
from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.damage import judge_curves, judge_whole
from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from bench.plan.config import CONFIGS
from bench.records.cells import has_table, read_cell, whole_cells
from bench.records.kernels import kernel_folders

ALL = "all"
"""Every sheet of configs/claims."""

Map = Callable[[Callable[[Path], Any], Sequence[Path]], Iterator[Any]]

FEWEST_A_PROCESS = 24
"""Starting a process costs about as much as judging this many cells."""
MOST_PROCESSES = 8
CHUNK = 8
"""Cells handed over at once: enough to make the handing over cheap, few enough that all processes end together."""


def judged(results: Path, claims: str) -> tuple[Findings, list[Any]]:
    """The findings of a results folder, and the verdicts on sheets: `all` that are shipped, names of them, or files.

    Raises `UserError` where there is no finished cell, or the sheet cannot be read.
    """
    sheet = sheets(claims)
    folders, kernels = whole_cells(results), kernel_folders(results)
    if not folders and not kernels:
        raise UserError(f"there are no finished cells in {results}; run `make bench`")
    findings = judge_kernels(judge_stored(folders), kernels)
    return findings, judge_claims(sheet, findings, load_facts(CONFIGS / "facts"))


def sheets(claims: str) -> list[Claim]:
    """The claims of every shipped sheet (`all`), or of those that are named, joined by commas: shipped ones or files.

    Raises `UserError` for a sheet that cannot be read, and for an id that two of them have.
    """
    shipped = {path.stem: path for path in sorted((CONFIGS / "claims").glob("*.yaml"))}
    named = list(shipped) if claims == ALL else claims.split(",")
    found: dict[str, Claim] = {}
    for name in named:
        for claim in load_sheet(shipped.get(name, Path(name))):
            if claim.id in found:
                raise UserError(f"two of the sheets {claims} have a claim '{claim.id}'; rename one")
            found[claim.id] = claim
    return list(found.values())


def judge_stored(folders: Sequence[Path], processes: int | None = None) -> Findings:
    """Judge the cells of some folders, each read on its own, in the order of the folders.

    `processes` is how many share the work, by default what the machine and the number of cells are good for.
    A damaged cell is a row of the table of cells.
    """
    count = processes or min(available_cpus(), MOST_PROCESSES, len(folders) // FEWEST_A_PROCESS)
    with _mapped(count) as spread:
        # Only a cell with timed steps has a step-cost curve, and a contrast is judged against all curves there are.
        first = [folder for folder in folders if has_table(folder, "steps")]
        found = dict(zip(first, spread(_judge_curves, first), strict=True))
        profiles = [profile for _, profile in found.values() if profile is not None]
        rest = [folder for folder in folders if folder not in found]
        judged = dict(zip(rest, spread(partial(_judge_folder, profiles=profiles), rest), strict=True))
    judged |= {folder: cell or _judge_folder(folder, profiles) for folder, (cell, _) in found.items()}
    return merge(judged[folder] for folder in folders)


@contextmanager
def _mapped(count: int) -> Iterator[Map]:
    """A `map` over `count` processes that keeps the order; the plain one when that is fewer than two."""
    if count < 2:
        yield map
        return
    with children(count) as pool:
        yield partial(pool.map, chunksize=CHUNK)


def _judge_curves(folder: Path) -> tuple[JudgedCell | None, Profile | None]:
    return judge_curves(read_cell(folder))


def _judge_folder(folder: Path, profiles: Sequence[Profile]) -> JudgedCell:
    return judge_whole(read_cell(folder), profiles)
