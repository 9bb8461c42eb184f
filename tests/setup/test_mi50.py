"""scripts/mi50.sh: what it refuses, before anything is built or measured. The steps themselves are for a rehearsal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "mi50.sh"
PIDS = "KFD process information:\\nPID   PROCESS NAME  GPU(s)  VRAM USED\\n4711  llama-server  1  25000000000\\n"


def run(*words: str, path: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PATH": f"{path}:{os.environ['PATH']}", "PYTHON": sys.executable} | more
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True, env=env, check=False, timeout=100)


def test_help_has_both_commands():
    done = run("--help")
    assert done.returncode == 0 and "--rehearse" in done.stdout and "MODEL.gguf" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [([], "no model is not there; give the GGUF file, or --rehearse"), (["/none.gguf"], "/none.gguf is not there"),
     (["--rehears"], "there is no option --rehears"), (["--cards"], "--cards needs a value"),
     (["--cards", "no", "--rehearse"], "'no' is no number of cards")],
)  # fmt: skip
def test_what_is_asked_wrongly_is_one_sentence(words, said):
    done = run(*words)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_who_else_uses_the_card_is_named_before_anything_is_done(tmp_path: Path):
    tool = tmp_path / "rocm-smi"
    tool.write_text(f"#!/bin/sh\nprintf '{PIDS}'\n")
    tool.chmod(0o755)
    done = run("--rehearse", "--out", str(tmp_path / "o.tar.gz"), path=str(tmp_path), RESULTS=str(tmp_path))
    assert done.returncode == 2 and "the card is in use by process 4711 (llama-server)" in done.stderr
    assert not (tmp_path / "o.tar.gz").exists()


def test_a_file_with_another_digest_is_refused_before_it_is_measured(tmp_path: Path):
    done = run("--rehearse", "--sha256", "0" * 64, "--out", str(tmp_path / "o.tar.gz"), RESULTS=str(tmp_path))
    assert done.returncode == 2 and "and 000000000000.. was asked for; get the file again" in done.stderr
    assert "sweep: begins" not in done.stdout
