"""Does a rollback restore the state? Decode, roll back, decode again, and compare with a context that never erred.

A return code proves nothing: engines have answered yes and kept the state. The probe runs before anything is timed, on
contexts of its own, and knows nothing about methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pti_loop.engine import Context, ContextSpec, EngineError, Facts, Model, Unsupported, prefill
from pti_loop.rollback import STRATEGIES, Checkpoint, Rewind

SHARE_OF_SPREAD = 1e-3
"""Largest move of a logit that rounding may explain when no noise was seen, as a share of the logits' spread."""
NOISE = 4.0
"""What passes as the state's own rounding, in multiples of what the shape of a decode alone was seen to move."""
CLEAR = 3.0
"""A sound rollback must be so many times nearer to the truth than none at all."""
REPEATS = 5
LONGEST = 24
"""Tokens before the guesses; a longer state shows nothing more."""

Roll = Callable[[Context, int, int], Rewind | Checkpoint]


class Case(NamedTuple):
    """Tokens before the guesses, wrong guesses, and tokens behind the rollback."""

    head: list[int]
    window: list[int]
    tail: list[int]


@dataclass(frozen=True)
class Finding:
    """What the probe saw of one strategy. Distances are of logits, times nanoseconds."""

    strategy: str
    passed: bool
    distance: float
    """Largest distance to the context that never erred, over all rollbacks that were tried."""
    allowed: float
    forgotten: float
    """The same distance when nothing is rolled back: what a broken rollback looks like."""
    cost_ns: float
    """A mark, a rollback, and what both add to the next decodes, over a round that needs neither."""
    lazy_ns: float
    """The part of it that the engine pays inside the next decode."""
    reason: str = ""

    def as_dict(self) -> Facts:
        """Plain values, for a record."""
        return asdict(self)


def probe(model: Model, spec: ContextSpec, tokens: Sequence[int], guesses: int, strategies: Sequence[str],
          make: dict[str, Roll] | None = None) -> list[Finding]:
    """Try each strategy behind the first tokens of a text, with windows of `guesses` wrong tokens.

    `spec` is the context that the loop will have; `make` replaces strategies, for a test of the probe itself. One that
    passes and needs nothing beside the sequence ends the search: no other can cost less.
    """
    tail = list(tokens[-3:])
    case = Case([tokens[0], *tokens[: min(len(tokens) - 3, LONGEST)]], _wrong(tail, guesses, model.n_vocab), tail)
    findings = []
    truth, noise = _truth(model, spec, case)
    for name in strategies:
        roll = (make or {}).get(name) or STRATEGIES[name].make
        try:
            findings.append(_try(model, spec, name, roll, case, truth, noise))
        except (EngineError, Unsupported) as error:
            findings.append(Finding(name, False, np.inf, 0.0, 0.0, np.inf, 0.0, str(error)))
        if findings[-1].passed and STRATEGIES[name].free:
            break
    return findings


def cheapest(findings: Sequence[Finding]) -> Finding:
    """The strategy that passed and costs least. Raises `Unsupported` naming what each one did when none passed."""
    passed = [finding for finding in findings if finding.passed]
    if not passed:
        told = "; ".join(f"{finding.strategy}: {finding.reason}" for finding in findings)
        raise Unsupported(f"no rollback restores this model's state, so wrong guesses would change the text ({told})")
    return min(passed, key=lambda finding: finding.cost_ns)


def _wrong(tail: Sequence[int], guesses: int, n_vocab: int) -> list[int]:
    """Tokens that are not what follows, no two alike in a row."""
    return [(token + 7 + 3 * place) % n_vocab for place, token in enumerate((list(tail) * guesses)[:guesses])]


