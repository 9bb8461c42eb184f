"""The settings of one run of a loop: how many tokens, how many streams, and the parameters that its method has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pti_loop.parameters import Value, resolve


@dataclass(frozen=True)
class Settings:
    """Parameters of a method for one run; each is read as an attribute, `settings.draft`.

    `n_predict` counts tokens of one answer, the prefill's token included.
    """

    streams: int = 1
    n_predict: int = 32
    rollback: str = "rewind"
    """How rejected tokens are forgotten: a name of `pti_loop.rollback.STRATEGIES`."""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """By name, as `pti_loop.parameters.resolve` gives them."""
    ends: tuple[int, ...] = ()
    """Tokens that end an answer before it has `n_predict`; none where they are never drawn."""

    def __getattr__(self, name: str) -> Any:
        """A parameter's value. Raises AttributeError for one that the method does not have."""
        try:
            return self.__dict__["parameters"][name]
        except KeyError:
            raise AttributeError(f"the method has no parameter '{name}'") from None


def settings_of(name: str, streams: int = 1, n_predict: int = 32, **given: Value) -> Settings:
    """Settings of a method with the parameters that are not given at their defaults, and `auto` rollback as rewind.

    Raises `ParameterError` for a parameter that the method does not have, and for a bad value.
    """
    values = resolve(name, given)
    rollback = str(values.get("rollback", "rewind"))
    return Settings(streams, n_predict, "rewind" if rollback == "auto" else rollback, values)
