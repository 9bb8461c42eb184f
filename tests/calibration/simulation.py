"""Contrasts whose truth is chosen: times of rounds, made from numpy alone. No line of the estimator makes them.

A contrast is laid out like a cell (palindromes of arms in random order, A/A in the first blocks) and its rounds take
what a noise model says. What is not simulated: tokens, guesses, and anything that an engine does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.judge.measure.runs import RunTable
from bench.judge.measure.tokens import RunCounts

ROUNDS, STEP_S = 24, 0.02
"""Rounds a run, and seconds of a baseline's round: a run takes about half a second."""
PROMPT_SD = 0.03
"""Of the log effect between texts, unless a model says more."""


@dataclass(frozen=True)
class Noise:
    """What disturbs the times. All are logs but the stalls."""

    run: float = 0.03
    round: float = 0.05
    drift: float = 0.0
    """A run of the sweep over the one before."""
    walk: float = 0.0
    """Standard deviation of an AR(1) over runs with 0.9."""
    stall_rate: float = 0.0
    """Stalls a second; each takes 0.25 s in the mean."""
    level: float = 0.0
    """Depth of levels that the machine steps between, one run in eight."""
    tail: float = 0.0
    """Degrees of freedom of a run's Student-t noise; 0 is normal."""
    first: float = 0.0
    """Of the first run of a block."""
    context: float = 0.0
    """Standard deviation of the ratio of two contexts of a cell."""
    clocks: float = 0.0
    """How much slower the slower of two clocks is; a run keeps the clock of the one before in four of five cases."""
    burst: float = 0.0
    """How much slower everything is while another process runs: one run in five, three in a row in the mean."""
    uneven: float = 1.0
    """Noise of a run of the treatment over that of the baseline."""
    behind: float = 0.0
    """Of a run right behind one of the treatment's."""
    half: float = 0.0
    """Of every run from the middle of the sweep on."""
    beat: float = 0.0
    """Of one run in `every`, from a place that is drawn on."""
    every: int = 4
    own_stalls: float = 0.0
    """Share of the treatment's runs that stall by themselves, for a lognormal time of half a run in the median."""


NOISES: dict[str, Noise] = {
    "independent": Noise(),
    "linear drift": Noise(drift=0.003),
    "autocorrelated": Noise(walk=0.06),
    "stalls": Noise(stall_rate=0.15),
    "level steps": Noise(level=0.22),
    "heavy tails": Noise(tail=2.0),
    "first run of a block": Noise(first=-0.06),
    "two clocks": Noise(clocks=0.2),
    "bursts of load": Noise(burst=0.4),
    "an arm three times as noisy": Noise(uneven=3.0),
    "all together": Noise(drift=0.003, walk=0.04, stall_rate=0.15, level=0.22, tail=3.0, first=-0.06),
}

Texts = Callable[[np.random.Generator, int], np.ndarray]
"""Log effects of so many texts, with a mean of 0 over all texts that there are."""


def normal(sd: float) -> Texts:
    return lambda rng, count: rng.normal(0.0, sd, count)


def one_in_six(rng: np.random.Generator, count: int) -> np.ndarray:
    """One text in six copies itself: 2.2 times as fast there, and 0.97 elsewhere."""
    copied, other = np.log(2.2), np.log(0.97)
    return np.where(rng.random(count) < 1 / 6, copied, other) - (copied + 5 * other) / 6


def both_signs(rng: np.random.Generator, count: int) -> np.ndarray:
    """Half of the texts gain a quarter, the others lose it."""
    return np.where(rng.random(count) < 0.5, 0.25, -0.25)


