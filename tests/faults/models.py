"""Edits of what a cell says of its model, and configurations that asked for no controls, with their own id."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

from bench.records.identity import stored_id
from tests.faults.records import H200, LOOKUP, MTP, PACKED, PROFILE, fault
from tests.faults.served import SERVED
from tests.faults.sharp import SHARP
from tests.faults.stored import OF_RUNS, Record

TOGETHER, TRIAL, COUNTED, NARROW = "9506be55b742", "ae31f4d33160", "b3bafce0a113", "90ba3d23f127"
"""Two streams of the 27B shape, whose weights are random; a build on trial; the counters of a decode of that shape; two
streams of a small model on a GPU."""
TWIN, HOT = "e15b68e3f20d", "1a0a290e3bf7"
"""A drafter of the same weights, smaller; copies of one answer at temperature 0.8."""


def _model(record: Record, **values: Any) -> None:
    record.facts["model"] |= values


def _named_anew(record: Record) -> None:
    """By the id of what the configuration says."""
    made = stored_id(record.config, record.env["engine"]["build"], record.facts["model"]["sha256"])
    assert made is not None
    record.cell = made


def _without_log(edit: Callable[[Record], None]) -> Callable[[Record], None]:
    def both(record: Record) -> None:
        record.log = b""
        edit(record)

    return both


FACTS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("the tensors have a third of their bytes", LOOKUP, "loaded", {"tensor_bytes": 32192256, "step_bytes": 32192256}),
    ("the model has a tenth of its weights", LOOKUP, "loaded", {"n_params": 13451500}),
    ("the model has one layer less", PROFILE, "loaded", {"n_layer": 7}),
    ("another architecture, as the engine calls it too", TOGETHER, "loaded",
     {"architecture": "llama", "description": "llama 27B Q6_K"}),
    ("another mixture, as the engine calls it too", TOGETHER, "loaded",
     {"quantization": "Q5_K_M", "description": "qwen35 27B Q5_K - Medium"}),
    ("random weights are called real", TOGETHER, "loaded", {"synthetic": False}),
    ("a vocabulary that is twice as large", SHARP, "loaded", {"n_vocab": 98304}),
    ("real weights are called random", TRIAL, "configured", {"synthetic": True}),
    ("facts of a model of another name", PACKED, "configured", {"name": "qwen3.6-27b"}),
    ("facts of other weights than those that the id rests on", SHARP, "configured", {"sha256": "0" * 64}),
)  # fmt: skip
"""What is told otherwise, in which cell, what must catch it, and the facts."""
UNSEEN: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("the file has ten times its bytes", LOOKUP, {"file_bytes": 983624320}),
    ("the file has fewer bytes than its tensors", SERVED, {"file_bytes": 10**6}),
    ("the tensors of a server's model have more bytes than its file", SERVED, {"tensor_bytes": 10**9}),
    ("a step reads a third of what the memory was read in", LOOKUP, {"step_bytes": 32192256}),
    ("two bits a weight are called six", TOGETHER, {"tensor_bytes": 7 * 10**9, "step_bytes": 6 * 10**9,
                                                    "file_bytes": 7 * 10**9}),
    ("half of the weights, of as many bytes", TRIAL, {"n_params": 10**8}),
    ("another mixture than the engine calls it by", H200, {"quantization": "Q8_0"}),
    ("another architecture than the engine calls it by", COUNTED, {"architecture": "llama"}),
    ("more layers are offloaded than can be", TRIAL, {"layers_offloaded": 40}),
    ("no layer is left for the output", COUNTED, {"layers_offloadable": 8}),
    ("the model has fewer layers than its contexts", SHARP, {"n_layer": 12}),
    ("a token takes three times the bytes in a cache that did not grow", PACKED, {"kv_bytes_per_token": 69120}),
    ("a sequence has a tenth of its state", PROFILE, {"state_bytes_per_sequence": 86016}),
    ("a model with a state that is said to have attention alone", PROFILE, {"memory": "attention"}),
    ("a server's model with another vocabulary", SERVED, {"n_vocab": 50000}),
)  # fmt: skip
"""The same where nobody kept llama.cpp's log, caught by what else the facts say."""

for _name, _cell, _check, _facts in FACTS:
    fault(_name, _cell, _check)(lambda record, facts=_facts: _model(record, **facts))
for _name, _cell, _facts in UNSEEN:
    fault(_name, _cell, "model")(_without_log(lambda record, facts=_facts: _model(record, **facts)))


@fault("random weights are called real by both files", TOGETHER, "loaded")
def _(record: Record) -> None:
    _model(record, synthetic=False)
    record.config["model"]["synthetic"] = False


@fault("half of the layers were offloaded, by every context", TOGETHER, "loaded")
def _(record: Record) -> None:
    _model(record, layers_offloaded=33)
    for facts in record.facts["engine"].values():
        facts["layers_offloaded"] = 33


@fault("the log is that of another model", LOOKUP, "loaded")
def _(record: Record) -> None:
    text = gzip.decompress(record.log).replace(b"n_layer               = 30", b"n_layer               = 64")
    record.log = gzip.compress(text)


