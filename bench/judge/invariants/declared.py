"""What a cell says of its method, against the files that declare it, its drafter, and how far its rounds guess.

The declarations are those of this version: a method or a parameter that it does not know is told, and believed. It
looks at no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.tables import SERVED
from bench.records.arms import PLAIN, PLANTED
from bench.records.declaring import declaration, of_servers
from pti_loop.parameters import ParameterError, declared, keeps, longest

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

EXCUSES = ("answers", "layout", "guesses", "repeats", "by_rounds", "tuned")
"""What a declaration excuses, or asks for; the rest is words."""
WORDS = ("label", "short")
NOTHING, AUTO = "", "auto"
HALF = 0.5
"""Of plain decoding's quickest decode: what makes guesses without decoding takes far less."""


def declared_as_known(case: Case) -> str | None:
    """What excuses a method, as this version's own declaration of it has it."""
    told, made = case.once(_declarations)
    for name in EXCUSES:
        if name in told and name in made and told[name] != made[name]:
            return f"cell.yaml declares {name} {told[name]} of {case.arm.method}, which has {name} {made[name]}"
    return None


def called_as_known(case: Case) -> str | None:
    """Its name, its parameters and its label, as this version has them; another version may have others."""
    told, made = case.once(_declarations)
    if told and not made:
        return f"{_unknown(case)}, so that what the record declares of it is its word"
    for name in WORDS:
        if name in told and name in made and told[name] != made[name]:
            return f"cell.yaml calls its method '{told[name]}', and such a method is called '{made[name]}'"
    return None


def says_again(case: Case) -> str | None:
    """A method that declares to say tokens again does so, wherever one of its guesses was right."""
    table = case.runs
    mine = table.of("treatment")
    if not case.arm.repeats or not table.counters["accepted"][mine].any() or table.tokens.duplicates[mine].any():
        return None
    loose = ~table.confirmed & mine[table.emits["owner"]]
    return None if loose.any() else "its method declares that it says tokens again, and no run of it does"


def guesses_as_far(case: Case) -> str | None:
    """Rounds guess no further than the method's parameters let them, and controls, which guess all they may, so far."""
    table, most_of = case.runs, bounds(case)
    turns = table.turns
    owner = turns["owner"]
    treated = ~table.any_of(PLAIN)[owner] & (turns["phase"] == "steady")
    if "schema" not in case.cell.config or not case.arm.guesses or not most_of or not treated.any():
        return None
    several = case.arm.independent
    far = table.draws["depth"] if several else turns["drafted"]
    whose = table.draws["owner"] if several else owner
    if not len(far):
        return None
    if (most := int(far.max())) > max(most_of):
        return f"a round guesses {most} tokens of an answer, and its method's parameters let it guess {max(most_of)}"
    planted = table.any_of(PLANTED)
    if several or not planted.any():
        return None
    if case.arm.answers == "copies":
        few = int(turns["drafted"][treated].min())
        return None if few == max(most_of) else f"a round of {max(most_of) + 1} copies guesses {few} tokens"
    found = int(far[planted[whose]].max())
    room = int(table.n_predict[planted].max()) - 2  # behind the first token, and before the draw that ends the round
    if found in {min(bound, room) for bound in most_of} | {*most_of}:
        return None
    told = " or ".join(map(str, most_of))
    return f"controls, which guess as far as they may, guess {found} tokens a round, and its parameters say {told}"


def drafter_is_configured(case: Case) -> str | None:
    """What the drafter says of itself, and how rejected tokens were forgotten, against the method's parameters."""
    facts, parameters = case.cell.facts, case.arm.parameters
    told = facts.get("drafter") or {}
    for name in sorted({*told} & {*parameters} - {"rollback"}):
        if str(told[name]) != str(parameters[name]):
            return f"the drafter's {name} is {told[name]}, and {name}={parameters[name]} was configured"
    if fault := _redecodes(case, told):
        return fault
    used, asked = (facts.get("rollback") or {}).get("strategy"), parameters.get("rollback", AUTO)
    if used and asked not in (AUTO, used):
        return f"rejected tokens were forgotten by {used}, and rollback={asked} was configured"
    types = told.get("types")
    if types and sorted(types) != sorted(str(parameters.get("type", "")).split("+")):
        return f"the drafter is made of {'+'.join(types)}, and type={parameters.get('type')} was configured"
    return _most(case, told) or _remembers(case, told)


def _redecodes(case: Case, told: Mapping[str, Any]) -> str | None:
    """Copies without a drafter guess by decodes of their own: rounds that take as long to draft have them."""
    if told or case.arm.answers != "copies":
        return None
    turns, table = case.runs.turns, case.runs
    plain = float(turns["decode_ns"][table.of("baseline")[turns["owner"]]].min())
    busy = np.flatnonzero((turns["redecoded"] == 0) & (turns["draft_ns"] > HALF * plain))
    if not len(busy):
        return None
    at = int(busy[0])
    return (f"round {turns['round'][at]} of run {turns['run'][at]} drafts for {turns['draft_ns'][at] * 1e-6:.3f} ms, "
            "and neither has a drafter nor decodes again")  # fmt: skip


def _most(case: Case, told: Mapping[str, Any]) -> str | None:
    most, bounds = told.get("most"), _lengths(case)
    if most is None or not bounds or most in bounds:
        return None
    return f"the drafter makes {most} guesses at most, and its parameters say {' or '.join(map(str, bounds))}"


def _remembers(case: Case, told: Mapping[str, Any]) -> str | None:
    if "remembers" not in told or case.arm.method not in declared():
        return None
    could = keeps(case.arm.method, case.arm.parameters)
    if bool(told["remembers"]) == could:
        return None
    says, does = ("keeps nothing", "could be kept") if could else ("could be kept", "keeps nothing")
    return f"the drafter is said to be one that {says} from answer to answer, and such a one {does}"


def _lengths(case: Case) -> tuple[int, ...]:
    return longest(case.arm.method, case.arm.parameters) if case.arm.method in declared() else ()


def bounds(case: Case) -> tuple[int, ...]:
    """Most guesses of a round and answer: of copies all but one, else what parameters or the drafter say."""
    if case.arm.answers == "copies":
        return (int(case.cell.config.get("streams") or 1) - 1,)
    most = (case.cell.facts.get("drafter") or {}).get("most")
    return _lengths(case) or (() if most is None else (int(most),))


def _declarations(case: Case) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What the cell declares, and what this version does; nothing where there is none. No schema, no question."""
    config = case.cell.config
    told = (config.get("method") or {}).get("declaration") or {}
    if "schema" not in config:
        return {}, {}
    streams = int(config.get("streams") or 1)
    if case.kind == SERVED:
        return told, of_servers(streams)
    return told, {} if _unknown(case) else declaration(case.arm.method, case.arm.parameters, streams).as_dict()


def _unknown(case: Case) -> str:
    """Why this version cannot tell what a method declares, as a phrase; empty where it can."""
    try:
        declaration(case.arm.method, case.arm.parameters, 1)
    except ParameterError as error:
        return f"this version does not know such a method ({error})"
    return NOTHING
