"""Next tokens counted behind one fixed prefix, over many seeds, with plain decoding's exact probabilities beside them.

Many short runs of the method start from the same prompt and the same first token, so that what is drawn next has one
known distribution; what comes after it is grouped by its prefix. The same runs with a planted fault show that the test
would see one. It judges nothing: counts and probabilities go into a table of the cell.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from bench.plan.settings import Config
from bench.records.rows import Count
from bench.run.arms import Arms, Prompt, Task
from bench.run.prompt_copy import Recall
from bench.run.replay import Shape, replay
from bench.run.specs import sampler_of
from pti_loop.ledger import Trace
from pti_loop.sampling import TWINS, Choice, Sampler, uniform

POSITIONS = 3
"""Positions that a run draws behind the held token."""
LEAST_DRAWS, MOST_GROUPS = 40, 12
"""A prefix with fewer draws is left out, and so are all but the most frequent ones: each costs a replay."""
NAMED = 1e-3
"""Tokens below this probability are one cell. Only probabilities decide the cells, so that counts are multinomial."""
PLACES = 4
"""Answers that are replayed to find a prefix worth testing."""
SEEDS = 100_000
"""Seeds of these runs start here, above those of the timed ones."""
Key = tuple[int, tuple[int, ...], int]
"""Position, tokens between the held one and it, and whether a guess was compared there."""


class Held(Sampler):
    """Draws as ever, but for the first token of an answer, which is given."""

    def __init__(self, held: int, *args: Any) -> None:
        super().__init__(*args)
        self._held = held

    def draw(self, logits: np.ndarray, answer: int, twin: int, position: int, text: Sequence[int] = ()) -> Choice:
        """As the sampler's."""
        return Choice(self._held, float("nan")) if position == 0 else super().draw(logits, answer, twin, position, text)


class Biased(Held):
    """The planted fault: a guess is taken whenever it is among the two likeliest tokens, whatever was drawn."""

    def __init__(self, guesses: Sequence[int], *args: Any) -> None:
        super().__init__(guesses[0], *args)
        self._guesses = guesses

    def draw(self, logits: np.ndarray, answer: int, twin: int, position: int, text: Sequence[int] = ()) -> Choice:
        """The guess where the fault takes it, else as the sampler's."""
        if twin == 0 and 0 < position < len(self._guesses):
            guess = self._guesses[position]
            if guess in np.argpartition(self.seen(logits, position, text), -2)[-2:]:
                return Choice(int(guess), float("nan"))
        return super().draw(logits, answer, twin, position, text)


def probabilities(logits: np.ndarray, temperature: float) -> np.ndarray:
    """Softmax in float64 of float32 (n_vocab,) logits over the temperature."""
    weights = np.exp((logits.astype(np.float64) - float(logits.max())) / temperature)
    return np.asarray(weights / weights.sum())


def undecided(row: np.ndarray) -> float:
    """How visible the planted fault is at these probabilities: r (1 - r), r the share beyond the two likeliest.

    A guess drawn from p and taken among the top two turns p into (1 + r) p there and r p elsewhere, which has the
    chi-square distance r (1 - r) from p for each draw.
    """
    rest = float(1 - np.partition(row, -2)[-2:].sum())
    return rest * (1 - rest)


