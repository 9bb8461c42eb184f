"""The engine on llama-cpp-python's low-level API: one loaded model, a context per arm, many sequences in one decode.

It knows nothing about methods or measuring. The binding is imported when a model is loaded, not before.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pti_loop import log as engine_log
from pti_loop.engine import ContextSpec, EngineError
from pti_loop.weights import by_ggml

KV_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8}
FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
_DECODE_ERRORS = {
    1: "no room in the KV cache for the batch",
    2: "aborted",
    -1: "invalid input batch",
    -2: "could not allocate memory",
    -3: "a fatal error while computing",
}

_log = engine_log.EngineLog()
_library = None


def library():
    """The binding's low-level module, imported once, its log taken over and its backend started."""
    global _library
    if _library is None:
        try:
            from llama_cpp import llama_cpp as lib
        except (ImportError, OSError, RuntimeError) as error:
            raise EngineError(f"llama-cpp-python does not load ({error}); run `make setup`") from error
        _log.install(lib)
        lib.llama_backend_init()
        _library = lib
    return _library


def log() -> engine_log.EngineLog:
    """llama.cpp's log of this process."""
    return _log


def build() -> dict[str, str]:
    """Version of the binding, llama.cpp's commit as the library itself reports it, and its CPU features."""
    lib = library()
    import llama_cpp

    base = ctypes.CDLL(str(_beside(lib, "ggml-base")))
    base.ggml_commit.restype = ctypes.c_char_p
    return {
        "binding": f"llama-cpp-python {llama_cpp.__version__}",
        "llama_cpp_commit": base.ggml_commit().decode().removesuffix("-dirty"),
        "system_info": lib.llama_print_system_info().decode().strip(" |"),
        "gpu_offload": bool(lib.llama_supports_gpu_offload()),
    }


def _beside(lib, name: str) -> Path:
    """Another library of the build that was loaded, which an environment variable may decide."""
    loaded = Path(lib._lib._name)
    return loaded.with_name(loaded.name.replace("llama", name))


class LlamaModel:
    """Weights loaded by llama.cpp. `n_gpu_layers` -1 means all layers; 0 leaves them on the CPU.

    Without `load_mtp` the weights of nextn heads stay on disk.
    """

    def __init__(self, path: str | Path, n_gpu_layers: int = -1, vocab_only: bool = False,
                 load_mtp: bool = False) -> None:
        lib = library()
        self.path = Path(path)
        params = lib.llama_model_default_params()
        params.n_gpu_layers = n_gpu_layers
        params.vocab_only, params.load_mtp = vocab_only, load_mtp
        mark = _log.mark()
        self._model = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self._model:
            raise EngineError(f"llama.cpp does not load {path}: {_log.last_error(mark)}")
        self._load_log = _log.since(mark)
        self._vocab = lib.llama_model_get_vocab(self._model)
        self.n_vocab = lib.llama_vocab_n_tokens(self._vocab)
        self.n_layer = lib.llama_model_n_layer(self._model)
        self.n_nextn = lib.llama_model_n_layer_nextn(self._model)
        self.recurrent = bool(lib.llama_model_is_recurrent(self._model))
        self.hybrid = bool(lib.llama_model_is_hybrid(self._model))
        self.can_rewind = not (self.recurrent or self.hybrid)
        self.weigh = by_ggml(_beside(lib, "ggml-cpu"))
        self.end_tokens = [t for t in range(self.n_vocab) if lib.llama_vocab_is_eog(self._vocab, t)]

    def facts(self) -> dict:
        """Layers, parameters, and how many layers llama.cpp says it put on a GPU."""
        lib = library()
        offloaded = engine_log.layers_offloaded(self._load_log)
        return {
            "description": self._description(),
            "n_layer": self.n_layer,
            "n_params": int(lib.llama_model_n_params(self._model)),
            "n_vocab": self.n_vocab,
            "layers_offloaded": offloaded[0] if offloaded else 0,
            "layers_offloadable": offloaded[1] if offloaded else self.n_layer + 1,
            "memory": "hybrid" if self.hybrid else "recurrent" if self.recurrent else "attention",
        }

    def _description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        library().llama_model_desc(self._model, buffer, len(buffer))
        return buffer.value.decode()

    def tokenize(self, text: str) -> list[int]:
        """Token ids; the model's own beginning token where its vocabulary asks for one. No special-token parsing."""
        lib = library()
        raw = text.encode()
        room = len(raw) + 8
        tokens = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocab, raw, len(raw), tokens, room, True, False)
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

    def context(self, spec: ContextSpec) -> LlamaContext:
        """A fresh context. Raises `EngineError` with llama.cpp's last words when there is no room."""
        return LlamaContext(self, spec)

    def close(self) -> None:
        """Free the weights; every context of the model must be closed before."""
        if self._model:
            library().llama_model_free(self._model)
            self._model = None


