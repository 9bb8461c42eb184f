"""SGLang's decode log: a line every few steps with the running requests, their summed rate and the accept length."""

from __future__ import annotations

import re
import statistics

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.numbers import NAN, real
from bench.audit.trials import Trial

_LINE = re.compile(r"#running-req: *(\d+).*?gen throughput \(token/s\): *([\d.]+)")
_LENGTH = re.compile(r"accept len: *([\d.]+)")
_RATE = re.compile(r"accept rate: *([\d.]+)")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("SGLang's log")
    groups: dict[int, list[tuple[int, float, float, float]]] = {}
    for line, match in block.search(_LINE):
        length, share = _LENGTH.search(line.text), _RATE.search(line.text)
        row = (line.number, real(match[2]), _value(length), _value(share))
        groups.setdefault(max(1, int(match[1][:9])), []).append(row)
        found.used.add(line.number)
    for running, rows in groups.items():
        rates = [rate for _, rate, _, _ in rows if rate > 0]
        if rates:
            found.trials.append(_trial(running, rows, rates))
    return found


def _value(match: re.Match[str] | None) -> float:
    return real(match[1]) if match else NAN


def _trial(running: int, rows: list[tuple[int, float, float, float]], rates: list[float]) -> Trial:
    printed = {"tok_s": statistics.fmean(rates)}
    for name, values in (("mean_length", [row[2] for row in rows]), ("acceptance", [row[3] for row in rows])):
        known = [value for value in values if value == value]
        printed |= {name: statistics.fmean(known)} if known else {}
    first, last = rows[0][0], rows[-1][0]
    return Trial(
        place=f"line {first}" if first == last else f"lines {first}-{last}",
        line=first,
        label=f"{running} running",
        test="serving",
        streams=running,
        streams_known=True,
        printed=printed,
        repetitions=len(rates),
        spread=statistics.stdev(rates) if len(rates) > 1 else NAN,
    )
