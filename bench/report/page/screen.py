"""What the Markdown page begins with: the summary of `bench.judge.summary`, as text that acts nowhere."""

from __future__ import annotations

from typing import Any

from bench.judge.summary import Headline, Summary
from bench.judge.tables.claims import VERDICTS
from bench.plain_text import markdown
from bench.report import summary as words
from bench.report.page.section import Table, escaped


def screen(summary: Summary) -> dict[str, Any]:
    """What the template asks for."""
    return {
        "missing": [markdown(one.sentence) for one in summary.missing],
        "only": markdown(words.only(summary)) if summary.only else "",
        "quiet_title": words.QUIET_TITLE,
        "machines": [f"**{verdict}** {markdown(f'{name}: {sentence}')}"
                     for verdict, name, sentence in words.machines(summary)],
        "no_contrast": words.NO_CONTRAST,
        "claims_title": words.claims_title(summary),
        "claims": [_claim(one) for one in words.told(summary)],
        "left_out_title": markdown(words.left_out_title(summary)),
        "left_out": [markdown(f"{one.says} {one.why}") for one in words.left_out(summary)],
        "change": words.CHANGE,
        "total": words.total(summary),
        "evidence": _evidence(summary),
        "legend_title": words.LEGEND_TITLE,
        "legend": [(markdown(word), markdown(meaning)) for word, meaning in words.legend(summary)
                   if word not in VERDICTS],
    }


def _claim(one: Headline) -> dict[str, str]:
    return {"verdict": one.verdict, "says": markdown(one.says), "why": markdown(one.why),
            "basis": markdown(words.basis(one)), "change": markdown(one.would_change)}  # fmt: skip


def _evidence(summary: Summary) -> Table:
    """A line a kind of evidence, a column a verdict."""
    found = [verdict for verdict in VERDICTS if any(verdict in one.counts for one in summary.evidence)]
    rows = [[escaped(one.kind), *(str(one.counts.get(verdict, 0)) for verdict in found)] for one in summary.evidence]
    return Table("", ["rests on", *found], rows if found else [])
