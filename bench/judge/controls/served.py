"""What makes a contrast of servers comparable: one model, no cache that was not asked for, two clocks that agree.

What a server remembers of a prompt is told beside the ratio, and voids it where the ratio rests on servers that are
kept. It looks at no option of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.controls.arms import noise
from bench.judge.controls.conditions import balanced, sound_ledger, steady_clock
from bench.judge.controls.trial import waiting
from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.measure.lossless import rates
from bench.judge.measure.served import BLOCKS, BY_TEXT, Seen, compared_by, grade_of, seen

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

APART = 1.1
"""Two rates that are further apart than this ratio, beside as much in the guesses, are told as a memory."""
CLOCKS = 0.05
"""Share by which a client's rate and the server's own may differ."""
ALIKE = ("n_vocab", "n_params")


def served_conditions(case: Case) -> list[Control]:
    """All checks of this module, and those of any contrast's conditions that hold here too."""
    cell, table = case.cell, case.runs
    by_text = compared_by(case) == BY_TEXT
    found = [same_model(case), cache(case), balanced(cell, table), steady_clock(cell, table), grades(case),
             two_clocks(case), memory(case), *sound_ledger(cell, table)]  # fmt: skip
    found += [] if by_text else [noise(cell)]
    return [*found, waiting(case)] if cell.facts.get("sides") == "kept" else found


def same_model(case: Case) -> Control:
    """Both servers have a model of one size and vocabulary, where they tell it."""
    engines = case.cell.facts.get("engine") or {}
    base, mine = (engines.get(arm) or {} for arm in ("baseline", "treatment"))
    told = [name for name in ALIKE if base.get(name) and mine.get(name)]
    differing = [f"{name} {base[name]} against {mine[name]}" for name in told if base[name] != mine[name]]
    if differing:
        return Control("engine", VOID, f"the servers have other models: {', '.join(differing)}; {rerun(case.cell)}")
    words = "both servers tell one size of model" if told else "the servers do not tell what model they have"
    return Control("engine", OK if told else WARNING, words, float(len(told)))


def cache(case: Case) -> Control:
    """Prompts were evaluated in full, unless the cache is a condition of the cell."""
    table = case.runs
    asked = bool((case.cell.config.get("engine") or {}).get("cache_prompt"))
    told = table.n_prompt_evaluated >= 0
    cached = np.where(told, table.n_prompt - table.n_prompt_evaluated, 0)
    some = int((cached > 0).sum())
    if asked:
        return Control("prefill", OK, f"the prompt cache is a condition of this cell, and {some} of {len(told)} runs "
                       "used it", float(some))  # fmt: skip
    if some:
        at = int(np.flatnonzero(cached > 0)[0])
        return Control("prefill", VOID, f"run {table.run[at]} ({table.arm[at]}) evaluated "
                       f"{table.n_prompt_evaluated[at]} of {table.n_prompt[at]} prompt tokens, {some} runs in all, and "
                       f"no cache was asked for; ask for it with engine.cache_prompt=true, or {rerun(case.cell)}",
                       float(some))  # fmt: skip
    if not told.all():
        return Control("prefill", WARNING, "a server does not tell whether it evaluated the prompts", 0.0)
    return Control("prefill", OK, "every prompt was evaluated in full", 0.0)


def grades(case: Case) -> Control:
    """The answers were compared, by their ids or by their text."""
    grade = grade_of(case, "treatment")
    if grade is None:
        return Control("lossless", VOID, f"no answer was compared, so there is no speed; {rerun(case.cell)}")
    by = compared_by(case)
    numbers = f"by {by} {grade.identical} identical, {grade.near_tie} near ties, {grade.divergent} divergent"
    numbers += f" of {grade.n} answers"
    if by == BY_TEXT:
        numbers += "; a server that gives no ids shows no more"
    elif grade.identical < grade.n:
        rows = [row for row in case.cell.facts["lossless"] if row.get("arm") == "treatment"]
        numbers += f" ({rates(case.cell.facts, rows).words})"
    bad = f" ({', '.join(grade.divergent_names[:5])})" if grade.divergent else ""
    return Control("lossless", WARNING if grade.divergent or by == BY_TEXT else OK, numbers + bad,
                   grade.identical / grade.n)  # fmt: skip


def two_clocks(case: Case) -> Control:
    """A client's rate against the server's own: what lies between is transport, or one of the two counts otherwise."""
    rows = [row for row in case.once(seen) if row.when == BLOCKS and np.isfinite(row.own_tok_s)]
    if not rows:
        return Control("two_clocks", WARNING, "the servers tell no times of their own, so only a client's clock counts")
    worst = max(rows, key=lambda row: abs(np.log(row.tok_s / row.own_tok_s)))
    ratio = worst.tok_s / worst.own_tok_s
    told = f"{worst.arm}: {worst.tok_s:.1f} tok/s by the client's clock, {worst.own_tok_s:.1f} by the server's own"
    severity = OK if abs(np.log(ratio)) <= CLOCKS else WARNING
    return Control("two_clocks", severity, told, ratio)


def memory(case: Case) -> Control:
    """What a server does that meets a prompt again, or a foreign one before it."""
    rows = [row for row in case.once(seen) if row.arm == "kept"]
    kept = case.cell.facts.get("sides") != "fresh"
    rows = rows or [row for row in case.once(seen) if row.arm == "carry"]
    if not rows:
        return Control("memory", WARNING, "no run tells what a server does that meets a prompt again")
    told = ", ".join(f"{row.tok_s:.1f} tok/s {row.when}{_guesses(row)}" for row in rows)
    remembered = [row for row in rows[1:] if _remembered(rows[0], row)]
    over = max(remembered or rows, key=lambda row: abs(np.log(row.over_first)))
    if not remembered:
        return Control("memory", OK, f"one prompt on a server that is kept: {told}: no memory", over.over_first)
    which = "a replay is faster than an answer" if over.over_first > 1 else "what came before slows an answer"
    sentence = f"one prompt on a server that is kept: {told}: {which}"
    if kept:
        return Control("memory", VOID, f"{sentence}, and the ratio rests on servers that were kept, so it is that of "
                       "replays; start servers here with engine.kept=false", over.over_first)  # fmt: skip
    return Control("memory", WARNING, f"{sentence}; the ratio is that of a fresh server for each run", over.over_first)


def _remembered(cold: Seen, row: Seen) -> bool:
    """Whether rate and guesses moved together: a rate alone may be noise, one run being one."""
    moved = (cold.drafted, cold.accepted) != (row.drafted, row.accepted)
    return moved and abs(np.log(row.over_first)) > np.log(APART)


def _guesses(row: Seen) -> str:
    return f" ({row.accepted} of {row.drafted} guesses)" if row.drafted is not None else ""
