"""Acceptance from raw counters and single draws. It knows nothing about time, and infers no speed.

Runs that repeat each other are evidence once: at temperature 0 both runs of a prompt draw the same tokens, and above 0
so do runs with one seed. Of an arm it knows what it declares of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.measure.intervals import clustered_share, mean_interval
from bench.judge.tables.contrast import Acceptance
from pti_loop.ledger import RecordError

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable


GUESS_SHARES = ("per_tested", "per_drafted")


@dataclass(frozen=True, slots=True)
class Counters:
    """Raw counts of guessing. `verified` guesses were compared with the model's own draw; the rest of `drafted` was
    never looked at. `bonus` tokens are the model's own draws that were emitted beside accepted guesses."""

    rounds: int
    drafted: int
    verified: int
    accepted: int
    bonus: int
    redecoded: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.accepted <= self.verified <= self.drafted:
            raise RecordError(
                f"accepted {self.accepted} <= verified {self.verified} <= drafted {self.drafted} does not hold"
            )

    @property
    def emitted(self) -> int:
        return self.accepted + self.bonus

    def rates(self) -> dict[str, float]:
        """Every rate that tools print under the name 'acceptance', each under its own name.

        `per_drafted` counts guesses nobody looked at as misses; `smoothed` is (accepted+1)/(drafted+1), which is
        above 0 when nothing was accepted; `mean_length` is tokens a round, the model's own draw among them.
        """
        nan = float("nan")
        return {
            "per_tested": self.accepted / self.verified if self.verified else nan,
            "per_drafted": self.accepted / self.drafted if self.drafted else nan,
            "per_round": self.accepted / self.rounds if self.rounds else nan,
            "per_emitted": self.accepted / self.emitted if self.emitted else nan,
            "smoothed": (self.accepted + 1) / (self.drafted + 1),
            "mean_length": self.emitted / self.rounds if self.rounds else nan,
        }


def logged_definition(counters: Counters, logged: float, digits: int = 2) -> str:
    """Which definition a printed acceptance rate follows, to `digits` decimals; `inconsistent` when none gives it.

    Only shares of guesses are looked for. Accepted over emitted tokens is a share of the output, and the smoothed form
    a biased estimate: a log that shows either as its acceptance contradicts the counters.
    """
    for name in GUESS_SHARES:
        if abs(counters.rates()[name] - logged) <= 0.5 * 10**-digits:
            return name
    return "inconsistent"


def evidence(table: RunTable, arm: str, temperature: float) -> np.ndarray:
    """Mask of the runs of an arm that do not repeat another run's draws."""
    mask = np.zeros(len(table.run), dtype=bool)
    seen: set[tuple[Any, ...]] = set()
    for index in np.flatnonzero(table.of(arm)):
        key = (table.prompt[index], int(table.seed[index]) if temperature > 0 else 0)
        if key not in seen:
            seen.add(key)
            mask[index] = True
    return mask


def counters(table: RunTable, mask: np.ndarray) -> Counters:
    """Raw counters over some runs."""
    sums = {name: int(values[mask].sum()) for name, values in table.counters.items()}
    return Counters(
        rounds=int(table.rounds[mask].sum()),
        drafted=sums["drafted"],
        verified=sums["verified"],
        accepted=sums["accepted"],
        bonus=max(int(table.tokens.distinct[mask].sum()) - sums["accepted"], 0),
        redecoded=sums["redecoded"],
    )


