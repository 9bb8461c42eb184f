"""The target's nextn head as a source of drafters: opened once, and looked at whether it guesses ahead at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pti_loop.draft.draws import Speak, speaker
from pti_loop.draft.head_probe import pairing
from pti_loop.drafter import Drafter, Source, Target
from pti_loop.engine import Head, Unsupported
from pti_loop.sampling import Sampler


class Heads(Source):
    """Drafters that use the target's nextn head: `make` gets (head, what chooses its tokens, answer)."""

    watches = True

    def __init__(self, target: Target, make: Callable[[Head, Speak, int], Drafter]) -> None:
        self._settings, self._make = target.settings, make
        spec = replace(target.ctx.spec, n_seq_max=target.answers, n_outputs=target.answers, hidden=False, snapshots=0)
        self._head = target.model.head(target.ctx, spec)
        self._pairing = pairing(target.ctx, self._head, target.sample)
        if not self._pairing.drafts:
            self._head.close()
            raise Unsupported(
                f"the nextn head says the token that the trunk has just said ({self._pairing.t_plus_1:.0%} of "
                f"{self._pairing.n}, {self._pairing.t_plus_2:.0%} of the token behind it), so it is no drafter"
            )

    def drafter(self, answer: int, sampler: Sampler) -> Drafter:
        """A drafter in the head's sequence of that answer."""
        return self._make(self._head, speaker(sampler, answer, self._settings.draws), answer)

    def facts(self) -> dict[str, Any]:
        """How the head is fed, as it was found."""
        return {"head": self._pairing.as_dict()}

    def close(self) -> None:
        """Free the head's context; the weights are the target's."""
        self._head.close()
