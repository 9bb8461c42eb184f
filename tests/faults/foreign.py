"""Files of other tools and of nobody that say more than happened: each is flagged by the audit."""

from __future__ import annotations

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
FAULTS = [
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
