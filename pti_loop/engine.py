"""What a decode loop may ask of a model. Knows no library: `llama.py` and `fake.py` implement it.

One `Model` is loaded once; every arm of a comparison gets its own `Context` from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np

from pti_loop.weights import Weigh


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
    n_ubatch: int = 512
    threads: int = 1
    kv_unified: bool = False
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: str = "auto"
    n_outputs: int = 16
    """Most rows of logits that one decode asks for."""
    sampler: str = "host"
    """`host` takes the argmax of the logits here; `backend` lets the engine's graph do it (temperature 0 only)."""

    def as_dict(self) -> dict:
        """Plain values, for a record."""
        return asdict(self)


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

    def logits(self) -> np.ndarray:
        """View of float32 (n_outputs, n_vocab), valid until the next decode. End-of-generation columns are -inf."""

    def greedy(self) -> list[int]:
        """Argmax token of every output row of the last decode."""

    def clear(self) -> None:
        """Forget all sequences."""

    def copy(self, source: int, target: int) -> None:
        """Make `target`, which must be empty, a whole copy of `source`."""

    def drop(self, sequence: int) -> None:
        """Forget one sequence."""

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget positions >= `position`. False when the memory cannot do it; then nothing has changed."""

    def length(self, sequence: int) -> int:
        """Tokens held for a sequence."""

    def facts(self) -> dict:
        """What the engine really made of the spec: sizes, types, layers offloaded, bytes of its buffers."""

    def close(self) -> None:
        """Free it. Calling twice is allowed."""


class Model(Protocol):
    """Loaded weights."""

    n_vocab: int
    can_rewind: bool
    """Whether the memory of a sequence can drop its newest tokens (attention can, recurrent state cannot)."""
    weigh: Weigh
    """The exponentials of a draw, as fast as this engine has them."""

    def tokenize(self, text: str) -> list[int]:
        """Token ids, with the model's own leading token where it wants one."""

    def context(self, spec: ContextSpec) -> Context:
        """A fresh context. Raises `EngineError` with the engine's own last words when there is no room."""


def prefill(ctx: Context, prompt: Sequence[int], sequence: int) -> int:
    """Evaluate a prompt in an empty sequence, with logits for its last token. Returns the tokens evaluated.

    The prompt goes in pieces of at most `n_batch`. The row of the last token is the only output.
    """
    size = ctx.spec.n_batch
    for start in range(0, len(prompt), size):
        piece = prompt[start : start + size]
        last = start + len(piece) == len(prompt)
        ctx.decode(piece, range(start, start + len(piece)), [sequence] * len(piece), [len(piece) - 1] if last else [])
    return len(prompt)
