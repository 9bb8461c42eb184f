"""What a contrast asks of its arms, wherever they are: in this process, or in one of their own (`bench.run.sides`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from bench.plan.settings import Config
from bench.records.rows import Piece, Run
from bench.run.arms import Arms, Task
from bench.run.held import Look
from bench.run.replay import Shape
from pti_loop.engine import Model
from pti_loop.ledger import Trace
from pti_loop.method import Method
from pti_loop.settings import Settings


class Trial(Protocol):
    """The arms of a contrast, wherever they are: what is told to run, and to say logits again."""

    method: Method
    settings: Settings
    rollback: dict[str, Any]

    @property
    def guesses(self) -> bool:
        """Whether the method proposes tokens that may be wrong."""

    @property
    def guessing(self) -> dict[str, Any]:
        """What the drafter says of itself."""

    @property
    def shape(self) -> Shape:
        """How the treatment decodes."""

    @property
    def answers(self) -> int:
        """Answers that the method decodes at once."""

    def takes_turns(self) -> bool:
        """Whether runs of the method may be open beside one of the baseline."""

    @property
    def memory(self) -> dict[str, dict[str, int]]:
        """What each arm took of process and cards, where that was looked at."""

    @property
    def made(self) -> int:
        """How often the contexts were made."""

    @property
    def beginnings(self) -> dict[str, Any]:
        """Of what all prompts begin with: how it was evaluated."""

    def renew(self) -> None:
        """All contexts anew."""

    def controls(self) -> list[str]:
        """Arms that only the control blocks run."""

    def run(self, arm: str, task: Task, seed: int, number: int, answers: Sequence[Sequence[int]] = ((),),
            n_predict: int = 0) -> Trace:
        """One run of an arm that nobody keeps a record of."""

    def measure(self, arm: str, task: Task, order: int, seed: int, number: int, n_predict: int,
                answers: Sequence[Sequence[int]] = ((),), name: str = "") -> tuple[Run, Trace]:
        """One run with its record."""

    def measure_turns(self, arms: Sequence[str], task: Task, order: int, seed: int, number: int, n_predict: int,
                      chunk: int) -> list[tuple[Run, Trace, list[Piece]]]:
        """Some runs that take turns of `chunk` tokens, with their records."""

    def replay(self, arm: str, prompt: Sequence[int], tokens: Sequence[int], shape: Shape) -> Iterator[np.ndarray]:
        """Logits before each token of an answer, decoded on the arm's context in this shape."""

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the engine made of each arm's context."""

    def close(self) -> None:
        """Free the contexts."""


def here(model: Model | None, config: Config, around: Callable[[], tuple[float, ...]],
         gauge: Callable[[], float] | None = None,
         look: Look | None = None) -> Callable[[Sequence[int]], Trial]:  # fmt: skip
    """What opens all arms on one model of this process."""
    assert model is not None, "arms that are elsewhere are opened by whoever has them there"
    return lambda text: Arms(model, config, text, around, gauge, look=look)
