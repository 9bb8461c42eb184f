"""The sections of the report about builds, settings and servers on trial, and about energy.

Knows nothing about files and templates. A report without such rows has no such section.
"""

from __future__ import annotations

from bench.report.page.section import Column, Section, by_group, ids_of, limits, shown, unless_void
from bench.report.tables.arms import is_void, of_all_prompts, with_role
from bench.report.tables.conditions import CellIndex
from bench.report.tables.csv_files import Ordered
from bench.report.tables.values import MISSING, get, line


def trials(tables: Ordered, index: CellIndex) -> list[Section]:
    """What a build or a setting is worth, each beside the one thing in which its arms differ."""
    rows = of_all_prompts(tables.rows("trials"))
    if not rows:
        return []
    columns: list[Column] = [
        *shown("trials", "short", "difference", "was", "became", "depth"),
        *map(unless_void, shown("trials", "speedup")),
        unless_void(limits("trials", "speedup"), MISSING),
        *shown("trials", "speaks_of", "tok_s", "baseline_tok_s", "prefill_speedup", "min_visible_effect", "again",
               "lossless", "identical_share", "compared_by", "baseline_build", "loaded", "idle_cpus"),
        ("why void", lambda row: line(get(row, "void_reason") or "unspecified") if is_void(row) else "sound"),
        ("cells", ids_of),
    ]  # fmt: skip
    intro = (
        "Each row is about one difference between two arms that decode the same prompts in turn: another build of the "
        "engine, another of its settings, or another server. The ratio is that difference's and nothing else's, unless "
        "the arm also names a method. The build in the line of conditions is that on trial; the baseline's stands in "
        "the row. "
        "*output* compares the two texts: a difference is a near tie where it is smaller than what one row more in a "
        "decode of the baseline moves."
    )
    made = by_group(rows, columns, index, "trials.csv")
    return [Section("trials", "Builds, settings and servers on trial", intro, "No trial.", made, ("trials",))]


def servers(tables: Ordered, index: CellIndex) -> list[Section]:
    """What servers say of their answers beside what a client saw, and what one does that is asked again."""
    rows = tables.rows("servers")
    if not rows:
        return []
    columns: list[Column] = [
        *shown("servers", "short"), ("arm", lambda row: with_role(row, index)),
        *shown("servers", "when", "runs", "tok_s", "own_tok_s", "over_first", "drafted", "accepted", "acceptance",
               "prefill_ms", "own_prompt_ms", "cached", "started", "compared_by"),
        ("cells", ids_of),
    ]  # fmt: skip
    intro = (
        "Rates are of tokens behind the first: by the client's clock, and by the server's own times. The ratio of a "
        "trial rests on the rows *blocks* alone. Below them one prompt is asked again: a rate that rises with its "
        "guesses there is a replay of the answer before, and no speed of the server. A server that made no guess says "
        "nothing of any, and none tells its rounds, so what a step costs there is not known."
    )
    return [Section("servers", "Servers", intro, "No server.", by_group(rows, columns, index, "servers.csv"))]


def energy(tables: Ordered, index: CellIndex) -> list[Section]:
    """Joules and limits by arm."""
    rows = tables.rows("energy")
    if not rows:
        return []
    columns: list[Column] = [
        ("arm", lambda row: with_role(row, index)),
        *shown("energy", "joules_per_token", "mean_w", "power_cap_w", "memory_mhz", "joules", "tokens", "runs"),
        ("cells", ids_of),
    ]  # fmt: skip
    intro = (
        "By the driver's own counters over the timed windows: of all packages of the processor, or of the GPUs in use, "
        "whatever else ran on them. A token is a distinct one, of all answers together."
    )
    return [Section("energy", "Energy", intro, "No energy.", by_group(rows, columns, index, "energy.csv"))]
