"""A llama.cpp context: many sequences of one loaded model. It knows nothing about methods or measuring."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import ContextSpec, EngineError, Facts, Saved, few_at_once, too_many_outputs
from pti_loop.llama import log as engine_log
from pti_loop.llama import packed
from pti_loop.llama.adapter import Adapter
from pti_loop.llama.batch import Batch
from pti_loop.llama.library import build, library, library_path, log
from pti_loop.llama.loaded import Loaded

KV_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8}
FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
_NEVER = -math.inf
_ONE_BY_ONE = 64
"""Numbers that are written sooner one by one than by numpy, which in a decode loop has its own code to load first."""
_DECODE_ERRORS = {
    1: "no room in the KV cache for the batch",
    2: "aborted",
    -1: "invalid input batch",
    -2: "could not allocate memory",
    -3: "a fatal error while computing",
}


def _address_of_logits() -> Callable[[Any], int | None]:
    """llama_get_logits with a plain address as its result: to make a pointer object takes as long as an argmax."""
    function = ctypes.CDLL(str(library_path())).llama_get_logits
    function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
    return function


class LlamaContext:
    """A llama.cpp context. Sequence ids run from 0 to n_seq_max - 1. Raises `EngineError` when there is no room."""

    clock = staticmethod(time.perf_counter_ns)
    _hidden_at: Callable[[Any], Any] | None = None

    def __init__(self, model: Loaded, spec: ContextSpec) -> None:
        lib = self._lib = library()
        self.model, self.spec, self.n_vocab = model, spec, model.n_vocab
        mark = log().mark()
        self._samplers: list[Any] = []
        self.handle = lib.llama_init_from_model(model.handle, self._params(lib))
        """llama.cpp's `llama_context *`, as the binding gives it; None once it is closed."""
        if not self.handle:
            raise EngineError(
                f"llama.cpp makes no context of {spec.n_seq_max} x {spec.n_ctx} tokens: {log().last_error(mark)}"
            )
        self._log = log().since(mark)
        self._memory = lib.llama_get_memory(self.handle)
        # llama.cpp lowers n_batch to the context's size, and aborts the process on a batch beyond it.
        self.spec = replace(spec, n_batch=min(spec.n_batch, lib.llama_n_batch(self.handle)))
        self._batch = Batch(lib, self.spec.n_batch, self._n_beside())
        self._end: Sequence[int] = [] if spec.ends else list(model.end_tokens)
        self._logits_at = _address_of_logits()
        self._outputs = 0
        self._rows: Sequence[int] = ()
        self._views: dict[tuple[int, int, int], tuple[NDArray[np.float32], Any]] = {}
        self._places: dict[int, Sequence[int]] = {}
        if spec.hidden:
            self._keep_hidden(every_row=True)
        self._check_room()

    def _n_beside(self) -> int:
        """Length of the vector that rows of a batch have beside their token."""
        return 0

    def _keep_hidden(self, every_row: bool) -> None:
        """Have llama.cpp keep hidden states: of every row, or of the output rows only."""
        from llama_cpp import llama_cpp_ext

        self._hidden_at = llama_cpp_ext.llama_get_embeddings_nextn
        llama_cpp_ext.llama_set_embeddings_nextn(self.handle, True, not every_row)

    def _params(self, lib: ModuleType) -> Any:
        spec, params = self.spec, lib.llama_context_default_params()
        params.n_ctx = spec.n_ctx * spec.n_seq_max
        params.n_batch, params.n_ubatch = spec.n_batch, min(spec.n_ubatch, spec.n_batch)
        params.n_seq_max = spec.n_seq_max
        params.n_outputs_max = params.n_outputs_max_per_seq = spec.n_outputs
        params.n_threads = params.n_threads_batch = spec.threads
        params.flash_attn_type = FLASH_ATTENTION[spec.flash_attn]
        params.type_k, params.type_v = KV_TYPES[spec.type_k], KV_TYPES[spec.type_v]
        params.kv_unified, params.offload_kqv = spec.kv_unified, spec.offload_kqv
        params.op_offload = spec.op_offload
        params.n_rs_seq = spec.snapshots
        params.no_perf = True
        if spec.sampler == "backend":
            self._attach_greedy(lib, params)
        return params

    def _attach_greedy(self, lib: ModuleType, params: Any) -> None:
        """Greedy choice inside the engine's graph, with the end-of-generation tokens biased away, per sequence."""
        spec, end = self.spec, [] if self.spec.ends else self.model.end_tokens
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
        if lib.llama_n_ctx_seq(self.handle) < spec.n_ctx:
            raise EngineError(
                f"the context holds {lib.llama_n_ctx_seq(self.handle)} tokens a sequence, {spec.n_ctx} were asked for"
            )
        n_ubatch, kept = lib.llama_n_ubatch(self.handle), lib.llama_n_rs_seq(self.handle)
        if kept and n_ubatch <= kept + 1:  # llama.cpp would abort the process at the first decode
            self.close()
            raise EngineError(few_at_once(n_ubatch, kept))

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:
        """One `llama_decode` and the wait for its result. Raises `EngineError` on any return code but 0."""
        self._fill(tokens, positions, sequences, outputs)
        self._run(len(tokens))

    def queue(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
              outputs: Sequence[int] | None = None) -> None:
        """`llama_decode` alone: it returns when the host has queued its work, and a GPU may go on. Then `wait`."""
        self._fill(tokens, positions, sequences, outputs)
        self._start(len(tokens))

    def wait(self) -> None:
        """Wait for what was queued."""
        self._lib.llama_synchronize(self.handle)

    def _fill(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
              outputs: Sequence[int] | None) -> None:  # fmt: skip
        """Lay out the batch. Raises `EngineError` for more rows of logits than llama.cpp made room for: it aborts."""
        self._outputs = self._batch.fill(tokens, positions, sequences, outputs)
        self._rows = range(len(tokens)) if outputs is None else outputs
        if self._outputs > self.spec.n_outputs:
            raise EngineError(too_many_outputs(self._outputs, self.spec.n_outputs))

    def _run(self, n_tokens: int) -> None:
        self._start(n_tokens)
        self._lib.llama_synchronize(self.handle)

    def _start(self, n_tokens: int) -> None:
        code = self._lib.llama_decode(self.handle, self._batch.struct)
        if code != 0:
            meaning = _DECODE_ERRORS.get(code, "unknown return code")
            raise EngineError(f"llama_decode of {n_tokens} tokens returned {code}: {meaning}; {log().last_error()}")

    def logits(self) -> NDArray[np.float32]:
        """View of float32 (n_outputs, n_vocab) in llama.cpp's own buffer; end-of-generation columns are -inf.

        With `ends` in the spec they are as the model has them.
        Raises `EngineError` when the last decode left none.
        """
        view, buffer = self._scores()
        if len(self._end):
            places = self._banned(len(view))
            if len(places) > _ONE_BY_ONE:
                view.reshape(-1)[places] = -np.inf
            else:
                for place in places:
                    buffer[place] = _NEVER
        return view

    def _banned(self, rows: int) -> Sequence[int]:
        """Places of the end tokens in the buffer."""
        if rows not in self._places:
            self._places[rows] = [row * self.n_vocab + end for row in range(rows) for end in self._end]
        return self._places[rows]

    def scores(self) -> NDArray[np.float32]:
        """The same (n_outputs, n_vocab) with the end-of-generation columns as the model has them, until `logits` runs.

        Raises `EngineError` when the last decode left none.
        """
        return self._scores()[0]

    def _scores(self) -> tuple[NDArray[np.float32], Any]:
        # With samplers in its graph llama.cpp keeps no logits, but its buffer is there and holds something.
        address = None if self._samplers else self._logits_at(self.handle)
        if not address:
            raise EngineError("the last decode left no logits: the context samples on the backend, or asked for none")
        return self._view(address, self._outputs, self.n_vocab)

    def _view(self, address: int, rows: int, columns: int) -> tuple[NDArray[np.float32], Any]:
        """Making a view costs a ctypes type and tens of microseconds; llama.cpp rarely moves its buffers.

        Returns the view (rows, columns), and its buffer as a ctypes array.
        """
        key = (address, rows, columns)
        if key not in self._views:
            buffer = (ctypes.c_float * (rows * columns)).from_address(address)
            self._views[key] = np.ctypeslib.as_array(buffer).reshape(rows, columns), buffer
        return self._views[key]

    def hidden(self) -> NDArray[np.float32]:
        """View of float32 (n_rows, n_embd) in llama.cpp's own buffer: hidden states of the last decode's rows.

        Raises `EngineError` when the context was made without them.
        """
        return self._hidden(self._batch.struct.n_tokens)

    def _hidden(self, rows: int) -> NDArray[np.float32]:
        pointer = self._hidden_at(self.handle) if self._hidden_at else None
        if not pointer:
            raise EngineError("the last decode left no hidden states: the context was made without them")
        return self._view(ctypes.addressof(pointer.contents), rows, self.model.n_embd_out)[0]

    def greedy(self) -> list[int]:
        """Argmax token of every output row, lowest id on a tie; taken by the engine's graph when it samples."""
        if self._samplers:
            said = self._lib.llama_get_sampled_token_ith
            return [said(self.handle, row) for row in self._rows]
        found: list[int] = self.logits().argmax(axis=1).tolist()
        return found

    def attach(self, adapter: Adapter, scale: float = 1.0) -> None:
        """Decode with an adapter of the same model from here on; scale 0 takes it off.

        Raises `EngineError` when llama.cpp does not take it.
        """
        lib, count = self._lib, 1 if scale else 0
        handles = (lib.llama_adapter_lora_p_ctypes * 1)(adapter.handle)
        if code := lib.llama_set_adapters_lora(self.handle, handles, count, (ctypes.c_float * 1)(scale)):
            raise EngineError(f"llama.cpp does not take the adapter (return code {code})")

    def clear(self) -> None:
        """Forget all sequences, and zero their buffers."""
        self._lib.llama_memory_clear(self._memory, True)

    def copy(self, source: int, target: int) -> None:
        """Make `target`, which must be empty, a whole copy of `source`. llama.cpp may do it at the next decode."""
        self._lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def drop(self, sequence: int) -> None:
        """Forget one sequence. Raises `EngineError` when llama.cpp refuses."""
        if not self._lib.llama_memory_seq_rm(self._memory, sequence, -1, -1):
            raise EngineError(f"llama.cpp does not remove sequence {sequence}")

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget positions >= `position`; False when llama.cpp refuses (recurrent state without snapshots)."""
        return bool(self._lib.llama_memory_seq_rm(self._memory, sequence, position, -1))

    def length(self, sequence: int) -> int:
        """Tokens held for a sequence."""
        return int(self._lib.llama_memory_seq_pos_max(self._memory, sequence)) + 1

    def save(self, sequence: int) -> Saved:
        """A copy of a sequence's state, in the host's memory. Raises `EngineError` where llama.cpp gives none."""
        size = int(self._lib.llama_state_seq_get_size(self.handle, sequence))
        state = np.empty(size, dtype=np.uint8)
        written = self._lib.llama_state_seq_get_data(self.handle, _address(state), size, sequence)
        if not size or written != size:
            raise EngineError(f"llama.cpp gives {written} of {size} bytes of the state of sequence {sequence}")
        return Saved(state, self.length(sequence), size)

    def restore(self, sequence: int, saved: Saved) -> None:
        """Put a state into an empty sequence. Raises `EngineError` where llama.cpp does not take it."""
        mark = log().mark()
        if not self._lib.llama_state_seq_set_data(self.handle, _address(saved.state), saved.nbytes, sequence):
            raise EngineError(f"llama.cpp does not take a state of {saved.nbytes} bytes: {log().last_error(mark)}")

    def facts(self) -> Facts:
        """What llama.cpp made of the spec, read back: sizes in tokens, buffers in bytes."""
        lib, spec = self._lib, self.spec
        return {
            "n_ctx": lib.llama_n_ctx(self.handle),
            "n_ctx_seq": lib.llama_n_ctx_seq(self.handle),
            "n_seq_max": lib.llama_n_seq_max(self.handle),
            "n_batch": lib.llama_n_batch(self.handle),
            "n_ubatch": lib.llama_n_ubatch(self.handle),
            "threads": lib.llama_n_threads(self.handle),
            "kv_unified": spec.kv_unified,
            "type_k": spec.type_k,
            "type_v": spec.type_v,
            "flash_attn": engine_log.flash_attention(self._log) or spec.flash_attn,
            "sampler": spec.sampler,
            "snapshots": lib.llama_n_rs_seq(self.handle),
            "offload_kqv": spec.offload_kqv,
            "op_offload": spec.op_offload,
            "split_mode": self.model.split_mode,
            "main_gpu": self.model.main_gpu,
            "tensor_split": self.model.tensor_split,
            "repack": self.model.repack,
            "load_s": round(self.model.load_s, 3),
            **packed.facts(),
            "layers_offloaded": self.model.layers_offloaded,
            "n_layer": self.model.n_layer,
            "build": build()["llama_cpp_commit"],
            **engine_log.buffer_bytes(self._log),
        }

    def close(self) -> None:
        """Free the context and its samplers. Calling twice is allowed."""
        if self.handle:
            self._lib.llama_free(self.handle)
            self.handle = None
            for chain in self._samplers:
                self._lib.llama_sampler_free(chain)
            self._samplers = []


def _address(state: NDArray[np.uint8]) -> Any:
    return state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
