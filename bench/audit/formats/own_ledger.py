"""The harness's own ledger, alone or in a cell folder, read as a foreign record: nothing is taken on trust.

It recounts; it does not use what a cell's report said. A ledger alone has no prefill time and no arms. A file is read
line by line, so its size is bounded by the rows of its runs and not by its text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.audit.blocks import Block, Found, TableBlock
from bench.audit.emits import Emits, count, together, window_seconds
from bench.audit.text import opened, read_some
from bench.audit.trials import Record, Step, Trial
from bench.errors import UserError, nearest

COLUMNS = ("run", "stream", "position", "token", "round", "source", "t_ns")
SOURCES = ("prefill", "verified", "unverified")
PHASES = ("startup", "steady")
ARMS = ("baseline", "again", "treatment", "sabotage", "oracle", "solo", "carry", "kept")
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
LONGEST = 4096
"""A line of one of these tables is shorter."""
MOST_RUNS = 100_000
MOST_SMALL = 16 * 1024 * 1024
Rows = Iterator[tuple[int, list[str]]]
NOTE = "a ledger alone has no prefill time and no arm names"


def sniff(block: Block) -> bool:
    return isinstance(block, TableBlock) and block.has(*COLUMNS)


def read(block: Block) -> Found:
    """A ledger inside a pasted text."""
    assert isinstance(block, TableBlock)
    rows = ((row.line, [row.cells[name] for name in COLUMNS]) for row in block.rows)
    runs = _runs(block.name, rows)
    return Found("ledger", [_trial(run, emits, None, [], {}) for run, emits in runs.items()], [NOTE])


def read_ledger(path: Path) -> Record:
    """A ledger file; one trial a run. UserError names the line of the first row that is not one."""
    with opened(path) as stream:
        runs = _runs(str(path), _table(path, stream, COLUMNS))
    trials = []
    for run in list(runs):
        trials.append(_trial(run, runs.pop(run), None, [], {}))
    return Record(path, "ledger", tuple(trials), (NOTE,))


def read_cell(path: Path) -> Record:
    """A cell folder: its ledger with the run and round tables, the temperature and the engine's settings."""
    ledger = _file(path, "ledger")
    if ledger is None:
        if any((one / "status.json").exists() for one in _folders(path)):
            first = next(one for one in _folders(path) if (one / "status.json").exists())
            raise UserError(
                f"{path}: is a folder of cells; give one of them, for instance: python -m bench audit {first}"
            )
        state = _mapping(path / "status.json")
        why = f" ({state.get('state')}: {state.get('reason')})" if state else ""
        raise UserError(f"{path}: has no ledger.csv.gz{why}; give a cell that decoded, or one record file")
    with opened(ledger) as stream:
        emits = _runs(str(ledger), _table(ledger, stream, COLUMNS))
    runs, rounds = _run_rows(path), _round_rows(path)
    engine = _mapping(path / "facts.json").get("engine")
    config = _mapping(path / "cell.yaml")
    temperature = config.get("temperature")
    shared = {"temperature": float(temperature) if isinstance(temperature, int | float) else None}
    trials = []
    for run in sorted(set(emits) | set(runs)):
        arm = runs[run]["arm"] if run in runs else ""
        part = {
            "again": "baseline",
            "sabotage": "treatment",
            "oracle": "treatment",
            "carry": "treatment",
            "kept": "treatment",
        }.get(arm, arm)
        facts = engine.get(part) if isinstance(engine, dict) else None
        settings = (
            {key: str(value) for key, value in facts.items() if key in SETTINGS} if isinstance(facts, dict) else {}
        )
        extra = shared | {"settings": settings}
        trials.append(_trial(run, emits.pop(run, Emits(True)), runs.get(run), rounds.get(run, []), extra))
    return Record(path, "cell", tuple(trials))


def _folders(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))[:1000]


def _runs(name: str, rows: Rows) -> dict[int, Emits]:
    """Rows of a ledger by run, in the order in which runs begin."""
    runs: dict[int, Emits] = {}
    emits, current = Emits(True), -1
    line = 0
    try:
        for line, (run, stream, position, token, round_, source, t_ns) in rows:
            number = int(run)
            if number != current or not runs:
                current = number
                emits = runs.setdefault(number, Emits(True))
                if number < 0 or len(runs) > MOST_RUNS:
                    raise UserError(
                        f"{name}, line {line}: run is {number}, expected a run of 0 or more, and few of them"
                    )
                streams, positions, tokens, rounds, times = emits.columns
                prefills = emits.prefill
            stream_, position_, round_n = int(stream), int(position), int(round_)
            if source not in SOURCES and source.strip() not in SOURCES:
                raise UserError(f"{name}, line {line}: source is '{source[:40]}', expected one of {', '.join(SOURCES)}")
            if stream_ < 0 or position_ < 0 or round_n < -1:
                raise UserError(_below(name, line, stream_, position_, round_n))
            prefill = round_n < 0 or source.strip() == "prefill"
            tokens(int(token))
            times(int(t_ns))
            streams(stream_)
            positions(position_)
            rounds(-1 if prefill else round_n)
            prefills.append(prefill)
            if source.strip() == "unverified":
                emits.unverified += 1
    except ValueError:
        raise UserError(_bad(name, line, (run, stream, position, token, round_, source, t_ns))) from None
    except OverflowError:
        raise UserError(f"{name}, line {line}: a number that is larger than any token id, position or time") from None
    return runs


def _below(name: str, line: int, stream: int, position: int, round_: int) -> str:
    what, value, low = (
        ("stream", stream, 0) if stream < 0 else ("position", position, 0) if position < 0 else ("round", round_, -1)
    )
    return f"{name}, line {line}: {what} is {value}, expected {low} or more"


