"""What a sweep found of builds and settings on trial, one sentence a cell. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.tables.arms import is_void, of_all_prompts
from bench.report.tables.values import Row, fixed, line


def trial_lines(rows: Sequence[Row]) -> list[str]:
    """A sentence for each trial: the one difference, the ratio with its interval, and the grade of the output."""
    return [_sentence(row) for row in of_all_prompts(rows)]


def memory_lines(rows: Sequence[Row]) -> list[str]:
    """What servers do that meet a prompt again, where that is another thing than an answer: rows of controls."""
    return [line(row["sentence"]) for row in rows if row["control"] == "memory" and row["severity"] != "ok"]


def _sentence(row: Row) -> str:
    depth = f" behind {row['depth']} tokens" if row["depth"] else ""
    what = f"{line(row['short'])} against {line(row['was'])}{depth}"
    if is_void(row):
        return f"{what}: void, {line(row['void_reason'])}"
    by = " by its text alone" if row["compared_by"] == "text" else ""
    ends = " to ".join(fixed(row[end], 3) for end in ("ci_low", "ci_high"))
    return (f"{what}: {fixed(row['speedup'], 3)} times the baseline's speed ({ends}), {line(row['direction'])}; output "
            f"{line(row['lossless'])}{by}; A/A {line(row['again'])}")  # fmt: skip
