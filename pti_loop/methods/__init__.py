"""The ways of decoding by name. Which there are is declared in the files; a loop is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from pti_loop.method import Method
from pti_loop.parameters import declared, drafters, module_of


class _Methods(Mapping[str, Method]):
    """Every declared method; a drafter is one too, in the loop that guesses and verifies."""

    def __getitem__(self, name: str) -> Method:
        return _method(name)

    def __iter__(self) -> Iterator[str]:
        return iter(declared())

    def __len__(self) -> int:
        return len(declared())


@cache
def _method(name: str) -> Method:
    module = import_module(module_of(name))
    if name not in drafters():
        made = module.Loop(module.SPEC)
        assert isinstance(made, Method)
        return made
    from pti_loop.guessing import Guessing

    return Guessing(module.SPEC)


METHODS: Mapping[str, Method] = _Methods()
