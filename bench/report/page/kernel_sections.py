"""The tables of kernels on the page: times against ceilings and llama.cpp, counters, what SSQ saves, registers.

Knows nothing about files and templates. A kernel whose check failed has no time to show, a void row shows none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from bench.judge.kernels.times import is_sound
from bench.judge.measure.decode_counters import DECODE, PARTS
from bench.report.page.section import Column, Section, Table, shown, spans, tabulate, told
from bench.report.tables.arms import is_void
from bench.report.tables.csv_files import Ordered
from bench.report.tables.kernels import COLD, MAIN_SHAPES, by_machine, conditions
from bench.report.tables.values import MISSING, Row, figure, fixed, get, line, number, plain

SHOWN_STREAMS = (1, 2, 4, 8)
MAX_KERNELS = 120
_CLANG = re.compile(r"clang version ([0-9]+)")


def _shape(row: Row) -> str:
    return f"{number(row.get('rows'))} x {number(row.get('cols'))}"


def _place(row: Row) -> tuple[object, ...]:
    """The two main shapes first, then by size; formats and streams inside."""
    shape = (figure(row, "rows") or 0, figure(row, "cols") or 0)
    rank = MAIN_SHAPES.index(shape) if shape in MAIN_SHAPES else len(MAIN_SHAPES)
    return (rank, -shape[0] * shape[1], shape, line(get(row, "format")), figure(row, "streams") or 0)


def kernels(tables: Ordered) -> Section:
    """The fastest checked kernel on each matrix, and the cases that have no time."""
    made: list[Table] = []
    columns: list[Column] = [
        ("rows x columns", _shape),
        *shown("kernels", "format", "streams"),
        ("fastest kernel", told("kernels", "variant")),
        ("layout", lambda row: f"{line(get(row, 'layout'))}, {fixed(row.get('bytes_per_weight'), 4)} B a weight"),
        *shown("kernels", "us", "gb_s"),
        *spans("kernels", "share_of_read_peak", "relative_cost", "cost_over_best_single", "ratio_to_llama_cpp"),
        ("largest error", lambda row: number(row.get("max_rel_err"), 2)),
    ]
    for _, rows in by_machine(tables.rows("kernels")):
        chosen = [row for row in rows if get(row, "fastest") and get(row, "cache") == COLD
                  and figure(row, "streams") in SHOWN_STREAMS]  # fmt: skip
        if chosen:
            condition = conditions(chosen, COLD)
            made.append(tabulate(sorted(chosen, key=_place), columns, condition, "kernels.csv", MAX_KERNELS))
        if lacking := _without_time(rows):
            made.append(lacking)
    intro = (
        "A kernel's time for one matrix and N activation vectors, without that of quantising them, and nothing of the "
        "weights in the cache before. The *read ceiling* is a plain kernel that reads the weights' bytes in the same "
        "blocks; a kernel above it is void. Every kernel was checked against float64 before it was timed, and one that "
        "failed has no time. Others than the fastest: `kernels.csv`."
    )
    return Section("kernels", "Kernels", intro, "", made, ("kernel_share", "kernel_cost", "kernel_roofline"))


def _without_time(rows: Sequence[Row]) -> Table | None:
    """Cases that could not run, failed their check or are void, one line a kernel and reason."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if not is_sound(row):
            void = is_void(row)
            state = "void" if void else line(get(row, "status"))
            reason = line(get(row, "void_reason" if void else "reason"))
            groups.setdefault((state, line(get(row, "variant")), reason), []).append(row)
    lines = [{"state": state, "variant": variant, "reason": reason, "count": len(found)}
             for (state, variant, reason), found in sorted(groups.items())]  # fmt: skip
    columns: list[Column] = [
        ("state", lambda row: str(row["state"])),
        ("kernel", lambda row: str(row["variant"])),
        ("cases", lambda row: str(row["count"])),
        ("reason", lambda row: str(row["reason"])),
    ]
    return tabulate(lines, columns, conditions(rows), "kernels.csv") if lines else None


