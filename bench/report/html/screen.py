"""The one-screen summary as the page's template takes it: sentences, and where a reader goes from each.

Decides nothing; the data are the judge's, the words those that all outputs share.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bench.judge.summary import Headline, Summary
from bench.plain_text import plain_text
from bench.report import summary as words
from bench.report.tables.values import cells_of


def screen(summary: Summary) -> dict[str, Any]:
    """Texts without anything that acts, and links inside the page."""
    return {
        "missing": [plain_text(one.sentence) for one in summary.missing],
        "only": plain_text(words.only(summary)) if summary.only else "", "legend_title": words.LEGEND_TITLE,
        "legend": words.legend(summary), "left_out_title": plain_text(words.left_out_title(summary)),
        "quiet_title": words.QUIET_TITLE, "change": words.CHANGE, "no_contrast": words.NO_CONTRAST,
        "machines": [{"verdict": verdict, "machine": plain_text(name), "sentence": plain_text(sentence)}
                     for verdict, name, sentence in words.machines(summary)],
        "claims_title": words.claims_title(summary), "headlines": [_headline(one) for one in words.told(summary)],
        "left_out": [_headline(one) for one in words.left_out(summary)],
        "total": words.total(summary),
        "evidence": [{"kind": one.kind, "total": one.total, "counts": list(one.counts.items())}
                     for one in summary.evidence if one.total],
    }  # fmt: skip


def _headline(one: Headline) -> dict[str, Any]:
    lead = one.lead
    parts = (str(lead["claim_id"]), str(lead["machine"]), str(lead["build"]))
    cells = [{"id": plain_text(cell), "link": f"#cell/{quote(parts[1], safe='')}/{quote(cell, safe='')}"}
             for cell in cells_of(lead)]  # fmt: skip
    return {
        "verdict": one.verdict, "says": plain_text(one.says or one.claim_id), "why": plain_text(one.why),
        "would_change": plain_text(one.would_change), "basis": plain_text(words.basis(one)), "cells": cells,
        "link": "#claim/" + "/".join(quote(part, safe="") for part in parts),
    }  # fmt: skip
