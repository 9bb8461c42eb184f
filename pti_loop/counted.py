"""Contexts and models that count what is decoded in them. They decide nothing, and know neither methods nor records.

A loop gets these in place of an engine's own, so that no decode of it stays out of the account: not one in the target's
context before the window opens, nor one in a context that it opens for itself. A method that reaches behind them, for
the engine's library itself, is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import Context, ContextSpec, Facts, Head, Model, OwnDrafter, OwnDrafterSpec, Saved
from pti_loop.tally import Tally


class _Counted:
    """What contexts and heads have in common. Nothing but decodes passes through here at a cost."""

    def __init__(self, inner: Any, tally: Tally) -> None:
        self.spec: ContextSpec = inner.spec
        self._inner, self._tally = inner, tally
        self.logits, self.greedy, self.hidden = inner.logits, inner.greedy, inner.hidden
        self.rewind, self.drop, self.close = inner.rewind, inner.drop, inner.close

    def __getattr__(self, name: str) -> Any:
        """What else an engine's own context has."""
        return getattr(self._inner, name)


class CountedContext(_Counted):
    """A context. `beside` tells one that is not the target's."""

    def __init__(self, inner: Context, tally: Tally, beside: bool = False) -> None:
        super().__init__(inner, tally)
        self.n_vocab: int = inner.n_vocab
        self.clock, self.clear, self.copy = inner.clock, inner.clear, inner.copy
        self.length, self.facts = inner.length, inner.facts
        self._beside, self._decode = beside, inner.decode

    def decode(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
               outputs: Sequence[int] | None = None) -> None:
        """As the engine's, counted. Raises `EngineError` on any return code but 0."""
        self._decode(tokens, positions, sequences, outputs)
        size = len(tokens)
        found = self._tally.beside if self._beside else self._tally.target
        found.note((size, size if outputs is None else len(outputs)))

    def save(self, sequence: int) -> Saved:
        """As the engine's. Raises `EngineError` where it gives none."""
        saved: Saved = self._inner.save(sequence)
        return saved

    def restore(self, sequence: int, saved: Saved) -> None:
        """As the engine's: nothing is decoded. Raises `EngineError` where it does not take it."""
        self._inner.restore(sequence, saved)


class CountedHead(_Counted):
    """A nextn head, whose decodes are never the target's."""

    def __init__(self, inner: Head, tally: Tally) -> None:
        super().__init__(inner, tally)
        self._decode_after = inner.decode_after

    def decode_after(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int],
                     hidden: NDArray[np.float32], outputs: Sequence[int]) -> None:  # fmt: skip
        """As the engine's, counted. Raises `EngineError` on any return code but 0."""
        self._decode_after(tokens, positions, sequences, hidden, outputs)
        self._tally.beside.note((len(tokens), len(outputs)))


class CountedModel:
    """A model all of whose contexts count, as contexts beside the target's."""

    def __init__(self, inner: Model, tally: Tally) -> None:
        self._inner, self._tally = inner, tally
        self.n_vocab, self.end_tokens, self.n_nextn = inner.n_vocab, inner.end_tokens, inner.n_nextn
        self.weigh = inner.weigh

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """As the engine's. Raises `EngineError` where it cannot."""
        return self._inner.tokenize(text, special)

    def facts(self) -> Facts:
        """As the engine's."""
        return self._inner.facts()

    def context(self, spec: ContextSpec) -> Context:
        """A fresh context that counts. Raises `EngineError` when there is no room."""
        return CountedContext(self._inner.context(spec), self._tally, beside=True)

    def head(self, trunk: Context, spec: ContextSpec) -> Head:
        """The nextn head beside `trunk`. Raises `Unsupported` on a model without one."""
        return CountedHead(self._inner.head(bare(trunk), spec), self._tally)

    def sibling(self, path: Path) -> Model:
        """Another model that counts. Raises `Unsupported` when its tokens are not this one's."""
        return CountedModel(self._inner.sibling(path), self._tally)

    def twin(self, kind: str) -> Model:
        """The same weights at fewer bits, counting. Raises `EngineError` when there is no such kind."""
        return CountedModel(self._inner.twin(kind), self._tally)

    def adapted(self, spec: ContextSpec, adapter: Path) -> Context:
        """A context with an adapter that counts. Raises `Unsupported` when it was made for other shapes."""
        return CountedContext(self._inner.adapted(spec, adapter), self._tally, beside=True)

    def own_drafter(self, spec: OwnDrafterSpec, trunk: Context, beside: Context | Head | None = None) -> OwnDrafter:
        """The engine's own. What it decodes, in `beside`, it decodes inside the engine: that is not counted."""
        inner = beside._inner if isinstance(beside, _Counted) else beside  # noqa: SLF001
        return self._inner.own_drafter(spec, bare(trunk), inner)

    def close(self) -> None:
        """Free it, after its contexts."""
        self._inner.close()


def bare(ctx: Context) -> Context:
    """The engine's own context behind one that counts: what an engine must be handed."""
    inner: Context = ctx._inner if isinstance(ctx, CountedContext) else ctx  # noqa: SLF001
    return inner
