"""What a way of decoding declares of itself: parameters, what its rows are, whether it guesses, how it is called.

Every file of `pti_loop/methods` and `pti_loop/draft` that is one has a statement `SPEC = Spec(...)`. It is read without
importing the file: its imports from this module and that statement alone are executed, so that nobody who only wants
to know what there is loads numpy or an engine. It knows no method by name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

Value = bool | int | float | str
ANSWERS = ("one", "copies", "independent")
"""One answer; one answer in several staggered copies; several answers at once. Only the last two have `streams`."""
LAYOUTS = ("tokens", "sequences")
"""What the rows of a decode are: tokens of one sequence, or one token in each of several."""
NONE = "none"
"""Of a parameter that names a drafter: there is none."""


class ParameterError(ValueError):
    """A value that a method cannot have; the text is one sentence. `given` is what was written, `valid` what may be."""

    def __init__(self, sentence: str, given: str = "", valid: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.given, self.valid = given, tuple(valid)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting of a method. Its type is that of the default."""

    name: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    kind: str = "value"
    """`value`; `file`, a path; `model`, a path or the name of a model's configuration; `drafter`, the name of a file of
    `pti_loop/draft`, whose parameters the method then has too."""
    warm: bool = False
    """Says nothing at temperature 0, where it is no part of what was measured."""
    shown: bool = False
    """Told in a short label at its default too."""
    optional: bool = False
    """Of a file or model: whether the method may do without it."""
    chain: bool = False
    """Whether several of the choices may be given, joined by `+`."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What a value adds to the label, by the value as text; `*` stands for every other one."""
    drafts: int | None = None
    """Of a length: how many guesses a round of an answer has at most, over its value. At 0 the drafter has its own."""
    frees: tuple[str, ...] = ()
    """Values, as text, with which no length bounds the guesses."""
    keeps: tuple[str, ...] = ()
    """Values, of a chain one of them, with which a drafter learns what it could keep from answer to answer."""

    def has(self, value: Any, words: Iterable[str]) -> bool:
        """Whether a value, or one of those that are joined in it, is among some words."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return any(one in words for one in (text.split("+") if self.chain else [text]))

    def check(self, where: str, value: Any) -> Value:
        """The value as the parameter's type. Raises `ParameterError` when it cannot be one."""
        wanted = type(self.default)
        if isinstance(value, str) and wanted is bool and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        if isinstance(value, bool) != (wanted is bool) or (wanted is int and not isinstance(value, int)):
            raise ParameterError(f"{where}{self.name}={value} is no {_WORDS[wanted]}; {self.help}")
        checked: Value = wanted(value)
        given = str(checked).split("+") if self.chain else [checked]
        if self.choices and (wrong := [one for one in given if one not in self.choices or given.count(one) > 1]):
            raise ParameterError(f"{where}{self.name}={value} is not a choice", str(wrong[0]), self.choices)
        if self.least is not None and float(checked) < self.least:
            raise ParameterError(f"{where}{self.name}={value} is below {self.least}; give a larger value")
        if self.most is not None and float(checked) > self.most:
            raise ParameterError(f"{where}{self.name}={value} is above {self.most}; give a smaller value")
        return checked


_WORDS = {bool: "truth value", int: "whole number", float: "number", str: "text"}


@dataclass(frozen=True, slots=True)
class Variant:
    """What is otherwise when some parameters have these values: the words, and what a sound ledger may hold."""

    when: Mapping[str, Value]
    label: str = ""
    repeats: bool | None = None
    by_rounds: bool | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """A way of decoding, or a drafter that makes one."""

    name: str
    label: str
    """In words, with parameters and `{streams}` in braces."""
    help: str = ""
    parameters: tuple[Parameter, ...] = ()
    answers: str = "one"
    layout: str = "tokens"
    guesses: bool = True
    """Whether it proposes tokens that may be wrong."""
    repeats: bool = False
    """Whether it says a token again by design, so that its emit calls are no count of tokens."""
    by_rounds: bool = False
    """Whether it ends after so many rounds, so that lengths differ by design."""
    hidden: bool = False
    """Whether it reads the target's hidden states."""
    tuned: bool = False
    """Whether its drafter was tuned on a kind of text, so that it is compared with others off it."""
    most_streams: int | None = None
    variants: tuple[Variant, ...] = ()

    @property
    def drafter(self) -> Parameter | None:
        """The parameter that names a drafter, where it has one."""
        return next((one for one in self.parameters if one.kind == "drafter"), None)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a record says of its arm, so that a reader needs no method: `Spec` with the values filled in."""

    answers: str
    layout: str
    guesses: bool
    repeats: bool
    by_rounds: bool
    label: str
    short: str
    tuned: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For a record."""
        return asdict(self)


