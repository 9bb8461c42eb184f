"""What comes before every prompt of a cell (`depth`): tokens of the prompts' own text. It evaluates nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.run.arms import Prompt


def each_behind(prompts: list[Prompt], depth: int) -> list[Prompt]:
    """Every prompt behind `depth` tokens."""
    return [replace(prompt, tokens=behind(prompt.tokens, prompts, depth)) for prompt in prompts]


def behind(tokens: Sequence[int], prompts: Sequence[Prompt], depth: int) -> tuple[int, ...]:
    """A prompt behind `depth` tokens of all the prompts' own text, over and over; as it is where that is 0.

    A token that every prompt begins with is the model's mark of a beginning, and stands there alone.
    """
    if not depth:
        return tuple(tokens)
    mark = len(prompts) > 1 and len({prompt.tokens[0] for prompt in prompts}) == 1
    text = [token for prompt in prompts for token in prompt.tokens[mark:]]
    filling = [*tokens[:mark], *(text * (depth // len(text) + 1))][:depth]
    return (*filling, *tokens[mark:])
