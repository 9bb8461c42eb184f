"""Makes the judge and the audit wrong in one small place at a time and sees whether a test fails:
`python -m tests.faults.mutate [FOLDER|FILE ...] [--sample N] [--seed N] [--tests PATH ...] [--again]`.

Of all mutants (`mutants`) a random sample is drawn, from each file in proportion. Each is tried in a fork of a process
that has collected the tests, on those that run its line, quickest first, up to the first that fails; one that makes
them take several times as long is noticed too. The score leaves out those that are listed as equivalent
(`equivalent.csv`). `--again` tries what survived the last time. An interrupt ends the sample where it is. No file of
the repository is written.

Ours, since no library tries one mutant in well under a second here: cosmic-ray 8.7 starts a whole test run for each and
writes it into the source; mutmut 3.8 forks as this does, but leaves out all decorated functions (each property and
cached property) and all that stands outside of functions, and cannot draw a sample.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gc
import json
import os
import random
import resource
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from tests.faults.covering import FOLDER, MEASURED, Covering, covering, quiet
from tests.faults.mutants import ROOT, Mutant, mutants

TESTS = ("tests/judge", "tests/audit", "tests/faults", "tests/report", "tests/bench", "tests/run/test_turns.py",
         "tests/run/test_until.py", "tests/run/test_trial.py", "tests/run/test_kept.py")  # fmt: skip
"""Those that judge anything."""
EQUIVALENT = Path(__file__).with_name("equivalent.csv")
BUDGET_S = 20.0
"""Processor time of the tests that one mutant is shown, as they take without it."""
NOTICED, SURVIVED = 0, 17
OWN = ("bench", "kernels", "models", "pti_loop", "tests")
MEMORY = 16 << 30
LAST = FOLDER / "survivors.json"


def known() -> dict[tuple[str, str, str, str], str]:
    """Mutants that change nothing that anybody could see, with the reason."""
    with EQUIVALENT.open(newline="") as file:
        return {(row["file"], row["function"], row["line"], row["change"]): row["why"] for row in csv.DictReader(file)}


def every(places: Sequence[str] = ()) -> list[Mutant]:
    """The mutants of files or folders, of all where none is given."""
    paths = [ROOT / place for place in places or MEASURED]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return [mutant for file in files for mutant in mutants(file)]


def sample(population: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """Every k-th of the mutants, shuffled within their file: each file in proportion, each mutant as likely."""
    draw = random.Random(seed)
    order = sorted(population, key=lambda mutant: (mutant.path, draw.random()))
    step = len(order) / size
    begin = draw.random() * step
    drawn = order if step <= 1 else [order[int(begin + k * step)] for k in range(size)]
    draw.shuffle(drawn)  # so that what was tried before an interrupt is a sample too
    return drawn


class Trial:
    """A pytest plugin that tries mutants in place of running the collected tests."""

    def __init__(self, chosen: list[Mutant]) -> None:
        self.chosen = chosen
        self.results: list[tuple[Mutant, str]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Forks for each mutant."""
        found = covering(session.items)
        items = {item.nodeid: item for item in session.items}
        functions, caches = _functions(), _caches()
        gc.freeze()
        for mutant in self.chosen:
            tests = [items[name] for name in shown(mutant, found) if name in items]
            limit = 10 + 4 * sum(found.seconds[test.nodeid] for test in tests)
            result = _tried(mutant, tests, limit, functions, caches) if tests else "no test runs it"
            self.results.append((mutant, result))
            if result:
                print(f"{mutant.path}:{mutant.line}: {result}: {mutant.text} ({mutant.change})", flush=True)
        return True


def shown(mutant: Mutant, found: Covering) -> list[str]:
    """Tests that a mutant has to fail: those that run its statement, then others of their files, quickest first."""
    if mutant.function:
        tests = found.of(mutant.path, mutant.first, mutant.line) if mutant.line - mutant.first < 12 else []
        tests = tests or found.of(mutant.path, mutant.line, mutant.line)
    else:
        tests = found.of_file(mutant.path)
    files = {name.partition("::")[0] for name in tests}
    others = [name for name in found.of_file(mutant.path) if name.partition("::")[0] in files and name not in tests]
    chosen, spent = [], 0.0
    for part in (tests, others):
        for name in sorted(part, key=lambda name: found.seconds[name]):
            spent += found.seconds[name]
            if spent > BUDGET_S and chosen:
                return chosen
            chosen.append(name)
    return chosen


