"""The engine on a toy model whose step times, distributions and faults are known exactly.

The state of a sequence is a hash of its tokens, and the logits are random numbers that the state seeds, beside a part
that the newest token decides alone, so that texts repeat themselves. Time is simulated: a decode of width w takes
`step_ns(w)`, once for each `n_ubatch` rows, everything else `host_ns`. So whoever measures this engine can be compared
with the truth. It is as strict as a real one: rows of logits are gone with the next decode, and a batch, a number of
outputs or a text beyond the limits fails. Each fault is one that real engines and harnesses have had.
It knows nothing about methods or measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import (
    Context,
    ContextSpec,
    EngineError,
    Facts,
    Head,
    OwnDrafter,
    OwnDrafterSpec,
    Saved,
    Unsupported,
    too_many_outputs,
)
from pti_loop.fake_memory import FakeMemory, Held, advance, parts, whole
from pti_loop.fake_rows import Lease, Rows
from pti_loop.weights import by_numpy

END = 3
"""The toy model's end token, which no answer ever holds."""
_OF_TOKEN, _OF_STATE = 0.96, 0.28
"""Shares of a logit that the newest token decides, and that the whole text does; their squares make 1."""
_MOST_ROWS = 50_000


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
    deaf: bool = False
    """The logits are the same behind every text."""
    restore_lies: bool = False
    """A state that is restored is that of another text."""
    no_states: bool = False
    """The engine gives no state of a sequence."""
    asynchronous: bool = False
    """A decode returns before it is computed; whoever reads its rows waits for them, and nobody else does."""


@dataclass
class FakeModel:
    """A toy language model. `seed` decides the logits; `spread` scales how sure the model is of itself."""

    step_ns: Callable[[int], int]
    n_vocab: int = 50
    spread: float = 3.0
    seed: int = 0
    host_ns: int = 0
    faults: Faults = field(default_factory=Faults)
    ticks: list[int] = field(default_factory=lambda: [1_000_000])
    """The clock, in nanoseconds. Models that run side by side share it."""

    steps: int = 0
    """Steps that a logit of 1 has after rounding, 0 for none: fewer bits."""

    def __post_init__(self) -> None:
        self._bigrams = [np.random.default_rng([self.seed, other]).standard_normal((self.n_vocab, self.n_vocab))
                         for other in range(2)]  # fmt: skip
        self._rows: dict[tuple[int, int, bool, bool], NDArray[np.float32]] = {}
        self.n_nextn = 1
        self.end_tokens: list[int] = [END]
        self.weigh = by_numpy
        self.busy_until_ns = 0

    def row(self, token: int, state: int, other: bool = False, ends: bool = False) -> NDArray[np.float32]:
        """Logits float32 (n_vocab,) behind a token that left this state, not to be written to; or another model's.

        With `ends` the end-of-generation tokens have theirs.
        """
        key = (0, 0, other, ends) if self.faults.deaf else (token, state, other, ends)
        if key not in self._rows:
            if len(self._rows) >= _MOST_ROWS:
                self._rows.clear()
            own = np.random.default_rng([self.seed, other, key[1]]).standard_normal(self.n_vocab)
            row = self.spread * (_OF_TOKEN * self._bigrams[other][key[0] % self.n_vocab] + _OF_STATE * own)
            row = np.round(row * self.steps) / self.steps if self.steps else row
            row[[] if ends else self.end_tokens] = -np.inf
            self._rows[key] = row.astype(np.float32)
        return self._rows[key]

    def spend(self, duration_ns: int) -> None:
        """A decode of this duration was started."""
        began = max(self.now_ns, self.busy_until_ns)
        self.busy_until_ns = began + duration_ns
        if not self.faults.asynchronous:
            self.wait()

    def wait(self) -> None:
        """Until what was started is computed."""
        self.now_ns = max(self.now_ns, self.busy_until_ns)

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return self.ticks[0]

    @now_ns.setter
    def now_ns(self, value: int) -> None:
        self.ticks[0] = value

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """One token a byte, folded into the vocabulary; there are no special ones in a text."""
        return [byte % self.n_vocab for byte in text.encode()]

    def context(self, spec: ContextSpec) -> FakeContext:
        """A fresh context on the model's simulated clock."""
        return FakeContext(self, spec)

    def head(self, trunk: Context, spec: ContextSpec) -> FakeHead:
        """A head that knows the model's own logits, but for its fault. Raises `Unsupported` where `n_nextn` is 0."""
        if not self.n_nextn:
            raise Unsupported("the toy model has no nextn layer, so there is no head that proposes tokens")
        return FakeHead(self, spec)

    def sibling(self, path: Path) -> FakeModel:
        """A model with other logits; the name of `path` is its seed."""
        return replace(self, seed=int(path.name))

    def twin(self, kind: str) -> FakeModel:
        """The same logits rounded to so many steps."""
        return replace(self, steps=int(kind))

    def adapted(self, spec: ContextSpec, adapter: Path) -> FakeContext:
        """A context of the model with the other logits."""
        return self.sibling(adapter).context(spec)

    def own_drafter(self, spec: OwnDrafterSpec, trunk: Context, beside: Context | Head | None = None) -> OwnDrafter:
        """Raises `Unsupported`: a toy has none."""
        raise Unsupported("this engine has no drafters of its own; use model.engine=llama")

    def facts(self) -> Facts:
        """As a real model answers."""
        return {"description": "toy", "n_layer": 1, "n_params": self.n_vocab**2, "n_vocab": self.n_vocab,
                "layers_offloaded": 0, "layers_offloadable": 1, "memory": "attention"}

    def close(self) -> None:
        """Nothing to free."""


