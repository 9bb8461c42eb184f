"""vLLM's engine log: throughput of ten seconds each, and the SpecDecoding metrics line. It judges nothing.

Mean acceptance length is 1 + accepted / drafts; drafted tokens are drafts times the guesses of a draft.
"""

from __future__ import annotations

import re
from dataclasses import replace

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.formats.llama_timings import positions
from bench.audit.numbers import real
from bench.audit.trials import Trial

_RATE = re.compile(
    r"Avg prompt throughput: *([\d.]+) tokens/s, *Avg generation throughput: *([\d.]+) tokens/s, *Running: *(\d+)"
)
_SPEC = re.compile(
    r"Mean acceptance length: *([\d.]+).*?Accepted: *(\d+) tokens, *Drafted: *(\d+) tokens"
    r"(?:, *Per-position acceptance rate: *([\d., ]*))?(?:,? *Avg Draft acceptance rate: *([\d.]+)%)?"
)
_OLD = re.compile(
    r"Draft acceptance rate: *([\d.]+).*?accepted tokens: *(\d+), *Number of draft tokens: *(\d+)"
    r"(?:, *Number of emitted tokens: *(\d+))?"
)


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("vLLM's log")
    pending: Trial | None = None
    for line in block.lines:
        if len(line.text) > 4000:
            continue
        rate, spec, old = _RATE.search(line.text), _SPEC.search(line.text), _OLD.search(line.text)
        if rate:
            found.trials += [pending] if pending else []
            pending = None
            if real(rate[2]) > 0:
                pending = Trial(
                    place=f"line {line.number}",
                    line=line.number,
                    label=f"{rate[3]} running",
                    test="serving",
                    streams=max(1, int(rate[3][:9])),
                    streams_known=True,
                    printed={"tok_s": real(rate[2])},
                )
        elif spec or old:
            trial = pending or Trial(place=f"line {line.number}", line=line.number, label="speculation")
            found.trials.append(_with(trial, spec) if spec else _with_old(trial, old))
            pending = None
        else:
            continue
        found.used.add(line.number)
    found.trials += [pending] if pending else []
    return found


def _with(trial: Trial, spec: re.Match[str]) -> Trial:
    shares = positions(spec[4] or "")
    drafted, accepted = int(spec[3][:15]), int(spec[2][:15])
    rounds = drafted // len(shares) if shares and drafted % len(shares) == 0 else None
    printed = trial.printed | {"mean_length": real(spec[1])}
    printed |= {"acceptance": real(spec[5]) / 100} if spec[5] else {}
    return replace(trial, drafted=drafted, accepted=accepted, rounds=rounds or None, positions=shares, printed=printed)


def _with_old(trial: Trial, old: re.Match[str] | None) -> Trial:
    assert old is not None
    return replace(
        trial,
        drafted=int(old[3][:15]),
        accepted=int(old[2][:15]),
        emitted=int(old[4][:15]) if old[4] else None,
        printed=trial.printed | {"acceptance": real(old[1])},
    )
