"""In-memory cells for the judge's tests, built from record dataclasses; every duration is chosen, none is measured."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from bench.judge.measure.case import Case
from bench.records.engine_log import NOTHING, EngineLog
from bench.records.rows import TABLES, Draw, Emit, Round, Run, Step, columns
from pti_loop.parameters import declare, resolve

MS = 1_000_000


@dataclass(frozen=True)
class Cell:
    """Stand-in for a stored cell."""

    config: dict[str, Any]
    facts: dict[str, Any]
    runs: pd.DataFrame
    rounds: pd.DataFrame
    ledger: pd.DataFrame
    draws: pd.DataFrame
    steps: pd.DataFrame
    counts: pd.DataFrame = field(default_factory=lambda: frame("counts", []))
    pieces: pd.DataFrame = field(default_factory=lambda: frame("pieces", []))
    sharp: pd.DataFrame = field(default_factory=lambda: frame("sharp", []))
    launches: pd.DataFrame = field(default_factory=lambda: frame("launches", []))
    served: pd.DataFrame = field(default_factory=lambda: frame("served", []))
    machine: str = "box"
    cell: str = "0123456789ab"
    note: str = ""
    log: EngineLog = NOTHING
    env: dict[str, Any] = field(default_factory=lambda: {
        "machine": {"name": "box", "cpu": "toy", "gpus": []}, "engine": {"build": "b1", "llama_cpp_commit": "c1"},
        "time_utc": "2026-07-01T00:00:00Z"})  # fmt: skip
    status: dict[str, Any] = field(default_factory=lambda: {"state": "done", "reason": "", "seconds": 1.0})


def case_of(cell: Cell) -> Case:
    """The cell as measures take it, with no profile beside it."""
    return Case(cell)  # type: ignore[arg-type]


@dataclass
class Arm:
    """How an arm decodes: tokens a round, milliseconds a round, guesses a round and how many of them are right."""

    round_ms: float = 50.0
    per_round: int = 1
    repeat: int = 0
    """Tokens of the round before that each round emits again."""
    streams: int = 1
    together: bool = False
    drafted: int = 0
    accepted: int = 0
    verified: int | None = None
    token: Callable[[int, int], int] = lambda stream, position: 100 * stream + position
    startup: int = 0
    """Start-up rounds, which emit nothing."""
    host_ms: float = 0.0
    gap_ms: float = 0.0
    """Time outside every round, a run."""
    redecoded: int = 0


def frame(name: str, rows: Sequence[Any]) -> pd.DataFrame:
    return pd.DataFrame([asdict(row) for row in rows], columns=columns(TABLES[name]))


def default_facts() -> dict[str, Any]:
    engine = {"n_ctx": 512, "n_seq_max": 1, "kv_unified": False, "type_k": "f16", "type_v": "f16", "flash_attn": "auto",
              "threads": 2, "layers_offloaded": 0, "n_layer": 30, "build": "b1"}  # fmt: skip
    return {
        "model": {"name": "toy", "sha256": "ab", "step_bytes": 100_000_000, "kv_bytes_per_token": 1000,
                  "state_bytes_per_sequence": 0, "quantization": "Q8_0"},
        "noise": {"logit_gap": 0.01, "cdf": 1e-4, "positions": 64, "widths": [1, 4]},
        "engine": {"baseline": dict(engine), "treatment": {**engine, "n_seq_max": 4}},
        "bandwidth": {"read_gb_s": 21.0, "repeats": [20.5, 21.0, 20.9], "threads": 2, "bytes": 100_000_000},
    }  # fmt: skip


def method_of(name: str = "jacobi", streams: int = 1, **parameters: Any) -> dict[str, Any]:
    """A method as a record has it: its own parameters, and what it declares with these values."""
    own = resolve(name, parameters)
    return {"name": name, "parameters": own, "declaration": declare(name, own, streams).as_dict()}


def default_config(**over: Any) -> dict[str, Any]:
    """A configuration as a cell has it; `method` is the name and the parameters that are not at their usual values."""
    config: dict[str, Any] = {
        "kind": "contrast", "model": {"name": "toy"}, "streams": 1, "temperature": 0.0, "n_predict": 41, "seed": 1,
        "engine": {"n_ctx": 512, "threads": 2, "type_k": "f16", "type_v": "f16", "flash_attn": "auto",
                   "kv_unified": False, "n_gpu_layers": 0},
    }  # fmt: skip
    method = over.pop("method", {})
    config.update(over)
    return config | {"method": method_of(streams=config["streams"], **method)}


class Builder:
    """Builds a contrast cell, block by block; `noise(arm, block, order)` multiplies a run's times."""

    def __init__(self, config: dict[str, Any], arms: dict[str, Arm], n_predict: int = 41) -> None:
        self.config, self.arms, self.n_predict = config, arms, n_predict
        self.runs: list[Run] = []
        self.rounds: list[Round] = []
        self.emits: list[Emit] = []
        self.draws: list[Draw] = []
        self.facts = default_facts()
        self.facts["lossless"] = []

    def block(self, number: int, order: Sequence[str], prompt: str, prompt_class: str = "prose",
              noise: Callable[[str, int, int], float] = lambda arm, block, order: 1.0) -> None:
        seen: dict[str, int] = {}
        for place, arm in enumerate(order):
            seed = seen[arm] = seen.get(arm, 0) + 1
            self._run(number, place, arm, prompt, prompt_class, seed, noise(arm, number, place))
        for arm in dict.fromkeys(order):
            for stream in range(self.arms[arm].streams):
                self.facts["lossless"] += [
                    {"arm": arm, "prompt": prompt.split("+")[stream] if "+" in prompt else prompt, "stream": stream,
                     "seed": turn + 1, "n": self.n_predict, "first_difference": None, "teacher_forced": None}
                    for turn in range(seen[arm])
                ] if arm != "baseline" else []  # fmt: skip

    def _run(self, block: int, order: int, arm: str, prompt: str, prompt_class: str, seed: int, factor: float) -> None:
        how, run = self.arms[arm], len(self.runs)
        start = run * 10**12
        now, number = start, 0
        segments = [[stream] for stream in range(how.streams)] if not how.together else [list(range(how.streams))]
        for group in segments:
            for stream in group:
                self.emits.append(Emit(run, stream, 0, how.token(stream, 0), -1, "prefill", now))
            for phase in ["startup"] * how.startup:
                now = self._round(run, number, phase, how, now, factor, group, 0, 0)
                number += 1
            made = 1
            while made < self.n_predict:
                new = min(how.per_round, self.n_predict - made)
                now = self._round(run, number, "steady", how, now, factor, group, made, new)
                for stream in group:
                    for place in range(max(made - how.repeat, 0), made + new):
                        token = how.token(stream, place)
                        self.emits.append(Emit(run, stream, place, token, number, "verified", now))
                made += new
                number += 1
        now += int(how.gap_ms * MS * factor)
        self.runs.append(Run(run, block, order, arm, prompt, prompt_class, seed, 10 * how.streams, 10 * how.streams,
                             self.n_predict, 5 * MS, start, now, now - start, 2000.0 + run % 3, 50.0))  # fmt: skip

    def _round(self, run: int, number: int, phase: str, how: Arm, now: int, factor: float, group: Sequence[int],
               made: int, new: int) -> int:
        total, host = int(how.round_ms * MS * factor), int(how.host_ms * MS * factor)
        verified = how.drafted if how.verified is None else how.verified
        guesses = (how.drafted, verified, how.accepted) if phase == "steady" else (0, 0, 0)
        if phase == "steady" and new < how.per_round:  # the last round of an answer guesses no further than its end
            guesses = (new - 1,) * 3
        self.rounds.append(Round(run, number, phase, len(group) + how.drafted, 0, total - host, 0, 0, total, *guesses,
                                 redecoded=how.redecoded))  # fmt: skip
        for depth in range(guesses[1]):
            position = made + depth
            drawn = how.token(group[0], position)
            guess = drawn if depth < guesses[2] else drawn + 1
            self.draws.append(Draw(run, number, depth + 1, position, guess, drawn, float("nan")))
        return now + total

    def build(self, **over: Any) -> Cell:
        tables = {"runs": frame("runs", self.runs), "rounds": frame("rounds", self.rounds),
                  "ledger": frame("ledger", self.emits), "draws": frame("draws", self.draws),
                  "steps": frame("steps", [])}  # fmt: skip
        return Cell(config=self.config, facts=copy.deepcopy(self.facts), **{**tables, **over})


