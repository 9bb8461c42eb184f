"""The scope of a claim: which keys its table has, and which values a key may have.

What a method has is declared beside its loop (`pti_loop.parameters`), so a scope knows the parameters of every method,
and no method by name. It reads no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.errors import UserError, nearest
from bench.records.drawing import CHAIN, ENDS, PLAIN
from pti_loop.parameters import Declaration, Parameter, ParameterError, declare, declared, parameters_of, resolve

PER = ("answer", "aggregate", "counted")
ANY = "any"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a scope: the type of its values, and what they may be. `override` is its name in a sweep."""

    kind: type
    choices: tuple[str, ...] = ()
    least: float = 0
    override: str = ""


_NAMED = {"machine": Key(str), "model": Key(str, override="model")}
_ENGINE = {
    "n_ctx": Key(int, least=8, override="engine.n_ctx"),
    "kv_unified": Key(bool, override="engine.kv_unified"),
    "type_k": Key(str, override="engine.type_k"),
    "type_v": Key(str, override="engine.type_v"),
    "flash_attn": Key(str, ("auto", "on", "off"), override="engine.flash_attn"),
}
_DRAWN = {name: Key(type(usual), override=name) for name, usual in CHAIN.items()} | {
    ENDS: Key(bool, override=ENDS), "prompt_template": Key(str, (PLAIN, "model"), override="prompts.template")}
_SWEPT = {
    "method": Key(str, override="method"),
    "streams": Key(int, least=1, override="streams"),
    "temperature": Key(float, override="temperature"),
    "n_predict": Key(int, least=2, override="n_predict"),
    "per": Key(str, PER),
    **_NAMED,
    **_ENGINE,
    **_DRAWN,
}
_CLASS = {"prompt_class": Key(str, override="measure.classes")}
_MATRIX = {"streams": Key(int, least=1, override="--streams"), "rows": Key(int, least=1), "cols": Key(int, least=1),
           "variant": Key(str, override="--variants"), "machine": Key(str)}  # fmt: skip

KEYS: dict[str, dict[str, Key]] = {
    "speedup": {**_SWEPT, **_CLASS},
    "trials": {**_SWEPT, **_CLASS, "difference": Key(str), "was": Key(str), "became": Key(str),
               "depth": Key(int, override="depth")},
    "acceptance": {**_SWEPT, **_CLASS, "depth": Key(int)},
    "domain": {**_SWEPT, "domain": Key(str), "window": Key(int),
               "signal": Key(str, ("acceptance", "collision", "excess"))},
    "step_cost": {**_NAMED, **_ENGINE, "width": Key(int, least=1, override="measure.step_widths"),
                  "layout": Key(str, ("sequences", "tokens")), "n_past": Key(int, override="measure.step_depth")},
    "memory": {**_NAMED, **_ENGINE, "streams": Key(int, least=1), "method": Key(str, override="method"),
               "arm": Key(str, ("baseline", "treatment"))},
    "bandwidth": {"machine": Key(str), "threads": Key(int, least=1, override="engine.threads")},
    "kernels": {**_MATRIX, "format": Key(str, override="--formats"),
                "cache": Key(str, ("cold", "warm"), override="--caches")},
    "counters": {**_MATRIX, "format": Key(str, override="--formats"), "width": Key(int, least=1), "kernel": Key(str),
                 "of": Key(str, ("launch", "decode")), "model": Key(str)},
    "ssq": {**_MATRIX, "layout": Key(str)},
}  # fmt: skip
"""Keys of a scope by table. Tables of a method also have the method's parameters."""

OF_METHODS = ("speedup", "trials", "acceptance", "domain")
DOCUMENTARY = ("kernel", "format", "per")
"""Keys that a claim without records may have too, for its reader."""


def check_scope(where: str, table: str, scope: Mapping[str, Any]) -> None:
    """Raises UserError for a key that the table's rows do not have, or a value that they cannot have."""
    keys = dict(KEYS[table])
    if table in OF_METHODS:
        keys |= {one.name: _key_of(one) for one in _parameters(where, scope)}
    for key, value in scope.items():
        if key not in keys:
            raise UserError(f"{where} has the unknown scope key '{key}'{_whose(table, scope)}; {nearest(key, keys)}")
        for one in values_of(where, key, value):
            if one != ANY:
                _check_value(where, key, one, keys[key])
    if table in OF_METHODS:
        _check_method(where, scope)


def check_documentary(where: str, scope: Mapping[str, Any]) -> None:
    """The scope of a claim that no record is about: known keys, and values as they were published."""
    known = {key for keys in KEYS.values() for key in keys} | {*DOCUMENTARY}
    known |= {one.name for spec in declared().values() for one in spec.parameters}
    for key, value in scope.items():
        if key not in known:
            raise UserError(f"{where} has the unknown scope key '{key}'; {nearest(key, known)}")
        for one in values_of(where, key, value):
            if key == "method" and one != ANY and one not in declared():
                raise UserError(f"{where}: scope.method: there is no method '{one}'; {nearest(str(one), declared())}")
    if scope.get("per", PER[0]) not in PER:
        raise UserError(f"{where} has the unknown scope.per '{scope['per']}'; {nearest(str(scope['per']), PER)}")


