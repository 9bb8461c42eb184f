"""Twins made by llama.cpp's own quantiser: fewer bytes, the same model, made once, whole or absent."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pti_loop.engine import ContextSpec, EngineError
from pti_loop.gguf import file as gguf_file
from pti_loop.llama import twin_file
from pti_loop.llama.model import LlamaModel
from tests.pti_loop.loops import run

ROOT = Path(__file__).resolve().parents[3]
TINY = ROOT / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"
MAKER = (
    "import sys; from pti_loop.llama.twin_file import twin; print(twin(*sys.argv[1:], lambda s: print(s, flush=True)))"
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pti-loop" / "twins"


def maker(path: Path, kind: str) -> subprocess.Popen:
    """A process that makes a twin, with this process's cache."""
    return subprocess.Popen([sys.executable, "-c", MAKER, str(path), kind], cwd=ROOT, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip


def test_a_twin_is_the_model_at_fewer_bytes_and_is_made_once(model, smollm2, cache):
    said = []
    path = twin_file.twin(smollm2, "Q2_K+q4_0", said.append)
    file, source = gguf_file.read(path), gguf_file.read(smollm2)
    types = {tensor.name: tensor.type for tensor in file.tensors}
    assert types["token_embd.weight"] == "Q4_0"
    # Rows of 576 are no multiple of 256: llama.cpp's fallback for them, and Q3_K where a row has 1536.
    assert types["blk.0.attn_q.weight"] == "Q4_0"
    assert types["blk.0.ffn_down.weight"] == "Q3_K"
    assert twin_file.bytes_ratio(smollm2, path) == pytest.approx(file.tensor_bytes / source.tensor_bytes)
    assert file.tensor_bytes < 0.8 * source.tensor_bytes
    assert {t.name: t.shape for t in file.tensors} == {t.name: t.shape for t in source.tensors}
    made = path.stat().st_mtime_ns
    assert twin_file.twin(smollm2, "q2_k+q4_0", said.append) == path
    assert path.stat().st_mtime_ns == made
    assert len(said) == 1
    assert "97 MB to 72 MB" in said[0]
    assert [file.suffix for file in sorted(cache.iterdir())] == [".gguf", ".lock"]
    assert agreement(model, path) > 0.5


def agreement(model, path: Path) -> float:
    """Share of a text of the model's own whose every token the other file of its weights says too."""
    prompt = tuple(model.tokenize("def median(values):"))
    text = [*prompt, *run("autoregressive", model, prompts=[prompt], n_predict=24, n_ctx=64).text()]
    small = LlamaModel(path, n_gpu_layers=0)
    ctx = small.context(ContextSpec(n_ctx=64, n_seq_max=1, n_outputs=64))
    try:
        ctx.decode(text, range(len(text)), [0] * len(text), None)
        said = ctx.greedy()[len(prompt) - 1 : -1]
    finally:
        ctx.close()
        small.close()
    return sum(map(int.__eq__, said, text[len(prompt) :])) / len(said)


def test_a_kind_that_saves_nothing_is_refused_before_it_is_made(smollm2, cache):
    with pytest.raises(EngineError, match=r"a q8_0 twin of .* 143.0 MB, the source takes 96.6 MB; a twin has fewer"):
        twin_file.twin(smollm2, "q8_0", pytest.fail)
    assert list(cache.glob("*.gguf")) == []


def test_two_makers_at_once_make_one_twin_that_keeps_its_prediction_head(cache):
    makers = [maker(TINY, "q2_k") for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in makers]
    assert [process.returncode for process in makers] == [0, 0], answers
    said = [out.splitlines() for out, _ in answers]
    assert said[0][-1] == said[1][-1] == str(next(cache.glob("*.gguf")))
    assert sum(map(len, said)) == 3
    twin, source = gguf_file.read(said[0][-1]), gguf_file.read(TINY)
    assert twin.n_nextn == source.n_nextn == 1
    assert twin.tensor_bytes < source.tensor_bytes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_maker_leaves_no_twin_and_no_process(smollm2, cache, number):
    process = maker(smollm2, "q3_k_m")
    assert process.stdout.readline().startswith("making a q3_k_m twin")
    deadline = time.monotonic() + 30
    while not list(cache.glob("*.part")) and time.monotonic() < deadline:
        time.sleep(0.01)
    (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert list(cache.glob("*.gguf")) == []
    if number == signal.SIGINT:
        assert list(cache.glob("*.part")) == []
    with next(cache.glob("*.lock")).open() as lock:
        while True:  # whoever still writes holds the lock
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                assert time.monotonic() < deadline, "the quantiser outlives its parent"
                time.sleep(0.02)
    # Had it gone on until it was done, all of the twin's bytes would be there.
    assert all(part.stat().st_size < 90e6 for part in cache.glob("*.part"))


def test_bad_orders_are_one_sentence(tmp_path, cache, monkeypatch):
    for kind, sentence in [("q1", "no twin of kind 'q1'"), ("q2_k+x", "cannot be of type 'x'")]:
        with pytest.raises(EngineError, match=sentence):
            twin_file.twin(TINY, kind)
    page = tmp_path / "page.gguf"
    page.write_text("<html>")
    with pytest.raises(EngineError, match="is a web page"):
        twin_file.twin(page, "q4_0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(page))
    with pytest.raises(EngineError, match=r"cannot be written .* set XDG_CACHE_HOME"):
        twin_file.twin(TINY, "q4_0")


def test_what_the_quantiser_refuses_is_told(cache):
    """The engine's own sentence comes through the process."""
    with pytest.raises(EngineError, match=r"llama.cpp makes no q4_0 twin of .*nothing.gguf: .*"):
        twin_file._child(Path("nothing.gguf"), cache / "x.part", "q4_0", 1, 0, plan=False)
