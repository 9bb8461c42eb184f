"""Weights and words: by transformers from a folder in its own format, or from a GGUF file, whose weights it widens.

A GGUF file's vocabulary is read by llama.cpp: transformers makes a tokenizer of it that cuts some texts otherwise, and
two engines that decode different tokens cannot be compared. Nothing is fetched from a hub. It knows nothing about
contexts, caches or decoding.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import EngineError, Unsupported
from pti_loop.gguf import file as gguf_file

NEEDS = ("torch", "transformers", "accelerate")
INSTALL = "make setup EXTRA=hf"
_UNUSED = ("merges", "scores", "token_type")
"""Arrays of a GGUF file's vocabulary that the weights do not need, and that take seconds to convert.

Nor do they need its tokens where the file says how many there are.
"""
_NOT_HERE = ("architecture", "does not support an attention implementation")
"""How transformers begins to say that it cannot run a model at all, or not with a mask of our own."""


def missing() -> list[str]:
    """Packages of the extra that are not installed; nothing is imported."""
    return [name for name in NEEDS if importlib.util.find_spec(name) is None]


def require() -> None:
    """Raise `EngineError` with the command that installs what is missing."""
    if absent := missing():
        raise EngineError(f"model.engine=hf needs {', '.join(absent)}, not installed here; run `{INSTALL}`")


def build() -> dict[str, object]:
    """Versions of transformers and torch, from the installed packages' metadata: nothing is imported.

    Raises `EngineError` when the extra is not installed.
    """
    require()
    version = importlib.metadata.version
    names = {name: version(name) for name in NEEDS}
    torch_version = names["torch"].replace("+", "-")
    return {
        "binding": f"transformers {names['transformers']}",
        "torch": names["torch"],
        "build": f"transformers-{names['transformers']}-torch-{torch_version}",
        "gpu_offload": not names["torch"].endswith("+cpu"),
    }


class Vocabulary(Protocol):
    """Words of a model."""

    end_tokens: list[int]

    def tokenize(self, text: str, special: bool) -> list[int]:
        """Token ids, with the leading token that the model wants. What looks like a special token is text, or is one.

        Raises `EngineError` where there is no tokenizer.
        """

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Text of the token ids, special tokens shown."""


def load(path: Path, device: str) -> tuple[Any, Vocabulary]:
    """(network in evaluation mode on `device`, its vocabulary).

    On a CPU the weights are float32; on a GPU they keep the type they are stored in. Raises `EngineError`, and
    `Unsupported` for a model that transformers does not run, or not from a GGUF file.
    """
    import torch
    from transformers import AutoModelForCausalLM

    source = _source(path)
    dtype = torch.float32 if device == "cpu" else "auto"
    try:
        with _read_once():
            network = AutoModelForCausalLM.from_pretrained(**source, dtype=dtype, attn_implementation="sdpa",
                                                           local_files_only=True)  # fmt: skip
        vocabulary = _vocabulary(path, network)
    except (OSError, ValueError, KeyError, ImportError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        if any(words in said for words in _NOT_HERE):
            raise Unsupported(f"transformers: {said.partition('. ')[0]}; use model.engine=llama") from error
        raise EngineError(f"transformers does not load {path}: {said[:300]}") from error
    return network.to(device).eval(), vocabulary


def _source(path: Path) -> dict[str, object]:
    """Where `from_pretrained` finds it."""
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise EngineError(f"{path} has no config.json, so it is no model folder of transformers; name another one")
        return {"pretrained_model_name_or_path": str(path)}
    if not path.is_file():
        raise EngineError(f"{path} is neither a model folder nor a GGUF file; set model.path=FILE")
    try:
        gguf_file.read(path)
    except gguf_file.ModelFileError as error:
        raise EngineError(str(error)) from error
    from transformers import GgufConfig

    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name,
            "quantization_config": GgufConfig(dequantize=True)}  # fmt: skip


@contextmanager
def _read_once() -> Iterator[None]:
    """While it is open, a GGUF file's header is parsed once, where transformers reads it by the gguf package.

    It makes a reader for the configuration and one for the weights, and a map of names for each module of the network;
    and the reader slices a memory map, which numpy makes a new object of its own kind for each time.
    """
    import gguf

    class Reader(gguf.GGUFReader):
        def __init__(self, path: str) -> None:
            super().__init__(path)
            counted = f"{self.fields['general.architecture'].contents()}.vocab_size" in self.fields
            for name in (*_UNUSED, *(("tokens",) if counted else ())):
                self.fields.pop(f"tokenizer.ggml.{name}", None)

        @property  # type: ignore[override]  # a plain array in place of the base's memory map, on purpose
        def data(self) -> NDArray[np.uint8]:
            return self._plain

        @data.setter
        def data(self, mapped: NDArray[np.uint8]) -> None:
            self._plain: NDArray[np.uint8] = mapped.view(np.ndarray)

    originals = gguf.GGUFReader, gguf.get_tensor_name_map
    patched: Any = gguf
    patched.GGUFReader = functools.lru_cache(Reader)
    patched.get_tensor_name_map = functools.lru_cache(originals[1])
    try:
        yield
    finally:
        patched.GGUFReader, patched.get_tensor_name_map = originals


def _vocabulary(path: Path, network: Any) -> Vocabulary:
    if path.is_file():
        from pti_loop.llama.model import LlamaModel

        return LlamaModel(path, n_gpu_layers=0, vocab_only=True)
    return FolderVocabulary(path, network)


class FolderVocabulary:
    """The tokenizer of a model folder. A folder may have none; then ids are all that the model takes and gives."""

    def __init__(self, path: Path, network: Any) -> None:
        from transformers import AutoTokenizer

        self.path = path
        has_one = any(path.glob("tokenizer*"))
        self.tokenizer = AutoTokenizer.from_pretrained(str(path), local_files_only=True) if has_one else None
        ends: set[int] = set()
        for settings in (network.config.get_text_config(), network.generation_config):
            found = getattr(settings, "eos_token_id", None)
            ends.update(found if isinstance(found, (list, tuple)) else [] if found is None else [found])
        self.end_tokens = sorted(ends)

    def tokenize(self, text: str, special: bool) -> list[int]:
        """As the tokenizer says. Raises `EngineError` where the folder has none."""
        return list(self._own()(text, split_special_tokens=not special)["input_ids"])

    def detokenize(self, tokens: Sequence[int]) -> str:
        """As the tokenizer says. Raises `EngineError` where the folder has none."""
        return str(self._own().decode(list(tokens), clean_up_tokenization_spaces=False))

    def _own(self) -> Any:
        if self.tokenizer is None:
            raise EngineError(f"{self.path} has no tokenizer; put the model's tokenizer.json into it")
        return self.tokenizer
