"""The report's CSV files: which columns each has, and the judge's rows written under them.

Knows nothing about how a value was obtained. A missing value is `n/a` (which pandas reads as nan), a row that rests on
no cell says `none`. Columns that a row has beyond the listed ones follow in alphabetical order, except in the timeline.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report.tables.files import remove_file, write_file
from bench.report.tables.values import MISSING, Row, cells_of, plain, sort_column

COLUMNS: dict[str, tuple[str, ...]] = {
    "claims": (
        "claim_id", "verdict", "scope", "published", "measured", "ci_low", "ci_high", "unit", "evidence", "reason",
    ),
    "speedup": (
        "model", "method", "streams", "temperature", "prompt_class", "tok_s", "baseline_tok_s", "speedup", "ci_low",
        "ci_high", "counted_tok_s", "aggregate_tok_s", "lossless", "identical_share",
    ),
    "step_cost": (
        "model", "width", "step_ms", "relative_cost", "ci_low", "ci_high", "predicted_tok_s_all_accepted",
    ),
    "acceptance": (
        "model", "method", "streams", "temperature", "draws", "position", "tested", "accepted", "rate", "ci_low",
        "ci_high", "collision_mean",
    ),
    "domain": (
        "model", "method", "temperature", "domain", "signal", "against", "window", "on_mean", "on_low", "on_high",
        "off_mean", "off_low", "off_high", "drop", "drop_low", "drop_high", "auc", "auc_low", "auc_high", "tells",
        "threshold", "false_alarm", "false_alarm_low", "false_alarm_high", "miss", "miss_low", "miss_high", "needed",
        "sentence",
    ),
    "memory": ("model", "streams", "kv_bytes", "state_bytes", "measured_bytes", "per_stream_bytes"),
    "decomposition": (
        "model", "method", "streams", "arm", "draft_ms", "decode_ms", "sample_ms", "rollback_ms", "host_ms", "total_ms",
    ),
    "predictions": (
        "model", "method", "streams", "temperature", "prompt_class", "arm", "predicted", "measured", "ratio",
        "ratio_low", "ratio_high", "best_draft", "best_speedup",
    ),
    "controls": ("cell", "control", "ok", "value", "ci_low", "ci_high", "sentence"),
    "timeline": ("cell", "t_s", "counted", "distinct"),
    "bandwidth": ("read_gb_s",),
    "distribution": (
        "model", "method", "streams", "temperature", "arm", "verdict", "tokens", "tested", "prefixes", "tv",
        "tv_expected", "tv_high", "chi2", "df", "p", "visible_tv",
    ),
    "peers": ("model", "tool", "width", "tok_s", "ours_tok_s", "ratio", "ci_low", "ci_high", "pairs"),
    "cells": ("cell", "kind", "model", "method", "streams", "temperature", "state", "reason", "seconds"),
    "kernels": (
        "variant", "format", "streams", "rows", "cols", "us", "gb_s", "share_of_read_peak", "relative_cost",
        "ratio_to_llama_cpp", "max_rel_err",
    ),
    "counters": ("kernel", "width", "dram_bytes", "l2_bytes", "l2_hit_rate", "share_of_peak", "us"),
    "ssq": ("layout", "rows", "cols", "weight_bytes", "bytes_per_multiply", "dram_bytes", "us"),
    "kernel_resources": ("arch", "kernel", "vgprs", "sgprs", "lds_bytes", "spilled", "waves_per_simd"),
}  # fmt: skip
"""Columns of the report's files, besides machine, build and cells."""

ONLY_WITH_ROWS = ("kernels", "counters", "ssq", "kernel_resources")
"""Files of records that most results folders do not have."""

COMMON = ("machine", "build", "cells")

