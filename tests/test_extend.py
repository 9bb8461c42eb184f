"""docs/extend.md followed to the letter in a copy of the project: one file a drafter, and nothing else is touched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
SECOND = '''"""The newest token again and again."""

from __future__ import annotations

from collections.abc import Sequence

from pti_loop.drafter import Drafter, Plain, Source, Target
from pti_loop.parameters import DRAFT, ROLLBACK, Spec, with_defaults

SPEC = Spec("again", "the newest token, up to {draft} times", parameters=(*with_defaults((DRAFT,), draft=1), ROLLBACK))


class Again(Drafter):
    """Remembers one token."""

    def begin(self, tokens: Sequence[int], n_prompt: int = 0) -> None:
        self.newest = tokens[-1]

    def propose(self, limit: int) -> list[int]:
        return [self.newest] * limit

    def observe(self, confirmed: Sequence[int], rejected: Sequence[int], drafted: int) -> None:
        self.newest = confirmed[-1]


def make(target: Target) -> Source:
    return Plain(Again)
'''
SHORT = ["model=pti-tiny", "prompts=short", "measure=quick", "measure.classes=[prose]", "measure.again_blocks=0",
         "n_predict=8", "engine.n_ctx=128", "engine.threads=1", "profile=false", "machine=box"]  # fmt: skip
CLAIMS = """
- id: somebody.echo
  says: Repeating the text of two tokens ago makes one answer twice as fast.
  source: {document: a post, date: 2026-11-01}
  metric: speedup
  scope: {method: echo, period: 2, draft: 2, temperature: 0, per: answer}
  published: 2.0
  unit: x
  evidence: measured
  author_status: {state: standing}
  rule: {kind: records, test: ratio}
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The project with two more files: the drafter of docs/extend.md as it is printed, and a second one."""
    root = tmp_path_factory.mktemp("project") / "copy"
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", "results", "reports", "tests", ".*_cache")
    shutil.copytree(ROOT, root, ignore=ignored)
    text = (ROOT / "docs" / "extend.md").read_text()
    echo = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    (root / "pti_loop" / "draft" / "echo.py").write_text(echo)
    (root / "pti_loop" / "draft" / "again.py").write_text(SECOND)
    return root


def bench(root: Path, *words: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run([sys.executable, "-m", "bench", *words], capture_output=True, text=True, cwd=root,
                          env=environment)  # fmt: skip


def sweep(root: Path, *words: str) -> dict[str, dict]:
    """Runs a sweep; returns the configurations of all cells so far, by id."""
    done = bench(root, "sweep", *SHORT, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.parent.name: yaml.safe_load(path.read_text()) for path in root.glob("results/box/*/cell.yaml")}


def test_the_printed_drafter_runs_gets_ids_of_its_own_and_is_claimed_and_labelled(copy, tmp_path):
    one = sweep(copy, "method=echo", "method.period=2", "method.draft=2")
    (config,) = one.values()
    assert config["method"]["name"] == "echo", "and not plain decoding"
    assert config["method"]["parameters"] == {"draft": 2, "period": 2, "rollback": "auto"}
    assert config["method"]["declaration"]["guesses"] and not config["method"]["declaration"]["repeats"]
    rounds = copy / "results" / "box" / next(iter(one)) / "rounds.csv.gz"
    head, *rows = (line.split(",") for line in _lines(rounds))
    drafted = [int(row[head.index("drafted")]) for row in rows]
    assert max(drafted) == 2, "whatever is decoded beside it, to come back to a state"

    more = sweep(copy, "method=echo", "method.period=2,5", "method.draft=2")
    assert len(more) == 2, "another setting is another cell"
    sweep(copy, "method=again")
    both = sweep(copy, "method=packed", "method.drafter=echo", "method.period=3", "streams=2")
    names = {config["method"]["name"] for config in both.values()}
    assert names == {"echo", "again", "packed"}
    assert any(config["method"]["parameters"].get("period") == 3 for config in both.values())

    sheet = tmp_path / "claims.yaml"
    sheet.write_text(CLAIMS)
    made = bench(copy, "report", f"claims={sheet}", f"reports={tmp_path / 'reports'}")
    assert made.returncode == 0, made.stdout + made.stderr
    (row,) = [line for line in (tmp_path / "reports" / "claims.csv").read_text().splitlines() if "body.echo" in line]
    assert "not_run" not in row
    page = (tmp_path / "reports" / "report.md").read_text()
    assert "echo draft=2 period=2" in page or "the text of 2 tokens ago, up to 2 guesses" in page


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["method=echo", "method.perod=2"], "method=echo has no parameter 'perod'; did you mean 'period'?"),
        (["method=echo", "method.period=0"], "method.period=0 is below 1"),
        (["method=again", "method.period=2"], "method=again has no parameter 'period'"),
        (["method=ecko"], "there is no such method; did you mean 'echo'?"),
    ],
)
def test_what_the_new_drafters_do_not_have_is_refused(copy, words, sentence):
    done = bench(copy, "sweep", *SHORT, *words)
    assert done.returncode == 2
    assert sentence in done.stderr


def _lines(path: Path) -> list[str]:
    import gzip

    return gzip.decompress(path.read_bytes()).decode().splitlines()
