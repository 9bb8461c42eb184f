"""What the judge found, as plain rows: one dict a fact, ready to be printed.

It does not know how a row was computed, and it computes no statistic. Every row names its machine, the engine build and
the cells that it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.judge.arm import arm_of
from bench.judge.claims.synthetic import about_model

if TYPE_CHECKING:
    from bench.records.cells import StoredCell

Row = dict[str, Any]

OK, WARNING, VOID = "ok", "warning", "void"
"""How bad a control is: passed, worth reading, or the cell says nothing."""

ENGINE_SETTINGS = (
    "n_ctx", "n_batch", "n_ubatch", "threads", "kv_unified", "type_k", "type_v", "flash_attn", "n_gpu_layers",
    "sampler",
)  # fmt: skip


@dataclass
class Findings:
    """Tables of the judge. The keys of a row are the columns of the report file of the same name, and extras."""

    speedup: list[Row] = field(default_factory=list)
    step_cost: list[Row] = field(default_factory=list)
    acceptance: list[Row] = field(default_factory=list)
    domain: list[Row] = field(default_factory=list)
    memory: list[Row] = field(default_factory=list)
    decomposition: list[Row] = field(default_factory=list)
    predictions: list[Row] = field(default_factory=list)
    controls: list[Row] = field(default_factory=list)
    timeline: list[Row] = field(default_factory=list)
    bandwidth: list[Row] = field(default_factory=list)
    peers: list[Row] = field(default_factory=list)
    distribution: list[Row] = field(default_factory=list)
    cells: list[Row] = field(default_factory=list)
    kernels: list[Row] = field(default_factory=list)
    counters: list[Row] = field(default_factory=list)
    ssq: list[Row] = field(default_factory=list)
    kernel_resources: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Control:
    """One check of one cell. `void` makes every number of the cell worthless; `warning` asks the reader to look."""

    control: str
    severity: str
    sentence: str
    value: float = float("nan")
    ci_low: float = float("nan")
    ci_high: float = float("nan")

    def row(self, cell: StoredCell) -> Row:
        return {
            **origin(cell),
            "cell": cell.cell,
            "control": self.control,
            "ok": self.severity != VOID,
            "severity": self.severity,
            "value": self.value,
            "ci_low": self.ci_low,
            "ci_high": self.ci_high,
            "sentence": self.sentence,
        }


def origin(cell: StoredCell) -> Row:
    """Machine, engine build and cell id: where a fact comes from."""
    return {"machine": cell.machine, "build": (cell.env.get("engine") or {}).get("build", ""), "cells": [cell.cell]}


def subject(cell: StoredCell) -> Row:
    """What a contrast cell is about: model, method and its parameters."""
    config, arm = cell.config, arm_of(cell)
    return {
        **about_model(cell),
        "method": arm.method,
        **arm.parameters,
        "parameters": dict(arm.parameters),
        "guesses": arm.guesses,
        "label": arm.label,
        "short": arm.short,
        "streams": config.get("streams", 1),
        "temperature": float(config.get("temperature", 0.0)),
        "n_predict": config.get("n_predict"),
    }


def settings(cell: StoredCell) -> Row:
    """Engine settings of a cell, for the condition line above a table."""
    engine = cell.config.get("engine") or {}
    return {key: engine.get(key) for key in ENGINE_SETTINGS}


def rerun(cell: StoredCell) -> str:
    """What measures a cell again: a sweep keeps what is done, so the folder has to go first."""
    return f"`rm -r results/{cell.machine}/{cell.cell}` and the same sweep again"
