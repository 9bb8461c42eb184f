"""The tables of the Markdown report: which columns, which rows, in what words.

Knows nothing about files and templates. Every table is about one group (machine, engine build, model, quantization)
and carries the line of its conditions; rows beyond a limit are left to the CSV file, and the section says how many.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.figures.charts import describe, is_void
from bench.report.page.damaged import DAMAGED, damaged
from bench.report.page.guess_sections import acceptance, distribution, domain, predictions
from bench.report.page.section import (
    Column,
    Section,
    by_group,
    bytes_of,
    decimals_of,
    field_of,
    ids_of,
    interval_of,
    listed_ids,
    share_of,
    tabulate,
)
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, all_cells, cells_of, figure, fixed, get, line, number, plain


def speedup(tables: Ordered, index: CellIndex) -> Section:
    rows = [row for row in tables.rows("speedup") if get(row, "prompt_class") in ("all", None)]
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index)),
        ("speed-up", lambda row: "void" if is_void(row) else fixed(row.get("speedup"), 2)),
        ("95 % interval", lambda row: MISSING if is_void(row) else interval_of()(row)),
        ("tok/s", decimals_of("tok_s", 1)),
        ("plain tok/s", decimals_of("baseline_tok_s", 1)),
        ("counted tok/s", decimals_of("counted_tok_s", 1)),
        ("aggregate tok/s", decimals_of("aggregate_tok_s", 1)),
        ("steady window", decimals_of("steady_speedup", 2)),
        ("over same context", decimals_of("solo_speedup", 2)),
        ("tokens a round / round cost", _factors),
        ("host time", share_of("host_share")),
        ("smallest visible effect", decimals_of("min_visible_effect", 3)),
        ("bound tok/s", decimals_of("bound_tok_s", 1)),
        ("output", lambda row: number(get(row, "lossless"))),
        ("identical", share_of("identical_share")),
        ("why void", lambda row: line(get(row, "void_reason") or "unspecified") if is_void(row) else "sound"),
        ("cells", ids_of),
    ]
    shown = by_group(rows, columns, index, "speedup.csv")
    intro = (
        "Speed counts distinct tokens; *counted tok/s* is what counting every emit call would print. *plain tok/s* is "
        "the fastest fair baseline; *over same context* divides by one stream in the arm's own context instead. *bound "
        "tok/s* is what the measured read bandwidth allows. Per prompt class: `speedup.csv`."
    )
    return Section("speedup", "Speed-up", intro, "No finished contrast.", shown, ("speedup",))


def _factors(row: Row) -> str:
    """Both measured factors and, where the judge gave it, their product."""
    tokens, cost = fixed(row.get("tokens_per_round"), 2), fixed(row.get("relative_round_cost"), 2)
    if MISSING in (tokens, cost):
        return MISSING
    product = fixed(row.get("product_speedup"), 2)
    return f"{tokens} / {cost}" + ("" if product == MISSING else f" = {product}")


def round_time(tables: Ordered, index: CellIndex) -> Section:
    parts = ("decode", "draft", "sample", "rollback", "host", "total")
    columns: list[Column] = [
        ("arm", lambda row: number(get(row, "arm")) + (" (void)" if is_void(row) else "")),
        ("method", lambda row: describe(row, index)),
        *((f"{part} ms", decimals_of(f"{part}_ms", 3)) for part in parts),
        ("cells", ids_of),
    ]
    shown = by_group(tables.rows("decomposition"), columns, index, "decomposition.csv")
    intro = "Milliseconds a round. *host* is the wall time of a round outside its four named parts."
    return Section("round_time", "Where a round's time goes", intro, "No round was timed.", shown, ("round_time",))


def step_cost(tables: Ordered, index: CellIndex) -> Section:
    rows = tables.rows("step_cost")
    columns: list[Column] = [("width", field_of("width"))]
    if any(get(row, "layout") for row in rows):
        columns.append(("layout", field_of("layout")))
    columns += [
        ("step ms", decimals_of("step_ms", 3)),
        ("relative cost", decimals_of("relative_cost", 2)),
        ("95 % interval", interval_of()),
        ("tok/s if all were accepted", decimals_of("predicted_tok_s_all_accepted", 1)),
    ]
    intro = "Time of one `llama_decode` of a width over that of width 1. Nothing is interpolated between widths."
    if any(figure(row, "change_ms") is not None for row in rows):
        columns.append(("first decodes, ms more", decimals_of("change_ms", 3)))
        intro += " *first decodes* come after a change to the width, before its time is steady; no cost holds them."
    shown = by_group(rows, [*columns, ("cells", ids_of)], index, "step_cost.csv")
    return Section("step_cost", "Step cost", intro, "No step-cost curve was measured.", shown, ("step_cost",))


def memory(tables: Ordered, index: CellIndex) -> Section:
    columns: list[Column] = [
        ("streams", field_of("streams")),
        (
            "measured in",
            lambda row: " ".join(word for word in (get(row, "source"), get(row, "arm")) if word) or MISSING,
        ),
        ("KV cache", bytes_of("kv_bytes")),
        ("recurrent state", bytes_of("state_bytes")),
        ("measured", bytes_of("measured_bytes")),
        ("a stream", bytes_of("per_stream_bytes")),
        ("cells", ids_of),
    ]
    shown = by_group(tables.rows("memory"), columns, index, "memory.csv")
    intro = "Bytes that the context of that many streams takes."
    return Section("memory", "Memory", intro, "No memory was measured.", shown)


def controls(tables: Ordered, index: CellIndex) -> Section:
    """Failed controls come first and warnings next, so that a limit never hides one behind those that passed."""
    rows = sorted(tables.rows("controls"), key=_calm)
    columns: list[Column] = [
        ("control", field_of("control")),
        ("result", lambda row: number(get(row, "severity") or {True: "ok", False: "void"}.get(plain(row.get("ok"))))),
        ("value", field_of("value")),
        ("95 % interval", interval_of(3)),
        ("what it says", lambda row: number(get(row, "sentence"))),
        ("cells", ids_of),
    ]
    shown = by_group(rows, columns, index, "controls.csv")
    intro = "Controls that failed come first. A cell with a failed control is void: its speed-up counts for nothing."
    return Section("controls", "Controls", intro, "No control was run.", shown)


def _calm(row: Row) -> int:
    if plain(row.get("ok")) is False:
        return 0
    return 1 if get(row, "severity") not in ("ok", None) else 2


def peers(tables: Ordered, index: CellIndex) -> Section:
    rows = tables.rows("peers")
    columns: list[Column] = [
        ("program", field_of("tool")),
        ("width", field_of("width")),
        ("pairs", field_of("pairs")),
        ("its tok/s", decimals_of("tok_s", 2)),
        ("ours, tok/s", decimals_of("ours_tok_s", 2)),
        ("ours / its", decimals_of("ratio", 3)),
        ("95 % interval", interval_of(3)),
        ("cells", ids_of),
    ]
    shown = by_group(rows, columns, index, "peers.csv")
    bandwidth = [("read GB/s", decimals_of("read_gb_s", 2)), ("cells", ids_of)]
    shown += by_group(tables.rows("bandwidth"), bandwidth, index, "bandwidth.csv")
    intro = "Other programs on the same model and build, and the read bandwidth that the physical bound rests on."
    empty = (
        "No other program was run: `peers.llama_bench=FILE` and `peers.llama_batched_bench=FILE` add them to a sweep."
    )
    return Section("peers", "Peers and read bandwidth", intro, empty, shown)


def failures(tables: Ordered, index: CellIndex) -> Section:
    told = ("done", DAMAGED, None)
    rows = [row for row in tables.rows("cells") if get(row, "state") not in told or is_void(row)]
    columns: list[Column] = [
        ("state", lambda row: number(get(row, "state")) + (", void" if is_void(row) else "")),
        ("cell", ids_of),
        ("kind", lambda row: number(get(row, "kind"))),
        ("what", lambda row: describe(row, index)),
        ("reason", lambda row: number(get(row, "reason", "void_reason"))),
    ]
    shown = by_group(rows, columns, index, "cells.csv")
    intro = "These cells count for no verdict. The same sweep again runs the failed ones anew."
    empty = "Every stored cell finished, and its controls passed."
    return Section("failures", "Failed, unsupported and void cells", intro, empty, shown)


def provenance(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Section:
    """Which cells each table rests on."""
    names = ("speedup", "decomposition", "step_cost", "predictions", "acceptance", "distribution", "domain", "memory",
             "controls", "peers",
             "bandwidth")  # fmt: skip
    sources = {"claims": list(claims)} | {name: tables.rows(name) for name in names}
    told = {name: all_cells(rows) for name, rows in sources.items()}
    lines = [{"table": name, "ids": ids, "cells": ids} for name, ids in told.items()]
    columns: list[Column] = [
        ("table", lambda row: f"`{row['table']}.csv`"),
        ("cells", lambda row: str(len(row["ids"]))),
        ("ids", lambda row: listed_ids(row["ids"])),
    ]
    everything = [row for rows in sources.values() for row in rows if cells_of(row)]
    shown = [tabulate(lines, columns, condition(everything, index), "cells.csv")] if everything else []
    intro = "Every row of every CSV file lists its cells in the column `cells`; each cell is a folder of raw records."
    return Section("provenance", "What each table rests on", intro, "No cell is stored.", shown)


def all_sections(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> list[Section]:
    makers = (speedup, round_time, step_cost, predictions, acceptance, distribution, domain, memory, controls,
              peers, failures)
    return [*damaged(tables), *(make(tables, index) for make in makers), provenance(tables, claims, index)]
