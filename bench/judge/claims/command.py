"""The command that would measure a claim: every parameter of its scope as an override, and nothing that is no key.

It knows what the methods declare and runs nothing. A profile times both layouts of a decode, so the layout is no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bench.judge.claims.columns import KERNEL_TABLES
from bench.judge.claims.mechanism import MATTERS, mechanism
from bench.judge.claims.scope import ANY, KEYS, OF_METHODS
from bench.records.drawing import USUAL
from pti_loop.parameters import declared, parameters_of

if TYPE_CHECKING:
    from bench.judge.claims.claim import Claim

SWEEP = "python -m bench sweep"
KERNELS = "python -m bench kernels"
TEMPERATURES, OF_ANY = (0.3, 0.6, 0.8, 1.0), (0.0, 0.3, 0.7, 1.0)
STREAMS = (2, 3, 4)
USUAL_WIDTHS = 8
"""A profile times one token in each of up to so many sequences at every width; beyond, and of tokens of one sequence,
some widths and always the last one that it is told."""
_FROM_CONDITIONS = ("n_predict", "n_ctx", "type_k", "flash_attn", "temperature", *USUAL)


def needed(claim: Claim) -> str:
    """What has to be run to measure a claim, the command in backticks first."""
    command = claim.rule.command or (_kernels(claim) if claim.table in KERNEL_TABLES else _sweep(claim))
    return f"`{command}`" + _where(claim) + (f"; {claim.rule.needs}" if claim.rule.needs else "")


def _sweep(claim: Claim) -> str:
    words = list(_overrides(claim))
    profile = claim.table not in OF_METHODS and "method" not in claim.scope
    return " ".join([SWEEP, *(["profile=true"] if profile else []), *words])


def _overrides(claim: Claim) -> Iterator[str]:
    """`key=value` of the scope, then of the conditions that a sweep can set."""
    keys = {key: asked.override for key, asked in KEYS[claim.table].items() if asked.override}
    spec = declared().get(str(claim.scope.get("method")))
    if spec is not None:
        keys |= {one.name: f"method.{one.name}" for one in parameters_of(spec, claim.scope)}
        if spec.answers == "one":
            keys.pop("streams", None)  # one answer has none
    for key, value in claim.scope.items():
        if key in keys and not (value == ANY and key not in ("temperature", "streams")):
            yield from _override(claim, key, keys[key], value)
    for key in _FROM_CONDITIONS:
        if key in claim.conditions and key not in claim.scope and key in keys:
            yield f"{keys[key]}={_text(claim.conditions[key])}"


def _override(claim: Claim, key: str, name: str, value: Any) -> Iterator[str]:
    values = _values(key, value)
    if key == "prompt_class":
        if value != "all":
            yield f"{name}=[{','.join(values)}]"
    elif key == "width":
        if claim.scope.get("layout") == "tokens" or max(map(float, values)) > USUAL_WIDTHS:
            yield f"{name}={','.join(values)}"
    else:
        yield f"{name}={','.join(values)}"


def _values(key: str, value: Any) -> list[str]:
    """Scope values as a sweep takes them; of `any` and of a range, the usual ones."""
    if isinstance(value, Mapping):
        if key == "temperature":
            inside = [one for one in TEMPERATURES if value["from"] <= one <= value["to"]] or [value["from"]]
        else:
            inside = list(range(int(value["from"]), int(value["to"]) + 1))
        return [_text(one) for one in inside]
    if value == ANY:
        return [_text(one) for one in (OF_ANY if key == "temperature" else STREAMS)]
    return [_text(one) for one in value] if isinstance(value, (list, tuple)) else [_text(value)]


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _kernels(claim: Claim) -> str:
    words = [KERNELS]
    for key, asked in KEYS[claim.table].items():
        if asked.override and key in claim.scope and claim.scope[key] != ANY:
            words.append(f"{asked.override} {','.join(_values(key, claim.scope[key]))}")
    if "rows" in claim.scope and "cols" in claim.scope:
        words.append(f"--shapes {claim.scope['rows']}x{claim.scope['cols']}")
    return " ".join(words)


def _where(claim: Claim) -> str:
    """The machine and the model that the figure belongs to, where another one says nothing."""
    if mechanism(claim).anywhere:
        return ""
    named = {**claim.scope, **claim.conditions}
    machine = f" on {named['machine']}" if "machine" in named else ""
    model = [str(named[key]) for key in ("model", "quantization") if key in named and key in MATTERS[claim.table]]
    return machine + (f" with {' '.join(model)}" if model else "")
