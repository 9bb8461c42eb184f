"""Reads what is stored and has it judged, on all processors at hand: each cell in a child process, then forgotten.

It knows nothing about what is judged. The findings are those of `bench.judge.judge`, in the same order; with few cells
everything happens in this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from bench.children import children
from bench.errors import UserError
from bench.host.cpus import available_cpus
from bench.judge import merge
from bench.judge.cell import JudgedCell, Profile, Profiles
from bench.judge.claims.claim import Claim
from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from bench.judge.traces import Traces
from bench.plan.config import CONFIGS
from bench.plan.model_words import words_of
from bench.records.cells import has_table, whole_cells
from bench.records.kernels import kernel_folders
from bench.stored.judging import Judging, judge_here, take
from bench.stored.kept import Kept, Share, identity_digest, prices_digest

ALL = "all"
"""Every sheet of configs/claims."""

NO_CACHE = "PTI_BENCH_NO_CACHE"
"""Set, everything is judged anew and nothing is kept."""
FEWEST_KEPT = 48
"""Finding out what was kept, and keeping it, takes as long as judging a few cells."""
FEWEST_A_PROCESS = 24
"""Starting a process costs about as much as judging this many cells."""
MOST_PROCESSES = 8
MOST_TRACED = 1000
"""Cells of a folder up to which a reader can look into each: their tokens take more room than all that is judged."""
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
    findings = judge_kernels(judge_stored(folders, traces=len(folders) <= MOST_TRACED), kernels)
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


def judge_stored(folders: Sequence[Path], processes: int | None = None, traces: bool = False) -> Findings:
    """Judge the cells of some folders, each read on its own, in the order of the folders.

    `processes` is how many share the work, by default what the machine and the number of cells are good for. With
    `traces` the findings have what a reader can look at of each cell's records, with the words of its tokens.
    A damaged cell is a row of the table of cells. What many cells said before is not judged again.
    """
    keeps = len(folders) >= FEWEST_KEPT and not os.environ.get(NO_CACHE)
    count = processes or min(available_cpus(), MOST_PROCESSES, len(folders) // FEWEST_A_PROCESS)
    # Only a cell with timed steps has a step-cost curve, and a contrast is judged against all curves there are.
    first = [folder for folder in folders if has_table(folder, "steps")]
    alone = Judging(keeps=keeps, traces=traces)
    judged: dict[Path, JudgedCell] = {}
    profiles: list[Profile] = []
    keys: dict[bytes, list[str]] = {}
    for folder, (key, share) in zip(first, _spread(count, alone, first), strict=True):
        if share is not None:
            judged[folder] = share.judged
            if share.profile is not None:
                profiles.append(share.profile)
                keys.setdefault(identity_digest(share.profile.identity), []).append(key)
    rest = [folder for folder in folders if folder not in judged]
    prices = {identity: prices_digest(found) for identity, found in keys.items()}
    # A profile that was written meanwhile has no key, and what it priced none that would say so.
    priced = Judging(Profiles(profiles), prices, keeps and all(chain(*keys.values())), traces, of_profiles=False)
    for folder, (_, share) in zip(rest, _spread(count, priced, rest), strict=True):
        assert share is not None, "only profiles are asked for among others"
        judged[folder] = share.judged
    if keeps:
        Kept().forget_others()
    findings = merge(judged[folder] for folder in folders)
    findings.traces[:] = _with_words(findings.traces)
    return findings


def _with_words(traces: Sequence[Traces]) -> list[Traces]:
    """The traces with what their tokens say. Cells of one model ask its file once."""
    wanted: dict[str, set[int]] = {}
    models: dict[str, Mapping[str, Any]] = {}
    for one in traces:
        if one.shown and one.weights:
            wanted.setdefault(one.weights, set()).update(one.tokens)
            models.setdefault(one.weights, one.config.get("model") or {})
    known = {weights: words_of(models[weights], weights, ids) for weights, ids in wanted.items()}
    return [replace(one, said={token: said[token] for token in one.tokens if token in said})
            if (said := known.get(one.weights)) and one.shown else one for one in traces]  # fmt: skip


def _spread(count: int, judging: Judging, folders: Sequence[Path]) -> Iterator[tuple[str, Share | None]]:
    """Key and share of each cell in their order, by so many processes."""
    if count < 2 or not folders:
        yield from (judging.share_of(folder, *judging.found(folder)) for folder in folders)
        return
    with children(count, partial(take, judging)) as pool:
        for folder, found in zip(folders, pool.map(judge_here, folders, chunksize=CHUNK), strict=True):
            yield judging.share_of(folder, *found)
