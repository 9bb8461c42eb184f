"""What the shipped sheets come to on the rows of a report, as they are and changed: `python -m
tests.judge.claims.said` writes it down, a line a change and test in said.csv, for whoever changes it to read as a diff.

A line has how often each verdict comes out. Every figure and reason, numbers to six digits, is in a digest.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from bench.judge.claims.claim import Claim
from bench.judge.claims.columns import COLUMNS
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.columns import Row
from bench.judge.findings import Findings
from bench.judge.tables import columns_of, interval_of, unit_of
from tests.judge.claims.claim_findings import FACTS, ROOT

ROWS = ROOT / "tests" / "data" / "report_rows.json.gz"
KEPT = ROOT / "tests" / "judge" / "claims" / "said.csv"
FIELDS = ("change", "test", "verdicts", "digest")
TOLD = ("claim_id", "machine", "build", "verdict", "measured", "ci_low", "ci_high", "counted", "distinct", "cells",
        "reason")  # fmt: skip
"""Columns of a verdict that are in the digest."""
SHEETS = ("pti", "qwen38_mtp", "llamacpp_ngram")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
MI50 = {"machine": "mi50", "model": "qwen3.6-27b", "quantization": "ud-q6_k_xl", "n_predict": 80,
        "baseline_tok_s": 19.4, "synthetic": False}  # fmt: skip

Line = dict[str, Any]
Change = Callable[[str, Line], Line]


@cache
def claims() -> list[Claim]:
    """All that are shipped."""
    return [claim for name in SHEETS for claim in load_sheet(ROOT / "configs" / "claims" / f"{name}.yaml")]


@cache
def rows() -> dict[str, list[Line]]:
    """Rows of a report by table, with what its table of cells says of their cell: a copy, whatever is measured next."""
    found: dict[str, list[Line]] = json.loads(gzip.decompress(ROWS.read_bytes()))
    return found


def figures(table: str) -> Iterator[tuple[str, str, str]]:
    """Columns of a table that a claim may rest on, each with those of its interval, or empty words."""
    for name in COLUMNS[table]:
        if name in columns_of(table):
            yield (name, *(interval_of(table, name) or ("", "")))


def _scaled(by: float, half: float) -> Change:
    """Every figure multiplied, and its interval as a share of it to either side."""

    def change(table: str, line: Line) -> Line:
        made = dict(line)
        for name, low, high in figures(table):
            if isinstance(value := made.get(name), float):
                value = min(value * by, 1.0) if unit_of(table, name) == "share" else value * by
                made |= {name: value} | ({low: value * (1 - half), high: value * (1 + half)} if low else {})
        return made

    return change


def _with(**more: Any) -> Change:
    return lambda table, line: line | more


CHANGES: dict[str, tuple[Change, ...]] = {
    "as it is": (),
    "an MI50": (_with(**MI50),),
    "an MI50, exact": (_with(**MI50, speaks_of="prompts"), _scaled(1, 0.001)),
    "an MI50, half": (_with(**MI50, speaks_of="prompts"), _scaled(0.5, 0.01)),
    "an MI50, twice": (_with(**MI50, speaks_of="prompts"), _scaled(2, 0.01)),
    "an MI50, a little less": (_with(**MI50, speaks_of="prompts"), _scaled(0.94, 0.02)),
    "an MI50, wide": (_with(**MI50, speaks_of="prompts"), _scaled(1, 0.6)),
    "an MI50, few": (_with(**MI50, freedom=1, noise_freedom=1, passes=2, clusters=2, blocks=2), _scaled(1, 0.01)),
    "void": (_with(void=True, void_reason="a control failed"),),
    "divergent": (_with(**MI50, lossless="divergent"),),
    "identical": (_with(lossless="identical", identical_share=1.0),),
    "another build": (_with(build="other", machine="laptop"), _scaled(1.3, 0.05)),
}


@cache
def verdicts(change: str) -> dict[str, list[Row]]:
    """Verdicts by metric, kind of rule and test."""
    tables: dict[str, list[Line]] = {}
    for name, lines in rows().items():
        for step in CHANGES[change]:
            lines = [step(name, line) for line in lines]
        tables[name] = lines
    found: dict[str, list[Row]] = defaultdict(list)
    by_id = {claim.id: claim for claim in claims()}
    for row in judge_claims(claims(), Findings(**tables), FACTS):  # type: ignore[arg-type]
        claim = by_id[row["claim_id"]]
        found[" ".join(filter(None, (claim.metric, claim.rule.kind, claim.rule.test)))].append(row)
    return found


def said(change: str) -> Iterator[dict[str, str]]:
    """Lines of one change, in the order of their tests."""
    for test, found in sorted(verdicts(change).items()):
        counts = Counter(str(row["verdict"]) for row in found)
        told = repr([[row[name] for name in TOLD] for row in found])
        digest = hashlib.sha256(NUMBER.sub(lambda one: f"{float(one[0]):.6g}", told).encode()).hexdigest()[:12]
        words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        yield {"change": change, "test": test, "verdicts": words, "digest": digest}


def main() -> int:
    """Write all of them down."""
    with KEPT.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for change in CHANGES:
            writer.writerows(said(change))
    return 0


if __name__ == "__main__":
    sys.exit(main())