def acceptance_rows(case: Case) -> list[Acceptance]:
    """Rows by depth of the guess, and depth 0 for all together; empty for an arm that did not guess."""
    table = case.runs
    mask = evidence(table, "treatment", case.temperature)
    counts = counters(table, mask)
    if not counts.drafted:
        return []
    common = {**case.of_arm, "by_construction": certain(case), "independent_runs": int(mask.sum()),
              "draws": str(case.arm.parameters.get("draws", "")), "prompt_class": _class(table, mask)}  # fmt: skip
    raw: dict[str, Any] = {"rounds": counts.rounds, "drafted": counts.drafted, "verified": counts.verified,
                           "bonus": counts.bonus, "redecoded": counts.redecoded, **counts.rates()}  # fmt: skip
    # What follows from the construction is true of every text, so a guess is as good as a text.
    groups = np.zeros(len(mask), dtype=np.int64) if certain(case) else _clusters(table, mask)
    used = mask[table.draws["owner"]]
    hit = (table.draws["guess"] == table.draws["drawn"])[used]
    collision, depth = table.draws["collision"][used].astype(float), table.draws["depth"][used]
    whole = _share(table.counters["accepted"][mask], table.counters["verified"][mask], groups[mask])
    rows = [Acceptance(**common, depth=0, **raw, **whole, **_against(hit, collision))]
    owner = groups[table.draws["owner"]][used]
    for place in np.unique(depth):
        at = depth == place
        share = _share(hit[at].astype(np.int64), np.ones(int(at.sum()), dtype=np.int64), owner[at])
        rows.append(Acceptance(**common, depth=int(place), **share, **_against(hit[at], collision[at])))
    return rows


def _class(table: RunTable, mask: np.ndarray) -> str:
    """The class of the prompts where all are of one, else `all`: a claim about a class needs a cell of that class."""
    classes = {str(name) for name in table.prompt_class[mask]}
    return classes.pop() if len(classes) == 1 else "all"


def certain(case: Case) -> bool:
    """Whether the guess must equal the draw whatever the model is: copies that draw alike."""
    alike = case.temperature == 0.0 or case.arm.parameters.get("draws") == "coupled"
    return case.arm.answers == "copies" and alike


def draws_disagree(table: RunTable) -> str | None:
    """Runs whose single draws do not add up to their rounds' counters, as a sentence."""
    owner, hit = table.draws["owner"], table.draws["guess"] == table.draws["drawn"]
    if not len(owner):
        return None
    tested, accepted = (np.bincount(rows, minlength=len(table.run)) for rows in (owner, owner[hit]))
    said = table.counters["verified"], table.counters["accepted"]
    wrong = np.flatnonzero((tested > 0) & ((tested != said[0]) | (accepted != said[1])))
    if len(wrong):
        index = wrong[0]
        return (
            f"run {table.run[index]}: {tested[index]} draws with {accepted[index]} hits are stored, but its rounds "
            f"counted {said[0][index]} verified and {said[1][index]} accepted"
        )
    return None


def _clusters(table: RunTable, mask: np.ndarray) -> np.ndarray:
    """(runs,) number of the text that a run's guesses are about; with one text alone, of the run."""
    texts = table.text_code
    return texts if len(np.unique(texts[mask])) > 1 else np.arange(len(mask))


def _share(accepted: np.ndarray, tested: np.ndarray, groups: np.ndarray) -> dict[str, Any]:
    """Accepted over tested guesses, with an interval over the groups that they come in."""
    found, trials = int(accepted.sum()), int(tested.sum())
    hits, sizes = (np.bincount(groups, weights=values) for values in (accepted, tested))
    hits, sizes = hits[sizes > 0], sizes[sizes > 0]
    low, high = clustered_share(hits, sizes)
    rate = found / trials if trials else float("nan")
    return {"tested": trials, "accepted": found, "rate": rate, "ci_low": low, "ci_high": high, "clusters": len(sizes)}


def _against(hit: np.ndarray, collision: np.ndarray) -> dict[str, Any]:
    """Accepted minus the collision probability of the very distribution, paired a draw; nan at temperature 0."""
    known = np.isfinite(collision)
    mean, low, high = mean_interval(hit[known].astype(float) - collision[known])
    expected = float(collision[known].mean()) if known.any() else float("nan")
    return {"collision_mean": expected, "collision_draws": int(known.sum()), "difference": mean,
            "difference_low": low, "difference_high": high}  # fmt: skip
