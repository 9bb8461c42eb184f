"""Runs of one prompt with a drafter that is kept from answer to answer, as an engine that serves keeps it.

The treatment makes a drafter for each answer, and is judged so. What a kept one does to the same answer is measured
here: when the prompt comes again, and behind a long foreign prompt that came before it. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bench.run.arms import Arms, Prompt, Task

ANSWER = 16
"""Tokens of the foreign prompt's answer: enough for a drafter to draft behind it."""
MOST = 1024
"""Tokens of a foreign prompt, where the context holds so many."""
TIMES = 2
"""It is so many times as long as the prompt and its answer, where it can be."""

Measure = Callable[[int], None]
"""Runs the prompt in its order."""


def run_kept(arms: Arms, task: Task, others: Sequence[Prompt], n_predict: int, measure: Measure) -> None:
    """Two drafters: one that meets the prompt twice (orders 0, 1), one that meets a foreign one before it (2, 3)."""
    source = arms.source
    if source is None or not source.remembers:
        return
    for first, foreign in ((0, False), (2, True)):
        source.keep(True)
        try:
            if foreign:
                arms.run("kept", foreign_task(task, others, arms.config.engine.n_ctx, n_predict), 0, -1,
                         n_predict=ANSWER)  # fmt: skip
            for order in (first, first + 1):
                measure(order)
        finally:
            source.keep(False)


def foreign_task(task: Task, others: Sequence[Prompt], n_ctx: int, n_predict: int) -> Task:
    """For each answer one prompt made of all other prompts' tokens, over and over, longer than prompt and answer."""
    mine = {prompt.id for prompt in task.prompts}
    text = [token for prompt in others if prompt.id not in mine for token in prompt.tokens[1:]]
    return replace(task, prompts=tuple(_foreign(prompt, text, n_ctx, n_predict) for prompt in task.prompts))


def _foreign(prompt: Prompt, text: Sequence[int], n_ctx: int, n_predict: int) -> Prompt:
    own = text or prompt.tokens[:0:-1] or prompt.tokens
    wanted = min(TIMES * (len(prompt.tokens) + n_predict), MOST, n_ctx - ANSWER - 1)
    body = [own[place % len(own)] for place in range(wanted - 1)]
    return replace(prompt, id=f"foreign to {prompt.id}", tokens=(prompt.tokens[0], *body))
