"""mtp-bench.py: a line a prompt (pred, draft, acc, rate, tok/s) and an `Aggregate:` object. It judges nothing."""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.numbers import real
from bench.audit.trials import Trial

_ROW = re.compile(r"^\W*(\S+) +pred= *(\d+) +draft= *(\d+) +acc= *(\d+) +rate= *(\S+) +tok/s= *([\d.]+)")
_AGGREGATE = re.compile(r"^\s*(Aggregate: *\{|\"(n_requests|total_\w+|aggregate_\w+|wall_s_\w+)\":|\})")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("mtp-bench")
    run, names = 0, set[str]()
    for line in block.lines:
        row = _ROW.match(line.text) if len(line.text) < 2000 else None
        if row is None:
            if _AGGREGATE.match(line.text):
                found.used.add(line.number)
                run, names = (run + 1, set()) if names and "Aggregate" in line.text else (run, names)
            continue
        if row[1] in names:
            run, names = run + 1, set()
        names.add(row[1])
        found.used.add(line.number)
        found.trials.append(
            prompt_trial(
                line.number,
                row[1],
                int(row[2][:15]),
                int(row[3][:15]),
                int(row[4][:15]),
                real(row[6]),
                run,
                _rate(row[5]),
            )
        )
    return found


def prompt_trial(
    line: int,
    name: str,
    tokens: int,
    drafted: int,
    accepted: int,
    rate: float,
    run: int = 0,
    acceptance: float | None = None,
    category: str = "",
) -> Trial:
    """One prompt answered by llama-server: its token count and rate, and the guesses. Steps follow from them."""
    steps = tokens - accepted if drafted and accepted < tokens else None
    return Trial(
        place=f"line {line}",
        line=line,
        label=name,
        prompt=name,
        category=category,
        block=run,
        emitted=tokens,
        drafted=drafted or None,
        accepted=accepted if drafted else None,
        rounds=steps,
        printed={"tok_s": rate} | ({} if acceptance is None else {"acceptance": acceptance}),
    )


def _rate(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
