"""The words of the one-screen summary that terminal and pages share. Decides nothing; the data are the judge's.

Every printer takes `bench.judge.summary.Summary`, and says a headline's verdict, its places and the counts alike.
"""

from __future__ import annotations

from bench.judge.summary import Evidence, Headline, Summary

QUIET_TITLE = "Was the machine quiet?"
CHANGE = "Would change it"
NO_CONTRAST = "No stored cell compares two arms, so nothing tells."


def claims_title(summary: Summary) -> str:
    """Which claims are told, and of how many."""
    count = len(summary.headlines)
    if count == summary.claims:
        return f"All {count} claims" if count > 1 else "The claim"
    how = "that their sheets tell first" if summary.marked else "of the records first, since no sheet marks any"
    return f"{count} of {summary.claims} claims, those {how}"


def places(one: Headline) -> str:
    """`amd-epyc-2c, h200`, or `h200; reproduced on amd-epyc-2c`; empty for a verdict that no machine gave."""
    told = [", ".join(machines) if verdict == one.verdict else f"{verdict} on {', '.join(machines)}"
            for verdict, machines in one.places]  # fmt: skip
    return "; ".join(told)


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
