"""How a sequence forgets rejected tokens: three strategies behind one interface. It does not know whether one works.

`rewind` asks the memory to drop the newest tokens, which attention can. `snapshots` asks the same of a context that
keeps recurrent states behind the newest one (`n_rs_seq`). `checkpoint` copies the sequence aside before it guesses and
brings the copy back after a miss; what was right in between has to be decoded again.
`pti_loop.state_probe` finds out which of them a model's memory really does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pti_loop.engine import Context, Unsupported


class Rewind:
    """Drop the newest tokens in place."""

    copies = 0
    """Copies of the sequence that a mark makes, and a rollback; an engine may make them during its next decode."""

    def __init__(self, ctx: Context, sequence: int, spare: int) -> None:
        self.ctx, self.sequence = ctx, sequence

    def mark(self, held: int) -> None:
        """Before tokens that may be wrong are decoded; `held` are in the sequence."""

    def forget(self, keep: int) -> int:
        """After a miss: keep the first `keep` tokens. Returns how many are held.

        Raises `Unsupported` when the memory refuses.
        """
        if not self.ctx.rewind(self.sequence, keep):
            raise Unsupported(
                "this model's memory does not drop its newest tokens; method.rollback=auto finds a strategy that works"
            )
        return keep


class Checkpoint:
    """Bring back a whole copy that was made before the guesses. Every kind of memory can be copied."""

    copies = 1

    def __init__(self, ctx: Context, sequence: int, spare: int) -> None:
        self.ctx, self.sequence, self.spare = ctx, sequence, spare
        self._held = 0

    def mark(self, held: int) -> None:
        """Copy the sequence aside."""
        self.ctx.drop(self.spare)
        self.ctx.copy(self.sequence, self.spare)
        self._held = held

    def forget(self, keep: int) -> int:
        """The copy takes the sequence's place; it holds what was held at the mark."""
        self.ctx.drop(self.sequence)
        self.ctx.copy(self.spare, self.sequence)
        return self._held


@dataclass(frozen=True)
class Strategy:
    """What a strategy needs of its context."""

    make: Callable[[Context, int, int], Rewind | Checkpoint]
    spares: int = 0
    """Sequences beside each one that guesses."""
    snapshots: bool = False
    """Whether the context keeps a state for every token that may be forgotten."""

    @property
    def free(self) -> bool:
        """Whether it needs nothing beside the sequence itself."""
        return not self.spares and not self.snapshots


STRATEGIES = {
    "rewind": Strategy(Rewind),
    "snapshots": Strategy(Rewind, snapshots=True),
    "checkpoint": Strategy(Checkpoint, spares=1),
}
"""By name, those that cost least first."""