def values_of(where: str, key: str, value: Any) -> list[Any]:
    """The single values of a scope's entry: of a list each, of a range both ends. Raises UserError for a half range."""
    if isinstance(value, Mapping):
        for end in value:
            if end not in ("from", "to"):
                raise UserError(f"{where} has the unknown scope.{key} key '{end}'; {nearest(str(end), ('from', 'to'))}")
        if len(value) != 2:
            raise UserError(f"{where}: scope.{key} needs both ends; write {{from: 0.1, to: 0.5}}")
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in value.values())
        if not numbers or value["from"] > value["to"]:
            raise UserError(f"{where}: scope.{key} from {value['from']} to {value['to']} is no range of numbers")
        return [value["from"], value["to"]]
    if isinstance(value, (list, tuple)):
        if not value:
            raise UserError(f"{where}: scope.{key} is an empty list; leave it out, or write any")
        if inner := [one for one in value if isinstance(one, (list, tuple, Mapping))]:
            raise UserError(f"{where}: scope.{key} has {str(inner[0])[:60]} in its list; write single values")
        return list(value)
    return [value]


def declaration(scope: Mapping[str, Any]) -> Declaration | None:
    """What the scope's one method declares with the scope's parameters; None where the scope has not one method."""
    name = scope.get("method")
    if not isinstance(name, str) or name not in declared():
        return None
    own = {one.name for one in parameters_of(declared()[name], scope)}
    given = {key: value for key, value in scope.items() if key in own and not isinstance(value, (list, Mapping))}
    return declare(name, resolve(name, {key: value for key, value in given.items() if value != ANY}))


def _parameters(where: str, scope: Mapping[str, Any]) -> Iterator[Parameter]:
    """Parameters of the methods that the scope names."""
    for name in values_of(where, "method", scope.get("method", ANY)):
        if name != ANY and name not in declared():
            raise UserError(f"{where}: scope.method: there is no method '{name}'; {nearest(str(name), declared())}")
        if name != ANY:
            spec = declared()[name]
            drafters = values_of(where, "drafter", scope.get(spec.drafter.name, ANY)) if spec.drafter else [ANY]
            for drafter in drafters:
                yield from parameters_of(spec, {spec.drafter.name: drafter} if spec.drafter else {})


def _key_of(parameter: Parameter) -> Key:
    least = parameter.least if parameter.least is not None else 0
    choices = () if parameter.chain else parameter.choices  # the method's own check knows what may be joined
    return Key(type(parameter.default), choices, least, f"method.{parameter.name}")


def _whose(table: str, scope: Mapping[str, Any]) -> str:
    """Words on what has no such key."""
    if table in OF_METHODS and scope.get("method", ANY) != ANY:
        return f", which method={scope['method']} has not"
    return f" of table '{table}'"


def _check_value(where: str, key: str, value: Any, asked: Key) -> None:
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}[asked.kind]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    fits = {bool: isinstance(value, bool), int: number and float(value).is_integer(), float: number,
            str: isinstance(value, str)}[asked.kind]  # fmt: skip
    if not fits:
        raise UserError(f"{where}: scope.{key} is '{value}'; write {wanted}, a list, {{from: .., to: ..}}, or any")
    if asked.choices and value not in asked.choices:
        raise UserError(f"{where} has the unknown scope.{key} '{value}'; {nearest(str(value), asked.choices)}")
    if number and value < asked.least:
        raise UserError(f"{where}: scope.{key} {value} is below {asked.least:g}; give a larger value")


def _check_method(where: str, scope: Mapping[str, Any]) -> None:
    """Bounds of the method's own parameters, and no streams for a method of one answer."""
    name = scope.get("method")
    if not isinstance(name, str) or name == ANY:
        return
    spec = declared()[name]
    own = {one.name: one for one in parameters_of(spec, scope)}
    named = scope.get(spec.drafter.name) if spec.drafter else None
    drafter = {spec.drafter.name: named} if spec.drafter and isinstance(named, str) and named != ANY else {}
    for key in [key for key in scope if key in own]:
        for value in values_of(where, key, scope[key]):
            if value != ANY:
                try:
                    resolve(name, {**drafter, key: value})
                except ParameterError as error:
                    told = f"; {nearest(error.given, error.valid)}" if error.valid else ""
                    raise UserError(f"{where}: scope.{key}: {error}{told}") from error
    streams = [one for one in values_of(where, "streams", scope.get("streams", 1)) if one != ANY]
    if spec.answers == "one" and any(one != 1 for one in streams):
        raise UserError(f"{where}: scope.streams is {scope['streams']}, and method={name} decodes one answer; leave "
                        "streams out")  # fmt: skip
    if spec.most_streams is not None and any(one > spec.most_streams for one in streams):
        raise UserError(f"{where}: scope.streams is {scope['streams']}, and method={name} takes at most "
                        f"{spec.most_streams}")  # fmt: skip
