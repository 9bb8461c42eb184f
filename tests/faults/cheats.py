"""Makes the methods of tests/faults/methods known to the loop and the plan, for one test only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pti_loop.methods as methods
from pti_loop import parameters

FOLDER = Path(__file__).parent / "methods"


@contextmanager
def known_cheats() -> Iterator[None]:
    """As if the files were in pti_loop/methods."""
    own = {spec.name: f"tests.faults.methods.{path.stem}" for path in FOLDER.glob("*.py")
           if (spec := parameters.read_spec(path)) is not None}  # fmt: skip
    usual = parameters.module_of
    caches = (parameters.declared, parameters.drafters, parameters.module_of, methods._method)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, "FOLDERS", (*parameters.FOLDERS, FOLDER))
        patch.setattr(methods, "module_of", lambda name: own.get(name) or usual(name))
        try:
            for cache in caches:
                cache.cache_clear()
            yield
        finally:
            for cache in caches:
                cache.cache_clear()
