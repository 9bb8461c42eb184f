"""The table of cells, which alone has their conditions, and that of their controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.judge.columns import RATIO, SHARE, column, table
from bench.judge.tables.base import ArmFact, Fact

NAN = float("nan")
DAMAGED = "damaged"
"""State of a cell that cannot be read or judged; no status.json says it."""


@table
class Cell(ArmFact):
    """One stored cell: what it is about, under which conditions, and what became of it."""

    cell: str = column("its id")
    kind: str = column("contrast, trial, profile or counters; kernels for damaged records of them")
    state: str = column("done, failed or unsupported; damaged where its files cannot be read or judged")
    reason: str = column("why it is not done")
    seconds: float | None = column("how long it took", "s", default=None)
    unproven: str = column("why nothing proves that its files are as they were written; empty when they do", default="")
    stalled: float = column("share of its runs' time that stalls took", SHARE, decimals=1, default=NAN)
    other_cpus: float = column("CPUs' worth of time that everything else took beside its runs, mean", decimals=2,
                               words="others' CPUs", default=NAN)  # fmt: skip
    steal: float = column("CPUs' worth of time that the hypervisor gave to others, mean", decimals=2, default=NAN)
    warnings: int = column("controls that ask the reader to look", default=0)
    label: str = column("the arm in words", default="")
    parameters: Mapping[str, Any] = column("the arm's own parameters, as JSON", default_factory=dict)
    guesses: bool = column("whether the arm proposes tokens that may be wrong", default=False)
    synthetic: bool = column("whether the model has random weights", default=False)
    n_predict: int | None = column("tokens asked for, an answer", "tokens", default=None)
    n_ctx: int | None = column("context of the engine", "tokens", default=None)
    n_batch: int | None = column("logical batch of the engine", "tokens", default=None)
    n_ubatch: int | None = column("physical batch of the engine", "tokens", default=None)
    threads: int | None = column("threads of the engine", default=None)
    n_gpu_layers: int | None = column("layers offloaded; -1 are all", default=None)
    kv_unified: bool | None = column("whether sequences share one cache", default=None)
    repack: bool | None = column("whether weights may lie in an order of a backend's own; empty where they may",
                                 default=None)  # fmt: skip
    split_mode: str | None = column("how the model lies on several GPUs: none, row or tensor; empty: by layer",
                                    default=None)  # fmt: skip
    main_gpu: int | None = column("the GPU of a model that is not split; empty for the first", default=None)
    tensor_split: str | None = column("share of the model that each GPU has, as 3/1; empty: by their free memory",
                                      default=None)  # fmt: skip
    offload_kqv: bool | None = column("whether the cache of offloaded layers lies on the GPU, too; empty where it does",
                                      default=None)  # fmt: skip
    op_offload: bool | None = column("whether a GPU computes large batches of layers whose weights the CPU holds; "
                                     "empty where it may", default=None)  # fmt: skip
    type_k: str | None = column("format of the keys in the cache", default=None)
    type_v: str | None = column("format of the values in the cache", default=None)
    flash_attn: str | None = column("flash attention: on, off or auto", default=None)
    sampler: str | None = column("how tokens are drawn", default=None)
    cpu: str = column("processor", default="")
    gpu: str = column("graphics processors", default="")
    llama_cpp_commit: str = column("commit of llama.cpp", default="")
    time_utc: str = column("when it was measured", default="")
    about: Mapping[str, Any] = column("what a cell of other results is matched with it by, and may differ in",
                                      written=False, default_factory=dict)  # fmt: skip


@table
class ControlRow(Fact):
    """One check of one cell. A `void` one makes every number of the cell worthless."""

    cell: str = column("id of the cell")
    control: str = column("name of the check")
    ok: bool = column("false where it voids the cell")
    severity: str = column("ok, warning or void", words="result")
    value: float = column("figure that was checked", interval="ci")
    ci_low: float = column("lower end of the interval of `value`", decimals=3)
    ci_high: float = column("upper end of the interval of `value`", decimals=3)
    sentence: str = column("what it says", words="what it says")


@table
class Contexts(Fact):
    """A/A of all sound cells of a machine and build together: whether two contexts of one kind are equally fast.

    More blocks in the same contexts never average what one has over another; contexts made anew do.
    """

    again: float = column("second baseline over the first, mean over cells", RATIO, decimals=4, words="A/A",
                          interval="ci")  # fmt: skip
    ci_low: float = column("lower end of the interval of `again`", RATIO)
    ci_high: float = column("upper end of the interval of `again`", RATIO)
    spread: float = column("standard deviation between contexts beyond the noise of their runs; it is in every "
                           "interval of a speed-up", SHARE, decimals=2, words="between contexts")  # fmt: skip
    half_width: float = column("what that alone makes of an interval whose cell has one set of contexts", SHARE,
                               decimals=1, words="half width by it")  # fmt: skip
    readings: int = column("sets of contexts with A/A; a cell has one or more")
