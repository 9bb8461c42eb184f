"""A GGUF model checked before it is loaded, and what can be computed without loading it: sizes, and memory needed.

`read(path)` returns a `GgufFile` or raises `ModelFileError` with one sentence. It reads headers only, which takes
milliseconds for any size of file. It does not prove that the file loads: the library's load error is the last word.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pti_loop.gguf import file_hash, model_memory
from pti_loop.gguf.header import ArrayLength, Header, ModelFileError, Tensor, Value, read_header
from pti_loop.gguf.sizes import check_sizes

__all__ = ["GgufFile", "ModelFileError", "Tensor", "engine_library", "read"]

_PART = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")
_NOT_A_MODEL = {
    "adapter": "a LoRA adapter, which needs a base model",
    "mmproj": "the image encoder of a model, not the model",
    "imatrix": "an importance matrix, not a model",
}
SYNTHETIC = "pti_bench.synthetic"
"""Key that marks a file of random weights."""
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4",
    40: "Q1_0", 41: "Q2_0",
}  # fmt: skip
"""`general.file_type` -> the name that people use for the mixture of tensor types."""


@dataclass(frozen=True)
class GgufFile:
    """A model that passed the checks. Sizes in bytes. `parts` has several paths for a split model."""

    path: Path
    parts: tuple[Path, ...]
    metadata: dict[str, Value]
    """Scalars, texts and short numeric arrays; a long array or one of texts is an `ArrayLength`."""
    tensors: tuple[Tensor, ...]
    file_bytes: int

    @property
    def architecture(self) -> str:
        """`general.architecture`."""
        return str(self.metadata["general.architecture"])

    @property
    def name(self) -> str:
        """`general.name`, or the file's name."""
        return str(self.metadata.get("general.name") or self.path.stem)

    def key(self, suffix: str) -> Value | None:
        """Value of `<architecture>.<suffix>`; None when the file has no such key."""
        return self.metadata.get(f"{self.architecture}.{suffix}")

    def number(self, suffix: str, default: int = 0) -> int:
        """The whole number `<architecture>.<suffix>`. Raises `ModelFileError` where the file has something else."""
        value = self.key(suffix)
        if value is None:
            return default
        if not isinstance(value, (int, float)):
            raise ModelFileError(f"{self.path} is damaged: {self.architecture}.{suffix} is {value!r}, not a number")
        return int(value)

    @property
    def synthetic(self) -> bool:
        """Whether `python -m bench synth` made it: its weights are random, and what it says is no evidence."""
        return self.metadata.get(SYNTHETIC) is True

    @property
    def n_nextn(self) -> int:
        """Layers of a multi-token-prediction head, which plain decoding does not run."""
        return self.number("nextn_predict_layers")

    @property
    def n_layer(self) -> int:
        """Layers that plain decoding runs."""
        return self.number("block_count") - self.n_nextn

    @property
    def n_vocab(self) -> int:
        """Rows of the vocabulary."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, ArrayLength):
            return tokens.length
        return self.number("vocab_size")

    @property
    def n_ctx_train(self) -> int:
        """Context length that the model was trained for, in tokens."""
        return self.number("context_length")

    @property
    def n_params(self) -> int:
        """Weights in all tensors of the file."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def quantization(self) -> str:
        """Name of the mixture, such as Q4_K_M; without `general.file_type`, the type that most bytes have."""
        kind = self.metadata.get("general.file_type")
        if isinstance(kind, int) and kind in FILE_TYPES:
            return FILE_TYPES[kind]
        weight: Counter[str] = Counter()
        for tensor in self.tensors:
            weight[tensor.type] += tensor.bytes
        return weight.most_common(1)[0][0]

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors, without header and padding."""
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def step_bytes(self) -> int:
        """Weights that one decode step of one token reads; see `model_memory.step_bytes`."""
        return model_memory.step_bytes(self)

    @property
    def memory_note(self) -> str:
        """Why the two memory formulas may be off for this architecture; empty when they are exact."""
        return model_memory.note(self)

    def kv_bytes_per_token(self, type_k: str = "f16", type_v: str = "f16") -> int:
        """Bytes that one token of one sequence takes in the KV cache, all layers."""
        return model_memory.kv_bytes_per_token(self, type_k, type_v)

    def state_bytes_per_sequence(self) -> int:
        """Bytes of recurrent state that one sequence takes, whatever its length; 0 for attention-only models."""
        return model_memory.state_bytes_per_sequence(self)

    def sha256(self) -> str:
        """SHA-256 of the file; of a split model, of its parts' digests. Remembered by path, size and time of change."""
        return file_hash.sha256_of(self.parts)


def engine_library() -> Path | None:
    """The llama.cpp library that llama-cpp-python would load, found without loading it; None when there is none."""
    folder = os.environ.get("LLAMA_CPP_LIB_PATH")
    if not folder:
        try:
            spec = importlib.util.find_spec("llama_cpp")
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            return None
        folder = str(Path(next(iter(spec.submodule_search_locations))) / "lib")
    suffixes = ("dylib", "so") if sys.platform == "darwin" else ("so",)
    return next((path for suffix in suffixes if (path := Path(folder) / f"libllama.{suffix}").is_file()), None)