def counters(tables: Ordered) -> Section:
    """What profilers counted, helpers of a case left to the file."""
    columns: list[Column] = [
        *shown("counters", "kernel"),
        ("rows x columns", _shape),
        *shown("counters", "format", "width"),
        ("from memory, MB", lambda row: _scaled(row, "dram_bytes")),
        *shown("counters", "dram_over_weights"),
        ("through L2, MB", lambda row: _scaled(row, "l2_bytes")),
        *shown("counters", "other_l2_over_weights", "l2_hit_rate", "share_of_peak", "us", "registers"),
        ("void", lambda row: line(get(row, "void_reason") or "unspecified") if is_void(row) else "no"),
    ]
    made = [
        tabulate(sorted(rows, key=_place), columns, conditions(rows, *_tools(rows)), "counters.csv")
        for _, rows in by_machine([row for row in tables.rows("counters") if not plain(row.get("helper"))
                                   and get(row, "of") != DECODE])
    ]  # fmt: skip
    intro = (
        "What the profiler counted for one launch. A counter that was not collected is `n/a`, never 0. *L2 beside the "
        "weights* is all traffic through the L2 cache but one reading of the weights: activations, results and what "
        "the cache moves itself, so it bounds the activations' share from above."
    )
    return Section("counters", "Counters", intro, "", made)


def decode_counters(tables: Ordered) -> Section:
    """What the kernels of a model's decode take and read, by class, beside the decode without a profiler."""
    columns: list[Column] = [
        *shown("counters", "model", "format"),
        ("width", told("counters", "width")),
        ("kernels", told("counters", "kernel")),
        *shown("counters", "launches", "us", "share_of_time"),
        ("from memory, MB a token", lambda row: _scaled(row, "dram_bytes_per_token")),
        ("through L2, MB a token", lambda row: _scaled(row, "l2_bytes_per_token")),
        *shown("counters", "l2_hit_rate", "gb_s", "share_of_copy"),
        ("void", lambda row: line(get(row, "void_reason") or "unspecified") if is_void(row) else "no"),
    ]
    made = [
        tabulate(sorted(rows, key=_part), columns, conditions(rows, *_tools(rows)), "counters.csv", MAX_KERNELS)
        for _, rows in by_machine([row for row in tables.rows("counters") if get(row, "of") == DECODE])
    ]
    intro = (
        "One decode of one token in each of `width` sequences, as a profiler saw its kernels: it launches them one by "
        "one and without CUDA graphs, which takes longer, so their sum may lie above the decode's time without a "
        "profiler, and what is *beyond all kernels* (gaps between them) below 0. The host's part runs beside the "
        "kernels of the same decode where it is shorter than they are. *Of a copy*: bytes from and to memory over "
        "what a copy inside the device moves in that time."
    )
    return Section("decode_counters", "Where a decode's time goes", intro, "", made)


def _part(row: Row) -> tuple[object, ...]:
    kernel = line(get(row, "kernel"))
    place = PARTS.index(kernel) if kernel in PARTS else len(PARTS)
    about = (line(get(row, name)) for name in ("model", "format", "build"))
    return (*about, figure(row, "width") or 0, place)


def _tools(rows: Sequence[Row]) -> list[str]:
    return [f"counted by {', '.join(sorted({line(get(row, 'tool')) for row in rows}))}"]


def _scaled(row: Row, name: str) -> str:
    value = figure(row, name)
    return MISSING if value is None else fixed(value / 1e6, 1)


def ssq(tables: Ordered) -> Section:
    """Bytes for each useful multiply of four ways to serve two streams."""
    columns: list[Column] = [
        ("rows x columns", _shape),
        *shown("ssq", "what", "twins", "bytes_per_multiply", "measured_bytes_per_multiply", "bytes_over_one_model",
               "measured_over_one_model", "us", "us_over_one_model", "variant", "evidence"),
    ]  # fmt: skip
    made = [
        tabulate(sorted(rows, key=lambda row: _place(row)[:3]), columns, conditions(rows, COLD), "ssq.csv")
        for _, rows in by_machine(tables.rows("ssq"))
    ]
    intro = (
        "Two streams need two products for every weight. Twins of one model in SSQ hold its weights twice; one shared "
        "Q8_0 matrix with two activation vectors gives the same products from half the bytes. Only different models "
        "break even, with two matrices of their own."
    )
    return Section("ssq", "What SSQ packing saves", intro, "", made)


