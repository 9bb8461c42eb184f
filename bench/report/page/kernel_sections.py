"""The tables of kernels on the page: times against ceilings and llama.cpp, counters, what SSQ saves, registers.

Knows nothing about files and templates. A kernel whose check failed has no time to show, a void row shows none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.report.page.section import Column, Section, Table, tabulate
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, figure, fixed, get, interval, line, number, percent, plain

NOT_PRODUCTS = ("stream_read", "weight_only", "softmax", "verify", "twin_scores")
SHOWN_STREAMS = (1, 2, 4, 8)
COLD = "cold"
MAX_KERNELS = 120
MAIN_SHAPES = ((17408, 5120), (5120, 17408))
"""The two that PTI's own table is about."""


def by_machine(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Rows by machine, in alphabetical order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(line(get(row, "machine")), []).append(row)
    return sorted(found.items())


def told(rows: Sequence[Row], *more: str) -> str:
    """The conditions of kernel rows: what a model's cells have (prompts, threads) says nothing here."""
    names = {"machine": "machine", "GPU": "gpu", "compiler": "compiler", "llama.cpp": "build", "sources": "source_hash"}
    values = {name: sorted({line(get(row, key)) for row in rows} - {MISSING}) for name, key in names.items()}
    blocks = sorted({number(get(row, "blocks")) for row in rows} - {MISSING})
    parts = [f"{name} {', '.join(found)}" for name, found in values.items() if found]
    parts += [f"blocks {', '.join(blocks)}"] if blocks else []
    return "; ".join([*parts, *more])


def is_sound(row: Row) -> bool:
    """Whether a row has a time that may be shown."""
    return get(row, "status") == "ok" and not plain(row.get("void")) and figure(row, "us") is not None


def is_product(row: Row) -> bool:
    """Whether a row multiplies a matrix: a plain read and the decode loop's helpers are measured for other ends."""
    return get(row, "variant") not in NOT_PRODUCTS


def fastest(rows: Sequence[Row]) -> list[Row]:
    """The fastest sound kernel for each machine, format, shape, cache and number of streams."""
    best: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(number(get(row, name)) for name in ("machine", "format", "rows", "cols", "cache", "streams"))
        if is_sound(row) and is_product(row) and (
            key not in best or (figure(row, "us") or 0) < (figure(best[key], "us") or 0)
        ):  # fmt: skip
            best[key] = row
    return list(best.values())


def _fixed(name: str, decimals: int) -> Callable[[Row], str]:
    return lambda row: fixed(row.get(name), decimals)


def _span(name: str, decimals: int) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        value = fixed(row.get(name), decimals)
        limits = interval(row.get(f"{name}_low"), row.get(f"{name}_high"), decimals)
        return value if MISSING in (value, limits) else f"{value} ({limits})"

    return text


def _percent_span(name: str) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        value, low, high = (percent(row.get(key)) for key in (name, f"{name}_low", f"{name}_high"))
        return value if MISSING in (value, low, high) else f"{value} ({low} to {high})"

    return text


def _shape(row: Row) -> str:
    return f"{number(row.get('rows'))} x {number(row.get('cols'))}"


def _place(row: Row) -> tuple[object, ...]:
    """The two main shapes first, then by size; formats and streams inside."""
    shape = (figure(row, "rows") or 0, figure(row, "cols") or 0)
    rank = MAIN_SHAPES.index(shape) if shape in MAIN_SHAPES else len(MAIN_SHAPES)
    return (rank, -shape[0] * shape[1], shape, line(get(row, "format")), figure(row, "streams") or 0)


def kernels(tables: Ordered) -> Section:
    """The fastest checked kernel on each matrix, and the cases that have no time."""
    shown: list[Table] = []
    columns: list[Column] = [
        ("rows x columns", _shape),
        ("format", lambda row: line(get(row, "format"))),
        ("N", lambda row: number(get(row, "streams"))),
        ("fastest kernel", lambda row: line(get(row, "variant"))),
        ("layout", lambda row: f"{line(get(row, 'layout'))}, {fixed(row.get('bytes_per_weight'), 4)} B a weight"),
        ("us", _fixed("us", 2)),
        ("GB/s", _fixed("gb_s", 0)),
        ("share of the read ceiling", _percent_span("share_of_read_peak")),
        ("cost against its own N=1", _span("relative_cost", 2)),
        ("against the fastest N=1", _span("cost_over_best_single", 2)),
        ("llama.cpp's time / its", _span("ratio_to_llama_cpp", 2)),
        ("largest error", lambda row: number(row.get("max_rel_err"), 2)),
    ]
    for _, rows in by_machine(tables.rows("kernels")):
        cold = [row for row in rows if get(row, "cache") in (COLD, None)]
        chosen = [row for row in fastest(cold) if figure(row, "streams") in SHOWN_STREAMS]
        if chosen:
            shown.append(tabulate(sorted(chosen, key=_place), columns, told(chosen, COLD), "kernels.csv", MAX_KERNELS))
        if lacking := _without_time(rows):
            shown.append(lacking)
    intro = (
        "A kernel's time for one matrix and N activation vectors, without that of quantising them, and nothing of the "
        "weights in the cache before. The *read ceiling* is a plain kernel that reads the weights' bytes in the same "
        "blocks; a kernel above it is void. Every kernel was checked against float64 before it was timed, and one that "
        "failed has no time. Others than the fastest: `kernels.csv`."
    )
    return Section("kernels", "Kernels", intro, "", shown, ("kernel_share", "kernel_cost", "kernel_roofline"))


def _without_time(rows: Sequence[Row]) -> Table | None:
    """Cases that could not run, failed their check or are void, one line a kernel and reason."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if not is_sound(row):
            void = bool(plain(row.get("void")))
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
    return tabulate(lines, columns, told(rows), "kernels.csv") if lines else None


def counters(tables: Ordered) -> Section:
    """What profilers counted, helpers of a case left to the file."""
    columns: list[Column] = [
        ("kernel", lambda row: line(get(row, "kernel"))),
        ("rows x columns", _shape),
        ("format", lambda row: line(get(row, "format"))),
        ("N", lambda row: number(get(row, "width"))),
        ("from memory, MB", lambda row: _scaled(row, "dram_bytes")),
        ("over the weights", _fixed("dram_over_weights", 2)),
        ("through L2, MB", lambda row: _scaled(row, "l2_bytes")),
        ("L2 beside the weights, of the weights", _fixed("other_l2_over_weights", 2)),
        ("L2 hits", lambda row: percent(row.get("l2_hit_rate"))),
        ("share of peak", lambda row: percent(row.get("share_of_peak"))),
        ("us", _fixed("us", 2)),
        ("registers", lambda row: number(get(row, "registers"))),
        ("void", lambda row: line(get(row, "void_reason") or "unspecified") if plain(row.get("void")) else "no"),
    ]
    shown = [
        tabulate(sorted(rows, key=_place), columns, told(rows, *_tools(rows)), "counters.csv")
        for _, rows in by_machine([row for row in tables.rows("counters") if not plain(row.get("helper"))])
    ]
    intro = (
        "What the profiler counted for one launch. A counter that was not collected is `n/a`, never 0. *L2 beside the "
        "weights* is all traffic through the L2 cache but one reading of the weights: activations, results and what "
        "the cache moves itself, so it bounds the activations' share from above."
    )
    return Section("counters", "Counters", intro, "", shown)


def _tools(rows: Sequence[Row]) -> list[str]:
    return [f"counted by {', '.join(sorted({line(get(row, 'tool')) for row in rows}))}"]


def _scaled(row: Row, name: str) -> str:
    value = figure(row, name)
    return MISSING if value is None else fixed(value / 1e6, 1)


def ssq(tables: Ordered) -> Section:
    """Bytes for each useful multiply of four ways to serve two streams."""
    columns: list[Column] = [
        ("rows x columns", _shape),
        ("two streams from", lambda row: line(get(row, "what"))),
        ("models", lambda row: line(get(row, "twins"))),
        ("bytes a multiply, computed", _fixed("bytes_per_multiply", 4)),
        ("counted", _fixed("measured_bytes_per_multiply", 4)),
        ("bytes of one model, computed", _fixed("bytes_over_one_model", 2)),
        ("counted", _fixed("measured_over_one_model", 2)),
        ("us", _fixed("us", 2)),
        ("of one stream's time", _fixed("us_over_one_model", 2)),
        ("kernel", lambda row: line(get(row, "variant"))),
        ("evidence", lambda row: line(get(row, "evidence"))),
    ]
    shown = [
        tabulate(sorted(rows, key=lambda row: _place(row)[:3]), columns, told(rows, COLD), "ssq.csv")
        for _, rows in by_machine(tables.rows("ssq"))
    ]
    intro = (
        "Two streams need two products for every weight. Twins of one model in SSQ hold its weights twice; one shared "
        "Q8_0 matrix with two activation vectors gives the same products from half the bytes. Only different models "
        "break even, with two matrices of their own."
    )
    return Section("ssq", "What SSQ packing saves", intro, "", shown)


def kernel_resources(tables: Ordered) -> Section:
    """Registers and waves of compiled kernels, one line a kernel and one column an architecture."""
    shown = []
    for _, rows in by_machine([row for row in tables.rows("kernel_resources") if get(row, "kernel")]):
        kernels: dict[str, dict[str, Row]] = {}
        for row in rows:
            kernels.setdefault(line(get(row, "kernel")), {})[line(get(row, "arch"))] = row
        columns: list[Column] = [("kernel", lambda row: row["kernel"])]
        columns += [
            (arch, lambda row, arch=arch: _taken(row["by_arch"].get(arch)))
            for arch in sorted({line(get(row, "arch")) for row in rows})
        ]
        lines = [{"kernel": kernel, "by_arch": found} for kernel, found in kernels.items()]
        shown.append(tabulate(lines, columns, told(rows), "kernel_resources.csv", MAX_KERNELS))
    intro = (
        "What the compilers say of every kernel, with no GPU (`python -m kernels.static`): vector registers, and how "
        "many waves a SIMD holds at once. Spilled registers, or bytes on NVIDIA, are named where there are any."
    )
    return Section("kernel_resources", "Registers of the kernels", intro, "", shown)


def _taken(row: Row | None) -> str:
    if row is None:
        return MISSING
    spilled = line(get(row, "spilled"))
    more = "" if spilled in ("0", MISSING) else f", {spilled} spilled"
    return f"{line(get(row, 'vgprs'))} / {line(get(row, 'waves_per_simd'))}{more}"


def kernel_sections(tables: Ordered) -> list[Section]:
    """The sections that have a table: a results folder without kernel records has none of them."""
    made = (make(tables) for make in (kernels, counters, ssq, kernel_resources))
    return [section for section in made if section.tables]
