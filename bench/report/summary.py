"""The words of the one-screen summary that terminal and pages share. Decides nothing; the data are the judge's.

Every printer takes `bench.judge.summary.Summary`, and says a headline's verdict, its places and the counts alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.judge.claims.left_out import LEFT_OUT
from bench.judge.summary import Evidence, Headline, Summary
from bench.judge.summary.quiet import WORDS
from bench.judge.tables.claims import MEANINGS

QUIET_TITLE = "Was the machine quiet?"
CHANGE = "Would change it"
NO_CONTRAST = "No stored cell compares two arms, so nothing tells."
LEGEND_TITLE = "Words used here"
_LEGEND = (
    ("stall", r"\bstalls?\b", "time that one of several runs of the same work lost and the others did not"),
    ("A/A", r"A/A", "plain decoding measured against itself; where they differ, it is by chance"),
    ("plain decoding", r"plain decoding", "one token a step, alone in its context: what each ratio (x) divides by"),
    ("(a to b)", r"\d[^ ]* to -?\d", "the 95 % interval of what was measured"),
    ("counted", r"\bcounted\b", "every time that a token is said, also again"),
    ("distinct", r"\bdistinct\b", "each token of an answer once: only that is a speed"),
    ("in sum", r"\bin sum\b", "tokens of all answers together; each reader waits for one of them"),
    ("a round", r"\bround\b", "one turn of the loop: guess, decode, accept"),
    ("collision probability", r"collision probability", "that two draws of the model are the same token"),
)
"""Words of the sentences, where they are used, and what they mean: none of them is a reader's own."""
_PLAIN_VERDICTS = ("refuted", "reproduced")
MOST_MACHINES = 4
"""Named behind a claim; of more, the first ones are."""
MOST_LINES = 6
"""Machines with a line of their own on whether they were quiet."""


def only(summary: Summary) -> str:
    """Which cells a report of some of them is about."""
    return f"Only of the cells with {summary.only}."


def told(summary: Summary) -> tuple[Headline, ...]:
    """The claims that are told in full."""
    return tuple(one for one in summary.headlines if one.verdict != LEFT_OUT)


def left_out(summary: Summary) -> tuple[Headline, ...]:
    """The claims that only other cells can judge."""
    return tuple(one for one in summary.headlines if one.verdict == LEFT_OUT)


def left_out_title(summary: Summary) -> str:
    """What stands above those."""
    return f"Left out by {summary.only}, so neither judged here nor not run"


def legend(summary: Summary) -> list[tuple[str, str]]:
    """The words on this screen that a reader may not know, and what they mean, in the order of the screen."""
    texts = [one.sentence for one in summary.machines]
    texts += [text for one in told(summary) for text in (one.says, one.why, one.would_change)]
    screen = "\n".join(texts)
    found = [(word, meaning) for word, pattern, meaning in _LEGEND if re.search(pattern, screen)]
    used = {word for one in summary.evidence for word in one.counts}
    return found + [(word, meaning) for word, meaning in MEANINGS.items() if word in used - {*_PLAIN_VERDICTS}]


def claims_title(summary: Summary) -> str:
    """Which claims are told, and of how many."""
    count = len(told(summary))
    if count == summary.claims:
        return f"All {count} claims" if count > 1 else "The claim"
    how = "that their sheets tell first" if summary.marked else "of the records first, since no sheet marks any"
    return f"{count} of {summary.claims} claims, those {how}"


def places(one: Headline) -> str:
    """`amd-epyc-2c, h200`, or `h200; reproduced on amd-epyc-2c`; empty for a verdict that no machine gave."""
    told = [few(machines) if verdict == one.verdict else f"{verdict} on {few(machines)}"
            for verdict, machines in one.places]  # fmt: skip
    return "; ".join(told)


def few(names: Sequence[str]) -> str:
    """All of a few; of more, `13 machines, amd-epyc-2c, h200 and mi50 first`."""
    if len(names) <= MOST_MACHINES:
        return ", ".join(names)
    *first, last = names[: MOST_MACHINES - 1]
    return f"{len(names)} machines, {', '.join(first)} and {last} first"


def machines(summary: Summary) -> list[tuple[str, str, str]]:
    """Whether each machine was quiet, its name, and why; of very many, a line a verdict with the most disturbed one."""
    if len(summary.machines) <= MOST_LINES:
        return [(one.verdict, one.machine, one.sentence) for one in summary.machines]
    found = []
    for verdict in WORDS:
        if those := [one for one in summary.machines if one.verdict == verdict]:
            worst = max(those, key=lambda one: one.stalled)
            told = f"the one that stalls took most of, {worst.machine}: " if those[1:] else ""
            found.append((verdict, few([one.machine for one in those]), told + worst.sentence))
    return found


def basis(one: Headline) -> str:
    """What the verdict rests on: the machines, else the kind of evidence."""
    return places(one) or one.kind


def evidence(one: Evidence) -> str:
    """`arithmetic 112: 25 refuted, 6 misstated, 81 reproduced`."""
    return f"{one.kind} {one.total}: " + ", ".join(f"{count} {verdict}" for verdict, count in one.counts.items())


def total(summary: Summary) -> str:
    """How many verdicts there are, on how many claims."""
    if not summary.verdicts:
        return "No claim was judged."
    several = ", one for each machine and build that measured it" if summary.verdicts > summary.claims else ""
    return f"{summary.verdicts} verdicts on {summary.claims} claims{several}"