PLAIN = Arm()
CONTROL_ORDER = ("baseline", "again", "treatment", "sabotage", "oracle", "oracle", "sabotage", "treatment", "again",
                 "baseline")  # fmt: skip


def wobble(arm: str, block: int, order: int) -> float:
    """A deterministic 1 % of run-to-run noise, and a linear drift that a palindrome cancels."""
    return 1.0 + 0.01 * (((block * 7 + order * 13 + len(arm) * 3) % 9) - 4) / 4 + 0.002 * order


def guess_cell(treatment: Arm | None = None, blocks: int = 4, cell: str = "0123456789ab",
               change: Callable[[Builder], None] | None = None, noise: Callable = wobble, **config: Any) -> Cell:
    """A jacobi-like contrast with all controls: 2 tokens a round at 1.25 of the price, unless told otherwise."""
    arms = {
        "baseline": PLAIN, "again": PLAIN, "solo": Arm(round_ms=52.0),
        "treatment": treatment or Arm(round_ms=62.5, per_round=2, drafted=2, accepted=1, verified=2),
        "sabotage": Arm(round_ms=62.5, drafted=2, accepted=0, verified=1),
        "oracle": Arm(round_ms=62.5, per_round=3, drafted=2, accepted=2),
    }  # fmt: skip
    builder = Builder(default_config(**config), arms)
    for block in range(blocks):
        order = CONTROL_ORDER if block < 2 else ("baseline", "treatment", "treatment", "baseline")
        builder.block(block, order, f"p{block}", "prose" if block % 2 else "code", noise)
    if change:
        change(builder)
    return builder.build(cell=cell)


def profile_cell(ms: dict[int, float], passes: int = 4, layout: str = "tokens", cell: str = "profile00000",
                 warm_up: float = 9.0, pace: float = 0.001) -> Cell:
    """A step-cost profile whose first pass costs `warm_up` times as much; passes get slower by `pace` each."""
    rows = [Step(width, repeat, order, layout, round(time * MS * (warm_up if repeat == 0 else 1 + pace * repeat)), 16)
            for repeat in range(passes) for order, (width, time) in enumerate(ms.items())]  # fmt: skip
    config = default_config(kind="profile")
    config.pop("method")
    tables = {name: frame(name, []) for name in ("runs", "rounds", "ledger", "draws")}
    return Cell(config=config, facts=default_facts(), steps=frame("steps", rows), cell=cell, **tables)
