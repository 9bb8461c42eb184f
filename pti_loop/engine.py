"""What a decode loop may ask of a model. Knows no library: `llama`, `hf` and `fake` implement it.

One `Model` is loaded once; every arm of a comparison gets its own `Context` from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pti_loop.weights import Weigh

Facts: TypeAlias = dict[str, Any]
"""What an engine says of itself, as plain values for a record: `*_bytes` are bytes, `n_ctx*` and `n_batch` tokens."""


class EngineError(RuntimeError):
    """The engine refused or failed: a return code, a missing feature, a model that does not load."""


class Unsupported(RuntimeError):
    """This method cannot run on this model or build; the sentence says why. Becomes a record, not a hole."""


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """How an arm's context is made. `n_ctx` is what ONE sequence can hold, in tokens."""

    n_ctx: int
    n_seq_max: int
    n_batch: int = 512
    """Most tokens of one decode."""
    n_ubatch: int = 512
    """Tokens that the engine computes at once."""
    threads: int = 1
    kv_unified: bool = False
    """One buffer of keys and values for all sequences, instead of one a sequence."""
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: str = "auto"
    n_outputs: int = 16
    """Most rows of logits that one decode asks for."""
    sampler: str = "host"
    """`host` takes the argmax of the logits here; `backend` lets the engine's graph do it (temperature 0 only)."""
    snapshots: int = 0
    """States of a recurrent memory that are kept behind the newest one, so that so many tokens can be forgotten."""
    offload_kqv: bool = True
    """Whether the cache of offloaded layers lies on the GPU, too."""
    op_offload: bool = True
    """Whether a GPU computes large batches of layers whose weights the CPU holds."""
    hidden: bool = False
    """Keep the hidden state of every row of a decode, which nextn heads are fed with."""
    ends: bool = False
    """Leave the end-of-generation tokens their logits, so that an answer may end by itself."""

    def as_dict(self) -> Facts:
        """Plain values, for a record."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Saved:
    """State of one sequence, kept outside its context: for a context of the same model that was made alike."""

    state: Any
    """As its engine has it."""
    tokens: int
    nbytes: int


class Context(Protocol):
    """State of up to `n_seq_max` sequences."""

    spec: ContextSpec
    n_vocab: int

    def clock(self) -> int:
        """Monotonic nanoseconds. A toy engine has its own clock."""

    def decode(
        self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int], outputs: Sequence[int] | None
    ) -> None:
        """One `llama_decode`: row i is `tokens[i]` of `sequences[i]` at `positions[i]`. Returns when it is computed.

        `outputs` lists the rows whose logits are wanted, ascending; None means all of them.
        Raises `EngineError` on any return code but 0.
        """

    def logits(self) -> NDArray[np.float32]:
        """View of float32 (n_outputs, n_vocab), valid until the next decode.

        End-of-generation columns are -inf, unless the spec has `ends`.

        Raises `EngineError` when the last decode left none: it asked for no rows, or the engine's graph samples.
        """

    def greedy(self) -> list[int]:
        """Argmax token of each of the last decode's n_outputs rows, lowest id on a tie."""

    def hidden(self) -> NDArray[np.float32]:
        """View of float32 (n_rows, n_embd): hidden state of every row of the last decode, valid until the next.

        Raises `EngineError` when the spec does not ask for them.
        """

    def clear(self) -> None:
        """Forget all sequences."""

    def copy(self, source: int, target: int) -> None:
        """Make `target`, which must be empty, a whole copy of `source`."""

    def drop(self, sequence: int) -> None:
        """Forget one sequence. Raises `EngineError` when the engine refuses."""

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget positions >= `position`. False when the memory says that it cannot; then nothing has changed.

        A True proves nothing: engines have answered it and kept the state. `pti_loop.rollback` looks.
        """

    def length(self, sequence: int) -> int:
        """Tokens held for a sequence."""

    def save(self, sequence: int) -> Saved:
        """A copy of a sequence's state. Raises `EngineError` where the engine gives none."""

    def restore(self, sequence: int, saved: Saved) -> None:
        """Put a state into a sequence, which must be empty. Raises `EngineError` where the engine does not take it."""

    def facts(self) -> Facts:
        """What the engine really made of the spec: sizes, types, layers offloaded, bytes of its buffers."""

    def close(self) -> None:
        """Free it. Calling twice is allowed."""


class Head(Protocol):
    """A nextn head with a memory of its own: row i is a token, and the hidden state of the position before it."""

    spec: ContextSpec

    def decode_after(
        self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int], hidden: NDArray[np.float32],
        outputs: Sequence[int],
    ) -> None:
        """One decode of the head; `hidden` is float32 (n_rows, n_embd). `logits`, `greedy` have the output rows.

        Raises `EngineError` on any return code but 0.
        """

    def logits(self) -> NDArray[np.float32]:
        """As a context's: view of float32 (n_outputs, n_vocab). Raises `EngineError`."""

    def greedy(self) -> list[int]:
        """As a context's."""

    def hidden(self) -> NDArray[np.float32]:
        """View of float32 (n_outputs, n_embd): the head's own hidden states, which its next guess continues from."""

    def rewind(self, sequence: int, position: int) -> bool:
        """As a context's."""

    def drop(self, sequence: int) -> None:
        """As a context's."""

    def close(self) -> None:
        """As a context's."""


