"""The tables of the Markdown report: which columns, which rows, in what words.

Knows nothing about files and templates. Every table is about one group (machine, engine build, model, quantization)
and carries the line of its conditions; rows beyond a limit are left to the CSV file, and the section says how many.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.judge.findings import OK, VOID, WARNING
from bench.judge.tables import TABLES
from bench.judge.tables.cell import DAMAGED
from bench.report.page.damaged import damaged
from bench.report.page.guess_sections import acceptance, distribution, domain, predictions
from bench.report.page.section import Column, Section, by_group, ids_of, limits, shown, tabulate, unless_void
from bench.report.page.trial_sections import energy, servers, trials
from bench.report.tables.arms import describe, is_void, of_all_prompts
from bench.report.tables.conditions import CellIndex, condition
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, Row, all_cells, cells_of, figure, fixed, get, line, listed_ids, number

GRAVEST = (VOID, WARNING)


def speedup(tables: Ordered, index: CellIndex) -> Section:
    rows = of_all_prompts(tables.rows("speedup"))
    columns: list[Column] = [
        ("arm", lambda row: describe(row, index)),
        *map(unless_void, shown("speedup", "speedup")),
        unless_void(limits("speedup", "speedup"), MISSING),
        *shown("speedup", "tok_s", "baseline_tok_s", "counted_tok_s", "aggregate_tok_s"),
        ("tokens a round / round cost", _factors),
        *shown("speedup", "host_share", "lossless", "identical_share"),
        ("why void", lambda row: line(get(row, "void_reason") or "unspecified") if is_void(row) else "sound"),
        ("cells", ids_of),
    ]  # fmt: skip
    made = by_group(rows, columns, index, "speedup.csv")
    intro = (
        "Speed counts distinct tokens; *counted tok/s* is what counting every emit call would print. *plain tok/s* is "
        "the fastest fair baseline. By prompt class, with stalls, without sampling, with the drafter's prefill, over "
        "one stream in the arm's own context, and the bound that the read bandwidth sets: `speedup.csv`."
    )
    return Section("speedup", "Speed-up", intro, "No finished contrast.", made, ("speedup", "streams", "classes"))


def _factors(row: Row) -> str:
    """Both measured factors and their product."""
    tokens, cost, product = (fixed(row.get(name), 2) for name in
                             ("tokens_per_round", "relative_round_cost", "product_speedup"))  # fmt: skip
    return MISSING if MISSING in (tokens, cost) else f"{tokens} / {cost} = {product}"


def stalls(tables: Ordered, index: CellIndex) -> Section:
    rows = sorted(tables.rows("stalls"), key=lambda row: -float(row["lost_ms"]))
    columns: list[Column] = [
        *shown("stalls", "run", "arm", "block", "round", "rounds", "lost_ms", "took_ms", "other_ms", "share",
               "other_cpus", "steal"),
        ("cells", ids_of),
    ]
    made = by_group(rows, columns, index, "stalls.csv")
    told: list[Column] = [*shown("contexts", "again"), limits("contexts", "again"),
                          *shown("contexts", "spread", "half_width", "readings")]  # fmt: skip
    made += by_group(tables.rows("contexts"), told, index, "contexts.csv")
    intro = (
        "Time that one of two runs of identical work lost and the other did not. It is in the records and in no "
        "estimate; `plain_speedup` in `speedup.csv` has it in. Behind it, A/A of all cells of a machine together: what "
        "contexts differ by is in every interval."
    )
    return Section("stalls", "Stalls, and contexts", intro, "No run lost 5 % of its time to a stall.", made)


def round_time(tables: Ordered, index: CellIndex) -> Section:
    parts = ("decode", "draft", "sample", "rollback", "host", "total")
    columns: list[Column] = [
        ("arm", lambda row: line(get(row, "arm")) + (" (void)" if is_void(row) else "")),
        ("method", lambda row: describe(row, index)),
        *shown("decomposition", *(f"{part}_ms" for part in parts)),
        ("cells", ids_of),
    ]
    made = by_group(tables.rows("decomposition"), columns, index, "decomposition.csv")
    intro = "Milliseconds a round. *host* is the wall time of a round outside its four named parts."
    return Section("round_time", "Where a round's time goes", intro, "No round was timed.", made, ("round_time",))


def step_cost(tables: Ordered, index: CellIndex) -> Section:
    rows = tables.rows("step_cost")
    changes = any(figure(row, "change_ms") is not None for row in rows)
    columns: list[Column] = [
        *shown("step_cost", "width", "layout", "step_ms"),
        *map(unless_void, shown("step_cost", "relative_cost")),
        unless_void(limits("step_cost", "relative_cost"), MISSING),
        *shown("step_cost", "predicted_tok_s_all_accepted", *(["change_ms"] if changes else [])),
        ("cells", ids_of),
    ]
    made = by_group(rows, columns, index, "step_cost.csv")
    intro = "Time of one `llama_decode` of a width over that of width 1. Nothing is interpolated between widths."
    if changes:
        intro += " *First decodes* come after a change to the width, before its time is steady; no cost holds them."
    return Section("step_cost", "Step cost", intro, "No step-cost curve was measured.", made, ("step_cost",))


def memory(tables: Ordered, index: CellIndex) -> Section:
    columns: list[Column] = [
        *shown("memory", "streams"),
        ("measured in", lambda row: " ".join(word for word in (get(row, "source"), get(row, "arm")) if word)),
        *shown("memory", "kv_bytes", "state_bytes", "measured_bytes", "per_stream_bytes", "process_bytes",
               "card_bytes"),
        ("cells", ids_of),
    ]
    made = by_group(tables.rows("memory"), columns, index, "memory.csv")
    intro = "Bytes that the context of that many streams takes."
    return Section("memory", "Memory", intro, "No memory was measured.", made)


def controls(tables: Ordered, index: CellIndex) -> Section:
    """Failed controls come first and warnings next; of those that passed there is the number."""
    every = tables.rows("controls")
    rows = sorted((row for row in every if line(get(row, "severity")) != OK),
                  key=lambda row: GRAVEST.index(line(get(row, "severity"))))  # fmt: skip
    columns: list[Column] = [
        *shown("controls", "control", "severity", "value"),
        limits("controls", "value"),
        *shown("controls", "sentence"),
        ("cells", ids_of),
    ]
    made = by_group(rows, columns, index, "controls.csv")
    told = f"{len(every) - len(rows)} of {len(every)} checks passed; they are in `controls.csv`."
    intro = f"Controls that failed come first: they make their cell void, and it counts for nothing. {told}"
    return Section("controls", "Controls", intro, told if every else "No control was run.", made)


def hosts(tables: Ordered, index: CellIndex) -> list[Section]:
    """Machines of one make beside each other, where there are several: which are pooled, and why others are not."""
    rows = tables.rows("hosts")
    columns: list[Column] = [
        *shown("hosts", "host", "against", "result", "step_ratio"),
        limits("hosts", "step_ratio"),
        *shown("hosts", "width", "layout", "compared", "sentence"),
        ("cells", ids_of),
    ]
    intro = (
        "A/A between machines of one make and build: the decodes that the profile of each host timed, one host over "
        "another. Hosts that agree count together; one that does not, or that nothing compares, stands under a name of "
        "its own in every table and verdict."
    )
    made = by_group(rows, columns, index, "hosts.csv")
    return [Section("hosts", "Hosts of one make", intro, "", made)] if rows else []


def peers(tables: Ordered, index: CellIndex) -> Section:
    columns: list[Column] = [
        *shown("peers", "tool", "width", "pairs", "tok_s", "ours_tok_s", "ratio"),
        limits("peers", "ratio"),
        *shown("peers", "decode_ratio"),
        ("cells", ids_of),
    ]
    made = by_group(tables.rows("peers"), columns, index, "peers.csv")
    bandwidth: list[Column] = [*shown("bandwidth", "read_gb_s"), ("cells", ids_of)]
    made += by_group(tables.rows("bandwidth"), bandwidth, index, "bandwidth.csv")
    intro = "Other programs on the same model and build, and the read bandwidth that the physical bound rests on."
    empty = (
        "No other program was run: `peers.llama_bench=FILE` and `peers.llama_batched_bench=FILE` add them to a sweep."
    )
    return Section("peers", "Peers and read bandwidth", intro, empty, made)


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
    made = by_group(rows, columns, index, "cells.csv")
    intro = "These cells count for no verdict. The same sweep again runs the failed ones anew."
    empty = "Every stored cell finished, and its controls passed."
    return Section("failures", "Failed, unsupported and void cells", intro, empty, made)


def provenance(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> Section:
    """Which cells each table rests on."""
    names = [name for name, table in TABLES.items() if not table.optional and name not in ("cells", "timeline")]
    sources: dict[str, Sequence[Row]] = {"claims": claims} | {name: tables.rows(name) for name in names}
    told = {name: all_cells(rows) for name, rows in sources.items()}
    lines = [{"table": name, "ids": ids, "cells": ids} for name, ids in told.items()]
    columns: list[Column] = [
        ("table", lambda row: f"`{row['table']}.csv`"),
        ("cells", lambda row: str(len(row["ids"]))),
        ("ids", lambda row: listed_ids(row["ids"])),
    ]
    everything = [row for rows in sources.values() for row in rows if cells_of(row)]
    made = [tabulate(lines, columns, condition(everything, index), "cells.csv")] if everything else []
    intro = "Every row of every CSV file lists its cells in the column `cells`; each cell is a folder of raw records."
    return Section("provenance", "What each table rests on", intro, "No cell is stored.", made)


def all_sections(tables: Ordered, claims: Sequence[Row], index: CellIndex) -> list[Section]:
    makers = (speedup, stalls, round_time, step_cost, predictions, acceptance, distribution, domain, memory, controls,
              peers, failures)
    return [*damaged(tables), *hosts(tables, index), *trials(tables, index), *servers(tables, index),
            *(make(tables, index) for make in makers), *energy(tables, index), provenance(tables, claims, index)]
