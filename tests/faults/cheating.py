"""Methods that cheat, run through the contrast of the toy engine and judged: each with the check that must catch it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.judge.damage import judge_whole
from bench.run.contrast import Contrast
from pti_loop.parameters import declare, resolve
from tests.faults.cheats import known_cheats
from tests.faults.stored import Outcome, outcome
from tests.judge.judge_cells import Cell, default_config, default_facts, frame
from tests.run.test_contrast import PROMPTS, config, toy


@dataclass(frozen=True)
class MethodFault:
    """One way of decoding that is not what it says."""

    name: str
    method: str
    check: str
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])
    verdict: str = "void"


FAULTS = [
    MethodFault("three of four tokens are made up and marked as unverified", "unverified", "verified"),
    MethodFault("three of four tokens are made up and said to be verified", "unverified", "decoded",
                {"source": "verified"}),
    MethodFault("three of four tokens are made up in a decode of one row", "unverified", "emitted",
                {"source": "verified"}),
    MethodFault("the answer is decoded before the window, which replays it", "before", "outside"),
    MethodFault("the answer is decoded before the window, and a round says eight tokens", "before", "emitted"),
    MethodFault("the answer is decoded before the window, in time that no account has", "before", "account"),
    MethodFault("the answer is decoded before the window in a context beside", "before", "outside",
                {"where": "beside"}),
    MethodFault("one answer under four stream ids", "streams", "answers"),
    MethodFault("what an earlier run said is guessed", "remembers", "carry"),
    MethodFault("it drafts otherwise once it knows the answer", "remembers", "repeats"),
    MethodFault("it behaves while it is controlled", "detects", "outside"),
    MethodFault("the second most likely token at every other position", "runner_up", "lossless",
                verdict="divergent"),
]  # fmt: skip


def judged_method(fault: MethodFault) -> Outcome:
    """Run, store in memory and judge. A grade of `divergent` is a verdict of its own: the cell is sound."""
    with known_cheats():
        return judged(fault.method, **fault.parameters)


def judged(name: str, streams: int = 1, temperature: float = 0.0, **parameters: Any) -> Outcome:
    """A method of the toy engine as a report sees it."""
    settings = config(name, temperature=temperature, **parameters)
    settings.streams = streams
    result = Contrast(toy(), settings, PROMPTS, "order", lambda: (2000.0, 50.0), lambda *_: None).run()
    own = resolve(name, parameters)
    method = {"name": name, "parameters": own, "declaration": declare(name, own, streams).as_dict()}
    facts = {**default_facts(), **result.facts}
    told = default_config(n_predict=settings.n_predict, temperature=temperature, streams=streams, seed=settings.seed)
    tables = {table: frame(table, result.tables.get(table, []))
              for table in ("runs", "rounds", "ledger", "draws", "steps")}  # fmt: skip
    cell = Cell(config=told | {"method": method}, facts=facts, **tables)
    findings = judge_whole(cell, []).findings  # type: ignore[arg-type]
    found = outcome(findings)
    if found.verdict != "void" and findings.speedup and findings.speedup[0].lossless == "divergent":
        return Outcome("divergent", found.said)
    return found
