"""Which test runs which line of the judge and the audit: measured once a test file, and kept outside the repository.

A test file is run in a process of its own, forked from one that has collected all, so that what another file has left
in a cache hides nothing. What was measured stands when a source changes: its lines are found again where they went, and
a line that is new is run by whatever ran those in its place. It knows no mutant.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults.mutants import ROOT

FOLDER = Path(os.environ.get("PTI_BENCH_MUTATE", str(Path(tempfile.gettempdir()) / "pti-bench-mutate")))
MEASURED = ("bench/judge", "bench/audit")


@dataclass
class Covering:
    """Seconds of processor time of each test, and the tests that run a line, by file and line."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, dict[int, list[str]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def of(self, path: str, first: int, last: int) -> list[str]:
        """Tests that run one of these lines, each once."""
        lines = self.tests.get(path, {})
        return list(dict.fromkeys(test for line in range(first, last + 1) for test in lines.get(line, [])))

    def of_file(self, path: str) -> list[str]:
        """Tests that run anything of a file behind its import."""
        return list(dict.fromkeys(test for tests in self.tests.get(path, {}).values() for test in tests))


def covering(items: Sequence[pytest.Item]) -> Covering:
    """Of collected tests; what was measured of an unchanged test file is taken from disk."""
    files: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    FOLDER.mkdir(parents=True, exist_ok=True)
    found, moved = Covering(), _Moved()
    for path, own in files.items():
        kept = FOLDER / f"{'.'.join(path.relative_to(ROOT).parts)}.{_digest(path)}.json"
        if not kept.exists():
            print(f"measuring {path.relative_to(ROOT)}", flush=True)
            _in_child(own, kept)
        measured = json.loads(kept.read_text())
        found.seconds |= measured["seconds"]
        for file, lines in measured["lines"].items():
            for line, tests in lines.items():
                for place in moved.places(file, measured["sources"][file], int(line)):
                    found.tests[file][place] += tests
    return found


class _Moved:
    """Where the lines of a source went that was another one when it was measured."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[int, range]] = {}

    def places(self, file: str, digest: str, line: int) -> Sequence[int]:
        """Numbers of the lines that a line is at; none where it is gone, and all that stand in its place."""
        if (file, digest) not in self._known:
            self._known[file, digest] = _moves(ROOT / file, FOLDER / f"{digest}.py")
        known = self._known[file, digest]
        return known.get(line, ()) if known else (line,)


def _moves(now: Path, then: Path) -> dict[int, range]:
    """Empty where nothing moved."""
    if not now.exists():
        return {0: range(0)}
    before, after = then.read_text().splitlines(), now.read_text().splitlines()
    if before == after:
        return {}
    found = {}
    for word, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for line in range(a, b):
            found[line + 1] = range(c + line - a + 1, c + line - a + 2) if word == "equal" else range(c + 1, d + 1)
    return found


def quiet(config: pytest.Config) -> None:
    """No dots: for a fork that runs tests beside the session that it came from."""
    config.pluginmanager.unregister(config.pluginmanager.get_plugin("terminalreporter"))


def _digest(*paths: Path) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def _in_child(items: list[pytest.Item], kept: Path) -> None:
    child = os.fork()
    if not child:
        try:
            measured = _measure(items)
            kept.with_suffix(".part").write_text(json.dumps(measured))
            kept.with_suffix(".part").rename(kept)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    if not kept.exists():
        raise RuntimeError(f"{kept}: the tests could not be measured")


def _measure(items: list[pytest.Item]) -> dict[str, object]:
    from coverage import Coverage

    watch = Coverage(data_file=None, source=[str(ROOT / folder) for folder in MEASURED], config_file=False)
    seconds: dict[str, object] = {}
    quiet(items[0].config)
    watch.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        watch.switch_context(item.nodeid)
        begun = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        seconds[item.nodeid] = time.process_time() - begun
    watch.stop()
    data = watch.get_data()
    lines: dict[str, object] = {
        str(Path(name).relative_to(ROOT)): {line: [test for test in tests if test]
                                            for line, tests in data.contexts_by_lineno(name).items()}
        for name in data.measured_files()
    }  # fmt: skip
    return {"seconds": seconds, "lines": lines, "sources": {file: _keep(ROOT / file) for file in lines}}


def _keep(path: Path) -> str:
    """The source as it is, by its digest."""
    digest = _digest(path)
    (FOLDER / f"{digest}.py").write_bytes(path.read_bytes())
    return digest
