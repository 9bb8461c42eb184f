"""The memory of a transformers model for many sequences: one slab a layer, one row of it a sequence.

transformers' own caches hold one batch whose members have one length, and grow by concatenation, which copies all that
is held in every step. Here a pass writes its keys and values in place and attends to a view, so copying, forgetting and
rewinding are bookkeeping, and rows of different sequences, positions and widths share one forward pass: short ones are
padded on the right, and the mask hides what is not theirs. It knows nothing about tokens, logits, models or methods.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DummyLayer,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionLayer,
)

from pti_loop.engine import Unsupported

FULL, SLIDING = "full_attention", "sliding_attention"
RECURRENT = ("linear_attention", "conv")
"""Layer types of transformers' configurations. `dummy` layers hold nothing."""


class Placement:
    """Where the cells of one forward pass go: member b of the batch is `sequences[b]`, which holds `starts[b]` tokens.

    Member b brings `counts[b]` tokens; the batch is as wide as its widest member.
    """

    def __init__(self, sequences: Sequence[int], starts: Sequence[int], counts: Sequence[int],
                 device: torch.device) -> None:
        first, size = sequences[0], len(sequences)
        self.width = max(counts)
        self.length = max(start + count for start, count in zip(starts, counts, strict=True))
        self.even = len(set(counts)) == 1
        adjacent = list(sequences) == list(range(first, first + size))
        self.members = slice(first, first + size) if adjacent else torch.tensor(sequences, device=device)
        self.aligned = adjacent and self.even and len(set(starts)) == 1
        self.start = starts[0]
        self.member = torch.tensor([b for b in range(size) for _ in range(counts[b])], device=device)
        self.column = torch.tensor([i for count in counts for i in range(count)], device=device)
        begins = torch.tensor(starts, device=device)[:, None]
        last = torch.tensor(counts, device=device)[:, None] - 1
        # Padding repeats the member's last position, so that it attends to something and no kernel makes NaN of it.
        self.positions = begins + torch.minimum(torch.arange(self.width, device=device)[None, :], last)
        self._sequence = torch.tensor(sequences, device=device)[self.member]
        self._position = self.positions[self.member, self.column]

    def store(self, slab: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Write (members, heads, width, size) into the slab; returns all that the members hold, by position."""
        if self.aligned:
            slab[self.members, :, self.start : self.start + self.width] = states
        else:
            slab[self._sequence, :, self._position] = states[self.member, :, self.column]
        return slab[:, :, : self.length][self.members]

    def mask(self, window: int | None = None) -> torch.Tensor:
        """Bool (members, 1, width, length): what each token may attend to, at most `window` tokens back."""
        held = torch.arange(self.length, device=self.positions.device)
        reach = self.positions[:, None, :, None]
        allowed = held <= reach
        return allowed if window is None else allowed & (held > reach - window)


class _AttentionSlab(CacheLayerMixin):
    """Keys and values of one attention layer, (sequences, heads, n_ctx, size). A sliding layer's are kept whole too."""

    is_croppable = True

    def __init__(self, pattern: DynamicLayer, n_seq_max: int, n_ctx: int) -> None:
        super().__init__()
        self.placement: Placement | None = None
        self.keys, self.values = (
            held.new_zeros((n_seq_max, held.shape[1], n_ctx, held.shape[3])) for held in (pattern.keys, pattern.values)
        )
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the slabs are there."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object,
               **kwargs: object) -> tuple[torch.Tensor, torch.Tensor]:
        """Called by the model: keeps the pass's states (members, heads, width, size).

        Returns all that its members may attend to, (members, heads, length, size).
        """
        return self._pass.store(self.keys, key_states), self._pass.store(self.values, value_states)

    @property
    def _pass(self) -> Placement:
        assert self.placement, "the model runs between `SequenceCache.begin` and `end` only"
        return self.placement

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what `update` returns, in tokens."""
        return self._pass.length, 0

    def get_seq_length(self) -> int:
        """Tokens held before the pass, of its longest member."""
        return self._pass.length - self._pass.width

    def get_max_length(self) -> int:
        """Tokens that a sequence can hold."""
        return int(self.keys.shape[2])

    def copy(self, source: int, target: int, held: int) -> None:
        for slab in (self.keys, self.values):
            slab[target, :, :held] = slab[source, :, :held]

    @property
    def nbytes(self) -> int:
        return int(self.keys.nbytes + self.values.nbytes)


class _RecurrentSlab(LinearAttentionLayer):
    """States of one recurrent layer. During a pass the layer holds its members' rows, as the model expects them."""

    def __init__(self, pattern: LinearAttentionLayer, n_seq_max: int) -> None:
        super().__init__(pattern.number_of_states)
        self.device, self.dtype, self.conv_kernel_size = pattern.device, pattern.dtype, pattern.conv_kernel_size
        self._slabs = {
            (name, i): state.new_zeros((n_seq_max, *state.shape[1:]))
            for name in ("conv_states", "recurrent_states") for i, state in getattr(pattern, name).items()
            if state is not None
        }  # fmt: skip
        for (name, i) in self._slabs:
            getattr(self, f"is_{name}_initialized")[i] = True
        # A state of zeros is that of an empty sequence, so that there is always a state before.
        self.has_previous_state: dict[int, bool] = dict.fromkeys(self.has_previous_state, True)

    def begin(self, placement: Placement) -> None:
        """Lay the members' rows out. Rows of adjacent sequences are a view, which the model updates in place."""
        for (name, i), slab in self._slabs.items():
            getattr(self, name)[i] = slab[placement.members]

    def end(self, placement: Placement) -> None:
        for (name, i), slab in self._slabs.items():
            if not isinstance(placement.members, slice):
                slab[placement.members] = getattr(self, name)[i]

    def copy(self, source: int, target: int) -> None:
        for slab in self._slabs.values():
            slab[target] = slab[source]

    def drop(self, sequence: int) -> None:
        for slab in self._slabs.values():
            slab[sequence] = 0

    @property
    def slabs(self) -> list[torch.Tensor]:
        """(sequences, ..) of each state."""
        return list(self._slabs.values())

    @property
    def nbytes(self) -> int:
        return sum(slab.nbytes for slab in self._slabs.values())