def _kept(guesses: int) -> list[int]:
    """Guesses that are kept before the rest is forgotten: none, some, all but one."""
    return sorted({0, guesses // 2, guesses - 1})


def _truth(model: Model, spec: ContextSpec, case: Case) -> tuple[dict[int, NDArray[np.float32]], float]:
    """Logits behind the tail for each number of kept guesses, and what the shape of the decode moves."""
    head, window, tail = case
    ctx = model.context(replace(spec, n_seq_max=1, snapshots=0, sampler="host"))
    try:
        rows, moved = {}, 0.0
        for kept in _kept(len(window)):
            text = head + window[:kept] + tail
            ctx.clear()
            prefill(ctx, text, 0)
            at_once = ctx.logits()[0].copy()
            ctx.clear()
            prefill(ctx, head, 0)
            rows[kept] = _one_by_one(ctx, 0, len(head), window[:kept] + tail)
            moved = max(moved, _distance(at_once, rows[kept]))
        return rows, moved
    finally:
        ctx.close()


def _try(model: Model, spec: ContextSpec, name: str, roll: Roll, case: Case,
         truth: dict[int, NDArray[np.float32]], noise: float) -> Finding:  # fmt: skip
    strategy, guesses = STRATEGIES[name], len(case.window)
    own = replace(spec, n_seq_max=1 + strategy.spares, snapshots=guesses if strategy.snapshots else 0,
                  n_outputs=max(spec.n_outputs, guesses + 1), sampler="host")  # fmt: skip
    ctx = model.context(own)
    try:
        ctx.clear()
        wrong = _distance(_after(ctx, None, case, 0), truth[0])
        far = 0.0
        for _ in range(2):  # a strategy may work once
            for kept, row in truth.items():
                ctx.clear()
                far = max(far, _distance(_after(ctx, roll(ctx, 0, strategy.spares), case, kept), row))
        spread = max(float(np.ptp(row[np.isfinite(row)])) for row in truth.values())
        least = SHARE_OF_SPREAD * spread
        allowed = min(max(NOISE * noise, least), wrong / CLEAR)
        reason = ""
        if allowed < least:
            reason = f"a state that was never rolled back differs by {wrong:.3g} only, so nothing can be told"
        elif far > allowed:
            reason = f"after a rollback the logits are {far:.3g} away, {allowed:.3g} is rounding"
        cost, lazy = (np.inf, 0.0) if reason else _cost(ctx, roll(ctx, 0, strategy.spares), case)
        return Finding(name, not reason, far, allowed, wrong, cost, lazy, reason)
    finally:
        ctx.close()


def _after(ctx: Context, rollback: Rewind | Checkpoint | None, case: Case, kept: int) -> NDArray[np.float32]:
    """Logits after head, a window of which `kept` guesses stay, and tail. Without a rollback the window stays whole.

    As in a loop, the last token of the head is decoded together with the guesses.
    """
    head, window, tail = case
    held = _window(ctx, rollback, case)
    if rollback:
        held = rollback.forget(len(head) + kept)
        again = (head + window[:kept])[held:]
        if again:
            ctx.decode(again, range(held, held + len(again)), [0] * len(again), [])
        held = len(head) + kept
    return _one_by_one(ctx, 0, held, tail)


def _window(ctx: Context, rollback: Rewind | Checkpoint | None, case: Case) -> int:
    """Decode head and window in an empty context; returns how many tokens are held."""
    head, window, _ = case
    prefill(ctx, head[:-1], 0)
    held = len(head) - 1
    if rollback:
        rollback.mark(held)
    rows = [head[-1], *window]
    ctx.decode(rows, range(held, held + len(rows)), [0] * len(rows), None)
    return held + len(rows)


def _one_by_one(ctx: Context, sequence: int, start: int, tokens: Sequence[int]) -> NDArray[np.float32]:
    for place, token in enumerate(tokens):
        ctx.decode([token], [start + place], [sequence], None)
    row: NDArray[np.float32] = ctx.logits()[0].copy()
    return row


def _distance(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    finite = np.isfinite(left) & np.isfinite(right)
    return float(np.abs(left[finite].astype(np.float64) - right[finite]).max())


def _cost(ctx: Context, rollback: Rewind | Checkpoint, case: Case) -> tuple[float, float]:
    """(cost of a mark with its rollback, part of one copy that a decode pays), medians over plain rounds.

    A plain round needs neither mark nor rollback; both kinds start from a cleared context and decode the same tokens at
    the same positions but for the last one.
    """
    marked: list[tuple[int, int, int]] = []
    plain: list[tuple[int, int, int]] = []
    for _ in range(REPEATS):
        for times, active in ((plain, False), (marked, True)):
            ctx.clear()
            prefill(ctx, case.head[:-1], 0)
            times.append(_round(ctx, rollback if active else None, case))
    outside = median(row[0] for row in marked)
    during, behind = (median(row[i] for row in marked) - median(row[i] for row in plain) for i in (1, 2))
    lazy = max(during, 0.0)
    return outside + lazy + max(behind, 0.0), lazy / rollback.copies if rollback.copies else 0.0


def _round(ctx: Context, rollback: Rewind | Checkpoint | None, case: Case) -> tuple[int, int, int]:
    """Times of one round: (mark and rollback, decode of the window, decode of one token behind it)."""
    clock, head = ctx.clock, case.head
    rows, held = [head[-1], *case.window], len(head) - 1
    began = clock()
    if rollback:
        rollback.mark(held)
    marked = clock()
    ctx.decode(rows, range(held, held + len(rows)), [0] * len(rows), None)
    decoded = clock()
    held = rollback.forget(len(head)) if rollback else held + len(rows)
    rolled = clock()
    ctx.decode([case.tail[0]], [held], [0], None)
    return marked - began + rolled - decoded, decoded - marked, clock() - rolled
