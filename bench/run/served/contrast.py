"""The blocks of a contrast of servers, and what is known of answers that differ.

Ids decide whether two answers are one. Where they leave each other, both servers are asked how likely the two tokens
are behind the very prefix, and the baseline's how far that moves where it decodes two answers at once. Where a server
gives no ids, texts are compared, and that is all that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from bench.plan.settings import Config
from bench.run.arms import Prompt, Task
from bench.run.contrast import Contrast, Progress
from bench.run.kept import ANSWER, foreign_task
from bench.run.served.answers import Answer
from bench.run.served.arms import ServedArms, ServedTrace
from bench.run.served.draws import draws_of
from bench.run.served.side import PAIR, Rows, Side
from bench.run.sides import BASELINE, TREATMENT
from bench.run.tasks import tasks

MOST_TURNS = 16
"""How often an answer is decoded on from a token that another shape would not say."""
IDS, TEXT = "token ids", "text"
"""What answers are compared by."""


class ServedContrast(Contrast):
    """A contrast whose arms are servers."""

    def __init__(self, config: Config, prompts: list[Prompt], name: str, progress: Progress,
                 arms: ServedArms) -> None:  # fmt: skip
        super().__init__(None, config, prompts, name, lambda: (), progress, lambda _: arms)
        self.servers = arms
        self.draws = draws_of(config)
        self._gaps: dict[tuple[Any, ...], dict[str, Any]] = {}

    @property
    def repeatable(self) -> bool:
        """False: to this process a server's own CPU time is another process's, and a kept server would remember."""
        return False

    def planned(self, prompts: list[Prompt]) -> list[Task]:
        """Blocks; requests at once are about a prompt each."""
        return tasks(prompts, self.config, independent=self.config.streams > 1)

    def _warm_up(self) -> None:
        """A kept server decodes a little of another text. A fresh one has warmed itself up, and is to know no text."""
        for name, side in self.servers.sides.items():
            if self.config.engine.kept or not side.is_here:
                self.arms.run(name, self._other_task(), seed=0, number=-1,
                              n_predict=max(self.config.measure.warmup_tokens, 2))  # fmt: skip

    def _run_kept(self) -> None:
        """A server that is kept: the carried prompt and again, then one that met a long foreign prompt before it."""
        if not self.arms.guessing["remembers"]:
            return
        config = self.config
        for first, foreign in ((0, False), (2, True)):
            with self.servers.kept():
                if foreign:
                    task = foreign_task(self.carried, self.prompts, config.engine.n_ctx, config.n_predict)
                    self.arms.run("kept", task, 0, -1, n_predict=ANSWER)
                for order in (first, first + 1):
                    self._kept(order)

    def _replays(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """What is known of every pair of answers, and the rounding of the baseline's server."""
        rows = [row for (block, replicate, arm), trace in self.texts.items() if arm != BASELINE
                for row in self._compared(self.tasks[block], replicate, arm, _of(trace))]  # fmt: skip
        noise: dict[str, Any] = {"logit_gap": 0.0, "cdf": 0.0, "positions": 0, "disagreements": 0,
                                 "widths": [1, PAIR], "of": "reference"}  # fmt: skip
        if self.servers.sides[BASELINE].has_logits and self.draws.followed:
            for task in self.tasks[: self.config.measure.noise_prompts]:
                found = self._rounding(task.prompts[0].tokens, self._said(task, 0, 0))
                noise |= {"logit_gap": max(noise["logit_gap"], *found.moved),
                          "positions": noise["positions"] + len(found.moved),
                          "disagreements": noise["disagreements"] + len(found.gaps)}  # fmt: skip
        self.progress(1.0, "comparing answers")
        return rows, noise

    def _said(self, task: Task, replicate: int, answer: int) -> list[int]:
        return self.texts[task.block, replicate, BASELINE].text(answer)

    def _compared(self, task: Task, replicate: int, arm: str, trace: ServedTrace) -> list[dict[str, Any]]:
        base = _of(self.texts[task.block, replicate, BASELINE])
        pairs = zip(base.answers, trace.answers, task.prompts, strict=True)
        return [self._row(arm, task, replicate, answer, *pair) for answer, pair in enumerate(pairs)]

    def _row(self, arm: str, task: Task, replicate: int, answer: int, left: Answer, right: Answer,
             prompt: Prompt) -> dict[str, Any]:  # fmt: skip
        by_ids = bool(left.ids and right.ids)
        row: dict[str, Any] = {
            "arm": arm, "prompt": prompt.id, "stream": answer, "seed": self._seed(task, replicate),
            "n": min(left.tokens, right.tokens), "first_difference": None, "teacher_forced": None,
            "by": IDS if by_ids else TEXT, "same_text": left.digest == right.digest,
        }  # fmt: skip
        ours, theirs = ([int(one) for one in side.ids if one is not None] for side in (left, right))
        first = next((at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
        if by_ids and first is not None:
            key = (prompt.id, arm, first, tuple(ours[: first + 1]), theirs[first])
            if key not in self._gaps:
                self._gaps[key] = self._gap(arm, prompt.tokens, ours, theirs[first], first)
            row |= self._gaps[key]
        return row

    def _gap(self, arm: str, prompt: Sequence[int], ours: Sequence[int], theirs: int, first: int) -> dict[str, Any]:
        """The two tokens' gap behind the common prefix, by both servers, and the baseline's rounding there."""
        side = BASELINE if arm == "again" else TREATMENT
        about = {"position": first, "token_baseline": ours[first], "token_arm": theirs,
                 "quantity": "cdf_distance" if self.config.temperature else "logit_gap"}  # fmt: skip
        if not self.draws.followed or not all(self.servers.sides[name].has_logits for name in (BASELINE, side)):
            nan = float("nan")
            return {"first_difference": about | {"gap_baseline": nan, "gap_arm": nan, "noise": 0.0},
                    "teacher_forced": {"positions": 0, "disagreements": 0, "worst_gap": 0.0}}  # fmt: skip
        gaps = {name: self._ahead(name, [*prompt, *ours[:first]], theirs, ours[first]) for name in (BASELINE, side)}
        rounding = self._rounding(prompt, ours[: first + 1], theirs)
        return {
            "first_difference": about | {"gap_baseline": -gaps[BASELINE], "gap_arm": gaps[side],
                                         "noise": rounding.moved[first] if first < len(rounding.moved) else 0.0},
            "teacher_forced": rounding.forced(), "own_noise": {"logit_gap": max(rounding.moved), "cdf": 0.0},
        }  # fmt: skip

    def _ahead(self, name: str, prefix: Sequence[int], rival: int, said: int) -> float:
        """How far a server has one token ahead of another behind a prefix."""
        with self.servers.alone(name) as side, side.held():
            return _gap_of(side.likely(prefix)[0][0], rival, said)

    def _rounding(self, prompt: Sequence[int], said: Sequence[int], rival: int | None = None) -> Rounding:
        """How the baseline's gaps move where it decodes two answers at once in place of one, over one answer.

        `rival` is the token whose gap counts at the last position; elsewhere it is the second most likely one.
        """
        with self.servers.alone(BASELINE) as side:
            with side.held():
                alone = _forced_rows(side, prompt, said, 1)[0]
            with side.paired() as there_is:
                pairs = _forced_rows(side, prompt, said, PAIR) if there_is else [alone]
        found = Rounding()
        for place, token in enumerate(said[: min(map(len, [alone, *pairs]))]):
            other = rival if rival is not None and place == len(said) - 1 else _second(alone[place], token)
            gaps = [_gap_of(rows[place], other, token) for rows in (alone, *pairs)]
            found.moved.append(max(abs(gap - gaps[0]) for gap in gaps))
            apart = [_gap_of(rows[place], _top(rows[place]), token) for rows in pairs if _top(rows[place]) != token]
            if apart:
                found.gaps.append(max(*apart, -gaps[0]))
        return found


@dataclass
class Rounding:
    """What another shape of the decode moves, position by position, and where it says another token."""

    moved: list[float] = field(default_factory=list[float])
    gaps: list[float] = field(default_factory=list[float])
    """At the positions where it does."""

    def forced(self) -> dict[str, Any]:
        """For the record."""
        return {"positions": len(self.moved), "disagreements": len(self.gaps), "worst_gap": max(self.gaps, default=0.0)}


def _forced_rows(side: Side, prompt: Sequence[int], said: Sequence[int], at_once: int) -> list[Rows]:
    """What is likely at each position of an answer, decoded token by token: greedily, and again from every token that
    is another one, as far as `MOST_TURNS` go."""  # fmt: skip
    found: list[Rows] = [[] for _ in range(at_once)]
    for _ in range(MOST_TURNS):
        done = len(found[0])
        if done == len(said):
            break
        told = side.likely([*prompt, *said[:done]], len(said) - done, at_once)
        same = [sum(1 for _ in takewhile(bool, map(_says, rows, said[done:]))) for rows in told]
        taken = min(min(same) + 1, len(said) - done)
        for rows, more in zip(found, told, strict=True):
            rows += more[:taken]
    return found


def _top(row: dict[int, float]) -> int:
    return max(row, key=lambda one: row[one])


def _says(row: dict[int, float], token: int) -> bool:
    return _top(row) == token


def _of(trace: Any) -> ServedTrace:
    assert isinstance(trace, ServedTrace), "servers' runs have answers"
    return trace


def _second(likely: dict[int, float], said: int) -> int:
    """The most likely token beside the one that was said."""
    return max((token for token in likely if token != said), key=lambda token: likely[token], default=said)


def _gap_of(likely: dict[int, float], rival: int, said: int) -> float:
    """How far a token is ahead of another; one that is not among those told counts as the least likely that is."""
    least = min(likely.values())
    return likely.get(rival, least) - likely.get(said, least)
