"""The harness's own ledger, alone or in a cell folder, read as a foreign record: nothing is taken on trust.

It recounts; it does not use what a cell's report said. A ledger alone has no prefill time and no arms.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from bench.audit.text import Row, csv_rows, need_columns, read_text
from bench.audit.trials import NAN, Record, Trial
from bench.errors import UserError
from bench.judge.measure.tokens import count_tokens
from bench.records.rows import ARMS
from pti_loop.ledger import PHASES, SOURCES

LEDGER_COLUMNS = ["run", "stream", "position", "token", "round", "source", "t_ns"]
RUN_COLUMNS = ["run", "arm", "prompt", "n_prompt", "n_prompt_evaluated", "n_predict", "prefill_ns", "decode_window_ns"]
ROUND_COLUMNS = ["run", "round", "phase", "width", "decode_ns", "total_ns", "drafted", "verified", "accepted"]
SETTINGS = (
    "n_ctx",
    "n_seq_max",
    "kv_unified",
    "type_k",
    "type_v",
    "flash_attn",
    "threads",
    "layers_offloaded",
    "build",
    "n_batch",
    "n_ubatch",
)


def read_ledger(path: Path, text: str | None = None) -> Record:
    """A ledger file, or its text where that is read already; one trial a run."""
    header, rows = csv_rows(path, read_text(path) if text is None else text)
    emits = ledger_frame(path, header, rows)
    trials = tuple(_trial(int(run), group, None, None, {}) for run, group in emits.groupby("run", sort=False))
    return Record(path, "ledger", trials, ("a ledger alone has no prefill time and no arm names",))


def read_cell(path: Path) -> Record:
    """A cell folder: its ledger with the run and round tables, the temperature and the engine's settings."""
    ledger = _table(path, "ledger")
    if ledger is None:
        state = _mapping(path / "status.json")
        why = f" ({state.get('state')}: {state.get('reason')})" if state else ""
        raise UserError(f"{path}: has no ledger.csv.gz{why}; give a cell that decoded, or one record file")
    emits = ledger_frame(*ledger)
    runs = _run_rows(_table(path, "runs"))
    rounds = _round_frame(_table(path, "rounds"))
    facts = _mapping(path / "facts.json").get("engine") or {}
    config = _mapping(path / "cell.yaml")
    by_run = {int(run): group for run, group in emits.groupby("run", sort=False)}
    trials = []
    for run in sorted(set(by_run) | set(runs)):
        extra = {"temperature": config.get("temperature")}
        arm = runs[run].cells["arm"] if run in runs else ""
        part = {"again": "baseline", "sabotage": "treatment", "oracle": "treatment"}.get(arm, arm)
        extra["settings"] = {key: str(value) for key, value in (facts.get(part) or {}).items() if key in SETTINGS}
        group = by_run.get(run, emits.iloc[:0])
        trials.append(
            _trial(run, group, runs.get(run), rounds[rounds["run"] == run] if rounds is not None else None, extra)
        )
    return Record(path, "cell", tuple(trials))


def ledger_frame(path: Path, header: list[str], rows: list[Row]) -> pd.DataFrame:
    """Typed rows of a ledger, in file order; UserError names the line of the first that is not one."""
    need_columns(path, header, LEDGER_COLUMNS)
    parsed = []
    for row in rows:
        source = row.cells["source"].strip()
        if source not in SOURCES:
            raise row.error(f"source is '{source}', expected one of {', '.join(SOURCES)}")
        parsed.append(
            (
                row.integer("run", 0),
                row.integer("stream", 0),
                row.integer("position", 0),
                row.integer("token"),
                row.integer("round", -1),
                source,
                row.integer("t_ns"),
            )
        )
    return pd.DataFrame(parsed, columns=LEDGER_COLUMNS)


def decode_seconds(emits: pd.DataFrame) -> float:
    """Time that clocked rows took, prefill outside: the gaps between emissions that end in a decoded token.

    A gap that ends in a prefill token is the prefill of the next answer, so answers that were decoded one after the
    other do not charge each other's prompts.
    """
    if emits.empty:
        return NAN
    moments = emits.assign(decoded=emits["source"] != "prefill").groupby("t_ns")["decoded"].any().sort_index()
    gaps = moments.index.to_series().diff()
    return float(gaps[moments].sum()) / 1e9


def with_first(emits: pd.DataFrame, clocked: bool = True) -> pd.DataFrame:
    """The rows with a known beginning, marked in both columns: source `prefill` and round -1.

    Where no row says it is the prefill's, those of the earliest moment are: a clock that is read at emission cannot
    time what came first. That does not hold for durations (`clocked` false), which cover their own tokens.
    """
    first = (emits["source"] == "prefill") | (emits["round"] < 0)
    if clocked and not first.any():
        first = emits["t_ns"] == emits["t_ns"].min()
    return emits.assign(source=emits["source"].mask(first, "prefill"), round=emits["round"].mask(first, -1))


