"""The contracts and the type checker of pyproject.toml catch what they are there for, and no ignore lacks a reason."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("bench", "kernels", "models", "pti_loop")
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
CONTRACTS = [one["name"] for one in TOOLS["importlinter"]["contracts"]]
PLANTED = [
    ("The loop knows no benchmark", {"pti_loop/gguf/planted.py": "bench.errors"}),
    ("The kernels know neither the harness nor the loop", {"kernels/planted.py": "pti_loop.user_cache"}),
    ("The models are trained and measured without the harness", {"models/planted.py": "bench.judge.findings"}),
    ("The harness needs no training script", {"bench/run/planted.py": "models.tiny_shape"}),
    ("Records know nobody who writes or reads them", {"bench/records/planted.py": "bench.run.progress"}),
    ("Facts about the machine know neither runs nor judgements", {"bench/host/planted.py": "bench.judge.findings"}),
    ("A plan knows neither runs nor judgements", {"bench/plan/planted.py": "bench.report.tables.values"}),
    ("The judge reads records and nothing else", {"bench/judge/planted.py": "bench.host.cpus"}),
    # A detour, through a room that the judge may enter.
    ("The judge reads records and nothing else",
     {"bench/judge/planted.py": "bench.records.planted", "bench/records/planted.py": "bench.host.cpus"}),
    ("The judge knows the loop by its records' types alone", {"bench/judge/planted.py": "pti_loop.sampling"}),
    ("The judge does not ask the kernels", {"bench/judge/kernels/planted.py": "kernels.counters"}),
    ("The audit runs nothing and prints no page", {"bench/audit/planted.py": "bench.run.progress"}),
    ("The report asks neither runs nor the machine", {"bench/report/page/planted.py": "bench.host.memory"}),
    ("The report reads records through the judge", {"bench/report/page/planted.py": "bench.records.rows"}),
    ("Rooms of the harness", {"bench/stored.py": "bench.advise"}),
    ("Rooms of the harness", {"bench/advise.py": "bench.launchers.one", "bench/launchers/one.py": "bench.errors"}),
    ("Rooms of the harness", {"bench/unplaced.py": "bench.errors"}),
    ("Rooms of the loop", {"pti_loop/gguf/planted.py": "pti_loop.llama.model"}),
    ("Parts of llama.cpp's engine", {"pti_loop/llama/adapter.py": "pti_loop.llama.model"}),
    ("No circles", {"kernels/errors.py": "kernels.contest"}),
]  # fmt: skip
"""Contract, and an import for each of some files which together break it."""


def lint(folder: Path) -> dict[str, str]:
    """KEPT or BROKEN by the contract's name."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=folder, capture_output=True, text=True)
    found = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE))
    assert list(found) == CONTRACTS and done.returncode == int("BROKEN" in found.values()), done.stdout + done.stderr
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages' Python files with their contracts."""
    folder = tmp_path_factory.mktemp("contracts")
    for package in PACKAGES:
        for source in (ROOT / package).rglob("*.py"):
            target = folder / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def planted(copy: Path, texts: dict[str, str]) -> dict[str, str]:
    """What the contracts say with these texts at the end of their files, which are put back."""
    before = {copy / name: (copy / name).read_text() if (copy / name).exists() else None for name in texts}
    try:
        for name, text in texts.items():
            path = copy / name
            path.parent.mkdir(exist_ok=True)
            path.parent.joinpath("__init__.py").touch()
            path.write_text((before[path] or "") + text)
        return lint(copy)
    finally:
        for path, text in before.items():
            path.unlink() if text is None else path.write_text(text)


def test_every_contract_is_kept(copy: Path) -> None:
    assert set(lint(copy).values()) == {"KEPT"}


def test_every_contract_has_an_import_that_breaks_it() -> None:
    assert {name for name, _ in PLANTED} == set(CONTRACTS)


@pytest.mark.parametrize(("contract", "imports"), PLANTED)
def test_a_forbidden_import_is_caught(copy: Path, contract: str, imports: dict[str, str]) -> None:
    inside = {name: f"\n\ndef planted() -> None:\n    import {module}\n" for name, module in imports.items()}
    assert planted(copy, inside)[contract] == "BROKEN"


def test_an_import_for_types_alone_counts(copy: Path) -> None:
    text = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from bench.run.progress import Estimate\n"
    found = planted(copy, {"bench/records/planted.py": text})
    assert found["Records know nobody who writes or reads them"] == "BROKEN"


def test_no_ignored_import_is_without_a_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    assert [line for line in lines if re.search(r'".+ -> .+"', line) and not re.search(r'",\s+# \w', line)] == []


def test_no_ignored_type_is_without_a_reason() -> None:
    """In the modules that mypy looks into."""
    hidden = [name for one in TOOLS["mypy"]["overrides"] if one.get("ignore_errors") for name in one["module"]]
    found = []
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if any(fnmatch(module, name) for name in hidden):
            continue
        found += [f"{module}: {line.strip()}" for line in path.read_text(encoding="utf-8").splitlines()
                  if re.search(r"# type: ignore(?!\[[\w, -]+\]  # \w)|# mypy: ", line)]  # fmt: skip
    assert found == []


@pytest.mark.parametrize("folder", ["bench/host", "bench/records", "kernels", "models", "pti_loop"])
def test_types_are_strict(copy: Path, folder: str) -> None:
    path = copy / folder / "typed.py"
    path.write_text("def f(x): return x\ny: list = []\nz: int = 'a'\nw = 1  # type: ignore[misc]\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", "/dev/null", path.relative_to(copy)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    path.unlink()
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.findall(r"typed.py:(\d): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert found == [("1", "no-untyped-def"), ("2", "type-arg"), ("3", "assignment"), ("4", "unused-ignore")]


def test_continuous_integration_runs_them() -> None:
    steps = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in steps if line.startswith(".venv/bin/")] == [
        ".venv/bin/ruff check .", ".venv/bin/lint-imports", ".venv/bin/mypy",
    ]  # fmt: skip