@fault("the GPU of the provenance is another than llama.cpp found", TOGETHER, "machine")
def _(record: Record) -> None:
    record.env["machine"]["gpus"][0]["name"] = "AMD Instinct MI50"


@fault("all contexts cached in eight bits, by configuration and facts", NARROW, "contexts")
def _(record: Record) -> None:
    record.config["engine"] |= {"type_k": "q8_0", "type_v": "q8_0"}
    for facts in record.facts["engine"].values():
        facts |= {"type_k": "q8_0", "type_v": "q8_0"}
    _named_anew(record)


@fault("the treatment's context held eight sequences", NARROW, "contexts")
def _(record: Record) -> None:
    record.facts["engine"]["treatment"]["n_seq_max"] = 8


@fault("rejected tokens were forgotten in a way that failed its probe", MTP, "rollback")
def _(record: Record) -> None:
    record.facts["rollback"]["strategy"] = "rewind"


# Controls that nobody asked for.


def _never_asked(record: Record, setting: str, *arms: str) -> None:
    """No block was to have these arms, none has them, and the id is that of this configuration."""
    record.config["measure"][setting] = 0
    record.drop(*arms)
    for place, run in enumerate(sorted(set(record.tables["runs"]["run"]))):
        for name in OF_RUNS:
            if name in record.tables:
                rows = record.tables[name]
                rows.loc[rows["run"] == run, "run"] = place
    _named_anew(record)


def _without_again(record: Record) -> None:
    _never_asked(record, "again_blocks", "again")


for _of, _cell in (("", SHARP), (" of several streams", TOGETHER), (" of a build on trial", TRIAL),
                   (" of servers", SERVED)):  # fmt: skip
    fault(f"nobody asked for A/A{_of}", _cell, "again")(_without_again)


@fault("nobody asked for wrong guesses", SHARP, "sabotage")
def _(record: Record) -> None:
    _never_asked(record, "control_blocks", "sabotage", "oracle")


@fault("nobody asked for right guesses", SHARP, "oracle")
def _(record: Record) -> None:
    _never_asked(record, "control_blocks", "sabotage", "oracle")


# What was configured, what contexts say of it, and what was measured beside the runs.


def _told(record: Record, **values: Any) -> None:
    """Settings of the engine in the configuration alone, under the id that this gives."""
    record.config["engine"] |= values
    _named_anew(record)


@fault("a context of eight times the length", NARROW, "settings")
def _(record: Record) -> None:
    _told(record, n_ctx=4096)


@fault("prompts behind other text that no context has room for", NARROW, "settings")
def _(record: Record) -> None:
    record.config["depth"] = 4096
    _named_anew(record)


@fault("attention of another kind", NARROW, "settings")
def _(record: Record) -> None:
    _told(record, flash_attn="off")


@fault("no layer was to be offloaded", NARROW, "settings")
def _(record: Record) -> None:
    _told(record, n_gpu_layers=0)


@fault("tokens were to be drawn on the device", NARROW, "settings")
def _(record: Record) -> None:
    _told(record, sampler="device")


@fault("weights were to stay in the file's order", "a7005ec798c2", "settings")
def _(record: Record) -> None:
    _told(record, repack=False)


@fault("decodes were to be split after each token", NARROW, "settings")
def _(record: Record) -> None:
    _told(record, n_ubatch=1)


@fault("the memory was read by more threads than decode", LOOKUP, "once")
def _(record: Record) -> None:
    record.facts["bandwidth"]["threads"] = 64


@fault("the treatment took less memory than its context has", NARROW, "model")
def _(record: Record) -> None:
    record.facts["memory"]["treatment"]["kv_bytes"] //= 4


@fault("a drafter of other weights than any that was loaded", TWIN, "loaded")
def _(record: Record) -> None:
    record.facts["drafter"]["n_params"] = 1_000_000


@fault("no rounding of F16 weights is so coarse", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["noise"]["logit_gap"] = 4.0


@fault("the F16 file has ten times its weights", SHARP, "f16")
def _(record: Record) -> None:
    record.facts["sharp"]["bytes"] *= 10


@fault("the noise was measured at more positions than answers have", TOGETHER, "replays")
def _(record: Record) -> None:
    record.facts["noise"]["positions"] = 10**6


@fault("draws above temperature 0 by whoever takes the likeliest", HOT, "temperature")
def _(record: Record) -> None:
    record.facts["process"]["draws"] = "argmax"


# Builds and settings on trial.


@fault("the limit of power was read for the treatment alone", TRIAL, "limits")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "baseline"), "power_cap_w"] = float("nan")


@fault("arms of two processes are said to share one", TRIAL, "waiting")
def _(record: Record) -> None:
    del record.facts["sides"]


@fault("a build on trial is called by the name of the usual one", TRIAL, "trial")
def _(record: Record) -> None:
    record.config["treatment"]["declaration"]["words"] = "build stock"


@fault("every context decoded twice the rows that its rounds have", SHARP, "decoded")
def _(record: Record) -> None:
    record.tables["runs"]["window_tokens"] *= 2
