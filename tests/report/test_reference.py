"""What is committed comes from the committed records, byte for byte: the reference report and the README's table.

Another processor rounds the last bits of a number otherwise: numpy, BLAS and the C library choose their code by what it
can do. So the report is made with the plainest code of each, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from bench.judge import judge
from bench.readme import REFERENCE, ROOT, put, table
from bench.records.cells import load_cells
from tests.report.html.pages import unpacked, without_blocks

REGENERATE = "make report ARGS='results=results/reference reports=reports/reference' && python -m bench.readme"
COMMITTED = ROOT / "reports" / "reference"
BY_HAND = {Path("README.md")}


def plain_code() -> dict[str, str]:
    """The environment in which numbers are computed by code that every processor of this kind has."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    optional = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    return {
        "NPY_DISABLE_CPU_FEATURES": optional, "OPENBLAS_CORETYPE": "Prescott",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512DQ,-AVX2,-AVX,-FMA,-FMA4",
    }  # fmt: skip


def files(folder: Path) -> dict[Path, bytes]:
    found = {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: content for name, content in found.items() if name not in BY_HAND}


def parts(page: bytes) -> dict[str, str]:
    return unpacked(page.decode()) | {"page": without_blocks(page.decode())}


def first_difference(made: str, kept: str) -> str:
    pairs = enumerate(zip(made.splitlines(), kept.splitlines(), strict=False), 1)
    return next((f"line {place}:\n{mine[:400]}\n{theirs[:400]}" for place, (mine, theirs) in pairs if mine != theirs),
                "the one goes on where the other ends")  # fmt: skip


def same(name: Path, made: bytes, kept: bytes) -> None:
    """Byte for byte. A page is told by its parts, and compared by them where another zlib packs them otherwise."""
    if made == kept:
        return
    if name.suffix != ".html":
        pytest.fail(f"{name}, {first_difference(made.decode(), kept.decode())}\n{REGENERATE}")
    mine, theirs = parts(made), parts(kept)
    assert mine.keys() == theirs.keys()
    for part, text in mine.items():
        if text != theirs[part]:
            pytest.fail(f"{name}, {part}, {first_difference(text, theirs[part])}\n{REGENERATE}")
    assert "ng" in zlib.ZLIB_RUNTIME_VERSION, f"{name} is packed otherwise: {REGENERATE}"


@pytest.mark.parametrize("env", [{}, plain_code()], ids=["this processor", "plain code"])
def test_the_committed_report_is_what_the_committed_records_give(env: dict[str, str], tmp_path: Path) -> None:
    # Where links lead to depends on where the folders lie, so they lie as in the repository.
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "reference").symlink_to(REFERENCE)
    command = [sys.executable, "-m", "bench", "report", "results=results/reference", "reports=reports/reference"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PTI_BENCH_NO_CACHE": "1", **env}
    subprocess.run(command, cwd=tmp_path, env=variables, check=True, capture_output=True, timeout=900)
    made, kept = files(tmp_path / "reports" / "reference"), files(COMMITTED)
    assert made.keys() == kept.keys(), REGENERATE
    assert {path.suffix for path in made} == {".csv", ".svg", ".tex", ".md", ".html"} and len(made) > 60
    for name, content in made.items():
        same(name, content, kept[name])


def test_the_readme_shows_the_reference_results() -> None:
    text = (ROOT / "README.md").read_text()
    assert put(text, table(judge(load_cells(REFERENCE)))) == text, REGENERATE
