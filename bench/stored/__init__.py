"""Reads what is stored and has it judged, on all processors at hand: each cell in a child process, then forgotten.

It knows nothing about what is judged. The findings are those of `bench.judge.judge`, in the same order; with few cells
everything happens in this process.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bench.children import AHEAD, children, in_turn
from bench.errors import UserError, nearest
from bench.host.cpus import available_cpus
from bench.judge import merge
from bench.judge.cell import JudgedCell, Profiles
from bench.judge.claims.claim import Claim
from bench.judge.claims.facts import load_facts
from bench.judge.claims.left_out import tell_left_out
from bench.judge.claims.names import Names
from bench.judge.claims.relevant import Relevant
from bench.judge.claims.sheet import read_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.findings import Findings
from bench.judge.hosts import Hosts, part
from bench.judge.kernels.findings import judge_kernels, kernels_of, with_kernels
from bench.judge.tables.claims import Verdict
from bench.judge.traces import Traces
from bench.plan.config import CONFIGS
from bench.plan.model_words import words_of
from bench.records.cells import has_table, whole_cells
from bench.records.kernels import kernel_folders
from bench.stored.chosen import EVERYTHING, Chosen
from bench.stored.judging import Judging, judge_here, origins_here, span_here, take
from bench.stored.kept import Kept, Share, identity_digest, prices_digest
from bench.stored.origins import origin_of
from bench.stored.spans import spans_of
from bench.stored.streamed import Streamed

T = TypeVar("T")
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
MANY = 2000
"""Cells of a folder above which a report holds no more of them than it needs."""
CHUNK = 8
"""Cells handed over at once: enough to make the handing over cheap, few enough that all processes end together."""


class Judged(NamedTuple):
    """What a results folder says, and what of the sheets nothing could be made of."""

    findings: Findings
    claims: list[Verdict]
    faults: tuple[str, ...] = ()
    """A sentence on each entry of a sheet that cannot be judged."""
    many: Streamed | None = None
    """All that was found, where there are too many cells to hold it; `findings` has that of a few then, or of none."""
    only: str = ""
    """Which cells were asked for, as `machine=h200`; empty for all."""


def judged(results: Path, claims: str, chosen: Chosen = EVERYTHING, shown: bool = True) -> Judged:
    """The findings of a results folder, and the verdicts on sheets: `all` that are shipped, names of them, or files.

    A folder without a finished cell has empty findings. Raises `UserError` where there is no such folder, where a sheet
    cannot be read, and for a name that no cell has. Where some cells are chosen, a claim that only the others can judge
    is said to be left out. `shown` is whether somebody looks at it: then the findings have what there is to see of each
    cell's records, and of very many cells the rows of a few.
    """
    sheet, faults = read_sheets(claims)
    facts = load_facts(CONFIGS / "facts")
    folders = whole_cells(results)
    kernels = {folder: kernels_of(folder) for folder in _kernels(results, EVERYTHING)}
    own = [kernels[folder] for folder in _kernels(results, chosen)]
    many = None
    if len(folders) <= MANY:
        cells = _judged_cells(folders, traces=shown and len(folders) <= MOST_TRACED)
        light = findings = with_kernels(cells.merged(chosen), own)
        every = findings if chosen == EVERYTHING else with_kernels(cells.merged(EVERYTHING), kernels.values())
    else:
        many = stream_stored(folders, Relevant(sheet, facts.names), chosen)
        light, findings = with_kernels(many.light, own), with_kernels(many.shown() if shown else Findings(), own)
        every = light if chosen == EVERYTHING else with_kernels(many.light_of_every, kernels.values())
    verdicts = judge_claims(sheet, light, facts)
    if chosen != EVERYTHING:
        verdicts = tell_left_out(verdicts, judge_claims(sheet, every, facts), chosen.told)
    return Judged(findings, verdicts, tuple(faults), many, chosen.told)


def findings_of(results: Path, chosen: Chosen = EVERYTHING, traces: bool = False) -> Findings:
    """The findings of a results folder alone. Raises `UserError` as `judged` does."""
    folders = whole_cells(results)
    stored = judge_stored(folders, traces=traces and len(folders) <= MOST_TRACED, chosen=chosen)
    return judge_kernels(stored, _kernels(results, chosen))


def _kernels(results: Path, chosen: Chosen) -> list[Path]:
    """The kernel records that are asked for: they are of no model and no method."""
    if chosen.model or chosen.method:
        return []
    return [one for one in kernel_folders(results) if not chosen.machine or one.parent.name in chosen.machine]


def sheets(claims: str) -> list[Claim]:
    """The claims of every shipped sheet (`all`), or of those that are named, joined by commas: shipped ones or files.

    Raises `UserError` for a sheet that cannot be read, for an entry that is not exactly the format, and for an id that
    two of them have.
    """
    found, faults = read_sheets(claims)
    if faults:
        raise UserError(faults[0])
    return found


def read_sheets(claims: str) -> tuple[list[Claim], list[str]]:
    """The same, with a sentence on each entry that cannot be judged. Raises `UserError` for an unreadable sheet."""
    shipped = {path.stem: path for path in sorted((CONFIGS / "claims").glob("*.yaml"))}
    named = list(shipped) if claims == ALL else claims.split(",")
    found: dict[str, Claim] = {}
    faults: list[str] = []
    for name in named:
        if name not in shipped and not Path(name).exists():
            raise UserError(f"there is no claim sheet '{name}', no file and no shipped one; {nearest(name, shipped)}")
        entries, wrong = read_sheet(shipped.get(name, Path(name)))
        faults += wrong
        for claim in entries:
            if claim.id in found:
                faults.append(f"two of the sheets {claims} have a claim '{claim.id}'; rename one")
            found.setdefault(claim.id, claim)
    return list(found.values()), faults


def many_stored(folders: Sequence[Path], chosen: Chosen = EVERYTHING) -> Streamed | None:
    """The findings of so many cells that they are not held; None of fewer. No claim is asked of them."""
    return stream_stored(folders, Relevant([], Names()), chosen) if len(folders) > MANY else None


def judge_stored(folders: Sequence[Path], processes: int | None = None, traces: bool = False,
                 chosen: Chosen = EVERYTHING) -> Findings:  # fmt: skip
    """Judge the cells of some folders, each read on its own, in the order of the folders.

    `processes` is how many share the work, by default what the machine and the number of cells are good for. With
    `traces` the findings have what a reader can look at of each cell's records, with the words of its tokens.
    A damaged cell is a row of the table of cells. What many cells said before is not judged again. Raises `UserError`
    for a chosen name that no cell has.
    """
    return _judged_cells(folders, processes, traces).merged(chosen)


@dataclass(frozen=True)
class _Cells:
    """Cells, each judged, and the names of their hosts."""

    judged: Sequence[JudgedCell]
    hosts: Hosts

    def merged(self, chosen: Chosen) -> Findings:
        """The findings of those that are asked for, with the words of the tokens that they show."""
        findings = merge(chosen.of(self.judged), self.hosts)
        findings.traces[:] = _with_words(findings.traces)
        return findings


def _judged_cells(folders: Sequence[Path], processes: int | None = None, traces: bool = False) -> _Cells:
    """Each cell judged, in the order of the folders."""
    begun = _begin(folders, processes, traces)
    judged = {folder: share.judged for folder, (_, share) in begun.profiles.items()}
    rest = [folder for folder in folders if folder not in judged]
    for folder, (_, share) in zip(rest, _spread(begun.count, begun.judging, rest), strict=True):
        assert share is not None, "only profiles are asked for among others"
        judged[folder] = share.judged
    if begun.judging.keeps:
        Kept().forget_others()
    return _Cells([judged[folder] for folder in folders], begun.hosts)


def stream_stored(folders: Sequence[Path], relevant: Relevant, chosen: Chosen = EVERYTHING,
                  processes: int | None = None) -> Streamed:  # fmt: skip
    """The same of very many cells, of which no more is held than `relevant` asks for. Raises `UserError`, too."""
    spans = spans_of(folders)
    begun = _begin(folders, processes, spans=spans)
    found = Streamed(begun.hosts, chosen)
    judging = replace(begun.judging, relevant=relevant)
    asked = [(span, stamp, {one: begun.profiles[one] for one in span if one in begun.profiles})
             for span, stamp in zip(spans, begun.stamps, strict=True)]  # fmt: skip
    for one in _mapped(begun.count, judging, judging.span_of, span_here, asked):
        found.add(one)
    if judging.keeps:
        Kept().forget_others()
    found.end()
    return found


def _mapped(count: int, judging: Judging, here: Callable[..., T], there: Callable[..., T],
            asked: Sequence[tuple[Any, ...]]) -> Iterator[T]:  # fmt: skip
    """What a function makes of each of some arguments, in this process or there in others that judge so."""
    if count < 2:
        yield from (here(*one) for one in asked)
        return
    with children(count, partial(take, judging)) as pool:
        yield from in_turn(pool, there, asked, AHEAD * count)


@dataclass(frozen=True)
class _Begun:
    """The profiles, judged, and how all other cells are: by their curves, and under the names of their hosts."""

    count: int
    """Processes that share the work."""
    profiles: Mapping[Path, tuple[str, Share]]
    """With their keys."""
    hosts: Hosts
    judging: Judging
    stamps: Sequence[str] = ()
    """How the files of each span lie."""


def _begin(folders: Sequence[Path], processes: int | None, traces: bool = False,
           spans: Sequence[list[Path]] = ()) -> _Begun:  # fmt: skip
    keeps = len(folders) >= FEWEST_KEPT and not os.environ.get(NO_CACHE)
    count = processes or min(available_cpus(), MOST_PROCESSES, len(folders) // FEWEST_A_PROCESS)
    # Only a cell with timed steps has a step-cost curve, and a contrast is judged against all curves there are.
    first = [folder for folder in folders if has_table(folder, "steps")]
    alone = Judging(keeps=keeps, traces=traces)
    found = dict(zip(first, _spread(count, alone, first), strict=True))
    profiles = [share.profile for _, share in found.values() if share and share.profile]
    told = list(_mapped(count, alone, alone.origins_of, origins_here, [(span,) for span in spans])) if spans else []
    origins = chain.from_iterable(Counter(one).elements() for _, one in told) if spans else map(origin_of, folders)
    hosts = part(origins, profiles)
    apart = [folder for folder in first if hosts.names and origin_of(folder) in hosts.names]
    found |= zip(apart, _spread(count, replace(alone, names=hosts.names), apart), strict=True)
    shares = {folder: (key, share) for folder, (key, share) in found.items() if share is not None}
    keys: dict[bytes, list[str]] = {}
    for key, share in found.values():
        if share is not None and share.profile is not None:
            keys.setdefault(identity_digest(share.profile.identity), []).append(key)
    prices = {identity: prices_digest(those) for identity, those in keys.items()}
    curves = Profiles(share.profile for _, share in shares.values() if share.profile is not None)
    # A profile that was written meanwhile has no key, and what it priced none that would say so.
    safe = keeps and all(chain(*keys.values()))
    judging = Judging(curves, prices, safe, traces, of_profiles=False, names=hosts.names)
    return _Begun(count, shares, hosts, judging, [stamp for stamp, _ in told])


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