class FakeContext:
    """Sequences of the toy model. A wrong position, an unknown sequence or a full one is an `EngineError`."""

    def __init__(self, model: FakeModel, spec: ContextSpec) -> None:
        size = min(spec.n_batch, spec.n_ctx * spec.n_seq_max)
        spec = replace(spec, n_batch=size, n_ubatch=min(spec.n_ubatch, size))
        self.model, self.spec, self.n_vocab = model, spec, model.n_vocab
        self._memory = self._remember()
        self._lease = Lease()
        self._logits: Rows | None = None
        self._states: list[int] = []
        """Behind each row that `hidden` shows."""
        self._decodes = 0
        self._copies = 0

    def _remember(self) -> FakeMemory:
        faults, snapshots = self.model.faults, self.spec.snapshots
        return FakeMemory(self.spec, faults.no_rewind, 0 if faults.no_snapshots else snapshots, faults.rollback_lies)

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
        held, wanted = self._take(tokens, positions, sequences, outputs)
        self._states = [one.state for one in held]
        size = self.spec.n_ubatch
        parts_of = [min(size, width - start) for start in range(0, width, size)]
        self._put([self._logits_of(held[row], parts_of[row // size]) for row in wanted])
        idle = self.spec.n_seq_max - len(set(sequences))
        steps = sum(map(self.model.step_ns, parts_of))
        self.model.spend(steps + idle * faults.idle_ns + self._copies * faults.lazy_copy_ns)
        self._copies = 0

    def _take(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
              outputs: Sequence[int] | None) -> tuple[list[Held], Sequence[int]]:  # fmt: skip
        """Check a batch and take it in; returns what each row left, and the rows that are outputs."""
        width, spec = len(tokens), self.spec
        if not width:
            raise EngineError("llama_decode of 0 tokens returned -1: invalid input batch")
        if width > spec.n_batch:
            raise EngineError(
                f"a batch of {width} tokens is larger than n_batch {spec.n_batch}; set engine.n_batch={width}"
            )
        wanted = range(width) if outputs is None else outputs
        if len(wanted) > spec.n_outputs:
            raise EngineError(too_many_outputs(len(wanted), spec.n_outputs))
        self._lease.end()
        return self._memory.append(tokens, positions, sequences), wanted

    def _put(self, rows: Sequence[NDArray[np.float32]]) -> None:
        """Make these the rows of the decode, for as long as it is the newest."""
        self._lease = Lease()
        self._logits = self._lease.rows(np.array(rows, dtype=np.float32)) if rows else None

    def _logits_of(self, held: Held, width: int) -> NDArray[np.float32]:
        faults = self.model.faults
        wrong = bool(faults.wrong_from_width) and width >= faults.wrong_from_width
        logits = self.model.row(held.token, held.state, wrong, self.spec.ends)
        if faults.noise:
            moved = np.random.default_rng([width, held.state]).uniform(-0.5, 0.5, self.n_vocab)
            logits = logits + (faults.noise * moved).astype(np.float32)
        return logits

    def logits(self) -> NDArray[np.float32]:
        """Float32 (n_outputs, n_vocab) of the last decode, until the next. Raises `EngineError` when it left none."""
        if self.spec.sampler == "backend":
            raise EngineError("the last decode left no logits: the context samples on the backend")
        return self._outputs()

    def _outputs(self) -> NDArray[np.float32]:
        if self._logits is None:
            raise EngineError("the last decode left no logits: it asked for none")
        self.model.wait()
        return self._logits  # type: ignore[return-value]  # it stands in for an array

    def greedy(self) -> list[int]:
        """Argmax of every output row."""
        return [int(token) for token in self._outputs().argmax(axis=1)]

    def hidden(self) -> NDArray[np.float32]:
        """Float32 (n_rows, 3): the state behind each row, which is all that there is to hide, until the next decode.

        Raises `EngineError` when the spec does not ask for it.
        """
        if not self.spec.hidden:
            raise EngineError("the context was made without hidden states")
        return self._hidden()

    def _hidden(self) -> NDArray[np.float32]:
        self.model.wait()
        rows = self._lease.rows(np.array([parts(state) for state in self._states], dtype=np.float32))
        return rows  # type: ignore[return-value]  # it stands in for an array

    def clear(self) -> None:
        """Forget all sequences (unless the fault keeps them)."""
        if not self.model.faults.cached_prompt:
            self._memory.clear()

    def copy(self, source: int, target: int) -> None:
        """Whole copy into an empty sequence. Raises `EngineError` when it is not empty."""
        self._memory.copy(source, target)
        self._copies += 1

    def drop(self, sequence: int) -> None:
        """Forget one sequence."""
        self._memory.drop(sequence)

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget the tail; with the fault on, the count goes back and the state stays where it was."""
        return self._memory.rewind(sequence, position)

    def length(self, sequence: int) -> int:
        """Tokens held."""
        return self._memory.length(sequence)

    def save(self, sequence: int) -> Saved:
        """What the sequence holds, 8 bytes a token. Raises `EngineError` with the fault on."""
        if self.model.faults.no_states:
            raise EngineError(f"the state of sequence {sequence} is not given: simulated")
        held = self._memory.save(sequence)
        return Saved(held, len(held), 8 * len(held))

    def restore(self, sequence: int, saved: Saved) -> None:
        """Hold it again; takes a tenth of a step. Raises `EngineError` when the sequence is not empty."""
        held = saved.state
        if self.model.faults.restore_lies:
            held = [*held[:-1], Held(held[-1].token, advance(held[-1].state, [0]))]
        self._memory.restore(sequence, held)
        self.model.spend(self.model.step_ns(1) // 10)

    def facts(self) -> Facts:
        """As a real context answers."""
        spec = self.spec
        return {**spec.as_dict(), "n_ctx_seq": spec.n_ctx, "layers_offloaded": 0, "n_layer": 1, "build": "toy",
                "kv_bytes": 8 * spec.n_ctx * spec.n_seq_max, "state_bytes": 0, "compute_bytes": 0, "output_bytes": 0}

    def close(self) -> None:
        """Nothing to free."""


class FakeHead(FakeContext):
    """The toy model's nextn head: from the state before a token and the token, what the model will say behind it."""

    def _remember(self) -> FakeMemory:
        return FakeMemory(self.spec, recurrent=False, snapshots=0, lies=False)  # attention, whatever the trunk's is

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:  # fmt: skip
        """A head decodes nothing without hidden states. Raises `EngineError`."""
        raise EngineError("a nextn head needs the hidden states of the trunk; use decode_after")

    def decode_after(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
                     hidden: NDArray[np.float32], outputs: Sequence[int]) -> None:  # fmt: skip
        """Row i of `hidden` (n_rows, 3) is the state before token i. Takes a tenth of a step.

        Raises `EngineError` for rows that do not continue their sequences.
        """
        before = [whole(row) for row in hidden]
        _, wanted = self._take(tokens, positions, sequences, outputs)
        self._states = [advance(before[row], [tokens[row]]) for row in wanted]
        self._put([self._says(tokens[row], before[row]) for row in wanted])
        self.model.spend(self.model.step_ns(1) // 10)

    def _says(self, token: int, before: int) -> NDArray[np.float32]:
        """Logits behind a token that came after this state."""
        state = advance(before, [token])
        bad = np.random.default_rng([state, 1]).random() < self.model.faults.bad_head
        return self.model.row(token, state, bad, self.spec.ends)

    def hidden(self) -> NDArray[np.float32]:
        """Float32 (n_outputs, 3): the state behind each output row, until the next decode."""
        return self._hidden()
