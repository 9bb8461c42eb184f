"""The rounds of a cell in plain steps: how long each width has lasted, what a change of width adds, what a guess costs.

The unit is the baseline's step in the same block, so that drift between blocks drops out. It compares nothing and
knows no method.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from bench.judge.predict.cost_model import Prices, Terms
from bench.judge.predict.host_speed import first_decodes
from bench.records.arms import ARMS, OWN_CONTEXT, PLAIN, PLANTED

if TYPE_CHECKING:
    from bench.judge.measure.runs import RunTable

SETTLED = 2
"""Decodes after a change of width that are not settled yet. A step-cost curve drops at least as many."""
LEAST_ROUNDS = 2
KEEPS = 0.5
"""Accepted guesses that bring fewer new tokens than this are said again, not kept."""


@dataclass(frozen=True)
class Turns:
    """By round: `age`, the number of decodes of the same width just before it in the same context (at most SETTLED),
    and `starts`, 1 in a start-up round, which makes what later rounds go on from, and 0 in any other.

    `step` is the unit of each run: mean seconds of the settled decodes of its block's baseline.
    """

    age: np.ndarray
    starts: np.ndarray
    step: np.ndarray

    def relative(self, table: RunTable) -> np.ndarray:
        """Decode time of each round in plain steps."""
        steps: np.ndarray = table.turns["decode_ns"] * 1e-9 / self.step[table.turns["owner"]]
        return steps

    def surcharges(self, table: RunTable, arm: str, price: np.ndarray) -> np.ndarray:
        """(2, ages) plain steps that a decode takes beyond its price, in later rounds and in those of the start; 0 once
        settled. `price` is `round_prices`.

        From arms other than `arm`: those in its context where they have such rounds, else plain decoding's first ones.
        Where first decodes wait for the host, a change to another width is other work: then those with the treatment's
        widths come before one stream alone, and of two values the lesser counts, since a pause only adds to one. The
        median else, as such rounds are few.
        """
        owner, relative = table.turns["owner"], self.relative(table)
        waits = first_decodes(table, self.age, relative, SETTLED)
        excess = relative / (waits.levels(table) if waits else np.ones(len(table.run)))[owner] - price
        others, alike = set(ARMS) - {arm, *OWN_CONTEXT}, {"treatment", *PLANTED}
        near = (others & alike, others - alike) if waits else (others,)
        sources = [table.any_of(arms)[owner] & np.isfinite(excess) for arms in (*near, OWN_CONTEXT)]
        found = np.zeros((2, SETTLED + 1))
        for starts, age in product((0, 1), range(SETTLED)):
            values = [excess[rows & (self.age == age) & (self.starts == starts)] for rows in sources]
            enough = [some for some in values if len(some) >= LEAST_ROUNDS]
            lesser = waits and enough and len(enough[0]) == LEAST_ROUNDS
            found[starts, age] = (np.min if lesser else np.median)(enough[0]) if enough else found[0, age]
        return found

    def priced(self, table: RunTable, price: np.ndarray, extra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of each run's decodes at the curve's prices, and what changes of width (`surcharges`) add to them."""
        owner, size = table.turns["owner"], len(table.run)
        plain = np.bincount(owner, weights=price, minlength=size) * self.step
        return plain, np.bincount(owner, weights=extra[self.starts, self.age], minlength=size) * self.step

    def share_switched(self, table: RunTable, mine: np.ndarray) -> float:
        """Share of the rounds of some runs whose width was not settled."""
        rows = mine[table.turns["owner"]]
        return float((self.age[rows] < SETTLED).mean()) if rows.any() else float("nan")

    def redecode_cost(self, table: RunTable, mine: np.ndarray) -> float:
        """Plain steps of a guess that the model itself decodes on its own, drawing and copying included.

        nan where guesses are made in another way. It is above 1 where a change of width costs, as in the verifying
        decode.
        """
        turn = table.turns
        rows = mine[turn["owner"]] & (turn["redecoded"] > 0)
        many = int(turn["redecoded"][rows].sum())
        if not many or (turn["redecoded"] != turn["drafted"])[rows].any():
            return float("nan")
        return float((turn["draft_ns"] * 1e-9 / self.step[turn["owner"]])[rows].sum() / many)


def turns(table: RunTable) -> Turns:
    """Age and unit of every round of a cell."""
    age = _ages(table)
    seconds, owner = table.turns["decode_ns"] * 1e-9, table.turns["owner"]
    block = table.block[owner]
    base = table.of("baseline")[owner]
    settled = base & (age >= SETTLED)
    size = int(table.block.max()) + 1
    step = np.full(size, np.nan)
    for rows in (base, settled):
        count = np.bincount(block[rows], minlength=size)
        total = np.bincount(block[rows], weights=seconds[rows], minlength=size)
        step = np.where(count > 0, total / np.maximum(count, 1), step)
    return Turns(age, (table.turns["phase"] == "startup").astype(np.int64), step[table.block])


