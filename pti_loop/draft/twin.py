"""The same weights at fewer bits draft; llama.cpp's own quantiser makes the copy once."""

from __future__ import annotations

from pti_loop.draft.beside import BesideModel
from pti_loop.drafter import Source, Target
from pti_loop.parameters import DRAFT, DRAWS, ROLLBACK, Parameter, Spec

SPEC = Spec(
    "twin", "a twin at fewer bits ({twin}) drafts up to {draft}",
    help="the same weights at fewer bits draft",
    parameters=(DRAFT, Parameter("twin", "q2_k", "type that the copy of the weights is quantised to; q2_k+q4_0 also "
                                 "names that of the table of words and the output matrix", shown=True),
                DRAWS, ROLLBACK),
)  # fmt: skip


def make(target: Target) -> Source:
    """A context of the copy. Raises `EngineError` when there is no such type."""
    model = target.model.twin(target.settings.twin)
    return BesideModel(target, model, model.context, {"twin": target.settings.twin, **model.facts()})