DRAFT = Parameter("draft", 3, "most guesses a round", least=1, shown=True, drafts=0)
DRAWS = Parameter("draws", "greedy", "greedy: a guess is the most likely token; independent: it is drawn with a random "
                  "number of its own; coupled: with that of the draw it predicts",
                  choices=("independent", "coupled", "greedy"), warm=True)  # fmt: skip
ROLLBACK = Parameter("rollback", "auto", "how rejected tokens are forgotten; auto takes the cheapest that was seen to "
                     "restore the state", choices=("auto", "rewind", "snapshots", "checkpoint"))  # fmt: skip
LOOKUP = (
    replace(DRAFT, default=7),
    Parameter("ngram", 4, "longest n-gram that is looked for; the shortest is 2, or 1 when this is 1", least=1),
    Parameter("gate", False, "leave weak matches alone after misses", words={"true": ", gated"}),
    Parameter("adaptive", False, "let the draft length climb 7, 15, 31 on full accepts",
              words={"true": ", of adaptive length"}, frees=("true",)),
)  # fmt: skip
"""Parameters of a drafter that copies from the text."""


def with_defaults(parameters: Iterable[Parameter], **defaults: Value) -> tuple[Parameter, ...]:
    """The parameters, some with another default."""
    return tuple(replace(one, default=defaults.get(one.name, one.default)) for one in parameters)


FOLDERS = (Path(__file__).parent / "methods", Path(__file__).parent / "draft")


@cache
def declared() -> dict[str, Spec]:
    """Every declaration by name: the methods in order of their files, then the drafters.

    Raises `ParameterError` for two of one name, or a statement that cannot be executed by itself.
    """
    found: dict[str, Spec] = {}
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.py")):
            spec = read_spec(path)
            if spec is not None:
                if spec.name in found:
                    raise ParameterError(f"{path.name} declares '{spec.name}', which another file does; rename one")
                found[spec.name] = spec
    return found


@cache
def drafters() -> tuple[str, ...]:
    """Names of the declarations that are drafters."""
    names = {spec.name for path in FOLDERS[1].glob("*.py") if (spec := read_spec(path)) is not None}
    return tuple(name for name in declared() if name in names)


@cache
def module_of(name: str) -> str:
    """Name of the module that declares a method. Raises KeyError for an unknown one."""
    for folder in FOLDERS:
        for path in folder.glob("*.py"):
            spec = read_spec(path)
            if spec is not None and spec.name == name:
                return f"pti_loop.{folder.name}.{path.stem}"
    raise KeyError(name)


@cache
def read_spec(path: Path) -> Spec | None:
    """The `SPEC` of a file, None where it has none. Raises `ParameterError` when it needs more than this module."""
    text = path.read_text(encoding="utf-8")
    if "\nSPEC = " not in text:
        return None
    kept: list[ast.stmt] = [
        node for node in ast.parse(text).body
        if (isinstance(node, ast.ImportFrom) and node.module == __name__)
        or (isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "SPEC" for one in node.targets))
    ]  # fmt: skip
    space: dict[str, Any] = {}
    try:
        exec(compile(ast.Module(kept, []), str(path), "exec"), space)
    except NameError as error:
        raise ParameterError(
            f"{path.name}: SPEC uses '{error.name}', and may use only what it imports from {__name__}"
        ) from error
    spec = space["SPEC"]
    assert isinstance(spec, Spec)
    return spec