def _ages(table: RunTable) -> np.ndarray:
    """Decodes of one width in a row before each round, 0 after a prefill or after sequential decodes of another."""
    owner, width, redecoded = (table.turns[name] for name in ("owner", "width", "redecoded"))
    if not len(owner):
        return np.zeros(0, dtype=np.int64)
    fresh = np.ones(len(owner), dtype=bool)
    fresh[1:] = (owner[1:] != owner[:-1]) | (width[1:] != width[:-1])
    fresh |= (redecoded > 0) & (width > 1)
    fresh |= _next_answer(table)
    place = np.arange(len(owner))
    return np.minimum(place - np.maximum.accumulate(np.where(fresh, place, 0)), SETTLED)


def _next_answer(table: RunTable) -> np.ndarray:
    """Rounds with which an arm that decodes its answers one after the other begins the next: a prefill lies before."""
    owner, number = table.turns["owner"], table.turns["round"]
    emits = table.emits
    made = emits["round"] >= 0
    span = int(number.max(initial=0)) + 1
    stream = np.full((int(owner.max(initial=0)) + 1) * span, -1)
    stream[emits["owner"][made] * span + emits["round"][made]] = emits["stream"][made]
    mine = stream[owner * span + number]
    one_by_one = table.any_of(PLAIN)[owner]
    begins = np.zeros(len(owner), dtype=bool)
    begins[1:] = (mine[1:] != mine[:-1]) & (owner[1:] == owner[:-1])
    begins &= one_by_one
    return begins


def round_prices(table: RunTable, prices: Prices) -> np.ndarray:
    """Price of every round's width, in plain steps; nan where it has none."""
    widths = table.turns["width"]
    known = {width: prices.price(width).cost for width in np.unique(widths).tolist()}
    by_width = np.full(int(widths.max(initial=0)) + 1, np.nan)
    by_width[list(known)] = list(known.values())
    found: np.ndarray = by_width[widths]
    return found


