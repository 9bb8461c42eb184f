"""ik_llama.cpp's llama-spec-bench: one row a task, run and stage of the drafting chain. It judges nothing.

Columns are those of examples/spec-bench/spec-bench.cpp; the rows of several stages share one answer.
"""

from __future__ import annotations

import re
from dataclasses import replace

from bench.audit.blocks import Block, Found, TableBlock, TableRow
from bench.audit.numbers import NAN, number, whole
from bench.audit.trials import Trial

_OF = re.compile(r"(\d{1,15}) */ *(\d{1,15})")


def sniff(block: Block) -> bool:
    return isinstance(block, TableBlock) and block.has("task", "stage", "tokens", "accepted")


def read(block: Block) -> Found:
    assert isinstance(block, TableBlock)
    found = Found("llama-spec-bench")
    by_answer: dict[tuple[str, str], list[Trial]] = {}
    for row in block.rows:
        trial = _trial(row)
        if trial is None:
            found.notes.append(f"line {row.line}: a run that failed has no rate")
            continue
        key = (trial.prompt, row.cells.get("run", ""))
        same = [one for one in by_answer.get(key, []) if (one.seconds, one.distinct) == (trial.seconds, trial.distinct)]
        if same:  # another stage of the same answer
            trials = by_answer[key]
            trials[trials.index(same[0])] = _joined(same[0], trial)
        else:
            by_answer.setdefault(key, []).append(trial)
    found.trials = sorted((one for trials in by_answer.values() for one in trials), key=lambda one: one.line)
    return found


def _trial(row: TableRow) -> Trial | None:
    cells = row.cells
    tokens, seconds, rate = whole(cells["tokens"]), number(cells.get("time(s)", "")), number(cells.get("tok/s", ""))
    if tokens is None or (seconds is None and rate is None):
        return None
    guesses = _OF.search(cells["accepted"])
    accepted, drafted = (int(guesses[1]), int(guesses[2])) if guesses else (0, 0)
    printed = {
        "tok_s": rate,
        "acceptance": _share(cells.get("rate", "")),
        "mean_length": number(cells.get("a.len", "")),
    }
    shares = [_share(part) for part in cells.get("pos accept", "").split()][:64]
    return Trial(
        place=f"line {row.line}",
        line=row.line,
        label=f"{cells['stage']} {cells['task']}",
        arm=cells["stage"],
        prompt=cells["task"],
        category=cells["task"],
        counted=tokens,
        distinct=tokens,
        seconds=seconds or NAN,
        rounds=(whole(cells.get("rounds", "")) or None) if drafted else None,
        drafted=drafted or None,
        accepted=accepted if drafted else None,
        printed={key: value for key, value in printed.items() if value is not None and (drafted or key == "tok_s")},
        positions=tuple(share for share in shares if share is not None) if drafted else (),
    )


def _share(text: str) -> float | None:
    value = number(text)
    return value / 100 if value is not None and "%" in text else value


def _joined(first: Trial, second: Trial) -> Trial:
    arm = f"{first.arm}+{second.arm}"
    return replace(
        first,
        arm=arm,
        label=f"{arm} {first.prompt}",
        drafted=(first.drafted or 0) + (second.drafted or 0),
        accepted=(first.accepted or 0) + (second.accepted or 0),
        rounds=None,
        positions=(),
        printed={key: value for key, value in first.printed.items() if key == "tok_s"},
    )
