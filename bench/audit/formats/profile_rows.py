"""Values of single launches, gathered by kernel: means, and the counters that read zero or nothing. No format alone.

What the tools call the same thing differently is in `kernels.counters.summarize`; AMD's requests to memory are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bench.audit.launches import RESOURCES, Launches
from kernels.counters import Launch, summarize

BYTES = {"byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12, "kib": 1024.0, "mib": 1024.0**2}
MICROSECONDS = {
    "nsecond": 1e-3,
    "ns": 1e-3,
    "usecond": 1.0,
    "us": 1.0,
    "µs": 1.0,
    "msecond": 1e3,
    "ms": 1e3,
    "second": 1e6,
    "s": 1e6,
}
NOTHING = frozenset({"", "-", "n/a", "(!) n/a", "nan", "-nan", "none", "null", "no data", "no_data"})
Values = dict[str, float | None]


def plain(name: str) -> str:
    """A column's name without case and signs: Kernel_Name, KernelName and "Kernel Name" are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def short(kernel: str) -> str:
    """A kernel's name without its arguments, those of a template kept."""
    name = kernel.strip().removeprefix("void ").replace(" [clone .kd]", "").removesuffix(".kd")
    end = name.rfind(">(")
    return (name[: end + 1] if end >= 0 else name.split("(")[0])[:120]


def gathered(launches: Iterable[tuple[str, str, int, Values]]) -> list[Launches]:
    """(kernel, dispatch, line, values) of each launch, by kernel in the order in which they come."""
    groups: dict[str, list[tuple[str, int, Values]]] = {}
    for kernel, dispatch, line, values in launches:
        groups.setdefault(short(kernel), []).append((dispatch, line, values))
    return [_kernel(kernel, rows) for kernel, rows in groups.items()]


def _kernel(kernel: str, rows: list[tuple[str, int, Values]]) -> Launches:
    names = dict.fromkeys(name for _, _, values in rows for name in values)
    known = {name: [value for _, _, values in rows if (value := values.get(name)) is not None] for name in names}
    zeros = tuple(name for name, values in known.items() if values and not any(values) and not RESOURCES.search(name))
    absent = tuple(name for name, values in known.items() if not values)
    told = []
    for dispatch, _, values in rows:
        kept = {name: value for name, value in values.items() if value is not None and name not in zeros}
        told.append(summarize(Launch(kernel, dispatch, kept)))
    times = [one.us for one in told if one.us is not None]
    means = {name: sum(values) / len(values) for name, values in known.items() if values}
    fetched = _mean([one.dram_bytes for one in told])
    low, high = rows[0][1], rows[-1][1]
    return Launches(
        kernel=kernel,
        place=f"line {low}" if low == high else f"lines {low}-{high}",
        calls=len(rows),
        us=_mean(list(times)),
        us_low=min(times, default=None),
        us_high=max(times, default=None),
        registers=_mean([one.registers for one in told]),
        dram_bytes=_requests(means) if fetched is None else fetched,
        hit_rate=_mean([one.l2_hit_rate for one in told]),
        share_of_peak=_mean([one.share_of_peak for one in told]),
        counters=means,
        zeros=zeros,
        absent=absent,
    )


def _requests(means: dict[str, float]) -> float | None:
    """Bytes of AMD's read requests to memory: 64 each, 32 for the small ones."""
    reads = next((means[name] for name in ("TCC_EA_RDREQ_sum", "TCC_EA0_RDREQ_sum") if name in means), None)
    small = next((means[name] for name in ("TCC_EA_RDREQ_32B_sum", "TCC_EA0_RDREQ_32B_sum") if name in means), None)
    return None if reads is None or small is None else 64 * (reads - small) + 32 * small


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
