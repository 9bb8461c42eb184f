"""The engine on a toy model whose step times, distributions and faults are known exactly.

The state of a sequence is one number, h -> (3 h + token) mod 97, and the logits are a fixed table of that state. Time
is simulated: a decode of width w takes `step_ns(w)`, everything else `host_ns`. So whoever measures this engine can
be compared with the truth. Each fault is one that real engines and harnesses have had.
It knows nothing about methods or measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import Context, ContextSpec, EngineError, Facts, Unsupported
from pti_loop.weights import by_numpy

MODULUS = 97


def advance(state: int, tokens: Sequence[int]) -> int:
    """State after more tokens; an empty sequence has state 0."""
    for token in tokens:
        state = (3 * state + token) % MODULUS
    return state


@dataclass(frozen=True)
class Faults:
    """What is wrong with the engine. All off by default."""

    rollback_lies: bool = False
    """`rewind` answers True and restores nothing."""
    no_rewind: bool = False
    """The memory cannot rewind, as recurrent state cannot, unless its context keeps snapshots."""
    no_snapshots: bool = False
    """Nor does it keep any."""
    lazy_copy_ns: int = 0
    """What a copy of a sequence costs, in the decode that follows it."""
    bad_head: float = 0.0
    """Share of states at which the nextn head says another model's token."""
    wrong_from_width: int = 0
    """Decodes at least this wide compute another model's logits (0: never)."""
    noise: float = 0.0
    """Logits move by up to this much with the width of the decode, as other kernels round otherwise."""
    cached_prompt: bool = False
    """`clear` keeps the sequences, so a second run finds its prompt evaluated."""
    decode_code: int = 0
    """Return code of every decode after the tenth."""
    idle_ns: int = 0
    """Extra nanoseconds of a decode for every sequence of the context that is not in the batch."""


@dataclass
class FakeModel:
    """A toy language model. `temperature_table` seeds the logits; `spread` scales how sure the model is of itself."""

    step_ns: Callable[[int], int]
    n_vocab: int = 50
    spread: float = 3.0
    seed: int = 0
    host_ns: int = 0
    faults: Faults = field(default_factory=Faults)
    ticks: list[int] = field(default_factory=lambda: [1_000_000])
    """The clock, in nanoseconds. Models that run side by side share it."""

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.table = (self.spread * rng.standard_normal((MODULUS, self.n_vocab))).astype(np.float32)
        self.other_table = (self.spread * rng.standard_normal((MODULUS, self.n_vocab))).astype(np.float32)
        self.n_nextn = 1
        self.end_tokens: list[int] = []
        self.weigh = by_numpy

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return self.ticks[0]

    @now_ns.setter
    def now_ns(self, value: int) -> None:
        self.ticks[0] = value

    def tokenize(self, text: str) -> list[int]:
        """One token a byte, folded into the vocabulary."""
        return [byte % self.n_vocab for byte in text.encode()]

    def context(self, spec: ContextSpec) -> FakeContext:
        """A fresh context on the model's simulated clock."""
        return FakeContext(self, spec)

    def head(self, trunk: Context, spec: ContextSpec) -> FakeHead:
        """A head that knows the model's own table, but for its fault. Raises `Unsupported` where `n_nextn` is 0."""
        if not self.n_nextn:
            raise Unsupported("the toy model has no nextn layer, so there is no head that proposes tokens")
        return FakeHead(self, spec)

    def sibling(self, path: Path) -> FakeModel:
        """A model with another table; the name of `path` is its seed."""
        return replace(self, seed=int(path.name))

    def twin(self, kind: str) -> FakeModel:
        """The same table rounded to so many steps."""
        other, steps = replace(self), np.float32(int(kind))
        other.table = (np.round(self.table * steps) / steps).astype(np.float32)
        return other

    def adapted(self, spec: ContextSpec, adapter: Path) -> FakeContext:
        """A context of the model with the other table."""
        return self.sibling(adapter).context(spec)

    def facts(self) -> Facts:
        """As a real model answers."""
        return {"description": "toy", "n_layer": 1, "n_params": MODULUS * self.n_vocab, "n_vocab": self.n_vocab,
                "layers_offloaded": 0, "layers_offloadable": 1, "memory": "attention"}

    def close(self) -> None:
        """Nothing to free."""


