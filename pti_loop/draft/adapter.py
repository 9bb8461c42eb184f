"""The same weights with a LoRA adapter draft, in a context of their own."""

from __future__ import annotations

from pathlib import Path

from pti_loop.draft.beside import BesideModel
from pti_loop.drafter import Source, Target
from pti_loop.parameters import DRAFT, DRAWS, ROLLBACK, Parameter, Spec

SPEC = Spec(
    "adapter", "a twin with a LoRA adapter drafts up to {draft}",
    help="the same weights with a LoRA adapter draft",
    parameters=(DRAFT, Parameter("adapter", "models/smollm2-135m-pydoc/smollm2-135m-pydoc.lora.F16.gguf",
                                 "the adapter's file", kind="file"), DRAWS, ROLLBACK),
    tuned=True,
)  # fmt: skip


def make(target: Target) -> Source:
    """A context with the adapter. Raises `Unsupported` when it was made for other shapes."""
    path = Path(target.settings.adapter).expanduser()
    return BesideModel(target, target.model, lambda spec: target.model.adapted(spec, path), {"adapter": path.name})
