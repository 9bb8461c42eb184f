"""The engine on llama-cpp-python's low-level API: one loaded model, a context per arm, many sequences in one decode.

It knows nothing about methods or measuring. The binding is imported when a model is loaded, not before.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pti_loop.engine import Context, ContextSpec, EngineError, Facts, Head, OwnDrafterSpec, Unsupported
from pti_loop.gguf.compatible import adapter_fits, draft_fits, nextn_missing
from pti_loop.llama import log as engine_log
from pti_loop.llama import twin_file
from pti_loop.llama.adapter import Adapter
from pti_loop.llama.context import LlamaContext
from pti_loop.llama.head import LlamaHead
from pti_loop.llama.library import beside, build, library, log
from pti_loop.llama.loaded import Loaded
from pti_loop.llama.own_drafters import LlamaDrafter
from pti_loop.weights import by_ggml

__all__ = ["LlamaContext", "LlamaModel", "build", "library", "log"]

SPLIT_MODES = {"none": 0, "layer": 1, "row": 2, "tensor": 3}


def _say(sentence: str) -> None:
    """What takes long and happens once; standard output belongs to whoever started this process."""
    print(sentence, file=sys.stderr, flush=True)


def _shares(lib: ModuleType, told: str) -> Any:
    """Shares of all devices that there may be, in C; None where llama.cpp divides a model by itself."""
    if not told:
        return None
    parts = [float(part) for part in told.split("/")]
    return (ctypes.c_float * lib.llama_max_devices())(*parts)


def _handle(ctx: Context | Head) -> int | None:
    """llama.cpp's context. Raises `EngineError` for another engine's."""
    if not isinstance(ctx, LlamaContext):
        raise EngineError(f"a drafter of llama.cpp needs its own contexts, not a {type(ctx).__name__}")
    handle: int | None = ctx.handle
    return handle


class LlamaModel:
    """Weights loaded by llama.cpp. `n_gpu_layers` -1 means all layers; 0 leaves them on the CPU.

    `split_mode`, a name of `SPLIT_MODES`, `main_gpu` and `tensor_split`, shares as 3/1, say how it lies on several.
    Without `repack` all weights stay in the file's order, whatever order a backend's own kernels would take.
    Without `load_mtp` the weights of nextn heads stay on disk; `vocab_only` reads the vocabulary alone.
    Raises `EngineError` when llama.cpp does not load the file.
    """

    def __init__(self, path: str | Path, n_gpu_layers: int = -1, vocab_only: bool = False,
                 load_mtp: bool = False, split_mode: str = "layer", main_gpu: int = 0, tensor_split: str = "",
                 repack: bool = True) -> None:  # fmt: skip
        lib = library()
        self.path, self._has_head = Path(path), load_mtp
        self._devices: dict[str, Any] = {"n_gpu_layers": n_gpu_layers, "split_mode": split_mode, "main_gpu": main_gpu,
                                         "tensor_split": tensor_split}  # fmt: skip
        params = lib.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        params.split_mode, params.main_gpu = SPLIT_MODES[split_mode], main_gpu
        shares = _shares(lib, tensor_split)  # llama.cpp reads it while it loads
        params.tensor_split = shares
        params.vocab_only, params.load_mtp, params.use_extra_bufts = vocab_only, load_mtp, repack
        mark, began = log().mark(), time.monotonic()
        handle = lib.llama_model_load_from_file(str(path).encode(), params)
        if not handle:
            raise EngineError(f"llama.cpp does not load {path}: {log().last_error(mark)}")
        load_s = time.monotonic() - began
        self._open = True
        self._vocab = lib.llama_model_get_vocab(handle)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self._vocab))
        self.n_layer = int(lib.llama_model_n_layer(handle))
        self.n_nextn = int(lib.llama_model_n_layer_nextn(handle))
        self.recurrent = bool(lib.llama_model_is_recurrent(handle))
        self.hybrid = bool(lib.llama_model_is_hybrid(handle))
        self.weigh = by_ggml(beside("ggml-cpu"))
        self.end_tokens = [t for t in range(self.n_vocab) if lib.llama_vocab_is_eog(self._vocab, t)]
        offloaded, self._offloadable = engine_log.layers_offloaded(log().since(mark)) or (0, self.n_layer + 1)
        width = int(lib.llama_model_n_embd_out(handle))
        self.loaded = Loaded(handle, self.n_vocab, self.n_layer, width, tuple(self.end_tokens), offloaded, split_mode,
                             main_gpu, tensor_split, repack, load_s)  # fmt: skip
        """What contexts, the head and adapters are made from."""

    def facts(self) -> Facts:
        """Layers, parameters, and how many layers llama.cpp says it put on a GPU."""
        return {
            "description": self._description(),
            "n_layer": self.n_layer,
            "n_params": int(library().llama_model_n_params(self.loaded.handle)),
            "n_vocab": self.n_vocab,
            "layers_offloaded": self.loaded.layers_offloaded,
            "layers_offloadable": self._offloadable,
            "memory": "hybrid" if self.hybrid else "recurrent" if self.recurrent else "attention",
        }

    def _description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        library().llama_model_desc(self.loaded.handle, buffer, len(buffer))
        return buffer.value.decode()

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """Token ids; the model's own beginning token where its vocabulary asks for one.

        What looks like a special token is text, unless `special`. Raises `EngineError` when llama.cpp refuses the text.
        """
        lib = library()
        raw = text.encode()
        room = len(raw) + 8
        tokens = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocab, raw, len(raw), tokens, room, True, special)
        if count <= 0:
            raise EngineError(f"llama.cpp does not tokenize {text[:40]!r} (return code {count})")
        return list(tokens[:count])

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Text of the token ids, special tokens shown."""
        lib = library()
        array = (lib.llama_token * len(tokens))(*tokens)
        buffer = ctypes.create_string_buffer(16 * len(tokens) + 16)
        count = lib.llama_detokenize(self._vocab, array, len(tokens), buffer, len(buffer), False, True)
        return buffer.raw[: max(count, 0)].decode("utf-8", "replace")

    def piece(self, token: int) -> bytes:
        """What a token adds to a text: UTF-8, of which a letter may go on in the next token; special tokens shown."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = library().llama_token_to_piece(self._vocab, token, buffer, room, 0, True)
            if count >= 0:
                return buffer.raw[:count]
            room = -count

    def context(self, spec: ContextSpec) -> LlamaContext:
        """A fresh context. Raises `EngineError` with llama.cpp's last words when there is no room."""
        return LlamaContext(self.loaded, spec)

    def head(self, trunk: Context, spec: ContextSpec) -> LlamaHead:
        """The nextn head beside `trunk`, a context of this engine.

        Raises `Unsupported` on a model that does not have exactly one, and `EngineError` where its weights were not
        loaded or `trunk` is another engine's.
        """
        if reason := nextn_missing(self.path):
            raise Unsupported(reason)
        if self.n_nextn > 1:
            raise Unsupported(f"{self.path} has {self.n_nextn} nextn layers, of which one alone can draft")
        if not self._has_head:  # llama.cpp would make the context, and fall over at the first decode
            raise EngineError(f"{self.path.name} was loaded without its nextn head; load it with load_mtp")
        if not isinstance(trunk, LlamaContext):
            raise EngineError(f"a nextn head of llama.cpp needs one of its contexts, not a {type(trunk).__name__}")
        return LlamaHead(self.loaded, trunk, spec)

    def own_drafter(self, spec: OwnDrafterSpec, trunk: Context, beside: Context | Head | None = None) -> LlamaDrafter:
        """A drafter of llama.cpp's own for answers in `trunk`, with the context of a head or a draft model `beside`.

        Raises `Unsupported` where it cannot be compiled or made, and `EngineError` for another engine's contexts.
        """
        handles = [_handle(one) for one in (trunk, beside) if one]
        return LlamaDrafter(spec, handles[0], handles[1] if beside else None)

    def sibling(self, path: Path) -> LlamaModel:
        """Another model on the same devices, for drafting.

        Raises `Unsupported` when it cannot draft for this one, and `EngineError` when it does not load.
        """
        reason = draft_fits(self.path, path)
        if reason:
            raise Unsupported(reason)
        return LlamaModel(path, **self._devices)

    def twin(self, kind: str) -> LlamaModel:
        """The same weights at fewer bits, made on the first call. Raises `EngineError` for what cannot be made."""
        return LlamaModel(twin_file.twin(self.path, kind, say=_say), **self._devices)

    def adapter(self, path: Path) -> Adapter:
        """A LoRA adapter for this model's contexts. Raises `EngineError` when llama.cpp refuses the file."""
        return Adapter(self.loaded, path)

    def adapted(self, spec: ContextSpec, adapter: Path) -> LlamaContext:
        """A context with a LoRA adapter.

        Raises `Unsupported` when the adapter was made for other shapes, and `EngineError` when llama.cpp refuses it.
        """
        reason = adapter_fits(self.path, adapter)
        if reason:
            raise Unsupported(reason)
        ctx = self.context(spec)
        ctx.attach(self.adapter(adapter))
        return ctx

    def close(self) -> None:
        """Free the weights; every context of the model must be closed before. Calling twice is allowed."""
        if self._open:
            library().llama_model_free(self.loaded.handle)
            self._open = False