class FakeContext:
    """Sequences of the toy model. A wrong position, an unknown sequence or a full one is an `EngineError`."""

    def __init__(self, model: FakeModel, spec: ContextSpec) -> None:
        self.model, self.spec, self.n_vocab = model, spec, model.n_vocab
        self._states: dict[int, list[int]] = {sequence: [] for sequence in range(spec.n_seq_max)}
        """State after each token held."""
        self._stale: dict[int, int] = {}
        self._rows: NDArray[np.float32] = np.zeros((0, model.n_vocab), dtype=np.float32)
        self._decodes = 0
        self._copies = 0
        self._after_rows: list[int] = []
        """State behind each row of the last decode."""

    def clock(self) -> int:
        """Simulated nanoseconds; each look costs the model's host time."""
        self.model.now_ns += self.model.host_ns
        return self.model.now_ns

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:
        """Advance the sequences and the clock. Raises `EngineError` for rows that do not continue their sequences."""
        faults, width = self.model.faults, len(tokens)
        self._decodes += 1
        if faults.decode_code and self._decodes > 10:
            raise EngineError(f"llama_decode of {width} tokens returned {faults.decode_code}: simulated")
        wanted = range(width) if outputs is None else outputs
        rows = []
        self._after_rows = []
        for row, (token, position, sequence) in enumerate(zip(tokens, positions, sequences, strict=True)):
            self._append(token, position, sequence)
            self._after_rows.append(self._stale.get(sequence, self._states[sequence][-1]))
            if row in wanted:
                rows.append(self._logits_of(sequence, width))
        self._rows = np.array(rows, dtype=np.float32).reshape(len(rows), self.n_vocab)
        idle = self.spec.n_seq_max - len(set(sequences))
        self.model.now_ns += self.model.step_ns(width) + idle * faults.idle_ns + self._copies * faults.lazy_copy_ns
        self._copies = 0

    def _append(self, token: int, position: int, sequence: int) -> None:
        if sequence not in self._states:
            raise EngineError(f"sequence {sequence} is beyond n_seq_max {self.spec.n_seq_max}")
        held = self._states[sequence]
        if position != len(held):
            raise EngineError(f"sequence {sequence} holds {len(held)} tokens, the batch puts one at {position}")
        if len(held) >= self.spec.n_ctx:
            raise EngineError(f"sequence {sequence} is full at {self.spec.n_ctx} tokens")
        if sequence in self._stale:
            self._stale[sequence] = advance(self._stale[sequence], [token])
        held.append(advance(held[-1] if held else 0, [int(token)]))

    def _logits_of(self, sequence: int, width: int) -> NDArray[np.float32]:
        faults = self.model.faults
        state = self._stale.get(sequence, self._states[sequence][-1])
        wrong = faults.wrong_from_width and width >= faults.wrong_from_width
        logits: NDArray[np.float32] = (self.model.other_table if wrong else self.model.table)[state].copy()
        if faults.noise:
            rng = np.random.default_rng([width, state])
            logits += rng.uniform(-faults.noise / 2, faults.noise / 2, self.n_vocab).astype(np.float32)
        return logits

    def logits(self) -> NDArray[np.float32]:
        """Float32 (n_outputs, n_vocab) of the last decode."""
        return self._rows

    def greedy(self) -> list[int]:
        """Argmax of every output row."""
        return [int(token) for token in self._rows.argmax(axis=1)] if len(self._rows) else []

    def hidden(self) -> NDArray[np.float32]:
        """Float32 (n_rows, 1): the state behind each row, which is all that there is to hide.

        Raises `EngineError` when the spec does not ask for it.
        """
        if not self.spec.hidden:
            raise EngineError("the context was made without hidden states")
        return np.array(self._after_rows, dtype=np.float32)[:, None]

    def clear(self) -> None:
        """Forget all sequences (unless the fault keeps them)."""
        if not self.model.faults.cached_prompt:
            self._states = {sequence: [] for sequence in range(self.spec.n_seq_max)}
        self._stale = {}

    def copy(self, source: int, target: int) -> None:
        """Whole copy into an empty sequence. Raises `EngineError` when it is not empty."""
        if self._states[target]:
            raise EngineError(f"sequence {target} is not empty")
        self._states[target] = list(self._states[source])
        self._copies += 1
        if source in self._stale:
            self._stale[target] = self._stale[source]

    def drop(self, sequence: int) -> None:
        """Forget one sequence."""
        self._states[sequence] = []
        self._stale.pop(sequence, None)

    def _can_forget(self, count: int) -> bool:
        faults = self.model.faults
        return not faults.no_rewind or (not faults.no_snapshots and count <= self.spec.snapshots)

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget the tail; with the fault on, the count goes back and the state stays where it was."""
        if not self._can_forget(len(self._states[sequence]) - position):
            return False
        if self.model.faults.rollback_lies and position < len(self._states[sequence]):
            self._stale[sequence] = self._stale.get(sequence, self._states[sequence][-1])
        self._states[sequence] = self._states[sequence][:position]
        return True

    def length(self, sequence: int) -> int:
        """Tokens held."""
        return len(self._states[sequence])

    def facts(self) -> Facts:
        """As a real context answers."""
        spec = self.spec
        return {**spec.as_dict(), "n_ctx_seq": spec.n_ctx, "layers_offloaded": 0, "n_layer": 1, "build": "toy",
                "kv_bytes": 8 * spec.n_ctx * spec.n_seq_max, "state_bytes": 0, "compute_bytes": 0, "output_bytes": 0}

    def close(self) -> None:
        """Nothing to free."""


class FakeHead(FakeContext):
    """The toy model's nextn head: from the state before a token and the token, what the model will say behind it."""

    def decode_after(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
                     hidden: NDArray[np.float32], outputs: Sequence[int]) -> None:  # fmt: skip
        """Row i of `hidden` (n_rows, 1) is the state before token i. Takes a tenth of a step.

        Raises `EngineError` for rows that do not continue their sequences.
        """
        model, self._after_rows = self.model, []
        rows: list[NDArray[np.float32]] = []
        for row, (token, position, sequence) in enumerate(zip(tokens, positions, sequences, strict=True)):
            self._append(token, position, sequence)
            state = advance(int(hidden[row, 0]), [int(token)])
            if row in outputs:
                bad = np.random.default_rng([state, 1]).random() < model.faults.bad_head
                rows.append((model.other_table if bad else model.table)[state])
                self._after_rows.append(state)
        self._rows = np.array(rows, dtype=np.float32).reshape(len(rows), self.n_vocab)
        model.now_ns += model.step_ns(1) // 10

    def hidden(self) -> NDArray[np.float32]:
        """Float32 (n_outputs, 1): the state behind each output row."""
        return np.array(self._after_rows, dtype=np.float32)[:, None]

    def _can_forget(self, count: int) -> bool:
        return True
