"""Files on disk: whole or absent, the same bytes for the same seed, described as an independent reader sees them."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import gguf
import numpy as np
import pytest

from bench.cli import main
from bench.errors import UserError
from bench.synth import writer
from bench.synth.shape import order
from pti_loop.gguf import file as gguf_file

ROOT = Path(__file__).resolve().parents[2]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_seed_fixes_the_bytes_however_they_are_cut(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.gguf" for name in "abc"]
    writer.write(order("hybrid-mini"), paths[0])
    writer.write(order("hybrid-mini"), paths[1], chunk=4099)
    writer.write(order("hybrid-mini", ["seed=2"]), paths[2])
    first, cut, other = map(digest, paths)
    assert first == cut
    assert first != other
    assert first.startswith("57f8bad5c457"), "files made before have other bytes; say so where they are named"


def test_an_independent_reader_finds_what_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    size = writer.write(order("hybrid-mini", ["format=Q6_K", "seed=9"]), path)
    assert size == path.stat().st_size
    reader = gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    assert fields["pti_bench.synthetic"] is True
    assert fields["pti_bench.synthetic.seed"] == 9
    assert fields["pti_bench.synthetic.preset"] == "hybrid-mini"
    assert fields["general.name"] == "hybrid-mini (synthetic)"
    assert fields["qwen35.block_count"] == 5
    assert fields["qwen35.nextn_predict_layers"] == 1
    assert len(fields["tokenizer.ggml.tokens"]) == len(set(fields["tokenizer.ggml.tokens"])) == 1024
    types = Counter(tensor.tensor_type.name for tensor in reader.tensors)
    assert set(types) == {"F32", "Q6_K"}
    last = reader.tensors[-1]
    assert last.data_offset + last.n_bytes <= size < last.data_offset + last.n_bytes + 32
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.isfinite(values).all(), tensor.name
        if tensor.tensor_type.name == "Q6_K":
            assert values.std() == pytest.approx(1 / tensor.shape[0] ** 0.5, rel=0.8)
            assert len(np.unique(values, axis=0)) == len(values), f"{tensor.name} has equal rows"


def test_the_smollm2_copy_has_the_types_of_the_real_file(tmp_path: Path, smollm2: Path) -> None:
    path = tmp_path / "copy.gguf"
    writer.write(order("smollm2-135m"), path)
    real, made = gguf_file.read(smollm2), gguf_file.read(path)

    def listed(file: gguf_file.GgufFile) -> set:
        return {(tensor.name, tensor.type, tensor.shape) for tensor in file.tensors}

    assert listed(made) == listed(real)
    assert (made.step_bytes, made.quantization, made.n_vocab) == (real.step_bytes, real.quantization, real.n_vocab)
    assert made.kv_bytes_per_token() == real.kv_bytes_per_token()
    assert made.synthetic
    assert not real.synthetic


def test_a_target_that_exists_needs_force_and_stays_until_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.gguf"
    path.write_text("mine")
    assert main(["synth", "dense-mini", str(path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main(["synth", "dense-mini", str(path), "--force"]) == 0
    assert gguf_file.read(path).synthetic
    assert [path] == list(tmp_path.iterdir())


def test_places_that_cannot_hold_a_file_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target, sentence in ((tmp_path, "is a folder"), (tmp_path / "no" / "x.gguf", "there is no folder")):
        assert main(["synth", "dense-mini", str(target)]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["synth", "dense-mini"]) == 2
    assert "needs a preset and a file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_too_little_disk_is_seen_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    free = type("Usage", (), {"free": 20 * 10**9})
    monkeypatch.setattr(writer.shutil, "disk_usage", lambda path: free)
    monkeypatch.setattr(writer, "_header", lambda *_: pytest.fail("it began to write"))
    assert main(["synth", "qwen3.6-27b", str(tmp_path / "x.gguf")]) == 2
    printed = capsys.readouterr().err
    assert "needs 22.4" in printed
    assert "20.00 GB free" in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("old", [None, "an earlier file"])
def test_a_disk_that_fills_up_leaves_nothing_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str) -> None:
    path = tmp_path / "x.gguf"
    if old:
        path.write_text(old)

    def full(file, piece) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer, "_write_all", full)
    with pytest.raises(UserError, match="No space left on device"):
        writer.write(order("dense-mini"), path, force=True)
    assert [found.read_text() for found in tmp_path.iterdir()] == ([old] if old else [])


def test_a_real_full_disk_is_a_sentence(tmp_path: Path) -> None:
    """A limit on the size of files is the nearest thing to a full disk that needs no rights."""
    code = (
        "import resource, signal, sys; from bench.cli import main; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "synth", "dense-mini", str(tmp_path / "x.gguf")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    """The writes are slowed down, so that the signal comes in the middle of one."""
    code = (
        "import sys, time; from bench.synth import writer; from bench.cli import main; put = writer._write_all;"
        "writer._write_all = lambda file, piece: (time.sleep(0.05), put(file, piece)); sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, "synth", "dense-mini", str(tmp_path / "x.gguf")]
    child = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    part = tmp_path / "x.gguf.part"
    while child.poll() is None and not (part.exists() and part.stat().st_size > 300_000):
        time.sleep(0.01)
    child.send_signal(how)
    _, errors = child.communicate(timeout=20)
    assert child.returncode == 130
    assert "nothing was left" in errors
    assert "Traceback" not in errors
    assert not list(tmp_path.iterdir())


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    part = tmp_path / "x.gguf.part"
    with part.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another process is writing"):
            writer.write(order("dense-mini"), path)
        assert part.exists()
    part.write_text("what a killed process left")
    writer.write(order("dense-mini"), path)
    assert gguf_file.read(path).synthetic
    assert [path] == list(tmp_path.iterdir())


