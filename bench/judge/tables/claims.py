"""The table of claims: the verdict on each, and the words that a verdict can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.judge.columns import RATIO, Row, column, table

MEANINGS = {
    "refuted": "what was measured, the arithmetic or the device's data sheet excludes what was claimed",
    "misstated": "the claim is right but for the last digits of its figure",
    "reproduced": "what was measured, the arithmetic or the device's data sheet agrees with the claim",
    "inconclusive": "the interval spans the claim's edge: more blocks or prompts would decide",
    "not_comparable": "it belongs to conditions that differ here, or that it does not name; the reason lists them",
    "not_run": "no stored cell measures it; the reason names what would",
    "left_out": "this report was asked for some cells only, and what measures it is not among them",
}
"""Every verdict in words, in the order in which they are printed."""
VERDICTS = tuple(MEANINGS)


@table
class Verdict(Row):
    """The verdict on one claim from the rows of one machine and build, from arithmetic or from a source."""

    claim_id: str = column("id of the claim in its sheet", words="claim")
    verdict: str = column("refuted, misstated, reproduced, inconclusive, not_comparable, not_run or left_out")
    scope: str = column("what the claim is about")
    published: float | str | bool = column("value that was published")
    measured: float | None = column("value found here", interval="ci", words="measured [95 % interval]")
    ci_low: float | None = column("lower end of the interval of `measured`")
    ci_high: float | None = column("upper end of the interval of `measured`")
    unit: str = column("unit of both")
    evidence: str = column("measured, derived, projected or stated, by whoever published it")
    reason: str = column("why the verdict is what it is")
    machine: str = column("machine of the rows; `any` where it rests on none")
    build: str = column("build of their engine; `any` where it rests on none")
    says: str = column("the claim in words", default="")
    metric: str = column("what is claimed")
    judged_by: str = column("records, arithmetic, fact or projection", default="records")
    author_status: str | Mapping[str, Any] = column("what its author made of it later", words="its author since",
                                                    default="")  # fmt: skip
    place: str = column("where it stands", default="")
    source: str | Mapping[str, Any] = column("document, date, commit and address", default="")
    published_under: str = column("conditions that the claim names: machine, model and others", default="")
    rule: str = column("what the verdict rests on, and how it is tested", default="")
    counted: float | None = column("rate of every emit call", "tok/s", default=None)
    distinct: float | None = column("rate of distinct tokens", "tok/s", default=None)
    headline: int | None = column("its place among the claims that its sheet tells a reader first", default=None)
    why: str = column("the reason in one sentence with its two numbers", default="")
    would_change: str = column("what would bring another verdict", words="what would change it", default="")
    published_ratio: float | None = column("what was published, where it is a ratio", RATIO, default=None)
    ratio: float | None = column("what was found, where it is a ratio: of a rate, over plain decoding", RATIO,
                                 interval="ratio", default=None)  # fmt: skip
    ratio_low: float | None = column("lower end of the interval of `ratio`", RATIO, default=None)
    ratio_high: float | None = column("upper end of the interval of `ratio`", RATIO, default=None)
    cells: Sequence[str] = column("ids of the cells that the verdict rests on")
