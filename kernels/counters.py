"""Reads what profilers print: the CSV of ncu (a row a metric, or `--page raw`), of rocprof and of rocprofv3.

Lines before the header are skipped; every line after it is a record or is rejected with its number. A counter that
is zero in every record was not collected, as far as one can tell, and is missing. The module does not run a
profiler, and it does not know what a kernel should have read.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernels.errors import KernelError

_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d+)?")
MOST_BYTES = 16 << 20
MOST_FIELDS = 300_000
"""Of one file, which tells of a few launches of one kernel with some dozens of counters each."""
MOST_BEFORE = 100_000
"""Lines before the header: what the profiled program printed."""
_NOTHING = frozenset({"", "-", "n/a", "(!) n/a", "nan", "-nan", "none", "null", "no data"})
_BYTES = {"byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12}
_MICROSECONDS = {
    "nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3, "second": 1e6, "s": 1e6,
}  # fmt: skip
_NAME = ("metricname", "countername")
_VALUE = ("metricvalue", "countervalue")
_KERNEL = ("kernelname", "name")
_DISPATCH = ("id", "dispatchid", "index", "correlationid")
_LABELS = frozenset((
    "id", "processid", "processname", "hostname", "kernelname", "name", "context", "stream", "blocksize",
    "gridsize", "device", "cc", "sectionname", "metricname", "metricunit", "metricvalue", "index", "gpuid",
    "queueid", "queueindex", "pid", "tid", "grd", "wgp", "lds", "scr", "sig", "obj", "wavesize", "correlationid",
    "dispatchid", "agentid", "threadid", "kernelid", "workgroupsize", "countername", "countervalue", "rulename",
    "ruletype", "ruledescription", "estimatedspeeduptype", "estimatedspeedup",
))  # fmt: skip
"""Columns that say which launch a record is of; every other column of a wide table is a counter."""
_IN_LONG = frozenset((
    "vgprcount", "accumvgprcount", "sgprcount", "scratchsize", "ldsblocksize", "starttimestamp", "endtimestamp",
))  # fmt: skip
"""Columns of a long table that say something measured of the launch."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel. `values` has the counters that were collected, bytes and microseconds as their units."""

    kernel: str
    dispatch: str
    values: Mapping[str, float]

    def get(self, *names: str) -> float | None:
        """The first of some counters that is there; None is missing."""
        return next((self.values[name] for name in names if name in self.values), None)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that is no record; `line` counts from 1 in the whole file."""

    line: int
    reason: str


@dataclass(slots=True)
class Profile:
    """What a file says. `missing` are counters that were asked for and have no value in any launch."""

    launches: list[Launch] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """One launch in words that all tools share. None is missing. Shares and rates are 0 to 1."""

    us: float | None
    dram_bytes: float | None
    """Bytes read from the device's memory."""
    dram_write_bytes: float | None
    l2_bytes: float | None
    """Bytes that went through the L2 cache, for reads and writes of any origin."""
    l2_hit_rate: float | None
    share_of_peak: float | None
    registers: float | None


def read_profile(path: Path) -> Profile:
    """A file in which every line after the header is a record. KernelError with the line's number where one is not."""
    try:
        if path.exists() and not (path.is_file() and path.stat().st_size <= MOST_BYTES):
            raise KernelError(f"{path} is no regular file of at most {MOST_BYTES} bytes")
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelError(f"{path} cannot be read as text ({error})") from error
    try:
        found = parse(text)
    except KernelError as error:
        raise KernelError(f"{path}: {error}") from error
    if found.rejected:
        first = found.rejected[0]
        raise KernelError(f"{path}, line {first.line}: {first.reason}")
    return found


def parse(text: str) -> Profile:
    """The launches of a file, and the lines that are none. KernelError where no line is a header."""
    lines = list(enumerate(text.lstrip("\ufeff").splitlines(), 1))
    for place, (_, line) in enumerate(lines[:MOST_BEFORE]):
        header = _header(line)
        if header:
            return _Reader(header).read(lines[place + 1 :])
    raise KernelError(
        "no line is the header of a profiler's table (a column for the kernel's name with counters beside it); "
        "the profiler collected nothing, or the file is of another kind"
    )


def summarize(launch: Launch) -> Summary:
    """ncu's, rocprof's and rocprofv3's names for the same things."""
    get = launch.get
    begin, end = get("BeginNs", "Start_Timestamp"), get("EndNs", "End_Timestamp")
    us = get("gpu__time_duration.sum", "gpu__time_duration.avg")
    if us is None:
        ns = get("DurationNs")
        ns = end - begin if ns is None and begin is not None and end is not None else ns
        us = None if ns is None else ns / 1e3
    hits, misses = get("TCC_HIT_sum"), get("TCC_MISS_sum")
    hit_percent = get("lts__t_sector_hit_rate.pct", "L2CacheHit")
    hit_rate = None if hit_percent is None else hit_percent / 100
    if hit_rate is None and hits is not None and misses is not None:
        hit_rate = hits / (hits + misses) if hits + misses else None
    share = get("dram__throughput.avg.pct_of_peak_sustained_elapsed")
    fetched, written = get("FETCH_SIZE", "FetchSize"), get("WRITE_SIZE", "WriteSize")
    # AMD's derived counters are in units of 1024 bytes.
    return Summary(
        us=us,
        dram_bytes=get("dram__bytes_read.sum") if fetched is None else fetched * 1024,
        dram_write_bytes=get("dram__bytes_write.sum") if written is None else written * 1024,
        l2_bytes=get("lts__t_bytes.sum"),
        l2_hit_rate=hit_rate,
        share_of_peak=None if share is None else share / 100,
        registers=get("launch__registers_per_thread", "arch_vgpr", "VGPR_Count", "vgpr"),
    )


