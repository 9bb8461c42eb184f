"""A smaller model with the same vocabulary drafts. It knows nothing about which."""

from __future__ import annotations

from pathlib import Path

from pti_loop.draft.beside import BesideModel
from pti_loop.drafter import Source, Target
from pti_loop.parameters import DRAFT, DRAWS, ROLLBACK, Parameter, Spec

SPEC = Spec(
    "draft", "a smaller model drafts up to {draft}",
    help="guesses of a smaller model with the same vocabulary",
    parameters=(DRAFT, Parameter("draft_model", "", "the smaller model's file, or the name of a configs/model",
                                 kind="model"), DRAWS, ROLLBACK),
)  # fmt: skip


def make(target: Target) -> Source:
    """A context of the other model. Raises `Unsupported` when its tokens are not the target's."""
    path = Path(target.settings.draft_model).expanduser()
    model = target.model.sibling(path)
    return BesideModel(target, model, model.context, {"draft_model": path.name})
