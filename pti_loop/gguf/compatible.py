"""Whether two files go together, from their headers and before anything is loaded.

A draft model must have the target's vocabulary, since token ids are all that passes between them; an adapter must fit
its base, tensor by tensor; drafting with a model's own nextn head needs one. Each check returns one sentence that names
the first difference, or None. It does not know whether a pair is any good, and it loads nothing.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from pti_loop.gguf import file as gguf_file
from pti_loop.gguf.header import Header, ModelFileError, read_header

_TOKENS, _TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_TOKENIZER = {"tokenizer.ggml.model": "none", "tokenizer.ggml.pre": "default"}
"""Keys of the tokenizer, and what their absence means to llama.cpp."""
_ENDS = ("bos", "eos")
_FOUND_BY_TEXT = ("eot", "eom", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep")
"""Special tokens that llama.cpp finds by their text where a file does not name them."""
_KINDS = {1: "normal", 2: "unknown", 3: "control", 4: "user-defined", 5: "unused", 6: "byte"}


def draft_fits(target: Path, draft: Path) -> str | None:
    """Why `draft` cannot draft for `target`: the first difference of their vocabularies. None when they are the same.

    What is only needed to turn text into ids (merges, scores, a leading token) is not compared: the target does that.
    """
    try:
        for path in (target, draft):
            gguf_file.read(path)
        left, right = (read_header(Path(path).expanduser(), (_TOKENS, _TYPES)) for path in (target, draft))
    except ModelFileError as error:
        return str(error)
    found = _tokenizer_differs(left, right) or _tokens_differ(left, right) or _specials_differ(left, right)
    advice = "a draft model needs the target's vocabulary; choose one of the same family"
    return f"{draft} cannot draft for {target}: {found}; {advice}" if found else None


def _tokenizer_differs(left: Header, right: Header) -> str | None:
    for key, absent in _TOKENIZER.items():
        one, other = (header.metadata.get(key, absent) for header in (left, right))
        if one != other:
            return f"{key} is '{other}', the target's '{one}'"
    return None


def _tokens_differ(left: Header, right: Header) -> str | None:
    tokens = [_tokens(header) for header in (left, right)]
    sizes = [len(words) or _vocab_size(header) for words, header in zip(tokens, (left, right), strict=True)]
    if sizes[0] != sizes[1]:
        return f"it has {sizes[1]} tokens, the target {sizes[0]}"
    if tokens[0] != tokens[1]:
        place = next(i for i, (one, other) in enumerate(zip_longest(*tokens)) if one != other)
        return f"token {place} is {_shown(tokens[1], place)}, the target's {_shown(tokens[0], place)}"
    types = [_array(header, _TYPES) for header in (left, right)]
    if types[0] != types[1]:
        place = next(i for i, (one, other) in enumerate(zip_longest(*types)) if one != other)
        word = _shown(tokens[0], place)
        return f"token {place} ({word}) is {_kind(types[1], place)}, the target's {_kind(types[0], place)}"
    return None


def _specials_differ(left: Header, right: Header) -> str | None:
    for name in (*_ENDS, *_FOUND_BY_TEXT):
        key = f"tokenizer.ggml.{name}_token_id"
        one, other = (header.metadata.get(key) for header in (left, right))
        if one != other and (name in _ENDS or None not in (one, other)):
            return f"{key} is {_given(other)}, the target's {_given(one)}"
    return None


def _tokens(header: Header) -> tuple[bytes, ...]:
    return tuple(value for value in _array(header, _TOKENS) if isinstance(value, bytes))


def _array(header: Header, key: str) -> tuple[int | float, ...] | tuple[bytes, ...]:
    value = header.metadata.get(key, ())
    return value if isinstance(value, tuple) else ()


def _vocab_size(header: Header) -> int:
    value = header.metadata.get(f"{header.metadata['general.architecture']}.vocab_size", 0)
    return value if isinstance(value, int) else 0


def _shown(words: tuple[bytes, ...], place: int) -> str:
    return repr(words[place].decode("utf-8", "replace")) if place < len(words) else "missing"


def _kind(types: tuple[object, ...], place: int) -> str:
    if place >= len(types):
        return "of no type"
    kind = types[place]
    return _KINDS.get(kind, str(kind)) if isinstance(kind, int) else str(kind)


def _given(value: object) -> str:
    return "not given" if value is None else str(value)


def adapter_fits(base: Path, adapter: Path) -> str | None:
    """Why the LoRA adapter does not go on `base`: the first tensor that does not fit. None when all do.

    The rules are those of llama.cpp's own loader (llama-adapter.cpp), which tells only that some shape is wrong.
    """
    try:
        model = gguf_file.read(base)
        header = read_header(Path(adapter).expanduser())
    except ModelFileError as error:
        return str(error)
    found = _no_adapter(header) or _other_base(header, model) or _tensors_misfit(header, model)
    return f"the adapter {adapter} does not fit {base}: {found}" if found else None


def _no_adapter(header: Header) -> str | None:
    for key, wanted in (("general.type", "adapter"), ("adapter.type", "lora")):
        if header.metadata.get(key) != wanted:
            return f"{key} is {_given(header.metadata.get(key))}, a LoRA adapter has '{wanted}'"
    return None if header.tensors else "it has no tensors"


def _other_base(header: Header, model: gguf_file.GgufFile) -> str | None:
    made_for = header.metadata.get("general.architecture")
    if made_for == model.architecture:
        return None
    return f"it is made for the architecture '{made_for}', the base is '{model.architecture}'"


def _tensors_misfit(header: Header, model: gguf_file.GgufFile) -> str | None:
    shapes = {tensor.name: tensor.shape for tensor in model.tensors}
    halves = {tensor.name: tensor.shape for tensor in header.tensors if not tensor.name.endswith("_norm.weight")}
    odd = next((name for name in halves if not name.endswith((".lora_a", ".lora_b"))), None)
    if odd:
        return f"tensor {odd} is neither a lora_a nor a lora_b"
    for name in dict.fromkeys(half.rpartition(".")[0] for half in halves):
        first, second = halves.get(f"{name}.lora_a"), halves.get(f"{name}.lora_b")
        if first is None or second is None:
            return f"{name} has no lora_{'b' if second is None else 'a'}"
        if name not in shapes:
            return f"the base has no tensor {name}"
        if misfit := _pair_misfits(name, shapes[name], _flat(first), _flat(second)):
            return misfit
    return None


def _pair_misfits(name: str, base: tuple[int, ...], first: tuple[int, int], second: tuple[int, int]) -> str | None:
    """Shapes are (columns, rows). The two halves of a table of words are stored the other way around."""
    rows = base[1] if len(base) > 1 else 1
    table = name.endswith("token_embd.weight")
    span = (second[1], first[1]) if table else (first[0], second[1])
    ranks = (first[0], second[0]) if table else (first[1], second[0])
    if span != (base[0], rows):
        return f"{name} is {base[0]} x {rows} in the base and {span[0]} x {span[1]} in the adapter"
    return None if ranks[0] == ranks[1] else f"{name} has lora_a of rank {ranks[0]} and lora_b of rank {ranks[1]}"


def _flat(shape: tuple[int, ...]) -> tuple[int, int]:
    return shape[0], shape[1] if len(shape) > 1 else 1


def nextn_layers(path: Path) -> int:
    """Layers of a multi-token-prediction head that the file holds tensors of. Raises `ModelFileError`."""
    file = gguf_file.read(path)
    blocks = {tensor.name.split(".")[1] for tensor in file.tensors if ".nextn." in tensor.name}
    return min(len(blocks), file.n_nextn)


def nextn_missing(path: Path, wanted: int = 1) -> str | None:
    """Why the model cannot draft with `wanted` nextn layers; None when it can."""
    try:
        layers, said = nextn_layers(path), gguf_file.read(path).n_nextn
    except ModelFileError as error:
        return str(error)
    if layers >= wanted:
        return None
    if said > layers:
        return f"{path} says that it has {said} nextn layers and holds the tensors of {layers}; convert it again"
    have = "no nextn layer" if not layers else f"{layers} nextn layers and {wanted} are asked for"
    return f"{path} has {have}, so it predicts no further tokens by itself; choose a method that needs no head"