def read(path: str | Path, library: Path | None = None) -> GgufFile:
    """Check a model file and describe it. Raises `ModelFileError`.

    `library` is the llama.cpp library whose architectures count; None looks for the installed one.
    """
    path = Path(path).expanduser()
    header = read_header(path)
    parts = [header] + [_part(name, number) for number, name in enumerate(_other_parts(header), start=1)]
    metadata = header.metadata
    tensors = tuple(tensor for part in parts for tensor in part.tensors)
    _check_kind(path, metadata, tensors)
    _check_keys(path, metadata)
    check_sizes(path, metadata, len(tensors))
    _check_tokenizer(path, metadata)
    _check_known(path, str(metadata["general.architecture"]), library or engine_library())
    return GgufFile(path, tuple(part.path for part in parts), metadata, tensors, sum(part.file_bytes for part in parts))


def _other_parts(header: Header) -> list[Path]:
    """Paths of parts 2..n of a split model whose first part this is."""
    count = header.metadata.get("split.count", 0)
    if not isinstance(count, int) or count <= 1:
        return []
    path, named = header.path, _PART.match(header.path.name)
    if not named or int(named["count"]) != count:
        raise ModelFileError(
            f"{path} is one of {count} parts, so its name has to end in -00001-of-{count:05d}.gguf; rename it"
        )
    names = [path.with_name(f"{named['stem']}-{number:05d}-of-{count:05d}.gguf") for number in range(1, count + 1)]
    number = header.metadata.get("split.no", int(named["number"]) - 1)
    if number != 0:
        raise ModelFileError(f"{path} is part {_counted(number)} of {count}; give the first one, {names[0]}")
    missing = [name.name for name in names[1:] if not name.exists()]
    if missing:
        raise ModelFileError(
            f"{path} is part 1 of {count}, and of the others are missing beside it: {', '.join(missing[:4])}"
            + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
        )
    return names[1:]


def _part(path: Path, number: int) -> Header:
    header = read_header(path)
    said = header.metadata.get("split.no", number)
    if said != number:
        raise ModelFileError(f"{path} says that it is part {_counted(said)}, not part {number + 1}")
    return header


def _counted(number: Value) -> str:
    """A part's number counted from 1, or whatever else the file has there."""
    return str(number + 1) if isinstance(number, int) else repr(number)


def _check_kind(path: Path, metadata: dict[str, Value], tensors: tuple[Tensor, ...]) -> None:
    kind = metadata.get("general.type")
    if isinstance(kind, str) and kind in _NOT_A_MODEL:
        raise ModelFileError(f"{path} is {_NOT_A_MODEL[kind]}; give the model's own GGUF file")
    if not metadata and not tensors:
        raise ModelFileError(f"{path} is an empty GGUF file: no metadata and no tensors")
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        found = "is missing" if architecture is None else f"is {architecture!r}"
        raise ModelFileError(f"{path} does not say what it is: general.architecture {found}; convert it again")
    if not tensors:
        what = "holds a vocabulary only" if "tokenizer.ggml.tokens" in metadata else "holds metadata only"
        raise ModelFileError(f"{path} {what}: it has no tensors, so nothing can be decoded with it")


def _check_keys(path: Path, metadata: dict[str, Value]) -> None:
    architecture = metadata["general.architecture"]
    for key in ("block_count", "embedding_length", "context_length"):
        value = metadata.get(f"{architecture}.{key}")
        if not isinstance(value, int) or value <= 0:
            found = "is missing" if value is None else f"is {value!r}"
            raise ModelFileError(f"{path} lacks a size that every model has: {architecture}.{key} {found}")


def _check_tokenizer(path: Path, metadata: dict[str, Value]) -> None:
    model = metadata.get("tokenizer.ggml.model")
    if model is None:
        raise ModelFileError(f"{path} has no tokenizer (tokenizer.ggml.model is missing), so it cannot take a prompt")
    if model in ("none", "no_vocab"):
        return
    tokens = metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, ArrayLength) or not tokens.length:
        raise ModelFileError(f"{path} has a tokenizer without words: tokenizer.ggml.tokens is missing or empty")
    if model == "gpt2" and "tokenizer.ggml.merges" not in metadata:
        raise ModelFileError(f"{path} has a tokenizer without merges (no tokenizer.ggml.merges); convert it again")


def _check_known(path: Path, architecture: str, library: Path | None) -> None:
    """Refuse an architecture whose name is nowhere in the library.

    The library compares the name with NUL-terminated constants of its own. A name that is in it may still be refused
    by the loader; one that is not cannot be loaded.
    """
    if library is None:
        return
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(architecture.encode() + b"\0") < 0:
            raise ModelFileError(
                f"{path} is of the architecture '{architecture}', which the installed llama.cpp does not know; "
                "a newer llama-cpp-python may (see pyproject.toml)"
            )
