"""The answer on one screen, as data: was the machine quiet, what of the headline claims, on what kind of evidence.

Made from the findings and the verdicts alone. It knows nothing about how it is printed: terminal, page and Markdown all
print this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.judge.findings import Findings
from bench.judge.summary.evidence import Evidence, evidence
from bench.judge.summary.headlines import Headline, headlines
from bench.judge.summary.missing import Missing, missing
from bench.judge.summary.quiet import Quiet, quiet
from bench.judge.tables.claims import Verdict

__all__ = ["Evidence", "Headline", "Missing", "Quiet", "Summary", "summarize"]


@dataclass(frozen=True, slots=True)
class Summary:
    """One screen."""

    machines: tuple[Quiet, ...]
    """Whether each was quiet, in alphabetical order."""
    headlines: tuple[Headline, ...]
    """At most ten, in the order of the sheets."""
    marked: bool
    """Whether the sheets chose them; where none is marked they are the first that records decided."""
    evidence: tuple[Evidence, ...]
    """Counts of verdicts by kind of evidence."""
    claims: int
    """Claims judged. One has a verdict for each machine and build that measured it."""
    verdicts: int
    missing: tuple[Missing, ...]
    """What is not there, or could not be read."""
    only: str = ""
    """Which cells were asked for, as `machine=h200`; empty for all."""


def summarize(findings: Findings, verdicts: Sequence[Verdict], faults: Sequence[str] = (), only: str = "") -> Summary:
    """The screen. `faults` are the sentences on entries of the sheets that nothing could be made of, `only` is which
    cells were asked for.
    """
    chosen, marked = headlines(verdicts)
    return Summary(
        machines=quiet(findings), headlines=chosen, marked=marked, evidence=evidence(verdicts),
        claims=len({row.claim_id for row in verdicts}), verdicts=len(verdicts), missing=missing(findings, faults),
        only=only,
    )  # fmt: skip