def parameters_of(spec: Spec, values: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """What the method has with these values: its own parameters, and those of the drafter that they name."""
    own = spec.parameters
    named = str(values.get(spec.drafter.name, spec.drafter.default)) if spec.drafter else NONE
    if named == NONE or named not in drafters():
        return own
    known = {one.name for one in own}
    return (*own, *(one for one in declared()[named].parameters if one.name not in known))


def resolve(name: str, given: Mapping[str, Any], where: str = "method.") -> dict[str, Value]:
    """Every parameter that the method has, as given or at its default. None counts as not given.

    Raises `ParameterError` for an unknown method, for a parameter that it does not have, and for a bad value.
    """
    if name not in declared():
        raise ParameterError(f"there is no method '{name}'", name, declared())
    spec = declared()[name]
    given = {key: value for key, value in given.items() if value is not None}
    if spec.drafter and (value := given.get(spec.drafter.name, NONE)) not in (NONE, *drafters()):
        raise ParameterError(f"{where}{spec.drafter.name}={value} is not a choice", str(value), (NONE, *drafters()))
    known = parameters_of(spec, given)
    names = [one.name for one in known]
    for key in given:
        if key not in names:
            with_drafter = f" with {spec.drafter.name}={given.get(spec.drafter.name, NONE)}" if spec.drafter else ""
            raise ParameterError(f"method={name}{with_drafter} has no parameter '{key}'", key, names or ("name",))
    return {one.name: one.check(where, given.get(one.name, one.default)) for one in known}


def declare(name: str, values: Mapping[str, Any], streams: int = 1) -> Declaration:
    """The declaration of a method with resolved parameter values; `streams` is told in its labels."""
    spec = declared()[name]
    parameters = parameters_of(spec, values)
    drafting = spec.drafter is not None and values.get(spec.drafter.name, NONE) != NONE
    repeats, by_rounds, label = spec.repeats, spec.by_rounds, spec.label
    for variant in spec.variants:
        if all(values.get(key) == value for key, value in variant.when.items()):
            repeats = repeats if variant.repeats is None else variant.repeats
            by_rounds = by_rounds if variant.by_rounds is None else variant.by_rounds
            label = variant.label or label
    label += "".join(_added(one, values.get(one.name, one.default)) for one in parameters)
    return Declaration(
        spec.answers, "tokens" if drafting else spec.layout, spec.guesses or drafting, repeats, by_rounds,
        label.format(**{one.name: one.default for one in parameters} | {**values, "streams": streams}),
        _short(spec, parameters, values, streams), spec.tuned,
    )  # fmt: skip


def longest(name: str, values: Mapping[str, Any]) -> tuple[int, ...]:
    """Most guesses of a round of one answer, by each parameter that bounds them; empty where none has to."""
    parameters = parameters_of(declared()[name], values)
    if any(one.has(values.get(one.name, one.default), one.frees) for one in parameters):
        return ()
    lengths = [(int(values.get(one.name, one.default)), one.drafts) for one in parameters if one.drafts is not None]
    return tuple(length + more for length, more in lengths) if all(length for length, _ in lengths) else ()


def keeps(name: str, values: Mapping[str, Any]) -> bool:
    """Whether a drafter could be kept from one answer to the next, with what it has learnt."""
    return any(one.has(values.get(one.name, one.default), one.keeps)
               for one in parameters_of(declared()[name], values))  # fmt: skip


def _added(parameter: Parameter, value: Any) -> str:
    """What a value adds to the label."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text in parameter.words:
        return parameter.words[text]
    return parameter.words.get("*", "") if value != parameter.default else ""


def _short(spec: Spec, parameters: Iterable[Parameter], values: Mapping[str, Any], streams: int) -> str:
    """`packed x4 drafter=mtp draft=1`: the name, and every value that is not the usual one."""
    words = [spec.name + (f" x{streams}" if spec.answers != "one" and streams != 1 else "")]
    for one in parameters:
        value = values.get(one.name, one.default)
        if one.kind in ("file", "model"):
            value = Path(str(value)).name
        if isinstance(value, bool):
            words += [one.name if value else f"{one.name}=false"] if value != one.default else []
        elif (value != one.default or one.shown) and value != "":
            words.append(f"{one.name}={value}")
    return " ".join(words)
