"""N different prompts in one batch: independent answers that share each reading of the weights.

With a drafter every answer also has guesses of its own, and one decode verifies those of all answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pti_loop import speculative
from pti_loop.drafter import Source, Target
from pti_loop.guessing import Drafts, drafter
from pti_loop.loop import Decoder
from pti_loop.method import Method
from pti_loop.parameters import NONE, Parameter, Spec
from pti_loop.rollback import STRATEGIES
from pti_loop.settings import Settings

SPEC = Spec(
    "packed", "{streams} different prompts in one batch",
    help="N different prompts in one batch",
    parameters=(
        Parameter("drafter", NONE, "what guesses for each of the answers; none decodes one token of each",
                  kind="drafter", words={"*": ", each with guesses of {drafter}"}),
    ),
    answers="independent", layout="sequences", guesses=False,
)  # fmt: skip


class Loop(Method):
    """One decode a round for all answers."""

    def _drafts(self, settings: Settings) -> Drafts | None:
        return None if settings.drafter == NONE else drafter(settings.drafter)

    def rolls_back(self, settings: Settings) -> bool:
        """With a drafter."""
        return self._drafts(settings) is not None

    def strategies(self, settings: Settings) -> tuple[str, ...]:
        """Those of the drafter."""
        drafts = self._drafts(settings)
        return drafts.strategies(settings) if drafts else super().strategies(settings)

    def sequences(self, settings: Settings) -> int:
        """One an answer, and what a rollback keeps."""
        spares = STRATEGIES[settings.rollback].spares if self._drafts(settings) else 0
        return settings.streams * (1 + spares)

    def width(self, settings: Settings) -> int:
        """The newest token and the guesses of every answer."""
        return settings.streams * (1 + self._length(settings))

    def needs(self, settings: Settings) -> Mapping[str, Any]:
        """What the drafter needs of the target."""
        drafts = self._drafts(settings)
        return drafts.needs(settings) if drafts else {}

    def source(self, target: Target) -> Source | None:
        """What the drafters need, one for each answer."""
        drafts = self._drafts(target.settings)
        return drafts.make(target) if drafts else None

    def rounds(self, decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Iterator[None]:
        """Decode every prompt. An answer that has ended leaves the batch."""
        if self._drafts(decoder.settings):
            return speculative.rounds(decoder, prompts, self._length(decoder.settings))
        return _one_token_each(decoder, prompts)

    def _length(self, settings: Settings) -> int:
        """Most guesses of one answer and round."""
        drafts = self._drafts(settings)
        return drafts.length(settings) if drafts else 0


def _one_token_each(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> Iterator[None]:
    trace, clock, ctx = decoder.trace, decoder.clock, decoder.ctx
    ctx.clear()
    texts = [[*prompt, decoder.prefill(prompt, answer, answer)] for answer, prompt in enumerate(prompts)]
    rows = list(range(len(prompts)))
    yield
    trace.open_window()
    for position in range(1, decoder.settings.n_predict):
        began = clock()
        own = [texts[answer] for answer in rows]
        ctx.decode([text[-1] for text in own], [len(text) - 1 for text in own], rows, None)
        decoded = clock()
        choices = decoder.draws([(answer, 0, position) for answer in rows], own)
        sampled = clock()
        for answer, text, choice in zip(rows, own, choices, strict=True):
            trace.emit(answer, position, choice.token, "verified")
            text.append(choice.token)
        trace.round("steady", len(rows), (0, decoded - began, sampled - decoded, 0, clock() - began), (0, 0, 0))
        yield
        if decoder.ends and not (rows := [answer for answer in rows if texts[answer][-1] not in decoder.ends]):
            break
    trace.close_window()