def _bad(name: str, line: int, cells: Iterable[str]) -> str:
    for column, text in zip(COLUMNS, cells, strict=True):
        if column != "source":
            try:
                int(text)
            except ValueError:
                return f"{name}, line {line}: {column} is '{text[:40]}', expected a whole number"
    return f"{name}, line {line}: is no row of a ledger"


def _table(path: Path, stream: Any, wanted: Iterable[str]) -> Rows:
    """Line number and the wanted columns of each row of a CSV, read as it comes."""
    wanted = tuple(wanted)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="\n")
    places: list[int] = []
    size, straight = 0, False
    number = 0
    try:
        while line := text.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise UserError(
                    f"{path}, line {number}: is longer than {LONGEST} characters; that is no row of a table"
                )
            if not line.strip() or line.startswith("#"):
                continue
            cells = line.rstrip("\r\n").split(",") if '"' not in line else next(csv.reader([line.rstrip("\r\n")]), [])
            if not places:
                header = [name.strip() for name in cells]
                places, size = _places(path, number, header, wanted), len(header)
                straight = places == list(range(size))
                continue
            if len(cells) != size:
                raise UserError(
                    f"{path}, line {number}: {len(cells)} fields, expected {size}; the line is cut or damaged"
                )
            yield number, cells if straight else [cells[place] for place in places]
    except (OSError, EOFError, zlib.error, csv.Error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: breaks off after line {number} ({error}); copy it again from its source") from error
    if not places:
        raise UserError(f"{path}: has comments and no table")


def _places(path: Path, line: int, header: list[str], wanted: Iterable[str]) -> list[int]:
    for name in wanted:
        if header.count(name) > 1:
            raise UserError(f"{path}, line {line}: column '{name}' stands twice in the header")
        if name not in header:
            rest = [column for column in header if column not in wanted]
            raise UserError(
                f"{path}, line {line}: column '{name}' is missing" + (f"; {nearest(name, rest)}" if rest else "")
            )
    return [header.index(name) for name in wanted]


def _trial(
    run: int, emits: Emits, row: Mapping[str, str] | None, rounds: list[dict[str, Any]], extra: dict[str, Any]
) -> Trial:
    emits.mark_first()
    startup = {one["round"] for one in rounds if one["phase"] == "startup"}
    counts = count(emits, startup)
    values: dict[str, Any] = {
        "place": f"run {run}",
        "label": f"run {run}",
        "emits": emits,
        "streams_known": True,
        "streams": together(list(counts.answers.values())),
        "seconds": window_seconds(emits),
        "rounds": counts.rounds,
        "counted": counts.counted,
        "distinct": counts.distinct,
        "first": counts.first,
        "startup_counted": counts.startup_counted,
        "startup_distinct": counts.startup_distinct,
        **extra,
    }
    if row is not None:
        values |= _run_values(run, row)
    if rounds:
        values |= _round_values(emits, rounds)
    return Trial(**values)


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
    for line, row in _dicts(folder, "runs", RUN_COLUMNS, ("clock_mhz", "prompt_class")):
        if row["arm"] not in ARMS:
            raise UserError(
                f"{folder}/runs, line {line}: arm is '{row['arm'][:40]}', expected one of {', '.join(ARMS)}"
            )
        low = {"run": 0, "n_prompt": 0, "n_prompt_evaluated": 0, "n_predict": 1, "prefill_ns": 0, "decode_window_ns": 0}
        for name, least in low.items():
            _integer(f"{folder}/runs, line {line}", name, row[name], least)
        rows[int(row["run"])] = row
    return rows


def _round_rows(folder: Path) -> dict[int, list[dict[str, Any]]]:
    rows: dict[int, list[dict[str, Any]]] = {}
    for line, row in _dicts(folder, "rounds", ROUND_COLUMNS):
        where = f"{folder}/rounds, line {line}"
        if row["phase"] not in PHASES:
            raise UserError(f"{where}: phase is '{row['phase'][:40]}', expected one of {', '.join(PHASES)}")
        numbers = {name: _integer(where, name, row[name], 0) for name in ROUND_COLUMNS if name != "phase"}
        rows.setdefault(numbers["run"], []).append({"line": line, "phase": row["phase"], **numbers})
    return rows


def _integer(where: str, name: str, text: str, low: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"{where}: {name} is '{text[:40]}', expected a whole number") from None
    if not low <= value < 2**62:
        raise UserError(f"{where}: {name} is {value}, expected {low} or more")
    return value


def _dicts(
    folder: Path, name: str, wanted: tuple[str, ...], more: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    path = _file(folder, name)
    if path is None:
        return
    with opened(path) as stream:
        head = read_some(path, stream, LONGEST).split(b"\n")[0].decode("utf-8", errors="replace")
    there = tuple(column for column in more if column in [cell.strip() for cell in head.split(",")])
    with opened(path) as stream:
        for line, cells in _table(path, stream, wanted + there):
            yield line, dict(zip(wanted + there, cells, strict=True))


def _file(folder: Path, name: str) -> Path | None:
    return next((path for end in (".csv.gz", ".csv") if (path := folder / f"{name}{end}").is_file()), None)


def _mapping(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    with opened(path) as stream:
        raw = read_some(path, stream, MOST_SMALL)
    try:
        value = json.loads(raw) if path.suffix == ".json" else _yaml(raw)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:100]
        raise UserError(f"{path}: is damaged ({why}); run the cell again") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: holds {type(value).__name__}, expected named values; run the cell again")
    return value


def _yaml(raw: bytes) -> Any:
    """A YAML document. ValueError where it is none."""
    import yaml  # only a cell folder has one, and a small text is to be read at once

    from bench.records.bounded import yaml_value

    try:
        return yaml_value(raw.decode("utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