class SequenceCache(Cache):
    """The slabs of all layers, made after the pattern of a cache that holds one token of one sequence.

    `kinds` are the layers' types and `windows` the sliding ones' lengths. Raises `Unsupported` for a layer whose memory
    is of another kind. Who calls it keeps the lengths of the sequences.
    """

    def __init__(self, pattern: Cache, kinds: Sequence[str], windows: Sequence[int | None], n_seq_max: int,
                 n_ctx: int) -> None:
        known = (FULL, SLIDING, *RECURRENT, "dummy")
        for kind, layer in zip(kinds, pattern.layers, strict=True):
            plain = type(layer) in (DynamicLayer, DynamicSlidingWindowLayer, LinearAttentionLayer, DummyLayer)
            if kind not in known or not plain:
                raise Unsupported(f"a layer of the type {kind} ({type(layer).__name__}) has a memory that cannot be "
                                  "kept for several sequences here; use model.engine=llama")  # fmt: skip
        super().__init__([self._slab(layer, n_seq_max, n_ctx) for layer in pattern.layers])
        self.attention = [layer for layer in self.layers if isinstance(layer, _AttentionSlab)]
        self.recurrent = [layer for layer in self.layers if isinstance(layer, _RecurrentSlab)]
        self._windows = dict(zip(kinds, windows, strict=True))
        self._windows.pop("dummy", None)

    @staticmethod
    def _slab(layer: CacheLayerMixin, n_seq_max: int, n_ctx: int) -> CacheLayerMixin:
        if isinstance(layer, LinearAttentionLayer):
            return _RecurrentSlab(layer, n_seq_max)
        return layer if isinstance(layer, DummyLayer) else _AttentionSlab(layer, n_seq_max, n_ctx)

    def begin(self, placement: Placement) -> torch.Tensor | dict[str, torch.Tensor | None]:
        """Prepare a pass. Returns the mask that the model wants: one, or one for each type of layer.

        A mask is bool (members, 1, width, length), None for layers that take none.
        """
        for layer in self.attention:
            layer.placement = placement
        for layer in self.recurrent:
            layer.begin(placement)
        masks = {kind: None if kind in RECURRENT else placement.mask(window) for kind, window in self._windows.items()}
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def end(self, placement: Placement) -> None:
        """Keep what the pass made of the recurrent states."""
        for layer in self.recurrent:
            layer.end(placement)

    def copy(self, source: int, target: int, held: int) -> None:
        """Make `target` a whole copy of `source`, which holds `held` tokens."""
        for layer in self.attention:
            layer.copy(source, target, held)
        for layer in self.recurrent:
            layer.copy(source, target)

    def save(self, sequence: int, held: int) -> list[torch.Tensor]:
        """Copies, for the host, of a sequence of `held` tokens: keys and values of each layer, then the states."""
        slabs = [slab[sequence, :, :held] for layer in self.attention for slab in (layer.keys, layer.values)]
        states = [slab[sequence] for layer in self.recurrent for slab in layer.slabs]
        return [one.to("cpu", copy=True) for one in (*slabs, *states)]

    def restore(self, sequence: int, saved: Sequence[torch.Tensor]) -> None:
        """Put them back."""
        slabs = [slab for layer in self.attention for slab in (layer.keys, layer.values)]
        for slab, one in zip(slabs, saved, strict=False):
            slab[sequence, :, : one.shape[1]] = one
        states = [slab for layer in self.recurrent for slab in layer.slabs]
        for slab, one in zip(states, saved[len(slabs) :], strict=True):
            slab[sequence] = one

    def drop(self, sequence: int) -> None:
        """Forget a sequence: its recurrent state goes back to zeros; its keys are hidden by the mask from here on."""
        for layer in self.recurrent:
            layer.drop(sequence)
