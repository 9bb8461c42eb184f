"""What a cell says of its model, against itself, its configuration, its contexts, and llama.cpp's log of the loading.

It looks at no run. Whether cells of the same weights say the same of them is `bench.judge.controls.weights`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.judge.invariants.settings import WIDENED
from bench.records.engine_log import Loaded

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

LEAST_BITS, MORE_BITS = 0.75, 3.0
"""Bits a weight of a file, over those that its mixture is called by: some tensors have fewer, and those that do not
take the mixture (a small model's, embeddings, norms) have up to twice as many and some."""
WORD_BYTES, HEAD_BYTES = 512, 4 << 20
"""A file beside its tensors: what its vocabulary takes for each token, and all else."""
LEAST_BUFFER, MOST_BUFFER = 64 << 20, 192 << 20
"""A processor's memory is read in a buffer of what a step reads, but for these limits."""
NEARLY = 0.01
GUESSED = "guessed"
STATES = {"hybrid": (True, True), "attention": (True, False), "recurrent": (False, True)}
"""By the kind of memory: whether tokens are cached, and whether a sequence has a state."""
Facts = Mapping[str, Any]


def model_is_configured(case: Case) -> str | None:
    """Name, weights and whether these are random, as cell.yaml has them too."""
    model, config = case.cell.facts.get("model") or {}, case.cell.config
    planned = config.get("model") or {}
    told = {"name": planned.get("name"), "synthetic": planned.get("synthetic"), "sha256": config.get("weights")}
    for name, value in told.items():
        own = model.get(name)
        if own not in (None, "") and value not in (None, "") and own != value:
            return f"cell.yaml says {name} {value} of the model, and facts.json {own}"
    return None


def model_fits_itself(case: Case) -> str | None:
    """Bytes, weights, layers and caches of one model."""
    facts = case.cell.facts
    model = facts.get("model") or {}
    return (_bytes(model) or _bits(model) or _description(model) or _layers(model, facts.get("engine") or {})
            or _caches(model, facts, case.cell.config) or _buffer(model, facts.get("bandwidth") or {}))  # fmt: skip


def model_is_the_logs(case: Case) -> str | None:
    """One of the models that the log tells of is the one that facts.json describes."""
    model, loaded = case.cell.facts.get("model") or {}, case.cell.log.models
    if not model or not loaded:
        return None
    for own in (model, case.cell.facts.get("drafter") or {}):
        contradictions = [_against(own, one, own is model) for one in loaded]
        if None not in contradictions:
            return contradictions[0]
    return None


def contexts_are_the_logs(case: Case) -> str | None:
    """Every context has a format of its cache, and a number of sequences, that some context of the log has."""
    log = case.cell.log
    for arm, own in (case.cell.facts.get("engine") or {}).items():
        cache, held = ((own or {}).get("type_k"), (own or {}).get("type_v")), (own or {}).get("n_seq_max")
        if None not in cache and log.caches and cache not in log.caches:
            told = ", ".join("/".join(one) for one in sorted(log.caches))
            return f"the context of {arm} caches {cache[0]}/{cache[1]}, and llama.cpp made contexts that cache {told}"
        if held is not None and log.sequences and held not in log.sequences:
            told = ", ".join(map(str, sorted(log.sequences)))
            return f"the context of {arm} holds {held} sequences, and llama.cpp made contexts for {told}"
    return None


def _against(model: Facts, log: Loaded, is_target: bool) -> str | None:
    for name, (least, most) in log.numbers.items():
        own = model.get(name)
        if own is not None and not least <= float(own) <= most:
            told = f"{least:.0f}" if least == most else f"{least:.6g} to {most:.6g}"
            return f"llama.cpp loaded a model of {name} {told}, and facts.json has {own}"
    words = {"architecture": log.words.get("architecture"), "description": log.words.get("file_type")}
    for name, word in words.items():
        own = model.get(name)
        if own and word and not str(own).endswith(word):
            return f"llama.cpp loaded a model of {name} {word}, and facts.json has {own}"
    if is_target and log.synthetic is not None and bool(model.get("synthetic", log.synthetic)) != log.synthetic:
        known = "random weights" if log.synthetic else "weights that nobody drew"
        return f"llama.cpp loaded {known}, and facts.json says synthetic {model['synthetic']}"
    return None


def _bytes(model: Facts) -> str | None:
    step, tensors, file = (model.get(f"{name}_bytes") for name in ("step", "tensor", "file"))
    if step and tensors and step > tensors:
        return f"a step is said to read {step} bytes, and the tensors have {tensors}"
    if tensors and file and tensors > file:
        return f"the tensors are said to have {tensors} bytes, and their file {file}"
    room = WORD_BYTES * int(model.get("n_vocab") or 0) + HEAD_BYTES
    if tensors and file and model.get("n_vocab") and file - tensors > room:
        return (f"the file is said to have {file} bytes, {file - tensors} more than its tensors, and a vocabulary of "
                f"{model['n_vocab']} tokens takes no more than {room}")  # fmt: skip
    return None


def _bits(model: Facts) -> str | None:
    """Bytes of the tensors against their number and the name of the mixture."""
    tensors, weights, name = model.get("tensor_bytes"), model.get("n_params"), str(model.get("quantization") or "")
    called = re.match(r"[A-Z]+(\d+)", name)
    if not tensors or not weights or not called or WIDENED in name:
        return None
    bits, nominal = 8 * float(tensors) / float(weights), int(called[1])
    if LEAST_BITS * nominal <= bits <= 2 * nominal + MORE_BITS:
        return None
    return f"{tensors} bytes for {weights} weights are {bits:.2f} bits a weight, and the file is said to be {name}"


def _description(model: Facts) -> str | None:
    """What llama.cpp calls it: architecture, size, file type. One that it guessed says nothing of the mixture."""
    told, quantization = str(model.get("description") or ""), str(model.get("quantization") or "")
    architecture, _, rest = told.partition(" ")
    if told and model.get("architecture") and architecture != model["architecture"]:
        return f"the engine calls the model '{told}', and its architecture is {model['architecture']}"
    called = re.search(r"\b[A-Z]*(Q|F)\d+", rest)
    if called and quantization and WIDENED not in quantization and GUESSED not in told and not quantization.startswith(
            called[0]):  # fmt: skip
        return f"the engine calls the model '{told}', and its quantization is {quantization}"
    return None


def _layers(model: Facts, engines: Mapping[str, Facts]) -> str | None:
    layers, gone, could = (model.get(name) for name in ("n_layer", "layers_offloaded", "layers_offloadable"))
    if could is not None and gone is not None and gone > could:
        return f"{gone} layers are said to be offloaded, and {could} can be"
    if could is not None and layers is not None and could <= layers:
        return f"{could} layers are said to be offloadable, and the model has {layers} beside its output"
    for arm in ("baseline", "again"):
        own = engines.get(arm) or {}
        for name, value in (("n_layer", layers), ("layers_offloaded", gone), ("n_vocab", model.get("n_vocab")),
                            ("n_params", model.get("n_params"))):  # fmt: skip
            if own.get(name) is not None and value is not None and own[name] != value:
                return f"the context of {arm} has {name} {own[name]}, and the model {value}"
    return None


def _caches(model: Facts, facts: Facts, config: Facts) -> str | None:
    """Bytes of a token and of a sequence, against what contexts of plain decoding hold."""
    per_token, state = model.get("kv_bytes_per_token"), model.get("state_bytes_per_sequence")
    if model.get("memory_note") or per_token is None or state is None:
        return None
    kind = STATES.get(str(model.get("memory")))
    if kind and kind != (per_token > 0, state > 0):
        return (f"its memory is said to be {model['memory']}, with {per_token} bytes a token and {state} bytes a "
                "sequence")  # fmt: skip
    held = [(arm, (facts.get("engine") or {}).get(arm) or {}, 1) for arm in ("baseline", "again")]
    if not (config.get("engine") or {}).get("kv_unified"):
        held += [(f"{row.get('streams')} streams", row, int(row.get("streams") or 1))
                 for row in facts.get("memory_by_streams") or []]  # fmt: skip
    for arm, kept in (facts.get("memory") or {}).items():
        own = (facts.get("engine") or {}).get(arm) or {}
        for name in ("kv_bytes", "state_bytes"):
            if None not in (kept.get(name), own.get(name)) and kept[name] != own[name]:
                return f"the context of {arm} holds {name} {own[name]}, and {kept[name]} by its memory"
    for who, own, streams in held:
        made = {"kv_bytes": per_token * int(own.get("n_ctx") or 0) * (streams if "streams" in own else 1),
                "state_bytes": state * streams * (1 + int(own.get("snapshots") or 0))}  # fmt: skip
        for name, value in made.items():
            told = own.get(name)
            if told is not None and value and abs(told - value) > NEARLY * value:
                return f"the context of {who} holds {name} {told}, and the bytes of the model make {value}"
    return None


def _buffer(model: Facts, bandwidth: Facts) -> str | None:
    step, read = model.get("step_bytes"), bandwidth.get("bytes")
    if not step or not read or not bandwidth.get("cache_bytes"):
        return None
    least, most = ((1 - NEARLY) * min(step, MOST_BUFFER), max(step, LEAST_BUFFER))
    if least <= read <= most:
        return None
    return f"a step is said to read {step} bytes, and the memory was read in a buffer of {read}"