Functions = dict[tuple[str, str], list[types.FunctionType]]


def _tried(mutant: Mutant, tests: list[pytest.Item], limit: float, functions: Functions, caches: list[Any]) -> str:
    """Empty when it was noticed."""
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            if mutant.function:
                _become(mutant, functions)
                for cache in caches:
                    cache.cache_clear()
                _run(tests)
            else:
                _import_changed(mutant, tests)
        except BaseException:
            os._exit(NOTICED)
        os._exit(SURVIVED)
    status = os.waitpid(child, 0)[1]
    return "survives" if os.waitstatus_to_exitcode(status) == SURVIVED else ""


class Stop:
    """A pytest plugin that ends the process at the first failure."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Nothing is torn down: the process is a fork, and its folders are those of its parent."""
        if report.failed:
            os._exit(NOTICED)


def _run(tests: list[pytest.Item]) -> None:
    config = tests[0].config
    quiet(config)
    config.pluginmanager.register(Stop())
    for test, following in zip(tests, [*tests[1:], None], strict=True):
        config.hook.pytest_runtest_protocol(item=test, nextitem=following)


def _functions() -> Functions:
    """All that exist, by file and qualified name, however they are wrapped or imported."""
    found: Functions = {}
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType) and thing.__code__.co_filename.startswith(str(ROOT / "bench")):
            found.setdefault((thing.__code__.co_filename, thing.__code__.co_qualname), []).append(thing)
    return found


def _caches() -> list[Any]:
    """What collecting the tests has put into caches must not hide a mutant."""
    return [thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper)
            and str(thing.__module__).partition(".")[0] in OWN]  # fmt: skip


def _become(mutant: Mutant, functions: Functions) -> None:
    """In this process, by other code for its function."""
    path = str(ROOT / mutant.path)
    codes = _codes(compile(mutant.tree(), path, "exec"))
    code = next(one for one in codes if one.co_qualname == mutant.function)
    for function in functions[path, mutant.function]:
        function.__code__ = code


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _import_changed(mutant: Mutant, tests: list[pytest.Item]) -> None:
    """In this process, by importing everything again: others may have taken what a module's own lines compute."""
    path = str(ROOT / mutant.path)
    code = compile(mutant.tree(), path, "exec")

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> types.CodeType:
            return code

    class Finder(PathFinder):
        @classmethod
        def find_spec(cls, fullname: str, path_: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
            spec = super().find_spec(fullname, path_, target)
            if spec and spec.origin == path:
                spec.loader = Loader(fullname, path)
            return spec

    for name in [name for name in sys.modules if name.partition(".")[0] in OWN]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder)
    pytest.main(["-q", "-p", "no:cacheprovider", *(test.nodeid for test in tests)], plugins=[Stop()])


def main(arguments: list[str]) -> int:
    """Print what survives, and the score with its 95 % interval; exit code 1 when a survivor is not explained."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutate", description=__doc__)
    parser.add_argument("places", nargs="*", help="files or folders; bench/judge and bench/audit where none is given")
    parser.add_argument("--sample", type=int, default=0, help="how many mutants; 0 is all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files or folders of tests that are shown a mutant")
    parser.add_argument("--again", action="store_true", help="those that survived the last time")
    options = parser.parse_args(arguments)
    chosen = every(options.places)
    if options.again:
        last = {tuple(key) for key in json.loads(LAST.read_text())}
        chosen = [mutant for mutant in chosen if mutant.key in last]
    elif options.sample:
        chosen = sample(chosen, options.sample, options.seed)
    reasons = known()
    trial = Trial([mutant for mutant in chosen if mutant.key not in reasons])
    pytest.main(["-q", "-p", "no:cacheprovider", *options.tests], plugins=[trial])
    left = [mutant for mutant, result in trial.results if result]
    LAST.write_text(json.dumps([mutant.key for mutant in left]))
    total = len(trial.results)
    noticed = binomtest(total - len(left), total).proportion_ci(method="wilson") if total else None
    if noticed:
        print(f"{total - len(left)} of {total} mutants were noticed: {1 - len(left) / total:.1%} "
              f"({noticed.low:.1%} to {noticed.high:.1%}); "
              f"{len(chosen) - len(trial.chosen)} others are equivalent")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