def kernel_resources(tables: Ordered) -> Section:
    """Registers and waves of compiled kernels, one line a kernel and one column an architecture."""
    made = []
    for _, rows in by_machine([row for row in tables.rows("kernel_resources") if get(row, "kernel")]):
        kernels: dict[str, dict[str, Row]] = {}
        for row in rows:
            kernels.setdefault(line(get(row, "kernel")), {})[_compiled_for(row)] = row
        columns: list[Column] = [("kernel", lambda row: str(row["kernel"]))]
        columns += [(arch, partial(_taken, arch)) for arch in sorted({_compiled_for(row) for row in rows})]
        lines = [{"kernel": kernel, "by_arch": found} for kernel, found in kernels.items()]
        made.append(tabulate(lines, columns, conditions(rows), "kernel_resources.csv", MAX_KERNELS))
    intro = (
        "What the compilers say of every kernel, with no GPU (`python -m kernels.static`): vector registers, and how "
        "many waves a SIMD holds at once. Spilled registers, or bytes on NVIDIA, are named where there are any."
    )
    return Section("kernel_resources", "Registers of the kernels", intro, "", made)


def _compiled_for(row: Row) -> str:
    """The architecture, and the version of clang where there may be several."""
    found = _CLANG.search(line(get(row, "compiler")))
    return f"{line(get(row, 'arch'))}, clang {found[1]}" if found else line(get(row, "arch"))


def static_bounds(tables: Ordered) -> Section:
    """What the inner loops come to on a card: a line a kernel and compiler, a column a number of vectors."""
    made = []
    for _, rows in by_machine([row for row in tables.rows("kernel_resources") if get(row, "card")]):
        cases: dict[tuple[str, str, str], dict[str, Row]] = {}
        for row in rows:
            name = line(get(row, "kernel")).split("<")[0]
            key = name, line(get(row, "format")), _compiled_for(row)
            cases.setdefault(key, {})[line(get(row, "streams"))] = row
        columns: list[Column] = [(title, partial(_word, title)) for title in ("kernel", "format", "compiled for")]
        columns += [(f"{streams} vector{'s' * (streams != '1')}", partial(_bound, streams))
                    for streams in ("1", "2", "4", "6", "8")]  # fmt: skip
        lines = [dict(zip(("kernel", "format", "compiled for"), key, strict=True)) | {"by_streams": found}
                 for key, found in sorted(cases.items())]  # fmt: skip
        made.append(tabulate(lines, columns, conditions(rows), "kernel_resources.csv", MAX_KERNELS))
    intro = (
        "Static counts, compiled and not run: what the vector unit and the unit that computes addresses need for the "
        "inner loop, over the time in which an MI50's memory delivers the weights at its peak. Above 1 a kernel cannot "
        "follow memory, so more vectors cost more; below 1 this says nothing of its speed."
    )
    return Section("static_bounds", "Static bounds of the kernels", intro, "", made)


def _word(title: str, row: Row) -> str:
    return str(row[title])


def _bound(streams: str, kernel: Row) -> str:
    row = kernel["by_streams"].get(streams)
    return f"{line(get(row, 'vector_bound'))} / {line(get(row, 'loads_bound'))}" if row else MISSING


def _taken(arch: str, kernel: Row) -> str:
    row = kernel["by_arch"].get(arch)
    if row is None:
        return MISSING
    spilled = line(get(row, "spilled"))
    more = "" if spilled in ("0", MISSING) else f", {spilled} spilled"
    return f"{line(get(row, 'vgprs'))} / {line(get(row, 'waves_per_simd'))}{more}"


def kernel_sections(tables: Ordered) -> list[Section]:
    """The sections that have a table: a results folder without kernel records has none of them."""
    made = (make(tables) for make in (kernels, counters, decode_counters, ssq, kernel_resources, static_bounds))
    return [section for section in made if section.tables]