def exponential(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.exponential(0.2, count) - 0.2


TEXTS: dict[str, Texts] = {
    "alike (sd 0.03)": normal(PROMPT_SD), "sd 0.10": normal(0.10), "sd 0.30": normal(0.30),
    "one text in six copies": one_in_six, "exponential, sd 0.2": exponential,
    "gains and losses of a quarter": both_signs,
}  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """What an interval has to hold, as log ratios."""

    these: float
    """Of the very texts that were run, on a machine whose contexts are alike."""
    like_these: float


def contrast(
    rng: np.random.Generator, effect: float, noise: Noise, prompts: int, blocks_each: int = 1, again: int = 2,
    texts: Texts = TEXTS["alike (sd 0.03)"], one_leads: bool = False,
) -> tuple[RunTable, Truth]:  # fmt: skip
    """One contrast of a true ratio, with its truth. `one_leads`: the baseline begins every block, as in no sweep."""
    own = texts(rng, prompts)
    layout = _layout(rng, prompts, blocks_each, again, one_leads)
    logs = np.array([np.log(effect) + own[prompt] if arm == "treatment" else 0.0 for _, _, arm, prompt in layout])
    offsets = {arm: rng.normal(0.0, noise.context / np.sqrt(2)) for arm in ("baseline", "again", "treatment")}
    rates = logs + np.array([offsets[arm] for _, _, arm, _ in layout])
    times = _times(rng, rates, noise, np.array([order == 0 for _, order, _, _ in layout]),
                   np.array([arm == "treatment" for _, _, arm, _ in layout]))  # fmt: skip
    return _table(layout, times), Truth(float(np.log(effect) + own.mean()), float(np.log(effect)))


Place = tuple[int, int, str, int]
"""Block, order, arm, prompt."""


def _layout(rng: np.random.Generator, prompts: int, blocks_each: int, again: int, one_leads: bool) -> list[Place]:
    """As `bench.run.contrast` lays out: arms in random order, and half of the blocks begin with the baseline."""
    found: list[Place] = []
    halves = rng.permutation(np.arange(prompts * blocks_each) % 2 == 0)
    for block in range(prompts * blocks_each):
        arms = ["baseline", "treatment", *(["again"] if block < again else [])]
        rng.shuffle(arms)
        first, second = sorted((arms.index("baseline"), arms.index("treatment")))
        begins = one_leads or halves[block]
        arms[first], arms[second] = ("baseline", "treatment") if begins else ("treatment", "baseline")
        found += [(block, order, arm, block % prompts) for order, arm in enumerate([*arms, *reversed(arms)])]
    return found


def _stays(rng: np.random.Generator, runs: int, share: float, leave: float) -> np.ndarray:
    """(runs,) whether a machine of two states is in the second: `share` of the time, which it leaves with `leave`."""
    state, found = rng.random() < share, np.zeros(runs, dtype=bool)
    for run in range(runs):
        found[run] = state
        state = rng.random() >= leave if state else rng.random() < leave * share / (1 - share)
    return found


def _times(
    rng: np.random.Generator, rates: np.ndarray, noise: Noise, first: np.ndarray, treated: np.ndarray
) -> np.ndarray:
    """(runs, rounds) seconds."""
    runs = len(rates)
    of_run = rng.standard_t(noise.tail, runs) * noise.run if noise.tail else rng.normal(0.0, noise.run, runs)
    walk, place = np.zeros(runs), 0.0
    for run in range(runs):
        place = 0.9 * place + np.sqrt(1 - 0.81) * rng.normal(0.0, noise.walk) if noise.walk else 0.0
        walk[run] = place
    slow = np.where(rng.random(runs) < 1 / 8, noise.level, 0.0)
    of_run = np.where(treated, noise.uneven, 1.0) * of_run
    if noise.clocks or noise.burst:
        slow = noise.clocks * _stays(rng, runs, 0.5, 0.2) + noise.burst * _stays(rng, runs, 0.2, 1 / 3)
    whole = of_run + walk + slow + noise.first * first + noise.drift * np.arange(runs) - rates
    whole += noise.behind * np.roll(treated, 1) + noise.half * (np.arange(runs) >= runs // 2)
    if noise.beat:
        whole += noise.beat * ((np.arange(runs) + rng.integers(noise.every)) % noise.every == 0)
    times = STEP_S * np.exp(whole[:, None] + rng.normal(0.0, noise.round, (runs, ROUNDS)))
    hits = rng.poisson(noise.stall_rate * times)
    stalls: np.ndarray = times + np.where(hits > 0, rng.exponential(0.25, times.shape), 0.0)
    if noise.own_stalls:
        own = np.flatnonzero(treated & (rng.random(runs) < noise.own_stalls))
        stalls[own, rng.integers(0, ROUNDS, len(own))] += 0.5 * ROUNDS * STEP_S * rng.lognormal(0.0, 0.7, len(own))
    return stalls


def _table(layout: list[Place], times: np.ndarray) -> RunTable:
    """The times as the judge sums up a cell: one token a round, no guess."""
    runs, rounds = times.shape
    run, every = np.arange(runs), np.ones(runs, dtype=np.int64)
    owner, nothing = np.repeat(run, rounds), np.zeros(runs * rounds)
    ns = times.ravel() * 1e9
    turns: dict[str, Any] = {
        "run": owner, "owner": owner, "round": np.tile(np.arange(rounds), runs),
        "phase": np.full(runs * rounds, "steady"), "width": np.ones(runs * rounds, dtype=np.int64),
        "drafted": nothing.astype(int), "redecoded": nothing.astype(int),
        "draft_ns": nothing, "decode_ns": ns, "sample_ns": nothing, "rollback_ns": nothing, "total_ns": ns,
    }  # fmt: skip
    window = times.sum(axis=1)
    zero = np.zeros(runs)
    return RunTable(
        run=run, block=np.array([place[0] for place in layout]), order=np.array([place[1] for place in layout]),
        arm=np.array([place[2] for place in layout]), prompt=np.array([f"p{place[3]:02d}" for place in layout]),
        prompt_class=np.full(runs, "prose"), seed=run, n_prompt=every, n_prompt_evaluated=every,
        n_predict=every * (rounds + 1), clock_mhz=np.full(runs, np.nan), window=window, start_ns=run,
        draft_prefill=zero, restored=zero.astype(int),
        tokens=RunCounts(*([every * rounds] * 2), every, *([zero.astype(int)] * 3), every, *([zero.astype(int)] * 2)),
        rounds=every * rounds, startup_rounds=zero, startup_seconds=zero,
        seconds={name: window if name in ("decode", "total") else zero
                 for name in ("draft", "decode", "sample", "rollback", "total")},
        rebuilt=zero, counters={}, emits={}, turns=turns, draws={},
    )  # fmt: skip
