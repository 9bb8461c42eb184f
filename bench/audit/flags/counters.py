"""What is wrong with a profiler's counters: zero, half, denied, above their whole. It knows no tool's names.

A counter that is zero in every launch while others count was not collected, as far as one can tell. Fewer bytes from
memory than a kernel's operands have, read cold, cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.audit.launches import RESOURCES, Launches
from bench.audit.options import AuditOptions
from bench.audit.trials import Flag, Record

BELOW = 0.98
"""Share of the operands' bytes below which a counter of memory reads missed some."""
HALF = (0.48, 0.52)
ABOVE = 1.02


def counter_flags(record: Record, options: AuditOptions) -> list[Flag]:
    """Flags about each kernel."""
    flags: list[Flag] = []
    for one in record.launches:
        flags += [*_zeros(one), *_shares(one), *_bytes(one, options), *_bandwidth(one, options)]
    return flags


def counter_notes(record: Record, options: AuditOptions) -> list[str]:
    """What would let the bytes be checked."""
    if any(one.dram_bytes for one in record.launches) and not options.bytes_per_step:
        return ["the bytes read from memory are checked against --bytes-per-step, the operands of one launch read cold"]
    return []


def _zeros(one: Launches) -> Iterator[Flag]:
    counting = [
        name for name, value in one.counters.items() if value and name not in one.zeros and not RESOURCES.search(name)
    ]
    single = [name for name in one.zeros if "[" not in name]
    if single and not counting:
        yield Flag(
            "ZERO_COUNTER",
            f"{one.kernel} ({one.place}): every counter reads 0 ({', '.join(single[:6])}): nothing was collected, "
            "which is not 0",
            {"counters": len(single)},
        )
    elif single:
        hits = [name for name in single if "HIT" in name.upper()]
        tail = "; there is no hit rate" if hits else ""
        yield Flag(
            "ZERO_COUNTER",
            f"{one.kernel} ({one.place}): {', '.join(single[:6])} read 0 in every launch while {counting[-1]} does "
            "not; taken as not "
            f"collected, which is not 0{tail}",
            {"counters": len(single)},
        )
    if one.absent:
        yield Flag(
            "ABSENT_COUNTER",
            f"{one.kernel} ({one.place}): {', '.join(one.absent[:6])} have a column and no value; they were asked "
            "for and not "
            "collected (permission, or a chip without them)",
            {"counters": len(one.absent)},
        )


def _shares(one: Launches) -> Iterator[Flag]:
    for name, value in (("its share of the peak", one.share_of_peak), ("its hit rate", one.hit_rate)):
        if value is not None and value > ABOVE:
            yield Flag(
                "VOID",
                f"{one.kernel} ({one.place}): {name} is {100 * value:.0f} %; counters of several passes do not fit "
                "together",
                {"share": value},
            )


def _bytes(one: Launches, options: AuditOptions) -> Iterator[Flag]:
    wanted = options.bytes_per_step
    if not wanted or one.dram_bytes is None or not one.dram_bytes > 0:
        return
    share = one.dram_bytes / wanted
    if share < BELOW:
        half = "; it counts half" if HALF[0] <= share <= HALF[1] else ""
        yield Flag(
            "VOID",
            f"{one.kernel} ({one.place}): {one.dram_bytes / 1e9:.3f} GB from memory are {share:.2f} of the "
            f"{wanted / 1e9:.3f} GB that it "
            f"has to read cold: the counter is wrong{half}",
            {"share": share},
        )


def _bandwidth(one: Launches, options: AuditOptions) -> Iterator[Flag]:
    if not options.bandwidth or not one.us or not one.dram_bytes:
        return
    rate = one.dram_bytes / one.us / 1e3
    if rate > options.bandwidth * ABOVE:
        yield Flag(
            "IMPOSSIBLE",
            f"{one.kernel} ({one.place}): {one.dram_bytes / 1e6:.1f} MB in {one.us:.1f} us are {rate:.0f} GB/s, "
            "above the "
            f"{options.bandwidth:g} GB/s of the memory",
            {"rate": rate, "bound": options.bandwidth},
        )
