"""What a drafter does that is kept from answer to answer, and whether it leaves the text where widths do not differ.

It knows no method by name; a record tells whether its drafter could be kept, and which decodes had company.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.findings import OK, VOID, WARNING, Control, rerun
from bench.judge.invariants.places import KEPT
from bench.judge.tables.contrast import KeptDrafter

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

WHEN = ("cold", "again", "after a foreign prompt", "again after it")
"""By the order of a kept drafter's runs."""
APART = 1.1
"""Two numbers of tokens a round that are further apart than this ratio are told as a memory."""


def kept_rows(case: Case) -> list[KeptDrafter]:
    """One row a run with a drafter that is kept; none where nothing is."""
    table = case.runs
    found = sorted(np.flatnonzero(table.of(KEPT)).tolist(), key=lambda at: int(table.order[at]))
    if len(found) != len(WHEN):
        return []
    rounds = [float(table.tokens.distinct[at] / table.rounds[at]) for at in found]
    counts = {name: table.counters[name] for name in ("drafted", "accepted")}
    return [
        KeptDrafter(
            **case.of_arm, prompt=str(table.prompt[at]), when=when, tokens_per_round=own, over_cold=own / rounds[0],
            tok_s=float(table.tokens.distinct[at] / table.window[at]), drafted=int(counts["drafted"][at]),
            accepted=int(counts["accepted"][at]),
        )
        for at, when, own in zip(found, WHEN, rounds, strict=True)
    ]  # fmt: skip


def kept(case: Case) -> list[Control]:
    """What keeping does, told beside a speed that is that of a drafter for each answer."""
    runs = np.flatnonzero(case.runs.of(KEPT))
    if len(runs) != len(WHEN):
        return []
    order = np.argsort(case.runs.order[runs])
    rounds = (case.runs.tokens.distinct[runs] / case.runs.rounds[runs])[order]
    told = ", ".join(f"{value:.2f} {when}" for value, when in zip(rounds.tolist(), WHEN, strict=True))
    over = rounds / rounds[0]
    which = [word for word, is_so in (("a replay is faster than an answer", over.max() > APART),
                                      ("what came before takes guesses away", over.min() < 1 / APART)) if is_so]
    sentence = f"a drafter that is kept says so many tokens a round: {told}"
    means = f"{' and '.join(which)}, so the speed here is that of a drafter for each answer" if which else "no memory"
    return [Control("kept", OK, f"{sentence}: {means}", float(over[int(np.argmax(np.abs(np.log(over))))]))]


def padded(case: Case) -> list[Control]:
    """The method against plain decoding where neither decodes a row alone: the same tokens, if widths round alike."""
    rows = case.cell.facts.get("padded") or []
    if not rows:
        return []
    left = [row for row in rows if row.get("first_difference") is not None]
    share = 1 - len(left) / len(rows)
    if not left:
        return [Control("padded", OK, f"{len(rows)} of {len(rows)} answers are those of plain decoding padded to width "
                        f"2, decodes up to {max(row['widest'] for row in rows)} wide", share)]  # fmt: skip
    names = ", ".join(f"'{row['prompt']}' at {row['first_difference']}" for row in left[:3])
    sentence = f"{len(left)} of {len(rows)} answers leave plain decoding padded to width 2 ({names})"
    exact = [row for row in left if row.get("noise") == 0]
    if exact:
        return [Control("padded", VOID, f"{sentence}, and the width moves no logit there; mend the method, then "
                        f"{rerun(case.cell)}", share)]  # fmt: skip
    return [Control("padded", WARNING, f"{sentence}, where the width itself moves logits by "
                    f"{max(row['noise'] for row in left):.3g}", share)]  # fmt: skip