class Distribution:
    """The runs of one cell's test. `found` are treatment runs (task, trace) to choose the prefix from."""

    def __init__(self, arms: Arms, config: Config, found: Sequence[tuple[Task, Trace]],
                 progress: Callable[[float, str], None]) -> None:
        self.arms, self.config, self.progress = arms, config, progress
        self.found, self._sampler = found, sampler_of(arms.model, config, 0)
        self.shape = Shape(arms.method.width(arms.settings), arms.method.layout(arms.settings))
        longest = max(len(prompt.tokens) for task, _ in found for prompt in task.prompts)
        room = longest + arms.settings.n_predict + POSITIONS + 2 * self.shape.width
        narrow = replace(arms.context("baseline").spec, n_ctx=room, sampler="host")
        self.plain = Recall(arms.model, narrow)
        self.wide = Recall(arms.model, replace(arms.wide_spec, n_ctx=room, sampler="host"))

    def run(self, arms: Sequence[str] = ("treatment", "biased")) -> tuple[list[Count], dict[str, Any]]:
        """The table and what was held fixed. The contexts are freed in the end."""
        try:
            prompt, held, known = self._place()
            rows: list[Count] = []
            for arm in arms:
                rows += self._rows(arm, prompt, held, self._count(arm, prompt, held, known))
            streams = self._streams()
            facts = {"prompt": prompt.id, "n_prompt": len(prompt.tokens), "held": held, "positions": POSITIONS,
                     "runs": self._runs(), "streams": streams}  # fmt: skip
            return rows, facts
        finally:
            self.plain.close()
            self.wide.close()

    def _streams(self) -> int:
        return self.arms.method.answers(self.arms.settings)

    def _runs(self) -> int:
        return -(-self.config.measure.distribution // self._streams())

    def _place(self) -> tuple[Prompt, int, list[int]]:
        """Prompt, held token and the answer that went on from it, where the planted fault would show best.

        A place where the method guessed comes before one where it did not: elsewhere nothing is put to the test.
        """
        def guessed(trace: Trace) -> set[int]:
            return {draw.position for draw in trace.draws()} - {0}

        ordered = sorted(self.found, key=lambda item: -len(guessed(item[1])))[:PLACES]
        best: tuple[bool, float] = (False, -1.0)
        for task, trace in ordered:
            text, prompt, places = trace.said(), task.prompts[0], guessed(trace)
            rows = replay(self.plain, prompt.tokens, text, Shape(1, "tokens"))
            for position, row in islice(enumerate(rows), 1, None):
                worth = position in places, undecided(self._shares(row, [*prompt.tokens, *text[:position]]))
                if worth > best:
                    best = worth
                    start = replace(prompt, tokens=(*prompt.tokens, *text[: position - 1]))
                    chosen = start, text[position - 1], text[position - 1 :]
        return chosen

    def _count(self, arm: str, prompt: Prompt, held: int, known: list[int]) -> dict[Key, Counter[int]]:
        """Draws of all runs, by position, prefix and whether a guess was compared."""
        counts: dict[Key, Counter[int]] = defaultdict(Counter[int])
        runs, streams = self._runs(), self._streams()
        task = Task(0, (prompt,) * streams)
        first = self._logits(self.plain, Shape(1, "tokens"), prompt, [held])
        for number in range(runs):
            seed = self.config.seed * 1_000_003 + SEEDS + number
            own = sampler_of(self.arms.model, self.config, seed)
            guess = own.pick(own.seen(first, 1, [*prompt.tokens, held]), uniform(seed, TWINS - 1, 1)).token
            answers = [[held, guess, *known[2:]]] * streams
            kind = partial(Biased, answers[0]) if arm == "biased" else partial(Held, held)
            sampler = sampler_of(self.arms.model, self.config, seed, kind)
            trace = self.arms.run("oracle" if arm == "biased" else arm, task, seed, -1, answers, POSITIONS + 1,
                                  ctx=self.wide, sampler=sampler)  # fmt: skip
            tested = {draw.position for draw in trace.draws()}
            for stream in range(streams):
                said = trace.said(stream)[: POSITIONS + 1]
                for position in range(1, len(said)):
                    counts[position, tuple(said[1:position]), int(position in tested)][said[position]] += 1
            if number % 20 == 0:
                self.progress(0.9 + 0.05 * ((arm == "biased") + number / runs), f"distribution of the {arm} arm")
        return counts

    def _rows(self, arm: str, prompt: Prompt, held: int, counts: dict[Key, Counter[int]]) -> list[Count]:
        """Counts beside probabilities, for the most frequent prefixes."""
        large = [key for key in counts if counts[key].total() >= LEAST_DRAWS]
        large.sort(key=lambda key: (-counts[key].total(), key))
        rows: list[Count] = []
        for group, key in enumerate(large[:MOST_GROUPS]):
            position, prefix, tested = key
            exact, moved = (
                self._shares(self._logits(ctx, shape, prompt, [held, *prefix]), [*prompt.tokens, held, *prefix])
                for ctx, shape in ((self.plain, Shape(1, "tokens")), (self.wide, self.shape))
            )
            named = np.flatnonzero(exact >= NAMED).tolist()
            seen = [counts[key][token] for token in named]
            rest, moved_rest = (max(1 - float(p[named].sum()), 0.0) for p in (exact, moved))
            cells: list[tuple[int, int, float, float]] = [
                *zip(named, seen, exact[named].tolist(), moved[named].tolist(), strict=True),
                (-1, counts[key].total() - sum(seen), rest, moved_rest),
            ]
            told = " ".join(map(str, prefix))
            rows += [Count(arm, prompt.id, group, position, told, tested, *cell) for cell in cells]
        return rows

    def _shares(self, row: np.ndarray, text: Sequence[int]) -> np.ndarray:
        """Probabilities float64 (n_vocab,) of the draw behind a text that is no answer's first."""
        return probabilities(self._sampler.seen(row, 1, text), self.config.temperature)

    def _logits(self, ctx: Recall, shape: Shape, prompt: Prompt, tokens: list[int]) -> np.ndarray:
        """Logits behind prompt and tokens. What follows in the window of a wide decode does not reach back to them."""
        padded = [*tokens, *[tokens[-1]] * shape.width]
        return next(islice(replay(ctx, prompt.tokens, padded, shape), len(tokens), None))

