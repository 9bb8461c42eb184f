"""What the blocks of a cell are about: its prompts, one or several to a task. It runs nothing."""

from __future__ import annotations

from dataclasses import replace

from bench.plan.settings import Config
from bench.run.arms import Prompt, Task


def tasks(prompts: list[Prompt], config: Config, independent: bool) -> list[Task]:
    """Blocks of the cell: one a chosen prompt, or a group of `streams` prompts for independent answers.

    A group takes prompts of one class where the class has enough, else from the whole set.
    """
    wanted = config.measure.classes or sorted({prompt.kind for prompt in prompts})
    found: list[Task] = []
    for kind in wanted:
        pool = [prompt for prompt in prompts if prompt.kind == kind]
        for first in range(min(config.measure.per_class, len(pool))):
            group: tuple[Prompt, ...] = (pool[first],)
            if independent:
                rest = pool if len(pool) >= config.streams else prompts
                at = rest.index(pool[first])
                group = tuple(rest[(at + i) % len(rest)] for i in range(config.streams))
            found += [Task(0, group)] * config.measure.blocks_per_prompt
    return [Task(block, task.prompts) for block, task in enumerate(found)]


def unlike(prompt: Prompt, depth: int = 0) -> Prompt:
    """The prompt's tokens backwards behind the first: a text of its length that no run of a cell is about.

    The `depth` tokens that all prompts begin with stay.
    """
    kept = max(depth, 1)
    return replace(prompt, tokens=(*prompt.tokens[:kept], *reversed(prompt.tokens[kept:])))


def further(prompts: list[Prompt], config: Config) -> list[Prompt]:
    """Prompts of the wanted classes behind those of the blocks; none for independent answers."""
    classes = config.measure.classes or sorted({prompt.kind for prompt in prompts})
    pools = ([prompt for prompt in prompts if prompt.kind == kind] for kind in classes)
    first = config.measure.per_class
    found = [prompt for pool in pools for prompt in pool[first : first + config.measure.texts]]
    return [] if config.method.spec.answers == "independent" else found
