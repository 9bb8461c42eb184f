"""The configuration group `method`: one structured node a declared method, with help beside every field.

It knows how parameters are declared and nothing about any of them. A method whose drafter is a parameter also takes
the parameters of every drafter; which of them it has is checked when the drafter is known.
"""

from __future__ import annotations

from dataclasses import field, make_dataclass
from typing import Any

from pti_loop.parameters import Parameter, Spec, declared, drafters


def nodes() -> dict[str, type]:
    """A dataclass for each method, by its name, as Hydra's store takes it."""
    return {name: _node(spec) for name, spec in declared().items()}


def names(method: str) -> list[str]:
    """Parameters that may be written for a method, whatever its drafter."""
    spec = declared()[method]
    return [one.name for one in (*spec.parameters, *_of_drafters(spec))]


def _of_drafters(spec: Spec) -> list[Parameter]:
    """Parameters that a drafter of the method may have, each name once."""
    own = {one.name for one in spec.parameters}
    found: dict[str, Parameter] = {}
    for name in drafters() if spec.drafter else ():
        for one in declared()[name].parameters:
            if one.name not in own:
                found.setdefault(one.name, one)
    return list(found.values())


def _node(spec: Spec) -> type:
    fields: list[tuple[str, Any, Any]] = [("name", str, field(default=spec.name, metadata={"help": spec.help}))]
    for one in spec.parameters:
        fields.append((one.name, type(one.default), field(default=one.default, metadata={"help": one.help})))
    for one in _of_drafters(spec):
        # None is "not given": the default is that of the drafter.
        fields.append((one.name, type(one.default) | None, field(default=None, metadata={"help": one.help})))
    return make_dataclass(f"{spec.name}_config", fields)
