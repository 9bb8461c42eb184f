"""The memory of the toy engine: what each sequence holds, how much fits, and what can be forgotten again.

The state behind a text is a hash of all its tokens, leading zeros too, so that no two texts have one. It behaves as
llama.cpp's: a batch that does not continue its sequences changes nothing, streams of a unified cache share its room and
the tokens that they have in common, and a recurrent memory can go back once, and only over the newest decode's tokens.
It knows no logits and no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pti_loop.engine import ContextSpec, EngineError, few_at_once

MODULUS = 2**61 - 1
_FACTOR = 6364136223846793005 % MODULUS
_BITS = 21


def advance(state: int, tokens: Sequence[int]) -> int:
    """State after more tokens; an empty sequence has state 0, and no other text has."""
    for token in tokens:
        state = (_FACTOR * state + int(token) + 1) % MODULUS
    return state


def parts(state: int) -> list[int]:
    """The state in three numbers that float32 holds exactly."""
    return [state >> (_BITS * place) & (2**_BITS - 1) for place in range(3)]


def whole(numbers: Sequence[float]) -> int:
    """The state of three such numbers."""
    return sum(int(number) << (_BITS * place) for place, number in enumerate(numbers))


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """One token that a sequence holds, and the state behind it. Copies in a unified cache are the same object."""

    token: int
    state: int


class FakeMemory:
    """Sequences of one context. `recurrent` and `snapshots` say what can be forgotten, `lies` that nothing is."""

    def __init__(self, spec: ContextSpec, recurrent: bool, snapshots: int, lies: bool) -> None:
        if recurrent and snapshots and spec.n_ubatch <= snapshots + 1:
            raise EngineError(few_at_once(spec.n_ubatch, snapshots))
        self._spec, self._recurrent, self._snapshots, self._lies = spec, recurrent, snapshots, lies
        self.clear()

    def clear(self) -> None:
        """Forget all sequences."""
        self._held: dict[int, list[Held]] = {sequence: [] for sequence in range(self._spec.n_seq_max)}
        self._stale: dict[int, int] = {}
        """State that a sequence really has, where it is not that of its tokens."""
        self._newest: dict[int, int] = {}
        """Tokens of the newest decode of a sequence, behind which states are kept; none after a rollback or a copy."""

    def append(self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int]) -> list[Held]:
        """Take in the rows of a batch; returns what each left behind. Raises `EngineError` and changes nothing."""
        self._check(positions, sequences)
        found = []
        for token, sequence in zip(tokens, sequences, strict=True):
            held = self._held[sequence]
            before = held[-1].state if held else 0
            held.append(Held(int(token), advance(before, [token])))
            if sequence in self._stale:
                self._stale[sequence] = advance(self._stale[sequence], [token])
            found.append(Held(int(token), self._stale.get(sequence, held[-1].state)))
        self._newest |= Counter(sequences)
        return found

    def _check(self, positions: Sequence[int], sequences: Sequence[int]) -> None:
        spec, ends = self._spec, {sequence: len(held) for sequence, held in self._held.items()}
        for position, sequence in zip(positions, sequences, strict=True):
            if sequence not in ends:
                raise EngineError(f"sequence {sequence} is beyond n_seq_max {spec.n_seq_max}")
            if position != ends[sequence]:
                held = ends[sequence]
                raise EngineError(f"sequence {sequence} holds {held} tokens, the batch puts one at {position}")
            ends[sequence] += 1
            if not spec.kv_unified and ends[sequence] > spec.n_ctx:
                raise EngineError(f"sequence {sequence} is full at {spec.n_ctx} tokens")
        room = spec.n_ctx * spec.n_seq_max
        if spec.kv_unified and self.used() + len(positions) > room:
            raise EngineError(f"the cache of all sequences is full at {room} tokens")

    def used(self) -> int:
        """Tokens that all sequences hold together; one that several have in common is one."""
        return len({id(one) for held in self._held.values() for one in held})

    def copy(self, source: int, target: int) -> None:
        """Whole copy into an empty sequence. Raises `EngineError` when it is not empty."""
        if self._held[target]:
            raise EngineError(f"sequence {target} is not empty")
        held = self._held[source]
        self._held[target] = list(held) if self._spec.kv_unified else [Held(one.token, one.state) for one in held]
        self._newest.pop(target, None)
        if source in self._stale:
            self._stale[target] = self._stale[source]

    def drop(self, sequence: int) -> None:
        """Forget one sequence."""
        self._held[sequence] = []
        self._stale.pop(sequence, None)
        self._newest.pop(sequence, None)

    def rewind(self, sequence: int, position: int) -> bool:
        """Forget the tail. Of a recurrent memory it goes wrong where no state was kept, and nothing says so."""
        held = self._held[sequence]
        count = len(held) - position
        if count <= 0:
            return True
        if self._recurrent and position > 0:
            newest = self._newest.get(sequence, 0)
            if not newest or count > self._snapshots:
                return False
            if count >= newest:
                self._stale[sequence] = self._stale.get(sequence, held[-1].state)
            self._newest[sequence] = 0
        if self._lies:
            self._stale[sequence] = self._stale.get(sequence, held[-1].state)
        self._held[sequence] = held[:position]
        return True

    def save(self, sequence: int) -> list[Held]:
        """What a sequence holds, to be kept."""
        state = self._stale.get(sequence)
        held = self._held[sequence]
        return list(held) if state is None else [*held[:-1], Held(held[-1].token, state)]

    def restore(self, sequence: int, held: list[Held]) -> None:
        """Hold what was kept. Raises `EngineError` when the sequence is not empty."""
        if self._held[sequence]:
            raise EngineError(f"sequence {sequence} is not empty")
        self._held[sequence] = [Held(one.token, one.state) for one in held]
        self._newest.pop(sequence, None)

    def length(self, sequence: int) -> int:
        """Tokens held."""
        return len(self._held[sequence])
