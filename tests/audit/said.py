"""What the audit says of every text of a tool, as it is, beside options, and damaged: `python -m tests.audit.said`
writes down what it says at present, a line a case in said.csv, for whoever changes it to read as a diff.

A line has the answer and the flags, of a kind of damage those of all its texts. Everything else that is printed, and
the JSON to six digits, is in a digest.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.audit.audit import judge
from bench.audit.options import ANY_TEMPERATURE, AuditOptions
from bench.audit.record import record_of
from bench.audit.show import format_audit, to_json
from bench.audit.text import source_of
from bench.audit.trials import Record
from bench.errors import UserError

DATA = Path(__file__).resolve().parents[1] / "data" / "audit"
KEPT = Path(__file__).with_name("said.csv")
COLUMNS = ("text", "case", "flags", "digest", "answers")
NAMES = sorted(path.name for path in DATA.iterdir())
NUMBER = re.compile(rb"\d+(?:\.\d+)?")
TURNS = 10
"""Texts of one kind of damage."""

Case = tuple[str, Sequence[bytes], dict[str, Any]]
"""A word, one text or several, and the options that they are read with."""


def cases(name: str) -> Iterator[Case]:
    """Those of a text."""
    raw = (DATA / name).read_bytes()
    yield "as it is", [raw], {}
    rates = [row["tok_s"] for row in judge(record_of(source_of(name, raw)), AuditOptions(claim=1.0)).readings] or [20.0]
    rate = float(f"{rates[len(rates) // 2]:.3g}")
    yield "its rate", [raw], {"claim": rate, "requested": 64, "streams": 2}
    yield "more", [raw], {"claim": 1.7 * rate, "per": "aggregate", "speedup": 1.5, "baseline": rate / 1.5}
    yield "physics", [raw], {"bytes_per_step": 4e9, "bandwidth": 600.0, "acceptance": 0.8,
                             "temperatures": ANY_TEMPERATURE}  # fmt: skip
    yield "itself", [raw], {"against": Path(name), "speedup": 1.02, "claim": rate}
    yield "another", [raw], {"against": Path(_other(name)), "speedup": 1.3}
    yield from damaged(name, raw)


def _other(name: str) -> str:
    """The next text of the same tool, the first one behind the last."""
    alike = [one for one in NAMES if one.rpartition("-")[0] == name.rpartition("-")[0]]
    return alike[(alike.index(name) + 1) % len(alike)]


def damaged(name: str, raw: bytes) -> Iterator[Case]:
    """The text with one line or number wrong, the same ones each time."""
    draw, lines, numbers = random.Random(name), raw.splitlines(keepends=True), list(NUMBER.finditer(raw))
    places = [draw.sample(range(len(lines)), min(2, len(lines))) for _ in range(TURNS)]
    yield "without a line", [b"".join(lines[:at] + lines[at + 1 :]) for at, *_ in places], {}
    yield "a line twice", [b"".join([*lines[:at], lines[at], *lines[at:]]) for at, *_ in places], {}
    yield "a line elsewhere", [b"".join(_moved(lines, *at)) for at in places], {}
    yield "cut", [raw[: draw.randrange(1, len(raw))] for _ in range(TURNS)], {}
    for word, change in (("ten times", b"%s0"), ("negative", b"-%s"), ("0", b"0"), ("1", b"1"), ("nan", b"nan")):
        chosen = [draw.choice(numbers) for _ in range(TURNS)]
        made = [change % one[0] if b"%" in change else change for one in chosen]
        texts = [raw[: one.start()] + new + raw[one.end() :] for one, new in zip(chosen, made, strict=True)]
        yield f"a number {word}", texts, {}


def _moved(lines: list[bytes], at: int, to: int | None = None) -> list[bytes]:
    rest = lines[:at] + lines[at + 1 :]
    return rest if to is None else [*rest[:to], lines[at], *rest[to:]]


def said(name: str, case: Case) -> dict[str, str]:
    """One line."""
    word, texts, options = case
    shown, codes, answers = "", list[str](), list[str]()
    for raw in texts:
        try:
            report = judge(record_of(source_of(name, raw)), AuditOptions(**options), _against(options))
        except UserError as error:
            answers.append("refused: " + " ".join(str(error).split()).partition(";")[0])
            shown += str(error)
            continue
        answers.append(report.answer)
        codes += report.codes
        shown += format_audit(report) + json.dumps(_rounded(json.loads(to_json(report))))
    told = answers[0] if len(texts) == 1 else " / ".join(dict.fromkeys(answer[:60] for answer in answers))[:200]
    digest = hashlib.sha256(shown.encode()).hexdigest()[:12]
    return dict(zip(COLUMNS, (name, word, " ".join(dict.fromkeys(codes)), digest, told), strict=True))


def _against(options: dict[str, Any]) -> Record | None:
    path = options.get("against")
    return record_of(source_of(path.name, (DATA / path).read_bytes())) if path else None


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return {key: _rounded(one) for key, one in value.items()} if isinstance(value, dict) else value


def main() -> int:
    """Write all of them down."""
    with KEPT.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name in NAMES:
            writer.writerows(said(name, case) for case in cases(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
