"""Takes one check of the judge out at a time and sees whether something notices: `python -m tests.faults.mutate`.

Of an invariant each sentence that it may return is taken out, and the faults that it must catch are tried. Of a control
each `VOID` becomes `OK`, and the tests of its module are run. What nothing notices is printed with its line, and its
reason where one is known. It writes no file, and undoes each change.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench.judge.invariants import INVARIANTS
from bench.judge.tables import named
from tests.faults.catalogue import Fault, catalogue

CONTROLS = {
    "bench.judge.controls.arms": ("tests/judge/controls/test_arms.py",),
    "bench.judge.controls.conditions": ("tests/judge/controls/test_arms.py",),
    "bench.judge.measure.decomposition": ("tests/judge/measure/test_decomposition.py",),
    "bench.judge.measure.roofline": ("tests/judge/measure/test_roofline.py",),
    "bench.judge.measure.sampled_tokens": ("tests/judge/measure/test_sampled_tokens.py",),
}
"""Modules of controls, and the tests that must notice."""
KNOWN: dict[tuple[str, str], str] = {}
"""Survivors that are none, by module and a part of their line, with the reason."""

Mutant = tuple[int, ast.Module]


def sentences(tree: ast.Module) -> Iterator[Mutant]:
    """For each returned sentence the module without it."""
    places = [node for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) and function.returns
              and "str | None" in ast.unparse(function.returns) for node in ast.walk(function)
              if isinstance(node, ast.Return) and node.value and not _empty(node.value)]  # fmt: skip
    for node in places:
        kept, node.value = node.value, ast.Constant(None)
        yield node.lineno, ast.fix_missing_locations(tree)
        node.value = kept


def _empty(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def voids(tree: ast.Module) -> Iterator[Mutant]:
    """For each `VOID` the module with `OK` in its place."""
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "VOID"]:
        node.id = "OK"
        yield node.lineno, tree
        node.id = "VOID"


def survivors(module: ModuleType, make: Callable[[ast.Module], Iterator[Mutant]],
              noticed: Callable[[], bool]) -> tuple[int, list[str]]:  # fmt: skip
    """How many mutants a module has, and the lines of those that nothing noticed."""
    source = inspect.getsource(module)
    lines, count, left = source.splitlines(), 0, []
    try:
        for line, tree in make(ast.parse(source)):
            count += 1
            _become(module, compile(tree, str(module.__file__), "exec"))
            if not noticed():
                left.append(f"{module.__name__}:{line}: {lines[line - 1].strip()}")
    finally:
        _become(module, compile(source, str(module.__file__), "exec"))
    return count, left


def _become(module: ModuleType, code: object) -> None:
    exec(code, module.__dict__)  # type: ignore[arg-type]
    named.cache_clear()


def _missed(faults: list[Fault]) -> bool:
    for fault in faults:
        with tempfile.TemporaryDirectory() as folder:
            if fault.fails(Path(folder)):
                return True
    return False


def _failed(tests: tuple[str, ...]) -> bool:
    return pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--no-summary", *tests]) != 0


def of_invariants() -> tuple[int, list[str]]:
    """All invariants, by the faults that name them."""
    total, left = 0, []
    for name in dict.fromkeys(one.check.partition(":")[0] for one in INVARIANTS):
        mine = {one.name for one in INVARIANTS if one.check.startswith(f"{name}:")}
        faults = [fault for fault in catalogue() if fault.check in mine and fault.kind in ("record", "method")]
        faults.sort(key=lambda fault: fault.kind == "method")  # records first: they are quicker
        module = importlib.import_module(f"bench.judge.invariants.{name}")
        count, lived = survivors(module, sentences, lambda faults=faults: _missed(faults))  # type: ignore[misc]
        total, left = total + count, left + lived
    return total, left


def of_controls() -> tuple[int, list[str]]:
    """All controls, by their tests."""
    total, left = 0, []
    for name, tests in CONTROLS.items():
        module = importlib.import_module(name)
        count, lived = survivors(module, voids, lambda tests=tests: _failed(tests))  # type: ignore[misc]
        total, left = total + count, left + lived
    return total, left


def main(arguments: list[str]) -> int:
    """Print the survivors and the score; `invariants` or `controls` alone where it is said."""
    parts = {"invariants": of_invariants, "controls": of_controls}
    total, left = 0, []
    for name in arguments or list(parts):
        count, lived = parts[name]()
        total, left = total + count, left + lived
    for line in left:
        why = next((reason for (module, part), reason in KNOWN.items() if module in line and part in line), "")
        print(f"survives: {line}" + (f" ({why})" if why else ""))
    print(f"{total - len(left)} of {total} mutants were noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