@dataclass(frozen=True, slots=True)
class OwnDrafterSpec:
    """What an engine's own drafter is made of. 0, and -1 for `n_min`, stand for the engine's own default."""

    types: tuple[str, ...]
    """Names, tried in the engine's own order until one drafts."""
    n: int = 0
    """Tokens of the n-gram that is looked for."""
    m: int = 0
    """Most tokens of a draft of n-grams."""
    hits: int = 0
    """How often an n-gram must have been seen, for the types that count it."""
    n_min: int = -1
    """Tokens below which a draft of ngram-mod is thrown away."""
    draft: int = 3
    """Most tokens of a draft of a head or a model."""
    p_min: float = 0.0
    """Probability below which a head or a model drafts no further."""


class OwnDrafter(Protocol):
    """A drafter that the engine itself has, for one answer at a time. It keeps what it learnt until it is closed."""

    most: int
    """Most tokens of a draft, of the types that were really made."""

    def begin(self, tokens: Sequence[int]) -> None:
        """An answer starts: what the target holds, without the newest token. Raises `EngineError`."""

    def process(self, start: int, tokens: Sequence[int]) -> None:
        """The target decoded these rows of the answer from position `start` on. Raises `EngineError`."""

    def draft(self, last: int, limit: int) -> list[int]:
        """At most `limit` guesses behind the newest token. Raises `EngineError`."""

    def accept(self, accepted: int, confirmed: Sequence[int]) -> None:
        """So many of the draft were right; the target holds `confirmed` in addition. Raises `EngineError`."""

    def close(self) -> None:
        """Free it, before its contexts. Calling twice is allowed."""


class Model(Protocol):
    """Loaded weights."""

    n_vocab: int
    end_tokens: list[int]
    """End-of-generation tokens, ascending."""
    n_nextn: int
    """Layers that predict tokens beyond the next one; 0 when the model has none or they were not loaded."""
    weigh: Weigh
    """The exponentials of a draw, as fast as this engine has them."""

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """Token ids, with the model's own leading token where it wants one. Raises `EngineError` where it cannot.

        What looks like a special token is text, unless `special`: in a chat template it is the token.
        """

    def facts(self) -> Facts:
        """Layers, weights, and how many of the layers lie on a GPU (`layers_offloaded`)."""

    def context(self, spec: ContextSpec) -> Context:
        """A fresh context. Raises `EngineError` with the engine's own last words when there is no room."""

    def head(self, trunk: Context, spec: ContextSpec) -> Head:
        """The nextn head beside `trunk`, whose spec has `hidden`. Raises `Unsupported` on a model without one."""

    def sibling(self, path: Path) -> Model:
        """Another model on the same devices. Raises `Unsupported` when its tokens are not this one's."""

    def twin(self, kind: str) -> Model:
        """The same weights at fewer bits. Raises `EngineError` when there is no such kind."""

    def adapted(self, spec: ContextSpec, adapter: Path) -> Context:
        """A context of these weights with an adapter. Raises `Unsupported` when it was made for other shapes."""

    def own_drafter(self, spec: OwnDrafterSpec, trunk: Context, beside: Context | Head | None = None) -> OwnDrafter:
        """A drafter of the engine's own for answers in `trunk`; `beside` is the context of a head or a draft model.

        Raises `Unsupported` where the engine has none, or none like this.
        """

    def close(self) -> None:
        """Free it, after its contexts."""


def too_many_outputs(outputs: int, most: int) -> str:
    """Why a decode is refused that asks for more rows of logits than its context made room for."""
    return f"a decode asks for {outputs} rows of logits, and its context was made for n_outputs {most}"


def few_at_once(n_ubatch: int, snapshots: int) -> str:
    """Why a context is refused whose snapshots do not fit what it computes at once."""
    return (
        f"{snapshots} snapshots of a recurrent state need engine.n_ubatch={snapshots + 2} or more, and it is {n_ubatch}"
    )


class Alone:
    """A model of an engine that has nothing to draft with beside it: no head, no other files."""

    n_nextn: int = 0

    def head(self, trunk: Context, spec: ContextSpec) -> Head:
        """Raises `Unsupported`."""
        raise Unsupported("this engine runs no nextn heads; use model.engine=llama")

    def sibling(self, path: Path) -> Model:
        """Raises `Unsupported`."""
        raise Unsupported("this engine loads no draft model beside another; use model.engine=llama")

    def twin(self, kind: str) -> Model:
        """Raises `Unsupported`."""
        raise Unsupported("this engine makes no twin at fewer bits; use model.engine=llama")

    def adapted(self, spec: ContextSpec, adapter: Path) -> Context:
        """Raises `Unsupported`."""
        raise Unsupported("this engine takes no GGUF adapter; use model.engine=llama")

    def own_drafter(self, spec: OwnDrafterSpec, trunk: Context, beside: Context | Head | None = None) -> OwnDrafter:
        """Raises `Unsupported`."""
        raise Unsupported("this engine has no drafters of its own; use model.engine=llama")


def prefill(ctx: Context, prompt: Sequence[int], sequence: int,
            watch: Callable[[int, int], None] | None = None, held: int = 0) -> int:  # fmt: skip
    """Evaluate a prompt in a sequence, with logits for its last token. Returns the tokens evaluated.

    The sequence is empty, or holds the prompt's first `held` tokens. The prompt goes in pieces of at most `n_batch`.
    The row of the last token is the only output. After each piece `watch` hears its first position and its length.
    Raises `EngineError` when a decode fails.
    """
    size = ctx.spec.n_batch
    for start in range(held, len(prompt), size):
        piece = prompt[start : start + size]
        last = start + len(piece) == len(prompt)
        ctx.decode(piece, range(start, start + len(piece)), [sequence] * len(piece), [len(piece) - 1] if last else [])
        if watch:
            watch(start, len(piece))
    return len(prompt) - held