def concurrent_streams(emits: pd.DataFrame) -> int:
    """Largest number of answers that were under way at one moment."""
    spans = emits.groupby("stream")["t_ns"].agg(["min", "max"])
    if len(spans) < 2:
        return 1
    # An answer that ends where the next begins does not overlap it.
    edges = sorted(
        [(start, 1) for start in spans["min"]] + [(end, -1) for end in spans["max"]],
        key=lambda edge: (edge[0], edge[1]),
    )
    most = level = 0
    for _, change in edges:
        level += change
        most = max(most, level)
    return max(most, 1)


def token_counts(emits: pd.DataFrame, startup: Iterable[int] = ()) -> dict[str, int]:
    """Fields of a trial: tokens inside the window, before it, and those of the start-up rounds among the first."""
    if emits.empty:
        return {"counted": 0, "distinct": 0, "first": 0, "startup_distinct": 0, "startup_counted": 0}
    counts = count_tokens(emits)
    prefill = emits["source"] == "prefill"
    begun = emits["round"].isin(list(startup)) & ~prefill
    early = count_tokens(emits[prefill | begun]).distinct - counts.first if begun.any() else 0
    return {
        "counted": counts.counted - int(prefill.sum()),
        "distinct": counts.distinct - counts.first,
        "first": counts.first,
        "startup_distinct": early,
        "startup_counted": int(begun.sum()),
    }


def _trial(run: int, emits: pd.DataFrame, row: Row | None, rounds: pd.DataFrame | None, extra: dict[str, Any]) -> Trial:
    emits = with_first(emits)
    values: dict[str, Any] = {
        "place": f"run {run}",
        "label": f"run {run}",
        "emits": emits,
        "streams_known": True,
        "streams": concurrent_streams(emits),
        "seconds": decode_seconds(emits),
        "rounds": int(emits["round"][emits["round"] >= 0].nunique()),
        **token_counts(emits),
        **extra,
    }
    if row is not None:
        values |= {
            "arm": row.cells["arm"],
            "label": f"{row.cells['arm']} run {run}",
            "prompt": row.cells["prompt"],
            "prompt_tokens": row.integer("n_prompt", 0),
            "evaluated": row.integer("n_prompt_evaluated", 0),
            "requested": row.integer("n_predict", 1),
            "prefill_seconds": row.integer("prefill_ns", 0) / 1e9,
            "seconds": row.integer("decode_window_ns", 0) / 1e9,
        }
        clock = row.cells.get("clock_mhz", "").strip()
        values["clock_mhz"] = row.number("clock_mhz") if clock not in ("", "nan") else None
    if rounds is not None and not rounds.empty:
        values |= _round_values(emits, rounds)
    return Trial(**values)


def _round_values(emits: pd.DataFrame, rounds: pd.DataFrame) -> dict[str, Any]:
    startup = rounds["phase"] == "startup"
    per_round = emits[emits["round"] >= 0].groupby("round").size()
    answers = emits[emits["round"] >= 0].groupby("round")["stream"].nunique()
    steps = pd.DataFrame(
        {
            "line": rounds["line"],
            "width": rounds["width"],
            "seconds": rounds["decode_ns"] / 1e9,
            "drafted": rounds["drafted"],
            "tested": rounds["verified"],
            "accepted": rounds["accepted"],
            "emitted": rounds["round"].map(per_round).fillna(0),
            "answers": rounds["round"].map(answers).fillna(0),
        }
    )
    return {
        "steps": steps,
        "rounds": len(rounds),
        "drafted": int(rounds["drafted"].sum()),
        "tested": int(rounds["verified"].sum()),
        "accepted": int(rounds["accepted"].sum()),
        "startup_seconds": float(rounds["total_ns"][startup].sum()) / 1e9,
        **token_counts(emits, rounds["round"][startup]),
    }


def _run_rows(table: tuple[Path, list[str], list[Row]] | None) -> dict[int, Row]:
    if table is None:
        return {}
    path, header, rows = table
    need_columns(path, header, RUN_COLUMNS)
    for row in rows:
        if row.cells["arm"] not in ARMS:
            raise row.error(f"arm is '{row.cells['arm']}', expected one of {', '.join(ARMS)}")
    return {row.integer("run", 0): row for row in rows}


def _round_frame(table: tuple[Path, list[str], list[Row]] | None) -> pd.DataFrame | None:
    if table is None:
        return None
    path, header, rows = table
    need_columns(path, header, ROUND_COLUMNS)
    parsed = []
    for row in rows:
        if row.cells["phase"] not in PHASES:
            raise row.error(f"phase is '{row.cells['phase']}', expected one of {', '.join(PHASES)}")
        numbers = {name: row.integer(name, 0) for name in ROUND_COLUMNS if name != "phase"}
        parsed.append({"line": row.line, "phase": row.cells["phase"], **numbers})
    return pd.DataFrame(parsed, columns=["line", *ROUND_COLUMNS])


def _table(folder: Path, name: str) -> tuple[Path, list[str], list[Row]] | None:
    for suffix in (".csv.gz", ".csv"):
        path = folder / f"{name}{suffix}"
        if path.exists():
            return path, *csv_rows(path, read_text(path))
    return None


def _mapping(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    text = read_text(path)
    try:
        value = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {error}; run the cell again") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: holds {type(value).__name__}, expected named values; run the cell again")
    return value
