"""What a reader may tell the audit about a foreign record that the record itself does not say.

It imports nothing heavy, so a command line can build its help from it; it knows no file format.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

ANY_TEMPERATURE = (0.0, 0.3, 0.7, 1.0)
"""The temperatures that a claim about "any temperature" has to show."""


@dataclass(frozen=True)
class AuditOptions:
    """Facts beside the record. None means: not said."""

    claim: float | None = None
    """Published rate, tokens per second."""
    per: str = "answer"
    """What the claim is sold as: `answer` (one reader's speed) or `aggregate` (the sum over streams)."""
    speedup: float | None = None
    """Published ratio to a baseline."""
    baseline: float | None = None
    """Rate of the baseline, tokens per second of one answer."""
    against: Path | None = None
    """Record of the baseline."""
    requested: int | None = None
    """Tokens asked for, an answer (`-n`)."""
    streams: int | None = None
    """Answers decoded at once; only asked where the record has no stream column."""
    bytes_per_step: float | None = None
    """Bytes that one decode step reads: the weights it touches, and the KV cache if it is known."""
    bandwidth: float | None = None
    """Read bandwidth of the device, GB/s."""
    acceptance: float | None = None
    """Published acceptance rate, 0 to 1."""
    temperatures: tuple[float, ...] = ()
    """Temperatures that the claim is said to hold at."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add FILE and the options of `python -m bench audit` to a parser."""
    parser.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="what somebody posted: a benchmark's output, a server's log, a profiler's table, a CSV, a ledger "
        "or a cell folder; - reads standard input",
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--claim", type=float, metavar="TOK_S", help="published rate in tokens per second")
    parser.add_argument(
        "--per", choices=("answer", "aggregate"), default="answer", help="what the claim is sold as (default: answer)"
    )
    parser.add_argument("--speedup", type=float, metavar="X", help="published ratio to the baseline")
    parser.add_argument("--baseline", type=float, metavar="TOK_S", help="rate of the baseline")
    parser.add_argument("--against", type=Path, metavar="FILE", help="record of the baseline, compared row by row")
    parser.add_argument("--requested", type=int, metavar="N", help="tokens asked for, an answer")
    parser.add_argument("--streams", type=int, metavar="N", help="answers decoded at once")
    parser.add_argument(
        "--bytes-per-step",
        type=float,
        metavar="BYTES",
        help="bytes that one decode step, or one launch of a kernel, reads",
    )
    parser.add_argument("--bandwidth", type=float, metavar="GB_S", help="read bandwidth of the device")
    parser.add_argument("--acceptance", type=float, metavar="RATE", help="published acceptance rate, 0 to 1")
    parser.add_argument(
        "--temperatures",
        type=temperatures,
        default=(),
        metavar="T,T|any",
        help="temperatures that the claim is said to hold at",
    )


def temperatures(text: str) -> tuple[float, ...]:
    """`0,0.7` or `any`; argparse turns the ValueError into its own sentence."""
    if text == "any":
        return ANY_TEMPERATURE
    return tuple(float(part) for part in text.split(","))


def options_from(arguments: argparse.Namespace) -> AuditOptions:
    """The options that `add_arguments` parsed."""
    return AuditOptions(**{name: getattr(arguments, name) for name in AuditOptions.__dataclass_fields__})
