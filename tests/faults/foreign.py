"""Files of other tools and of nobody that say more than happened: each is flagged by the audit."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.audit.audit import audit
from bench.audit.options import AuditOptions
from tests.faults.stored import Outcome

HEADER = "run,stream,position,token,round,source,t_ns\n"


@dataclass(frozen=True)
class FileFault:
    """One record that somebody publishes."""

    name: str
    text: str
    flag: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def tried(self, folder: Path) -> Outcome:
        """Audit it."""
        path = folder / "record.csv"
        path.write_text(self.text)
        found = audit(path, AuditOptions(**self.options))
        return Outcome("flagged" if found.flags else "clean", {flag.code: flag.sentence for flag in found.flags})


def ledger(rows: list[tuple[int, int, int, int, str, int]]) -> str:
    """(stream, position, token, round, source, milliseconds) as a ledger of one run."""
    return HEADER + "\n".join(f"0,{s},{p},{token},{r},{source},{ms * 10**6}" for s, p, token, r, source, ms in rows)


def published(rounds: int, streams: int, shift: bool = False) -> str:
    """The loop that says `streams` tokens a round, all but one of which it said before; `shift` renumbers them."""
    rows = [(0, 0, 1000, -1, "prefill", 0)]
    for number in range(rounds):
        for k in range(streams):
            position = 1 + number * streams + k if shift else 1 + number + k
            rows.append((0, position, 1001 + number + k, number, "verified", 100 * (number + 1)))
    return ledger(rows)


PLAIN = [(0, p, 7 * p % 50, p - 1, "prefill" if not p else "verified", 100 * p) for p in range(40)]
UNEVEN = [(*row[:5], row[5] + row[1] ** 2) for row in PLAIN]
SAMPLES = [2_000_123_457, 2_011_345_679, 1_996_456_789, 2_004_567_891, 2_008_678_913]


def bench(**edits: Any) -> str:
    """A row of llama-bench's JSON with five repetitions of 64 tokens, and what is edited in it."""
    rates = [64e9 / one for one in SAMPLES]
    row = {"build_commit": "0c1e570", "model_type": "llama 256M Q4_1", "n_threads": 2, "n_prompt": 0, "n_gen": 64,
           "n_depth": 0, "avg_ns": statistics.fmean(SAMPLES), "stddev_ns": statistics.stdev(SAMPLES),
           "avg_ts": statistics.fmean(rates), "stddev_ts": statistics.stdev(rates), "samples_ns": SAMPLES,
           "samples_ts": rates}  # fmt: skip
    return json.dumps([row | edits])


def twice(rows: list[tuple[int, int, int, int, str, int]]) -> str:
    """A run, and the same once more an hour later."""
    later = [(*row[:5], row[5] + 3_600_000) for row in rows]
    return ledger(rows) + "\n" + "\n".join(f"1{line[1:]}" for line in ledger(later).splitlines()[1:])


FAULTS = [
    FileFault("rounds are numbered backwards", ledger([(*row[:3], 40 - row[1] if row[1] else -1, *row[4:])
                                                       for row in PLAIN]), "INCONSISTENT"),
    FileFault("half of the rounds end at one time", ledger([(*row[:5], row[5] if row[1] < 20 else 2000)
                                                            for row in PLAIN]), "INCONSISTENT"),
    FileFault("most of an answer is the prefill's", ledger([
        (*row[:3], -1, "prefill", row[5]) if row[1] < 30 else row for row in PLAIN]), "INCONSISTENT"),
    FileFault("tokens that no vocabulary has", ledger([(*row[:2], -1, *row[3:]) for row in PLAIN]), "INCONSISTENT"),
    FileFault("one answer under two ids", ledger([(stream, *row[1:]) for row in PLAIN for stream in (0, 1)]), "COPIED"),
    FileFault("one run twice", twice(UNEVEN), "COPIED"),
    FileFault("a mean time that is not that of the repetitions", bench(avg_ns=10**9), "INCONSISTENT"),
    FileFault("rates of repetitions that their times do not give", bench(samples_ts=[90.0] * 5), "INCONSISTENT"),
    FileFault("repetitions that spread less than they do", bench(stddev_ts=0.0), "INCONSISTENT"),
    FileFault("one repetition five times", bench(samples_ns=SAMPLES[:1] * 5), "COPIED"),
    FileFault("the published loop counts each token up to four times", published(79, 4), "DUPLICATE",
              {"claim": 40.0}),
    FileFault("times go backwards", ledger([*PLAIN[:20], *[(*row[:5], row[5] - 900) for row in PLAIN[20:]]]),
              "OUT_OF_ORDER"),
    FileFault("every token came out at one time", ledger([(*row[:5], 5) for row in PLAIN]), "NO_TIME"),
    FileFault("positions are left out", ledger([row for row in PLAIN if row[1] % 5 != 3]), "GAP"),
    FileFault("more tokens than were asked for", ledger(PLAIN), "MORE_THAN_REQUESTED", {"requested": 20}),
    FileFault("tokens that nothing verified", ledger([(*row[:4], "unverified", row[5]) for row in PLAIN[1:]]),
              "UNVERIFIED"),
    FileFault("a rate that no reading of the record gives", ledger(PLAIN), "UNEXPLAINED", {"claim": 99.0}),
    FileFault("the published loop under other positions", published(79, 4, shift=True), "DUPLICATE"),
]  # fmt: skip
