"""Hosts of one make: which of them agree, so that their records count together, and what the others are called.

Two machines of one make share a name, and one of them may be slower. Each host's profile times the same decodes, and
those are held against each other: A/A between hosts, by equivalence. It knows of a cell its machine, build and host.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.judge.measure.case import Profile
from bench.judge.measure.intervals import CONFIDENCE, Estimate, satterthwaite, t_quantile
from bench.judge.tables.hosts import AGREES, CANNOT_TELL, DIFFERS, FIRST, NOT_COMPARED, Host
from bench.machine_name import of_host

BAND = 0.05
"""Step times of two hosts that speak for each other may differ by so much; a price may be off by no more either."""


class Origin(NamedTuple):
    """Where a cell was measured."""

    machine: str
    build: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Hosts:
    """What became of the hosts of every make and build."""

    names: Mapping[Origin, str] = field(default_factory=dict)
    """What the machine of a cell is called, for the origins that are not pooled under the name of their make."""
    rows: Sequence[Host] = ()


class _Gap(NamedTuple):
    """One decode on two hosts."""

    width: int
    layout: str
    log_ratio: float
    log_se: float
    df: float

    def ends(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The interval, as logarithms."""
        if not (self.df >= 1 and math.isfinite(self.log_se)):
            return -math.inf, math.inf
        half = t_quantile(self.df, confidence) * self.log_se
        return self.log_ratio - half, self.log_ratio + half


def part(origins: Iterable[Origin], profiles: Sequence[Profile]) -> Hosts:
    """Which hosts are pooled. `origins` has each cell once; the profiles are the sound ones.

    Records without a host's key are of the host that alone is known for their make and build; where several are, or
    none, they are of one host that nobody knows.
    """
    cells: dict[tuple[str, str], Counter[str]] = {}
    for one in origins:
        cells.setdefault((one.machine, one.build), Counter())[one.host] += 1
    names: dict[Origin, str] = {}
    rows: list[Host] = []
    for (machine, build), count in sorted(cells.items()):
        known = sorted(host for host in count if host)
        if len(known) < 2:
            continue
        found: dict[str, list[Profile]] = {}
        for profile in profiles:
            if profile.identity[:2] == (machine, build) and profile.host in count:
                found.setdefault(profile.host, []).append(profile)
        _of_make(machine, build, count, found, names, rows)
    return Hosts(names, rows)


def _of_make(machine: str, build: str, count: Counter[str], profiles: Mapping[str, Sequence[Profile]],
             names: dict[Origin, str], rows: list[Host]) -> None:  # fmt: skip
    """Put each host with the first that it agrees with, those with most cells first; the first of all has the name."""
    order = sorted(count, key=lambda host: (host not in profiles, -count[host], host))
    leaders: list[str] = []
    for host in order:
        seen = [(leader, _gaps(profiles.get(leader, ()), profiles.get(host, ()))) for leader in leaders]
        told = [(leader, *_result(gaps)) for leader, gaps in seen]
        joined = next((one for one in told if one[1] == AGREES), None)
        leader, result, gap, compared = joined or (told[0] if told else (host, FIRST, None, 0))
        if joined is None:
            leaders.append(host)
        if (own := joined[0] if joined else host) != leaders[0]:
            names[Origin(machine, build, host)] = of_host(machine, own)
        about = sorted({one.cell for key in {host, leader} for one in profiles.get(key, ())})
        rows.append(_row(Origin(machine, build, host), leader, result, gap, compared, about, joined is not None))


def _gaps(base: Sequence[Profile], own: Sequence[Profile]) -> list[_Gap]:
    """Every decode that two hosts timed alike: same weights, settings, layout, width and tokens in the cache."""
    told = {(one.identity, curve.layout, curve.n_past, width): estimate for one in base for curve in one.curves
            for width, estimate in curve.log_ms.items()}  # fmt: skip
    found = []
    for one in own:
        for curve in one.curves:
            for width, estimate in curve.log_ms.items():
                if other := told.get((one.identity, curve.layout, curve.n_past, width)):
                    found.append(_gap(width, curve.layout, other, estimate))
    return found


def _gap(width: int, layout: str, base: Estimate, own: Estimate) -> _Gap:
    variances = [one.log_se**2 for one in (own, base)]
    known = all(one.freedom >= 1 and math.isfinite(one.log_se) for one in (own, base))
    df = satterthwaite(variances, [own.freedom, base.freedom]) if known else 0.0
    return _Gap(width, layout, own.log_mean - base.log_mean, math.sqrt(sum(variances)), df)


def _result(gaps: Sequence[_Gap]) -> tuple[str, _Gap | None, int]:
    """Whether two hosts agree, the decode that tells it, and how many there are.

    They agree where every interval lies inside the band. They differ where one, wide enough for all that were looked at
    together, lies outside.
    """
    if not gaps:
        return NOT_COMPARED, None, 0
    band = math.log1p(BAND)
    worst = max(gaps, key=lambda one: max(map(abs, one.ends())) if one.df >= 1 else math.inf)
    if all(-band <= low and high <= band for low, high in (one.ends() for one in gaps)):
        return AGREES, worst, len(gaps)
    together = 1 - (1 - CONFIDENCE) / len(gaps)
    outside = [one for one in gaps if one.ends(together)[0] > band or one.ends(together)[1] < -band]
    if outside:
        return DIFFERS, max(outside, key=lambda one: abs(one.log_ratio)), len(gaps)
    return CANNOT_TELL, worst, len(gaps)


def _row(own: Origin, leader: str, result: str, gap: _Gap | None, compared: int, cells: Sequence[str],
         pooled: bool) -> Host:  # fmt: skip
    figures: dict[str, Any] = {}
    if gap is not None:
        low, high = (math.exp(min(end, 700.0)) for end in gap.ends())
        figures = {"step_ratio": math.exp(gap.log_ratio), "ci_low": low, "ci_high": high, "width": gap.width,
                   "layout": gap.layout, "compared": compared}  # fmt: skip
    return Host(machine=own.machine, build=own.build, cells=cells, host=own.host, against=leader, result=result,
                pooled=pooled or result == FIRST, sentence=_sentence(own, leader, result, gap, compared),
                **figures)  # fmt: skip


def _sentence(own: Origin, leader: str, result: str, gap: _Gap | None, compared: int) -> str:
    host, other = (key or "without a key" for key in (own.host, leader))
    apart = f"it stands as {of_host(own.machine, own.host)} and is pooled with no other"
    if result == FIRST:
        return f"host {host}: the others of its make are held against it, and those that agree go by the make's name"
    if gap is None:
        return (f"host {host}: nothing compares it with {other}, for there is no profile of both that timed the same "
                f"decodes; {apart}. A sweep with profile=true on each host measures it")  # fmt: skip
    low, high = (math.exp(min(end, 700.0)) for end in gap.ends())
    told = (f"host {host}: a decode of {gap.width} takes {math.exp(gap.log_ratio):.3f} ({low:.3f} to {high:.3f}) times "
            f"what it does on {other}, the widest apart of {compared}")  # fmt: skip
    if result == AGREES:
        return f"{told}; within {100 * BAND:.0f} %, so their records count together"
    far = f"more than {100 * BAND:.0f} % apart" if result == DIFFERS else f"which cannot tell within {100 * BAND:.0f} %"
    return f"{told}; {far}: {apart}"
