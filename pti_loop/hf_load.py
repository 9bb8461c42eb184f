"""Weights and tokenizer by transformers, from a folder in its own format or from a GGUF file, whose weights it widens.

Nothing is fetched from a hub. It knows nothing about contexts, caches or decoding.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pti_loop.engine import EngineError, Unsupported

NEEDS = ("torch", "transformers", "accelerate")
INSTALL = "make setup EXTRA=hf"
END_TEXTS = frozenset((
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~[",
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",
    "<reponame>", "<|file_sep|>",
))  # fmt: skip
"""Tokens that llama.cpp takes for an end of generation by their text (llama-vocab.cpp), so that both engines mask the
same ones."""

_NOT_HERE = ("architecture", "does not support an attention implementation")
"""How transformers begins to say that it cannot run a model at all, or not with a mask of our own."""


def missing() -> list[str]:
    """Packages of the extra that are not installed; nothing is imported."""
    return [name for name in NEEDS if importlib.util.find_spec(name) is None]


def require() -> None:
    """Raise `EngineError` with the command that installs what is missing."""
    if absent := missing():
        raise EngineError(f"model.engine=hf needs {', '.join(absent)}, not installed here; run `{INSTALL}`")


def load(path: Path, device: str) -> tuple[object, object]:
    """(network in evaluation mode on `device`, tokenizer or None where a folder has none).

    On a CPU the weights are float32; on a GPU they keep the type they are stored in. Raises `EngineError`, and
    `Unsupported` for a GGUF file of an architecture that transformers does not read.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = _source(path)
    dtype = torch.float32 if device == "cpu" else "auto"
    try:
        with _read_once():
            network = AutoModelForCausalLM.from_pretrained(**source, dtype=dtype, attn_implementation="sdpa",
                                                           local_files_only=True)  # fmt: skip
            has_tokenizer = "gguf_file" in source or any(path.glob("tokenizer*"))
            tokenizer = AutoTokenizer.from_pretrained(**source, local_files_only=True) if has_tokenizer else None
    except (OSError, ValueError, KeyError, ImportError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        if any(words in said for words in _NOT_HERE):
            raise Unsupported(f"transformers: {said.partition('. ')[0]}; use model.engine=llama") from error
        raise EngineError(f"transformers does not load {path}: {said[:300]}") from error
    return network.to(device).eval(), tokenizer


def _source(path: Path) -> dict[str, str]:
    """Where `from_pretrained` finds it."""
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise EngineError(f"{path} has no config.json, so it is no model folder of transformers; name another one")
        return {"pretrained_model_name_or_path": str(path)}
    if not path.is_file():
        raise EngineError(f"{path} is neither a model folder nor a GGUF file; set model.path=FILE")
    return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}


@contextmanager
def _read_once() -> Iterator[None]:
    """While it is open, a GGUF file's header is parsed once.

    transformers makes a reader for each of configuration, weights and tokenizer, and one map of names for each module
    of the network; and the reader slices a memory map, which numpy makes a new object of its own kind for each time.
    """
    import gguf

    class Reader(gguf.GGUFReader):
        @property
        def data(self) -> np.ndarray:
            return self._plain

        @data.setter
        def data(self, mapped: np.ndarray) -> None:
            self._plain = mapped.view(np.ndarray)

    originals = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader = functools.lru_cache(Reader)
    gguf.get_tensor_name_map = functools.lru_cache(originals[1])
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = originals


def end_tokens(network: object, tokenizer: object, n_vocab: int) -> list[int]:
    """Ids that end a text: those that the model's settings name, and those whose text llama.cpp takes for one."""
    named: set[int] = set()
    for settings in (network.config.get_text_config(), network.generation_config):
        found = getattr(settings, "eos_token_id", None)
        named |= set(found) if isinstance(found, (list, tuple)) else {found}
    if tokenizer is not None:
        named |= {token for text, token in tokenizer.get_vocab().items() if text in END_TEXTS}
    return sorted(token for token in named if token is not None and token < n_vocab)
