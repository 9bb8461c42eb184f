"""The text that all prompts of some runs begin with: evaluated once in each kind of context, restored for each run.

Behind such a text every run would else pay for evaluating it. A restored state is tried before anything rests on it: it
has to say what the evaluated one said. Where it does not, where an engine keeps no state or the memory has no room for
it, nothing is restored in any context, and the reason is kept. It knows no method and no arm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pti_loop.counted import bare
from pti_loop.engine import Context, ContextSpec, EngineError, Saved, prefill

TOLERANCE = 1e-3
"""Largest move of a logit behind a restored state, as a share of the spread of all logits."""


@dataclass(frozen=True)
class Evaluated:
    """What a context made of the text."""

    saved: Saved
    seconds: float
    """What evaluating it took, by the context's clock."""
    row: NDArray[np.float32]
    """What a decode of one more token says behind it."""


class Beginning:
    """The first tokens of the prompts, and their states. `room` tells the bytes that are free, None where unknown."""

    def __init__(self, tokens: Sequence[int], room: Callable[[], int | None] = lambda: None) -> None:
        self.tokens, self._room = tuple(tokens), room
        self.reason = ""
        """Why nothing is restored; empty as long as it is."""
        self._of_spec: dict[ContextSpec, Evaluated] = {}
        self._of: WeakKeyDictionary[Context, Evaluated] = WeakKeyDictionary()

    def prepare(self, ctx: Context) -> None:
        """Have its state for this context, which is left empty: that of another one made alike, where it holds here.

        Raises `EngineError` when the context does not hold the text at all.
        """
        if self.reason:
            return
        own = bare(ctx)
        kind = replace(own.spec, n_outputs=1, sampler="host")
        try:
            found = self._of_spec.get(kind)
            if found is None or not self._holds(own, found):
                self._of_spec[kind] = found = self._evaluate(own)
                if not self._holds(own, found):
                    raise EngineError("a state that was restored does not say what it said when it was kept")
            self._of[own] = found
        except CannotKeep as error:
            self.give_up(str(error))
        except EngineError as error:
            self.give_up(f"the engine restores no state here: {error}")
        finally:
            own.clear()

    def give_up(self, reason: str) -> None:
        """Evaluate the text in every run from here on."""
        self.reason = self.reason or reason
        self._of_spec.clear()
        self._of.clear()

    def take_up(self, ctx: Context, prompt: Sequence[int], sequence: int) -> int:
        """Restore the state in an empty sequence where the prompt begins so. Returns the tokens that it holds now.

        Raises `EngineError` when the engine fails at what it did before.
        """
        found = self._of.get(bare(ctx))
        size = len(self.tokens)
        if found is None or len(prompt) <= size or tuple(prompt[:size]) != self.tokens:
            return 0
        bare(ctx).restore(sequence, found.saved)
        return size

    def told(self, ctx: Context) -> dict[str, Any]:
        """For a record: seconds of evaluating the text once, and bytes that are kept; nothing where none are."""
        found = self._of.get(bare(ctx))
        return {"seconds": found.seconds, "bytes": found.saved.nbytes} if found else {}

    def _evaluate(self, ctx: Context) -> Evaluated:
        """Decode the text, keep its state, and see what comes behind it. Raises `EngineError`."""
        need, free = bytes_of(ctx, len(self.tokens)), self._room()
        if free is not None and need > free:
            raise CannotKeep(f"the state of {len(self.tokens)} tokens takes {need / 1e9:.2f} GB, and "
                             f"{free / 1e9:.2f} GB are free")  # fmt: skip
        ctx.clear()
        began = ctx.clock()
        prefill(ctx, self.tokens, 0)
        ctx.greedy()  # whoever reads what it gave waits for it
        seconds = (ctx.clock() - began) * 1e-9
        saved = ctx.save(0)
        return Evaluated(saved, seconds, self._behind(ctx, 0))

    def _holds(self, ctx: Context, found: Evaluated) -> bool:
        """Whether the state says here what it said there, in the first sequence and in the last."""
        for sequence in {0, ctx.spec.n_seq_max - 1}:
            ctx.clear()
            ctx.restore(sequence, found.saved)
            row = self._behind(ctx, sequence)
            finite = np.isfinite(found.row)
            moved = float(np.abs(row[finite] - found.row[finite]).max())
            allowed = TOLERANCE * float(np.ptp(found.row[finite]))
            if ctx.length(sequence) != len(self.tokens) + 1 or not moved <= allowed:
                return False
        return True

    def _behind(self, ctx: Context, sequence: int) -> NDArray[np.float32]:
        """What a decode of the text's last token once more says: logits, or the token that the engine's graph chose."""
        ctx.decode(self.tokens[-1:], [len(self.tokens)], [sequence], None)
        if ctx.spec.sampler == "host":
            row: NDArray[np.float32] = ctx.logits()[0].astype(np.float32)
            return row
        said = np.zeros(ctx.n_vocab, dtype=np.float32)
        said[ctx.greedy()[0]] = 1
        return said


class CannotKeep(EngineError):
    """There is no room."""


def bytes_of(ctx: Context, tokens: int) -> int:
    """Bytes of the state of so many tokens, by the buffers of the context: no less than an engine keeps."""
    facts, spec = ctx.facts(), ctx.spec
    share = tokens / int(facts["n_ctx_seq"]) / spec.n_seq_max
    return round(int(facts["kv_bytes"]) * share + int(facts["state_bytes"]) / spec.n_seq_max)
