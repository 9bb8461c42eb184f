"""llama-speculative, llama-speculative-simple and llama-lookup, and the one line that llama-cli ends with.

Each step of theirs emits what it accepted and one token of the model, so steps = n_predict - n_accept. The draft
model's own times stand below `draft:`. It judges nothing but whether those can be.
"""

from __future__ import annotations

import re

from bench.audit.blocks import Block, Found, LinesBlock
from bench.audit.formats.llama_timings import EVAL, PROMPT, TOTAL
from bench.audit.numbers import NAN, real
from bench.audit.trials import Trial

_CODED = re.compile(r"\b(encoded|decoded) +(\d+) tokens in +([\d.]+) seconds")
_FACT = re.compile(r"^\W*(n_draft|n_predict|n_drafted|n_accept|accept|t_draft|t_draft_flat) += +([\d.]+)")
_CLI = re.compile(r"\[ *Prompt: *([\d.]+) *t/s *\| *Generation: *([\d.]+) *t/s *\]")
_PART = re.compile(r"^\s*(draft|target):\s*$")


def sniff(block: Block) -> bool:
    return isinstance(block, LinesBlock)


def read(block: Block) -> Found:
    assert isinstance(block, LinesBlock)
    found = Found("llama-speculative")
    run = _Run(0)
    part = ""
    for line in block.lines:
        if len(line.text) > 2000:
            continue
        cli, coded, fact, head = (one.search(line.text) for one in (_CLI, _CODED, _FACT, _PART))
        if cli:
            found.trials.append(_plain(line.number, real(cli[1]), real(cli[2]), len(found.trials)))
        elif coded:
            if coded[1] == "encoded" and run.facts:
                found.trials += run.trials(len(found.trials))
                run, part = _Run(line.number), ""
            run.line = run.line or line.number
            run.note(coded[1], real(coded[3]))
            run.note(f"n_{coded[1]}", real(coded[2][:15]))
        elif fact:
            run.line = run.line or line.number
            run.note(fact[1], real(fact[2]))
        elif head:
            part = head[1]
        elif not (part and run.part(part, line.text)):
            continue
        found.used.add(line.number)
    found.trials += run.trials(len(found.trials))
    if not any(trial.arm == "speculative" for trial in found.trials) and found.trials:
        found.name = "llama-cli"
    return found


def _plain(line: int, prompt: float, rate: float, block: int) -> Trial:
    """llama-cli prints rates alone: no tokens, no time."""
    return Trial(
        place=f"line {line}",
        line=line,
        label="llama-cli",
        arm="plain",
        block=block,
        printed={"tok_s": rate, "pp": prompt},
        settings={"program": "llama-cli"},
    )


class _Run:
    """What one call of the program has printed."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.facts: dict[str, float] = {}

    def note(self, name: str, value: float) -> None:
        """Keep a figure that is one."""
        if value == value:
            self.facts[name] = value

    def part(self, name: str, text: str) -> bool:
        """Lines of one of the two models; True where the line is one."""
        own, prompt = EVAL.search(text), PROMPT.search(text)
        if own:
            self.note(f"{name}_ms", real(own[1]))
            self.note(f"{name}_runs", real(own[2][:15]))
        if prompt:
            self.note(f"{name}_prompt_ms", real(prompt[1]))
        return bool(own or prompt or TOTAL.search(text) or "load time" in text or "sampling time" in text)

    def trials(self, block: int) -> list[Trial]:
        facts = self.facts
        tokens = int(facts.get("n_predict", facts.get("n_decoded", 0)))
        if not tokens or "decoded" not in facts:
            return []
        drafted, accepted = (int(facts[key]) if key in facts else None for key in ("n_drafted", "n_accept"))
        rounds = tokens - accepted if accepted is not None and accepted < tokens else None
        printed = {"acceptance": facts["accept"] / 100} if "accept" in facts else {}
        draft_ms = facts.get("draft_ms", facts.get("t_draft", 0.0) + facts.get("t_draft_flat", 0.0))
        return [
            Trial(
                place=f"line {self.line}",
                line=self.line,
                label="speculative",
                arm="speculative",
                block=block,
                counted=tokens,
                distinct=tokens,
                seconds=facts["decoded"] or NAN,
                prompt_tokens=int(facts.get("n_encoded", 0)),
                prefill_seconds=facts.get("encoded", NAN) or NAN,
                drafted=drafted,
                accepted=accepted,
                rounds=rounds,
                printed=printed,
                draft_seconds=draft_ms / 1e3 or NAN,
                draft_runs=int(facts["draft_runs"]) if "draft_runs" in facts else None,
                settings={"program": "llama-speculative"},
            )
        ]
