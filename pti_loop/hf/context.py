"""A context on transformers: sequences, their memory, and the logits of the last forward pass."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import ContextSpec, EngineError, Facts, Saved
from pti_loop.hf import load

if TYPE_CHECKING:  # neither torch nor cache.py, which imports it, is there without the extra
    import torch

    from pti_loop.hf.cache import Placement, SequenceCache


class Loaded(Protocol):
    """What a context asks of its model."""

    network: Any
    device: torch.device
    type_name: str
    n_vocab: int
    n_layer: int
    end_tokens: list[int]
    can_rewind: bool

    def memory(self, n_seq_max: int, n_ctx: int) -> SequenceCache:
        """Empty memory of some sequences of some tokens each."""

    def facts(self) -> Facts:
        """Layers and where they are."""


class HfContext:
    """Sequences 0 to n_seq_max - 1 of a transformers model.

    Raises `EngineError` for a spec that transformers cannot have, or when there is no room.
    """

    clock = staticmethod(time.perf_counter_ns)

    def __init__(self, model: Loaded, spec: ContextSpec) -> None:
        import torch

        _check_spec(spec, model.type_name)
        self._torch = torch
        self.model, self.spec, self.n_vocab = model, spec, model.n_vocab
        try:
            with torch.inference_mode():
                self._cache: SequenceCache | None = model.memory(spec.n_seq_max, spec.n_ctx)
        except RuntimeError as error:  # torch has one for running out of memory and another for asking for too much
            raise EngineError(f"torch makes no context of {spec.n_seq_max} x {spec.n_ctx} tokens: {error}") from error
        self._held = [0] * spec.n_seq_max
        self._end = np.array([] if spec.ends else model.end_tokens, dtype=np.intp)
        self._rows: torch.Tensor | None = None
        self._view: NDArray[np.float32] | None = None

    @property
    def _memory(self) -> SequenceCache:
        if self._cache is None:
            raise EngineError("this context is closed; make another one")
        return self._cache

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:
        """One forward pass over all rows and the wait for its result.

        Raises `EngineError` for a batch that does not continue its sequences; it changes nothing.
        """
        torch, device = self._torch, self.model.device
        if torch.get_num_threads() != self.spec.threads:
            torch.set_num_threads(self.spec.threads)
        placement, order = self._place(tokens, positions, sequences)
        ids = torch.zeros(placement.positions.shape, dtype=torch.long, device=device)
        ids[placement.member, placement.column] = torch.tensor([int(tokens[row]) for row in order], device=device)
        with torch.inference_mode():
            cache = self._memory
            masks = cache.begin(placement)
            said = self.model.network(
                input_ids=ids, position_ids=placement.positions, attention_mask=masks, cache=cache,
                use_cache=True, logits_to_keep=self._kept(placement, order, outputs),
            ).logits  # fmt: skip
            cache.end(placement)
            self._rows = self._in_order(said.reshape(-1, self.n_vocab), order, outputs)
            self._view = None
            if device.type != "cpu":
                torch.cuda.synchronize(device)
        for sequence in sequences:
            self._held[sequence] += 1

    def _place(self, tokens: Sequence[int], positions: Sequence[int],
               sequences: Sequence[int]) -> tuple[Placement, list[int]]:
        """Where the rows go, and the rows in the order of the batch: by sequence, then by position."""
        from pti_loop.hf.cache import Placement

        if not 0 < len(tokens) <= self.spec.n_batch:
            raise EngineError(f"a batch of {len(tokens)} tokens is empty or larger than n_batch {self.spec.n_batch}; "
                              f"set engine.n_batch={len(tokens)}")  # fmt: skip
        rows: dict[int, list[int]] = {}
        for row, (token, position, sequence) in enumerate(zip(tokens, positions, sequences, strict=True)):
            rows.setdefault(sequence, []).append(row)
            self._check_row(token, position, sequence, len(rows[sequence]) - 1)
        members = sorted(rows)
        counts = [len(rows[sequence]) for sequence in members]
        if self._memory.recurrent and len(set(counts)) > 1:
            raise EngineError(f"one pass takes equally many tokens of every sequence of this model, not {counts}: a "
                              "recurrent state would take in the padding; decode them apart")  # fmt: skip
        placement = Placement(members, [self._held[s] for s in members], counts, self.model.device)
        return placement, [row for sequence in members for row in rows[sequence]]

    def _check_row(self, token: int, position: int, sequence: int, before: int) -> None:
        """Raises `EngineError` for a row that does not continue its sequence; `before` rows of the batch precede it."""
        if not 0 <= sequence < self.spec.n_seq_max:
            raise EngineError(f"sequence {sequence} is beyond n_seq_max {self.spec.n_seq_max}")
        held = self._held[sequence] + before
        if position != held:
            raise EngineError(f"sequence {sequence} holds {held} tokens, the batch puts one at {position}")
        if held >= self.spec.n_ctx:
            raise EngineError(f"sequence {sequence} is full at {self.spec.n_ctx} tokens; set a larger engine.n_ctx")
        if not 0 <= token < self.n_vocab:
            raise EngineError(f"token {token} is not in the vocabulary of {self.n_vocab}")

    def _kept(self, placement: Placement, order: list[int], outputs: Sequence[int] | None) -> torch.Tensor | int:
        """Cells whose logits the model computes: 0 for all, else bool (members, width)."""
        if outputs is None and placement.even:
            return 0
        wanted = set(range(len(order)) if outputs is None else outputs)
        kept = self._torch.zeros(placement.positions.shape, dtype=self._torch.bool, device=self.model.device)
        flags = self._torch.tensor([row in wanted for row in order], device=self.model.device)
        kept[placement.member, placement.column] = flags
        return kept

    def _in_order(self, said: torch.Tensor, order: list[int], outputs: Sequence[int] | None) -> torch.Tensor:
        """Logits (n_outputs, n_vocab) in the order of the rows that were asked for."""
        wanted = range(len(order)) if outputs is None else outputs
        chosen = set(wanted)
        came = {row: place for place, row in enumerate(row for row in order if row in chosen)}
        places = [came[row] for row in wanted]
        return said if places == list(range(len(places))) else said[places]

    def scores(self) -> torch.Tensor:
        """Logits (n_outputs, n_vocab) of the last decode, on the model's device and in its type.

        Raises `EngineError` when it left none.
        """
        if self._rows is None or not len(self._rows):
            raise EngineError("the last decode left no logits: it asked for none")
        return self._rows

    def logits(self) -> NDArray[np.float32]:
        """Float32 (n_outputs, n_vocab) of the last decode; end-of-generation columns are -inf without `ends`.

        Raises `EngineError` when the last decode left none.
        """
        if self.spec.sampler == "backend":
            raise EngineError("the last decode left no logits: the context samples on the backend")
        if self._view is None:
            view: NDArray[np.float32] = self.scores().float().cpu().numpy()
            view[:, self._end] = -np.inf
            self._view = view
        return self._view

    def hidden(self) -> NDArray[np.float32]:
        """Raises `EngineError`: nothing here reads hidden states."""
        raise EngineError("hidden states are kept on llama.cpp alone; use model.engine=llama")

    def greedy(self) -> list[int]:
        """Argmax token of every output row, lowest id on a tie; taken on the model's device when it samples there."""
        if self.spec.sampler == "host":
            return [int(token) for token in self.logits().argmax(axis=1)]
        rows = self.scores()
        with self._torch.inference_mode():
            rows[:, self._end.tolist()] = -float("inf")
            return [int(token) for token in rows.argmax(dim=-1).tolist()]

    def clear(self) -> None:
        """Forget all sequences."""
        for sequence in range(self.spec.n_seq_max):
            self.drop(sequence)

    def copy(self, source: int, target: int) -> None:
        """Make `target`, which must be empty, a whole copy of `source`. Raises `EngineError` when it is not empty."""
        if self._held[target]:
            raise EngineError(f"sequence {target} is not empty")
        with self._torch.inference_mode():
            self._memory.copy(source, target, self._held[source])
        self._held[target] = self._held[source]

    def drop(self, sequence: int) -> None:
        """Forget one sequence."""
        with self._torch.inference_mode():
            self._memory.drop(sequence)
        self._held[sequence] = 0

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget positions >= `position`; False when the memory cannot (recurrent and hybrid models)."""
        if position < self._held[sequence] and not self.model.can_rewind:
            return False
        self._held[sequence] = min(position, self._held[sequence])
        return True

    def length(self, sequence: int) -> int:
        """Tokens held for a sequence."""
        return self._held[sequence]

    def save(self, sequence: int) -> Saved:
        """Copies of what the sequence holds, in the host's memory."""
        with self._torch.inference_mode():
            state = self._memory.save(sequence, self._held[sequence])
        return Saved(state, self._held[sequence], sum(one.nbytes for one in state))

    def restore(self, sequence: int, saved: Saved) -> None:
        """Hold it again. Raises `EngineError` when the sequence is not empty."""
        if self._held[sequence]:
            raise EngineError(f"sequence {sequence} is not empty")
        with self._torch.inference_mode():
            self._memory.restore(sequence, saved.state)
        self._held[sequence] = saved.tokens

    def facts(self) -> Facts:
        """What was made of the spec: sizes in tokens, bytes of buffers. torch has no fixed one for computing: 0."""
        spec, model = self.spec, self.model
        return {
            "n_ctx": spec.n_ctx * spec.n_seq_max, "n_ctx_seq": spec.n_ctx, "n_seq_max": spec.n_seq_max,
            "n_batch": spec.n_batch, "n_ubatch": spec.n_batch, "threads": spec.threads, "kv_unified": False,
            "type_k": model.type_name, "type_v": model.type_name, "flash_attn": "sdpa", "sampler": spec.sampler,
            "layers_offloaded": model.facts()["layers_offloaded"], "n_layer": model.n_layer,
            "build": load.build()["build"],
            "kv_bytes": sum(layer.nbytes for layer in self._memory.attention),
            "state_bytes": sum(layer.nbytes for layer in self._memory.recurrent),
            "compute_bytes": 0, "output_bytes": spec.n_outputs * self.n_vocab * 4,
        }  # fmt: skip

    def close(self) -> None:
        """Let the memory go. Calling twice is allowed."""
        self._cache = self._rows = self._view = None


def _check_spec(spec: ContextSpec, own: str) -> None:
    """Refuse what is llama.cpp's alone. The type f16 is the default and means the model's own here."""
    for name in ("type_k", "type_v"):
        if getattr(spec, name) not in ("f16", own):
            raise EngineError(f"transformers keeps K and V in the model's own type ({own}), so engine.{name}="
                              f"{getattr(spec, name)} is not available; leave it out")  # fmt: skip
    for name, value in (("kv_unified", False), ("flash_attn", "auto")):
        if getattr(spec, name) != value:
            raise EngineError(f"engine.{name}={getattr(spec, name)} is llama.cpp's; leave it out with model.engine=hf")