@dataclass(frozen=True)
class Guessing:
    """How an arm's guesses went and what they cost, summed by unit: what is evidence of its own, a prompt or a seed."""

    tested: np.ndarray
    """(units, depths) guesses compared with the model's draw."""
    accepted: np.ndarray
    sums: dict[str, np.ndarray]
    """By unit, times in plain steps: rounds, firing, look, looks, draft, drafted, sample, rows, rest, switch, ..."""
    streams: int
    length: int | None
    """Guesses an answer and round; None when no length is the usual one."""
    narrows: bool
    """Whether the loop guesses less where the answer ends."""
    settles: bool
    """Whether rounds follow each other without decodes of another width between them."""

    def terms(self, weights: np.ndarray | None = None) -> Terms:
        """Terms of the cost model; with `weights` (resamples, units) one value a resample."""
        sums = {name: values.sum() if weights is None else weights @ values for name, values in self.sums.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            rounds = sums["rounds"]
            look = np.nan_to_num(sums["look"] / sums["looks"])
            guess = (sums["draft"] - look * (rounds - sums["looks"])) / sums["drafted"]
            return Terms(
                fires=np.minimum(sums["firing"] / rounds / self.streams, 1.0),
                kept=self._kept(),
                streams=self.streams,
                look=look,
                guess=np.nan_to_num(np.maximum(guess, 0.0)),
                row=sums["sample"] / sums["rows"],
                rest=sums["rest"] / rounds,
                switch=sums["switch"] / rounds,
                startup=sums["startup"] / sums["tokens"],
                baseline=sums["baseline"] / sums["runs"],
            )

    @property
    def keeps(self) -> bool:
        """Whether accepted guesses are new tokens: else a draft length changes more than the model knows of."""
        return self._kept() >= KEEPS

    def parts(self) -> dict[str, float]:
        """Mean plain steps of a round by what they were spent on."""
        rounds = float(self.sums["rounds"].sum())
        draft = float(self.sums["draft"].sum() + self.sums["look"].sum())
        told = {name: float(self.sums[name].sum()) / rounds for name in ("sample", "rollback", "host", "switch")}
        return {"draft": draft / rounds, **told}

    def _kept(self) -> float:
        """New tokens that an accepted guess brought, over all units."""
        hits = float(self.accepted.sum())
        extra = float((self.sums["tokens"] - self.sums["started"] - self.sums["rounds"] * self.streams).sum())
        return min(max(extra / hits, 0.0), 1.0) if hits else 1.0


def guessing(
    table: RunTable, own: Turns, extra: np.ndarray, mask: np.ndarray, temperature: float = 0.0
) -> Guessing | None:
    """Sums over the treatment's runs under a mask, with its surcharges; None when they draft nothing."""
    runs = np.flatnonzero(table.of("treatment") & mask & np.isfinite(own.step))
    if not table.counters["drafted"][runs].sum() or not len(table.draws["owner"]):
        return None
    unit = _units(table, runs, temperature)
    streams = int(np.ceil(table.concurrent[runs].max()))
    tested, accepted = _by_depth(table, unit)
    return Guessing(
        tested=tested,
        accepted=accepted,
        sums=_sums(table, own, unit, extra, len(tested), tested[:, 0]),
        streams=streams,
        length=_usual_length(table, unit, streams),
        narrows=_narrows(table, unit),
        settles=_settles(table, unit),
    )


def _units(table: RunTable, runs: np.ndarray, temperature: float) -> np.ndarray:
    """The unit of each run, -1 for those that are left out: its prompt, or its seed where there is one prompt.

    At temperature 0 all runs of a prompt draw the same tokens, so they are one unit.
    """
    names = table.prompt_code[runs]
    if temperature > 0 and len(np.unique(names)) < 2:
        names = table.seed[runs]
    unit = np.full(len(table.run), -1)
    unit[runs] = np.unique(names, return_inverse=True)[1]
    return unit


def _by_depth(table: RunTable, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    draws = table.draws
    rows = unit[draws["owner"]] >= 0
    place, depth = unit[draws["owner"][rows]], draws["depth"][rows].astype(np.int64) - 1
    hit = (draws["guess"] == draws["drawn"])[rows]
    shape = (int(unit.max()) + 1, max(int(depth.max(initial=0)) + 1, 1))
    tested, accepted = np.zeros(shape), np.zeros(shape)
    np.add.at(tested, (place, depth), 1)
    np.add.at(accepted, (place[hit], depth[hit]), 1)
    return tested, accepted


def _sums(
    table: RunTable, own: Turns, unit: np.ndarray, extra: np.ndarray, size: int, firing: np.ndarray
) -> dict[str, np.ndarray]:
    turn = table.turns
    owner = turn["owner"]
    steady = (unit[owner] >= 0) & (turn["phase"] != "startup")
    step = own.step[owner]
    quiet = turn["drafted"] == 0

    def rounds(values: np.ndarray, rows: np.ndarray = steady) -> np.ndarray:
        return np.bincount(unit[owner[rows]], weights=values[rows], minlength=size)

    parts = {name: turn[f"{name}_ns"] * 1e-9 / step for name in ("draft", "decode", "sample", "rollback", "total")}
    host = parts["total"] - parts["draft"] - parts["decode"] - parts["sample"] - parts["rollback"]
    ones = np.ones(len(owner))
    runs = unit >= 0

    def of_runs(values: np.ndarray) -> np.ndarray:
        return np.bincount(unit[runs], weights=values[runs], minlength=size)

    between = of_runs((table.window - table.seconds["total"]) / own.step)
    sums = {
        "rounds": rounds(ones), "looks": rounds(ones, steady & quiet), "look": rounds(parts["draft"], steady & quiet),
        "draft": rounds(parts["draft"], steady & ~quiet), "drafted": rounds(turn["drafted"].astype(float)),
        "sample": rounds(parts["sample"]), "rows": rounds(turn["width"].astype(float)),
        "rollback": rounds(parts["rollback"]), "host": rounds(host) + between, "switch": rounds(extra[0, own.age]),
        "startup": of_runs(table.startup_seconds / own.step), "tokens": of_runs(table.tokens.distinct.astype(float)),
        "started": of_runs(table.tokens.startup.astype(float)), "runs": of_runs(np.ones(len(unit))),
        "baseline": of_runs(_plain_token(table, own)), "firing": firing,
    }  # fmt: skip
    return sums | {"rest": sums["rollback"] + sums["host"]}


def _plain_token(table: RunTable, own: Turns) -> np.ndarray:
    """By run: what a token of plain decoding takes in its block, in plain steps; at least its step."""
    base = table.of("baseline")
    size = int(table.block.max()) + 1
    cost = table.window / np.maximum(table.tokens.distinct, 1) / own.step
    count = np.bincount(table.block[base], minlength=size)
    total = np.bincount(table.block[base], weights=cost[base], minlength=size)
    found: np.ndarray = (total / np.maximum(count, 1))[table.block]
    return found


def _usual_length(table: RunTable, unit: np.ndarray, streams: int) -> int | None:
    """Guesses of a round and answer: what most rounds that guess have; several answers share a round's count."""
    drafted = table.turns["drafted"][unit[table.turns["owner"]] >= 0]
    made = drafted[drafted > 0].astype(np.int64)
    if streams > 1:
        return max(int(made.max()) // streams, 1)
    counts = np.bincount(made)
    return int(counts.argmax()) if counts.max() >= 0.5 * len(made) else None


def _narrows(table: RunTable, unit: np.ndarray) -> bool:
    drafted = table.turns["drafted"][(unit[table.turns["owner"]] >= 0) & (table.turns["phase"] != "startup")]
    return bool(len(np.unique(drafted)) > 1)


def _settles(table: RunTable, unit: np.ndarray) -> bool:
    mine = (unit[table.turns["owner"]] >= 0) & (table.turns["phase"] != "startup")
    return float((table.turns["redecoded"][mine] > 0).mean()) < 0.5
