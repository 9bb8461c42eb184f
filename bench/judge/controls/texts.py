"""Whether cells that decode one prompt plainly say the same, and draw as their temperature has it.

At temperature 0 plain decoding of one prompt by one build, with the same weights and settings on one host, is one text;
above it, with one seed, so it is. Behind one text a collision probability is one at one temperature, and no higher at a
higher one. Of texts that differ the fewer are void; where neither are the fewer, all. It looks at no time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge.findings import VOID, origin, rerun
from bench.judge.invariants.collisions import rounding
from bench.judge.invariants.places import prefixes
from bench.judge.measure.case import host_of
from bench.judge.tables import CONTRAST, TRIAL
from bench.judge.tables.cell import ControlRow
from bench.records.drawing import USUAL

if TYPE_CHECKING:
    from bench.judge.measure.case import Case

NAME = "plain_text"
BEGINNINGS = tuple(2**power for power in range(12))
"""Tokens of a text that are held against as many of another's."""
BY_TEMPERATURE = ("top_p", "min_p")
"""Cuts that leave other tokens at another temperature, so that draws at two of them are not held against each other."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """What one cell says plainly, and how it draws."""

    about: Mapping[str, Any]
    again: str
    texts: Mapping[bytes, bytes] = field(default_factory=dict)
    """Hash of each beginning of an answer, by that of its conditions and length."""
    temperature: float = 0.0
    draws: Mapping[bytes, float] = field(default_factory=dict)
    """Logarithm of the collision probability, by the hash of the conditions, those of the temperature left out, and of
    the text before it."""
    rounding: float = 0.0
    """How far such a logarithm may move where the shape of a decode moves logits."""


def spoken_of(case: Case) -> Spoken | None:
    """What a finished contrast that is sound by itself has to say."""
    if not case.done or case.kind not in (CONTRAST, TRIAL) or case.contradiction or case.void_reason:
        return None
    weights = (case.cell.facts.get("model") or {}).get("sha256")
    items = {str(item["id"]): item for item in (case.cell.config.get("prompts") or {}).get("items") or []}
    if not weights or not items:
        return None
    shared = _conditions(case)
    draws = _draws(case, items, shared) if case.temperature else {}
    return Spoken(origin(case.cell), rerun(case.cell), _texts(case, items, shared), case.temperature, draws,
                  rounding(case) if case.temperature else 0.0)  # fmt: skip


def _conditions(case: Case) -> tuple[Any, ...]:
    """All that a plain text depends on beside its prompt, its seed, and how much its temperature leaves to chance."""
    config, model = case.cell.config, case.cell.facts["model"]
    engine = config.get("engine") or {}
    settings = sorted((name, str(value)) for name, value in engine.items())
    usual = {name: config.get(name, value) for name, value in USUAL.items() if name in config}
    return (origin(case.cell)["machine"], origin(case.cell)["build"], host_of(case.cell), model["sha256"],
            str(model.get("quantization")), config.get("depth") or 0, (config.get("prompts") or {}).get("template"),
            settings, sorted(usual.items()),
            case.temperature if set(BY_TEMPERATURE) & set(usual) else None)  # fmt: skip


def _texts(case: Case, items: Mapping[str, Any], shared: tuple[Any, ...]) -> dict[bytes, bytes]:
    table = case.runs
    found = {}
    for at in np.flatnonzero(table.of("baseline")).tolist():
        mine = (table.emits["owner"] == at) & table.confirmed
        names = str(table.prompt[at]).split("+")
        drawn = (case.temperature, int(table.seed[at])) if case.temperature else ()
        for stream, name in ((stream, name) for stream, name in enumerate(names) if name in items):
            own = mine & (table.emits["stream"] == stream)
            tokens = table.emits["token"][own][np.argsort(table.emits["position"][own], kind="stable")].astype(np.int64)
            place = stream if drawn else 0  # an answer's own random numbers
            for length in (length for length in BEGINNINGS if length <= len(tokens)):
                key = _hash(shared, items[name]["text"], drawn, place, length)
                found[key] = _hash(tokens[:length].tobytes())
    return found


def _draws(case: Case, items: Mapping[str, Any], shared: tuple[Any, ...]) -> dict[bytes, float]:
    collision = case.runs.draws["collision"].astype(float)
    return {_hash(shared, items[key[0]]["text"], key[1]): math.log(max(float(collision[at]), 1e-300))
            for at, key in enumerate(case.once(prefixes)) if key is not None and key[0] in items}  # fmt: skip


def _hash(*parts: Any) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=12).digest()


def text_checks(spoken: Sequence[Spoken]) -> list[ControlRow]:
    """One check for each cell that is void by it; none where all agree."""
    draws = {at: (f"behind the same text its draws at temperature {spoken[at].temperature:g} have other collision "
                  f"probabilities than {count} more cells of these weights let them")
             for at, count in _odd(_other_draws(spoken)).items()}  # fmt: skip
    texts = {at: f"plain decoding says another text than in {count} more cells of its build, weights, settings and "
                 "prompt"
             for at, count in _odd(_other_texts(spoken)).items()}  # fmt: skip
    return [_row(spoken[at], sentence) for at, sentence in sorted((draws | texts).items())]


Pairs = Iterator[tuple[int, int]]


def _other_texts(spoken: Sequence[Spoken]) -> Pairs:
    """Places of two cells that say different texts."""
    for key, members in _places([one.texts for one in spoken]).items():
        if len({spoken[at].texts[key] for at in members}) > 1:
            yield from (pair for pair in combinations(members, 2)
                        if spoken[pair[0]].texts[key] != spoken[pair[1]].texts[key])  # fmt: skip


def _other_draws(spoken: Sequence[Spoken]) -> Pairs:
    for key, members in _places([one.draws for one in spoken]).items():
        yield from (pair for pair in combinations(members, 2) if _contradict(spoken[pair[0]], spoken[pair[1]], key))


def _places(told: Sequence[Mapping[bytes, Any]]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for at, one in enumerate(told):
        for key in one:
            found.setdefault(key, []).append(at)
    return found


def _odd(pairs: Pairs) -> dict[int, int]:
    """Of cells that contradict each other those that contradict most, until none do, with how many they contradict."""
    against: dict[int, set[int]] = {}
    for left, right in pairs:
        against.setdefault(left, set()).add(right)
        against.setdefault(right, set()).add(left)
    found: dict[int, int] = {}
    while most := max(map(len, against.values()), default=0):
        worst = {at for at, others in against.items() if len(others) == most}
        found |= dict.fromkeys(worst, most)
        against = {at: others - worst for at, others in against.items() if at not in worst}
    return found


def _contradict(left: Spoken, right: Spoken, key: bytes) -> bool:
    """Whether two draws behind one text cannot both be: they differ at one temperature, or rise with it."""
    cold, hot = sorted((left, right), key=lambda one: one.temperature)
    more, room = hot.draws[key] - cold.draws[key], left.rounding + right.rounding
    return more > room or (cold.temperature == hot.temperature and -more > room)


def _row(one: Spoken, sentence: str) -> ControlRow:
    return ControlRow(**one.about, cell=one.about["cells"][0], control=NAME, ok=False, severity=VOID, value=math.nan,
                      ci_low=math.nan, ci_high=math.nan, sentence=f"{sentence}; {one.again}")  # fmt: skip