class Ordered:
    """The tables of the findings, each put in order once: the judge's own order may depend on how it read the cells.

    Takes any object with lists of row dicts as attributes; an absent one counts as empty.
    """

    def __init__(self, findings: Any, ordered: Mapping[str, list[Row]] | None = None) -> None:
        self._findings = findings
        self._tables = dict(ordered or {})

    def rows(self, name: str) -> list[Row]:
        if name not in self._tables:
            self._tables[name] = _ordered(name, list(getattr(self._findings, name, None) or []))
        return self._tables[name]

    def only(self, *names: str) -> Ordered:
        """Some of the tables, in order already: what another process needs of them."""
        return Ordered(None, {name: self.rows(name) for name in names})


def _ordered(name: str, rows: list[Row]) -> list[Row]:
    """Rows by all their columns; points of a timeline kept as lists are spread to one row each."""
    if name == "timeline":
        # By far the longest table: its points are told apart by these columns alone.
        names: tuple[str, ...] = ("machine", "build", "cell", "t_s", "counted", "distinct")
        rows = [point for row in rows for point in _points(row)]
    else:
        names = ("machine", "build", "cell", *COLUMNS[name], *_extra(name, rows))
    # By columns: most are of one type, and then nothing has to be asked of each value.
    columns = [sort_column([row.get(key) for row in rows]) for key in names]
    keys = list(zip(*columns, map(cells_of, rows), strict=True))
    return [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)]


def _extra(name: str, rows: Sequence[Row]) -> list[str]:
    """Columns that the rows have beyond the listed ones; none for a timeline, whose many points share a cell."""
    if name == "timeline":
        return []
    return sorted({key for row in rows for key in row} - set(COLUMNS[name]) - set(COMMON))


def _points(row: Row) -> list[Row]:
    times = row.get("t_s")
    if not isinstance(times, Sequence) or isinstance(times, str):
        return [row]
    tracks = zip(times, row["counted"], row["distinct"], strict=True)
    return [{**row, "t_s": t, "counted": counted, "distinct": distinct} for t, counted, distinct in tracks]


def cell_text(value: Any) -> str:
    """One value as CSV text: full whole numbers, 9 significant digits of others, lists and dicts as JSON."""
    value = plain(value)
    if value is None:
        return MISSING
    kind = type(value)
    if kind is str:
        return " ".join(value.split())
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if isinstance(value, float):
        whole = math.isfinite(value) and value.is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else f"{value:.9g}"
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, sort_keys=True, default=str)
    return " ".join(str(value).split())


def _column_text(values: list[Any]) -> list[str]:
    """A column as CSV text, like `cell_text` of each value; most columns are of one type, which saves the asking."""
    kinds = {*map(type, values)}
    if kinds == {str}:
        texts = {word: cell_text(word) for word in {*values}}
        return [texts[word] for word in values]
    if kinds == {int}:
        return [*map(str, values)]
    if kinds == {float}:
        # Below a thousand million, nine digits hold a whole number in full; adding zero mends a negative zero.
        return [f"{value + 0.0:.9g}" if -1e9 < value < 1e9 else cell_text(value) for value in values]
    return [cell_text(value) for value in values]


def table_text(name: str, rows: Sequence[Row]) -> str:
    """A whole CSV file. With no rows it is the header alone."""
    header = [*COLUMNS[name], "machine", "build", *_extra(name, rows), "cells"]
    columns = [_column_text([row.get(key) for row in rows]) for key in header[:-1]]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*columns, (" ".join(cells_of(row)) or "none" for row in rows), strict=True))
    return out.getvalue()


def write_tables(tables: Ordered, claims: Sequence[Row], out: Path) -> list[Path]:
    """Writes the CSVs of `COLUMNS` into the folder `out`, which must exist. Claims keep the order of their sheet.

    Files of `ONLY_WITH_ROWS` that have none are removed. Raises UserError when a file cannot be written.
    """
    written = []
    for name in COLUMNS:
        rows = claims if name == "claims" else tables.rows(name)
        path = out / f"{name}.csv"
        if rows or name not in ONLY_WITH_ROWS:
            written.append(write_file(path, table_text(name, rows)))
        else:
            remove_file(path)
    return written
