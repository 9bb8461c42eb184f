"""The engine's settings: which are told of a cell, which two arms must share, which decide what a step costs.

It is the one list of them, and reads no record.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, by the name that it has in the records."""

    name: str
    told: bool = False
    """Whether it is among a cell's conditions."""
    priced: bool = False
    """Whether a step-cost curve must share it with the cell whose rounds it prices."""
    shared: bool = True
    """Whether the arms of a contrast are compared in it."""
    free: bool = False
    """Whether the treatment may differ in it: what several sequences need. The solo arm shows what that costs one
    stream. Batch sizes follow the context's size, and no decode step fills them."""


SETTINGS = (
    Setting("build"), Setting("layers_offloaded"), Setting("n_layer"),
    Setting("type_k", told=True, priced=True), Setting("type_v", told=True, priced=True),
    Setting("flash_attn", told=True, priced=True), Setting("threads", told=True, priced=True),
    Setting("threads_batch"), Setting("sampler", told=True), Setting("backends"), Setting("sha256"), Setting("mmap"),
    Setting("n_seq_max", free=True), Setting("n_ctx", told=True, free=True),
    Setting("kv_unified", told=True, priced=True, free=True), Setting("n_batch", told=True, free=True),
    Setting("n_ubatch", told=True, free=True), Setting("n_gpu_layers", told=True, priced=True, shared=False),
    Setting("repack", told=True, priced=True),
    Setting("split_mode", told=True, priced=True), Setting("main_gpu", told=True, priced=True),
    Setting("tensor_split", told=True, priced=True), Setting("offload_kqv", told=True, priced=True),
    Setting("op_offload", told=True, priced=True),
)  # fmt: skip
TOLD = tuple(one.name for one in SETTINGS if one.told)
PRICED = tuple(one.name for one in SETTINGS if one.priced)
SHARED = tuple(one.name for one in SETTINGS if one.shared)
FREE = tuple(one.name for one in SETTINGS if one.free)