def _address_of_logits(lib):
    """llama_get_logits with a plain address as its result: to make a pointer object takes as long as an argmax."""
    function = ctypes.CDLL(lib._lib._name).llama_get_logits
    function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
    return function


class _Batch:
    """A `llama_batch` over numpy arrays of fixed size: filling a row costs a list assignment, no allocation."""

    def __init__(self, lib, size: int) -> None:
        self.size = size
        self.token = np.zeros(size, dtype=np.int32)
        self.pos = np.zeros(size, dtype=np.int32)
        self.n_seq = np.ones(size, dtype=np.int32)
        self.seq = np.zeros(size, dtype=np.int32)
        self.out = np.zeros(size, dtype=np.int8)
        base, step = self.seq.ctypes.data, self.seq.itemsize
        self._pointers = np.array([base + i * step for i in range(size)], dtype=np.uint64)
        fields = {name: kind for name, kind in lib.llama_batch._fields_}
        self.struct = lib.llama_batch(
            n_tokens=0,
            token=ctypes.cast(self.token.ctypes.data, fields["token"]),
            embd=None,
            pos=ctypes.cast(self.pos.ctypes.data, fields["pos"]),
            n_seq_id=ctypes.cast(self.n_seq.ctypes.data, fields["n_seq_id"]),
            seq_id=ctypes.cast(self._pointers.ctypes.data, fields["seq_id"]),
            logits=ctypes.cast(self.out.ctypes.data, fields["logits"]),
        )

    def fill(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
             outputs: Sequence[int] | None) -> int:
        """Write the rows; returns how many outputs they ask for."""
        n = len(tokens)
        if n > self.size:
            raise EngineError(f"a batch of {n} tokens is larger than n_batch {self.size}; set engine.n_batch={n}")
        self.token[:n] = tokens
        self.pos[:n] = positions
        self.seq[:n] = sequences
        if outputs is None:
            self.out[:n] = 1
        else:
            self.out[:n] = 0
            self.out[list(outputs)] = 1
        self.struct.n_tokens = n
        return n if outputs is None else len(outputs)


