"""Methods that cheat, run through the contrast of the toy engine and judged: each with the check that must catch it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.judge.damage import judge_whole
from bench.judge.findings import Findings
from bench.run.contrast import Contrast
from bench.run.sharp import SharpContrast
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
    temperature: float = 0.0
    streams: int = 1
    noise: float = 0.0
    """Logits that the width of a decode moves on the cell's own weights; on F16 weights it is a hundredth."""


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
    *(MethodFault(name, "late", check, {"how": how}, temperature=temperature) for how, check, temperature, name in (
        ("third", "carry", 0.0, "what earlier runs said is guessed from the third run of a prompt on"),
        ("third", "carry", 0.7, "what earlier runs drew is guessed from the third run of a prompt on"),
        ("others", "repeats", 0.0, "what earlier runs said is guessed, but for the prompt that came first"),
        ("pieces", "carry", 0.0, "what followed a token in any earlier answer is guessed"),
        ("pieces", "carry", 0.7, "what followed a token in any earlier answer is guessed, above temperature 0"),
        ("ahead", "outside", 0.0, "a drafter decodes the answer beside when the answer begins"),
        ("ahead", "outside", 0.7, "a drafter decodes an answer beside when the answer begins, above temperature 0"),
    )),
    MethodFault("it behaves while it is controlled", "detects", "outside"),
    MethodFault("the second most likely token at every other position", "runner_up", "lossless",
                verdict="divergent"),
    MethodFault("the runner-up at the first close call, where the width rounds as coarsely", "close", "sharp",
                verdict="divergent", noise=1.2),
    MethodFault("guesses of a method that says it makes none", "hidden", "plain"),
    *(MethodFault(name, "variety", check, {"how": how}) for how, check, name in (
        ("pads", "rows", "the second half of an answer is its middle token, undecoded"),
        ("stops_early", "answers", "five tokens less"),
        ("says_more", "answers", "six tokens more"),
        ("pauses", "records", "the window is closed while it decodes"),
        ("two_windows", "windows", "the window is closed for three of four decodes"),
        ("half_prompt", "outside", "half of the prompt"),
        ("long_prompt", "outside", "a longer prompt"),
        ("burst_rounds", "decoded", "four decodes are told as one round"),
        ("no_rounds", "decoded", "all decodes are told as one round"),
        ("quick_rounds", "rounds", "rounds are told a third as long"),
        ("wide_rounds", "decoded", "a round is told wider than what was decoded"),
        ("invents_draws", "draws", "right guesses that no round made"),
        ("hides_guesses", "emitted", "right guesses that gave no token"),
        ("counts_accepted", "draws", "right guesses that no draw shows"),
        ("says_twice", "emitted", "each token twice in its round"),
        ("first_inside", "emitted", "the prefill's token once more in the window"),
        ("swaps", "answers", "tokens at the position behind their own"),
        ("second_stream", "answers", "one token of a second answer"),
        ("late_unverified", "verified", "the last four tokens are made up and marked as unverified"),
        ("late_streams", "answers", "the second half of an answer under two stream ids"),
        ("slow_clock", "account", "its own clock goes at half the speed"),
        ("every_other", "decoded", "every other decode is in no round"),
        ("knows_later", "records", "an answer that it gave before, undecoded"),
    )),
    MethodFault("an answer of a third of its length, by rounds that it declares", "posing", "answers"),
    MethodFault("four decodes are told as one round with three beside it", "posing", "emitted", {"how": "redecoded"}),
    MethodFault("the first of several answers is said for all of them", "crowd", "decoded", streams=2),
    MethodFault("answers are decoded one after the other and told as one decode of all", "crowd", "decoded",
                {"how": "apart"}, streams=3),
    MethodFault("it decodes what it will say in a thread before it is timed", "idle", "carry"),
    MethodFault("it decodes what it will say in a thread, above temperature 0", "idle", "carry", temperature=0.7),
    MethodFault("the likeliest token above temperature 0", "variety", "lossless", {"how": "greedy"},
                verdict="divergent", temperature=0.7),
    MethodFault("draws of its own at a lower temperature", "variety", "lossless", {"how": "cooler"},
                verdict="divergent", temperature=0.7),
]  # fmt: skip


def judged_method(fault: MethodFault) -> Outcome:
    """Run, store in memory and judge. A grade of `divergent` is a verdict of its own: the cell is sound."""
    with known_cheats():
        return outcome_of(judged(fault.method, fault.streams, fault.temperature, fault.noise, **fault.parameters))


def judged(name: str, streams: int = 1, temperature: float = 0.0, noise: float = 0.0, **parameters: Any) -> Findings:
    """A method of the toy engine as a report sees it, with the grade on F16 weights where the width moves logits."""
    settings = config(name, temperature=temperature, **parameters)
    settings.streams = streams
    result = Contrast(toy(noise=noise), settings, PROMPTS, "order", lambda: (2000.0, 50.0), lambda *_: None).run()
    result.facts["stopping"].pop("seconds")  # the toy's clock is no machine's
    if noise:
        result.tables["sharp"], found = SharpContrast(toy(noise=noise / 100), settings, PROMPTS, "order",
                                                      lambda: (0.0, 0.0), lambda *_: None).graded()  # fmt: skip
        result.facts["sharp"] = found | {"state": "graded", "type": "F16", "sha256": "f" * 64, "bytes": 1 << 20}
    own = resolve(name, parameters)
    method = {"name": name, "parameters": own, "declaration": declare(name, own, streams).as_dict()}
    facts = {**default_facts(), **result.facts}
    facts["model"] |= {"kv_bytes_per_token": 8}  # as the toy's contexts have it
    told = default_config(n_predict=settings.n_predict, temperature=temperature, streams=streams, seed=settings.seed)
    tables = {table: frame(table, result.tables.get(table, []))
              for table in ("runs", "rounds", "ledger", "draws", "steps", "sharp")}  # fmt: skip
    told |= {"measure": {"sharp": True}} if noise else {}
    return judge_whole(Cell(config=told | {"method": method}, facts=facts, **tables), []).findings  # type: ignore[arg-type]


def outcome_of(findings: Findings) -> Outcome:
    """What became of a cell; a divergent one is neither void nor sound."""
    found = outcome(findings)
    if found.verdict != "void" and findings.speedup and findings.speedup[0].lossless == "divergent":
        return Outcome("divergent", found.said)
    return found
