"""A cell folder of the harness, read as a foreign record: its ledger, runs and rounds, and the engine's settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.audit.emits import Emits
from bench.audit.formats.own_ledger import COLUMNS, runs_of, trial
from bench.audit.own_tables import dicts, file_of, integer, mapping, table
from bench.audit.text import opened
from bench.audit.trials import Record, Step
from bench.errors import UserError
from bench.records.arms import ARMS
from pti_loop.ledger import PHASES

CONTEXT_OF = {"again": "baseline", **dict.fromkeys(("sabotage", "oracle", "carry", "kept"), "treatment")}
"""Arms that run in the context of another, whose settings are theirs."""
RUN_COLUMNS = ("run", "arm", "prompt", "n_prompt", "n_prompt_evaluated", "n_predict", "prefill_ns", "decode_window_ns")
ROUND_COLUMNS = ("run", "round", "phase", "width", "decode_ns", "total_ns", "drafted", "verified", "accepted")
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


def read_cell(path: Path) -> Record:
    """A cell folder: its ledger with the run and round tables, the temperature and the engine's settings."""
    ledger = file_of(path, "ledger")
    if ledger is None:
        if any((one / "status.json").exists() for one in _folders(path)):
            first = next(one for one in _folders(path) if (one / "status.json").exists())
            raise UserError(
                f"{path}: is a folder of cells; give one of them, for instance: python -m bench audit {first}"
            )
        state = mapping(path / "status.json")
        why = f" ({state.get('state')}: {state.get('reason')})" if state else ""
        raise UserError(f"{path}: has no ledger.csv.gz{why}; give a cell that decoded, or one record file")
    with opened(ledger) as stream:
        emits = runs_of(str(ledger), table(ledger, stream, COLUMNS))
    runs, rounds = _run_rows(path), _round_rows(path)
    engine = mapping(path / "facts.json").get("engine")
    config = mapping(path / "cell.yaml")
    temperature = config.get("temperature")
    shared = {"temperature": float(temperature) if isinstance(temperature, int | float) else None}
    trials = []
    for run in sorted(set(emits) | set(runs)):
        arm = runs[run]["arm"] if run in runs else ""
        facts = engine.get(CONTEXT_OF.get(arm, arm)) if isinstance(engine, dict) else None
        there = facts.items() if isinstance(facts, dict) else ()
        settings = {key: str(value) for key, value in there if key in SETTINGS}
        said, more = emits.pop(run, Emits(True)), shared | {"settings": settings}
        startup = {one["round"] for one in rounds.get(run, ()) if one["phase"] == "startup"}
        more |= _run_values(run, runs[run]) if run in runs else {}
        more |= _round_values(said, rounds[run]) if run in rounds else {}
        trials.append(trial(run, said, startup, **more))
    return Record(path, "cell", tuple(trials))


def _folders(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))[:1000]


def _run_values(run: int, row: Mapping[str, str]) -> dict[str, Any]:
    clock = row.get("clock_mhz", "").strip()
    try:
        mhz = float(clock) if clock not in ("", "nan") else None
    except ValueError:
        mhz = None
    return {
        "arm": row["arm"],
        "label": f"{row['arm']} run {run}",
        "prompt": row["prompt"],
        "category": row.get("prompt_class", ""),
        "prompt_tokens": int(row["n_prompt"]),
        "evaluated": int(row["n_prompt_evaluated"]),
        "requested": int(row["n_predict"]),
        "prefill_seconds": int(row["prefill_ns"]) / 1e9,
        "seconds": int(row["decode_window_ns"]) / 1e9,
        "clock_mhz": mhz,
    }


def _round_values(emits: Emits, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    per_round = Counter(emits.round)
    answers = Counter(round_ for round_, _ in set(zip(emits.round, emits.stream, strict=True)))
    steps = tuple(
        Step(
            one["line"],
            one["decode_ns"] / 1e9,
            one["width"],
            max(answers[one["round"]], 1),
            one["drafted"],
            one["verified"],
            one["accepted"],
            per_round[one["round"]],
        )
        for one in rounds
    )
    startup = sum(one["total_ns"] for one in rounds if one["phase"] == "startup")
    sums = {
        name: sum(one[key] for one in rounds)
        for name, key in (("drafted", "drafted"), ("tested", "verified"), ("accepted", "accepted"))
    }
    return {"steps": steps, "rounds": len(rounds), "startup_seconds": startup / 1e9, **sums}


def _run_rows(folder: Path) -> dict[int, dict[str, str]]:
    rows: dict[int, dict[str, str]] = {}
    for line, row in dicts(folder, "runs", RUN_COLUMNS, ("clock_mhz", "prompt_class")):
        if row["arm"] not in ARMS:
            raise UserError(
                f"{folder}/runs, line {line}: arm is '{row['arm'][:40]}', expected one of {', '.join(ARMS)}"
            )
        low = {"run": 0, "n_prompt": 0, "n_prompt_evaluated": 0, "n_predict": 1, "prefill_ns": 0, "decode_window_ns": 0}
        for name, least in low.items():
            integer(f"{folder}/runs, line {line}", name, row[name], least)
        rows[int(row["run"])] = row
    return rows


def _round_rows(folder: Path) -> dict[int, list[dict[str, Any]]]:
    rows: dict[int, list[dict[str, Any]]] = {}
    for line, row in dicts(folder, "rounds", ROUND_COLUMNS):
        where = f"{folder}/rounds, line {line}"
        if row["phase"] not in PHASES:
            raise UserError(f"{where}: phase is '{row['phase'][:40]}', expected one of {', '.join(PHASES)}")
        numbers = {name: integer(where, name, row[name], 0) for name in ROUND_COLUMNS if name != "phase"}
        rows.setdefault(numbers["run"], []).append({"line": line, "phase": row["phase"], **numbers})
    return rows