class LlamaContext:
    """A llama.cpp context. Sequence ids run from 0 to n_seq_max - 1."""

    clock = staticmethod(time.perf_counter_ns)

    def __init__(self, model: LlamaModel, spec: ContextSpec) -> None:
        lib = self._lib = library()
        self.model, self.spec, self.n_vocab = model, spec, model.n_vocab
        mark = _log.mark()
        self._samplers: list = []
        self._ctx = lib.llama_init_from_model(model._model, self._params(lib))
        if not self._ctx:
            raise EngineError(
                f"llama.cpp makes no context of {spec.n_seq_max} x {spec.n_ctx} tokens: {_log.last_error(mark)}"
            )
        self._log = _log.since(mark)
        self._memory = lib.llama_get_memory(self._ctx)
        # llama.cpp lowers n_batch to the context's size, and aborts the process on a batch beyond it.
        self.spec = replace(spec, n_batch=min(spec.n_batch, lib.llama_n_batch(self._ctx)))
        self._batch = _Batch(lib, self.spec.n_batch)
        self._end = np.array(model.end_tokens, dtype=np.intp)
        self._logits_at = _address_of_logits(lib)
        self._outputs = 0
        self._views: dict[tuple[int, int], np.ndarray] = {}
        self._check_room()

    def _params(self, lib):
        spec, params = self.spec, self._lib.llama_context_default_params()
        params.n_ctx = spec.n_ctx * spec.n_seq_max
        params.n_batch, params.n_ubatch = spec.n_batch, min(spec.n_ubatch, spec.n_batch)
        params.n_seq_max = spec.n_seq_max
        params.n_outputs_max = params.n_outputs_max_per_seq = spec.n_outputs
        params.n_threads = params.n_threads_batch = spec.threads
        params.flash_attn_type = FLASH_ATTENTION[spec.flash_attn]
        params.type_k, params.type_v = KV_TYPES[spec.type_k], KV_TYPES[spec.type_v]
        params.kv_unified = spec.kv_unified
        params.no_perf = True
        if spec.sampler == "backend":
            self._attach_greedy(lib, params)
        return params

    def _attach_greedy(self, lib, params) -> None:
        """Greedy choice inside the engine's graph, with the end-of-generation tokens biased away, per sequence."""
        spec, end = self.spec, self.model.end_tokens
        configs = (lib.llama_sampler_seq_config * spec.n_seq_max)()
        biases = (lib.llama_logit_bias * max(len(end), 1))(*[lib.llama_logit_bias(t, -float("inf")) for t in end])
        for sequence in range(spec.n_seq_max):
            chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
            if end:
                lib.llama_sampler_chain_add(
                    chain, lib.llama_sampler_init_logit_bias(self.n_vocab, len(end), biases)
                )
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_greedy())
            self._samplers.append(chain)
            configs[sequence].seq_id = sequence
            configs[sequence].sampler = ctypes.cast(chain, ctypes.c_void_p)
        self._configs = configs  # llama.cpp keeps the pointer while it makes the context
        params.samplers, params.n_samplers = configs, spec.n_seq_max

    def _check_room(self) -> None:
        lib, spec = self._lib, self.spec
        if lib.llama_n_ctx_seq(self._ctx) < spec.n_ctx:
            raise EngineError(
                f"the context holds {lib.llama_n_ctx_seq(self._ctx)} tokens a sequence, {spec.n_ctx} were asked for"
            )

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:
        """One `llama_decode` and the wait for its result. Raises `EngineError` on any return code but 0."""
        self._outputs = self._batch.fill(tokens, positions, sequences, outputs)
        code = self._lib.llama_decode(self._ctx, self._batch.struct)
        if code != 0:
            meaning = _DECODE_ERRORS.get(code, "unknown return code")
            raise EngineError(f"llama_decode of {len(tokens)} tokens returned {code}: {meaning}; {_log.last_error()}")
        self._lib.llama_synchronize(self._ctx)

    def logits(self) -> np.ndarray:
        """View of float32 (n_outputs, n_vocab) in llama.cpp's own buffer; end-of-generation columns are -inf."""
        # With samplers in its graph llama.cpp keeps no logits, but its buffer is there and holds something.
        address = None if self._samplers else self._logits_at(self._ctx)
        if not address:
            raise EngineError("the last decode left no logits: the context samples on the backend, or asked for none")
        view = self._view(address)
        view[:, self._end] = -np.inf
        return view

    def _view(self, address: int) -> np.ndarray:
        """Making a view costs a ctypes type and tens of microseconds; llama.cpp rarely moves its buffer."""
        key = (address, self._outputs)
        if key not in self._views:
            buffer = (ctypes.c_float * (self._outputs * self.n_vocab)).from_address(address)
            self._views[key] = np.frombuffer(buffer, dtype=np.float32).reshape(self._outputs, self.n_vocab)
        return self._views[key]

    def greedy(self) -> list[int]:
        """Argmax token of every output row, lowest id on a tie; taken by the engine's graph when it samples."""
        if self._samplers:
            rows = np.flatnonzero(self._batch.out[: self._batch.struct.n_tokens])
            return [self._lib.llama_get_sampled_token_ith(self._ctx, int(row)) for row in rows]
        return self.logits().argmax(axis=1).tolist()

    def clear(self) -> None:
        """Forget all sequences, and zero their buffers."""
        self._lib.llama_memory_clear(self._memory, True)

    def copy(self, source: int, target: int) -> None:
        """Make `target`, which must be empty, a whole copy of `source`. llama.cpp may do it at the next decode."""
        self._lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def drop(self, sequence: int) -> None:
        """Forget one sequence."""
        if not self._lib.llama_memory_seq_rm(self._memory, sequence, -1, -1):
            raise EngineError(f"llama.cpp does not remove sequence {sequence}")

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget positions >= `position`; False when the memory cannot (recurrent and hybrid models)."""
        return bool(self._lib.llama_memory_seq_rm(self._memory, sequence, position, -1))

    def length(self, sequence: int) -> int:
        """Tokens held for a sequence."""
        return self._lib.llama_memory_seq_pos_max(self._memory, sequence) + 1

    def facts(self) -> dict:
        """What llama.cpp made of the spec, read back."""
        lib, spec = self._lib, self.spec
        return {
            "n_ctx": lib.llama_n_ctx(self._ctx),
            "n_ctx_seq": lib.llama_n_ctx_seq(self._ctx),
            "n_seq_max": lib.llama_n_seq_max(self._ctx),
            "n_batch": lib.llama_n_batch(self._ctx),
            "n_ubatch": lib.llama_n_ubatch(self._ctx),
            "threads": lib.llama_n_threads(self._ctx),
            "kv_unified": spec.kv_unified,
            "type_k": spec.type_k,
            "type_v": spec.type_v,
            "flash_attn": engine_log.flash_attention(self._log) or spec.flash_attn,
            "sampler": spec.sampler,
            "layers_offloaded": self.model.facts()["layers_offloaded"],
            "n_layer": self.model.n_layer,
            "build": build()["llama_cpp_commit"],
            **engine_log.buffer_bytes(self._log),
        }

    def close(self) -> None:
        """Free the context and its samplers."""
        if self._ctx:
            self._lib.llama_free(self._ctx)
            self._ctx = None
            for chain in self._samplers:
                self._lib.llama_sampler_free(chain)
            self._samplers = []