def short_name(kernel: str) -> str:
    """A kernel's name without its arguments, those of a template kept."""
    name = kernel.removeprefix("void ").replace(" [clone .kd]", "").removesuffix(".kd")
    end = name.rfind(">(")
    return name[: end + 1] if end >= 0 else name.split("(")[0]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _fields(line: str) -> list[str]:
    """One line as CSV. Lines are read one by one: an odd quote must not swallow those that follow."""
    return next(csv.reader([line], strict=True, skipinitialspace=True), [])


def _header(line: str) -> list[str] | None:
    if "name" not in line.lower():  # what a profiled program prints may be long, and each header has such a column
        return None
    try:
        names = _fields(line)
    except csv.Error:
        return None
    plain = [_plain(name) for name in names if "name" in name.lower() or "value" in name.lower()]
    is_long = any(name in plain for name in _NAME) and any(value in plain for value in _VALUE)
    is_wide = any(name in plain for name in _KERNEL) and not any(name in plain for name in _NAME)
    return [name.strip() for name in names] if len(names) > 2 and (is_long or is_wide) else None


class _Reader:
    """Records under one header."""

    def __init__(self, header: list[str]) -> None:
        self.header, self.plain = header, [_plain(name) for name in header]
        self.long = any(name in self.plain for name in _NAME)
        self.units: dict[int, str] = {}
        self.open: dict[tuple[str, str], dict[str, float | None]] = {}
        self.unit_of: dict[str, str] = {}
        self.unnamed = 0
        self.fields = 0
        self.found = Profile()

    def read(self, lines: Iterable[tuple[int, str]]) -> Profile:
        """Raises KernelError where there are too many values for a profile of some kernels."""
        for number, line in lines:
            if not line.strip() or line.startswith("=="):
                continue
            self.fields += len(self.header)
            if self.fields > MOST_FIELDS:
                raise KernelError(f"it has more than {MOST_FIELDS} fields; profile fewer kernels, or fewer counters")
            try:
                self._record(number, _fields(line))
            except (csv.Error, ValueError) as error:
                self.found.rejected.append(Rejected(number, str(error)))
        return self._finished()

    def _record(self, number: int, fields: list[str]) -> None:
        if len(fields) != len(self.header):
            raise ValueError(f"has {len(fields)} fields, the header has {len(self.header)}")
        cells = dict(zip(self.plain, fields, strict=True))
        kernel = next((cells[name] for name in _KERNEL if name in cells), "")
        if not self.long and not self.open and not self.units and not kernel and not any(map(_is_number, fields)):
            self.units = dict(enumerate(fields))  # ncu's raw page: the second line has the units
            return
        if self.long:
            name = next(cells[column] for column in _NAME if column in cells).strip()
            value = next(cells[column] for column in _VALUE if column in cells)
            if not name:
                raise ValueError("has no counter's name")
            row = [(name, value, cells.get("metricunit", ""))]
            row += [(self.header[i], fields[i], "") for i, key in enumerate(self.plain) if key in _IN_LONG]
        else:
            row = [(self.header[i], fields[i], self.units.get(i, "")) for i, key in enumerate(self.plain)
                   if key not in _LABELS]  # fmt: skip
        # All of a line is read before any of it is kept.
        read = [(name, unit, _number(name, text, unit)) for name, text, unit in row]
        self._keep(self._launch(cells, kernel, read[0][0] if read else ""), read)

    def _launch(self, cells: Mapping[str, str], kernel: str, counter: str) -> dict[str, float | None]:
        """The counters read so far of a record's launch. Without a number for it, a counter's return begins another."""
        dispatch = next((cells[name] for name in _DISPATCH if cells.get(name)), None)
        if dispatch is None:
            last = self.open.get((kernel, f"#{self.unnamed}"))
            if last is None or counter in last or not self.long:
                self.unnamed += 1
            dispatch = f"#{self.unnamed}"
        return self.open.setdefault((kernel, dispatch), {})

    def _keep(self, values: dict[str, float | None], read: list[tuple[str, str, float | None]]) -> None:
        for name, unit, value in read:
            # Sections of ncu use one word for a rate and a share; the first keeps the name.
            key = name if self.unit_of.setdefault(name, unit) == unit else f"{name} [{unit}]"
            known = values.get(key)
            if known is not None and value is not None and known != value:
                raise ValueError(f"has {name} = {value:g}, an earlier line of the same launch has {known:g}")
            values[key] = known if value is None else value

    def _finished(self) -> Profile:
        names = dict.fromkeys(name for values in self.open.values() for name in values)
        collected = {name for values in self.open.values() for name, value in values.items() if value}
        for (kernel, dispatch), values in self.open.items():
            kept = {name: value for name, value in values.items() if value is not None and name in collected}
            self.found.launches.append(Launch(kernel, dispatch, kept))
        self.found.missing = tuple(name for name in names if name not in collected)
        return self.found


def _is_number(text: str) -> bool:
    return bool(text.strip()) and _NUMBER.fullmatch(text.strip()) is not None


def _number(name: str, text: str, unit: str) -> float | None:
    """A value in bytes or microseconds where its unit is one of these; None where there is none."""
    text = text.strip()
    if text.lower() in _NOTHING:
        return None
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(f"has {name} = '{text}', which is no number")
    value = float(text.replace(",", ""))
    if not math.isfinite(value):
        raise ValueError(f"has {name} = '{text}', which is no finite number")
    unit = unit.strip().lower()
    return value * _BYTES.get(unit, _MICROSECONDS.get(unit, 1.0))
