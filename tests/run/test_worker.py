"""What a cell's process writes beside its tables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import nearest
from bench.run.worker import _process, _status_of, engine_log
from pti_loop import sampling
from pti_loop.llama import model as llama
from pti_loop.llama import twin_file

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("line", "kept"),
    [("loaded meta data from /home/a b/models/x.gguf (version 3)", "loaded meta data from x.gguf (version 3)"),
     ("adapter '/srv/twins/934951.q2_k.gguf' and /m/b.gguf", "adapter '934951.q2_k.gguf' and b.gguf"),
     ("/a/x.gguf cannot draft for /b c/y.gguf: it differs", "x.gguf cannot draft for y.gguf: it differs"),
     ("12 / 24 layers of /m/b.gguf", "12 / 24 layers of b.gguf"),
     ("12 / 24 layers at 3.5 MiB/s", "12 / 24 layers at 3.5 MiB/s")],
)  # fmt: skip
def test_records_hold_no_folder_of_any_model(monkeypatch, line, kept):
    monkeypatch.setattr(llama.log(), "since", lambda: line)
    assert engine_log() == kept


def test_a_record_says_what_drew_its_tokens(monkeypatch):
    assert _process({}, 0.0)["draws"] == "argmax"
    assert _process({}, 0.7)["draws"] == "compiled"
    monkeypatch.setattr(sampling, "compiled", lambda: None)
    assert _process({}, 0.7)["draws"] == "numpy"


def test_a_failure_names_the_innermost_frame_of_our_own_code():
    """Not the line of a library that was called with something wrong, nor the test's."""
    with pytest.raises(TypeError) as raised:
        nearest(None, ["a"])
    status = _status_of(raised.value)
    assert status["state"] == "failed"
    assert re.fullmatch(r"TypeError: .* \(errors\.py:\d+\)", status["reason"])
    with pytest.raises(ValueError) as raised:
        int("x")
    assert "(test_worker.py:" in _status_of(raised.value)["reason"], "any code where none is ours"


ORDER = """
import json, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "llama_cpp.llama_cpp", "torch"):
            print(name, flush=True)
sys.meta_path.insert(0, Watch())
"""
WORKER = ORDER + """
import io
from bench.run import cell_process
sys.stdin = io.StringIO(json.dumps({"config": {"model": {"engine": sys.argv[1]}}}))
cell_process.main()
"""
FACTS = ORDER + """
from bench.host import provenance
provenance.engine()
"""
SWEEP = ORDER + """
from bench import cli
cli.main(["sweep", "no_such_key=1"])
"""


@pytest.mark.parametrize(
    ("code", "words", "order"),
    [(WORKER, ["llama"], ["llama_cpp.llama_cpp", "numpy"]), (WORKER, ["hf"], ["numpy"]),
     (FACTS, [], ["llama_cpp.llama_cpp", "numpy"]), (SWEEP, [], ["llama_cpp.llama_cpp", "numpy"])],
)  # fmt: skip
def test_the_engines_library_is_loaded_before_numpy(code, words, order):
    """A build that exports its own libstdc++ crashes in the other order. What is asked for fails after that."""
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if line in ("numpy", "llama_cpp.llama_cpp", "torch")] == order


def test_the_quantiser_loads_the_library_before_numpy(tmp_path):
    orders = [str(tmp_path / "none"), str(tmp_path / "x"), "q4_0", "1", "1"]
    words = [sys.executable, "-c", ORDER + twin_file.CHILD, *orders]
    child = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             text=True)  # fmt: skip
    assert child.stdout.read().split() == ["llama_cpp.llama_cpp", "numpy"]
    child.communicate()
    assert child.returncode != 0
