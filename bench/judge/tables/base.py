"""What the rows of several tables have in common: where a fact comes from, which model and which arm it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.judge.columns import Row, column, table

END = 1
"""Place of what every table has: behind its own columns."""


@table
class Fact(Row):
    """A fact with the machine, the engine build and the cells that it rests on."""

    machine: str = column("name of the machine", place=END)
    build: str = column("build of the engine; `none` where there is none", place=END)
    cells: Sequence[str] = column("ids of the cells that the row rests on", place=END + 1)
    conditions: Mapping[str, Any] = column("what is true of the whole cell", written=False, place=END + 1,
                                           default_factory=dict)  # fmt: skip


@table
class ModelFact(Fact):
    """A fact about a model on a machine."""

    model: str = column("name of the model; one with random weights is marked as synthetic")
    quantization: str = column("format of most of its weights", default="")


@table
class ArmFact(ModelFact):
    """A fact about one way of decoding: an arm of a contrast."""

    method: str = column("way of decoding")
    short: str = column("the arm in short: method, and every parameter that is not at its usual value", words="arm")
    streams: int | None = column("copies or answers decoded together; 1 where the method has one answer and no copies")
    temperature: float | None = column("sampling temperature; 0 takes the most likely token", words="T")
    void: bool = column("whether a control failed, so that the row counts for nothing", place=END,
                        default=False)  # fmt: skip
    void_reason: str = column("the controls that failed, with what they say", words="why void",
                             place=END, default="")  # fmt: skip
