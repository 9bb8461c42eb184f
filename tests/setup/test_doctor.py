"""The doctor: a crash of the engine is a sentence with a command, and the exit code says whether the main job runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.host import provenance
from bench.host.pins import ROOT
from bench.setup import doctor
from bench.setup.doctor import Finding


def test_here_the_main_job_can_run() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.setup.doctor"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`make bench` can run here" in done.stdout
    for word in (
        "machine",
        "memory",
        "engine",
        "llama.cpp 0c1e57098",
        "decode",
        "SmolLM2",
        "ncu",
        "perf",
        "llama-bench",
    ):
        assert word in done.stdout, word


@pytest.mark.parametrize(
    ("number", "native", "words"),
    [
        (signal.SIGILL, True, "make setup NATIVE=0"),
        (signal.SIGILL, False, "needs AVX2"),
        (signal.SIGKILL, False, "memory ran out"),
        (signal.SIGSEGV, False, "crashes in one decode (SIGSEGV); run `make clean setup`"),
    ],
)
def test_a_child_that_dies_is_a_sentence(number: int, native: bool, words: str) -> None:
    def dies(_command: list, **options: object) -> subprocess.CompletedProcess:
        code = f"import os; os.kill(os.getpid(), {int(number)})"
        return subprocess.run([sys.executable, "-c", code], **options)

    finding = doctor.decode_check(Path("m.gguf"), native, run=dies)
    assert finding.ok is False
    assert words in finding.text


def test_a_child_that_fails_otherwise(tmp_path: Path) -> None:
    def prints(out: str, err: str, code: int):
        return lambda *_, **__: SimpleNamespace(returncode=code, stdout=out, stderr=err)

    finding = doctor.decode_check(Path("m"), False, run=prints("", "Traceback\nOSError: libgomp.so.1: cannot open", 1))
    assert finding.ok is False
    assert "libgomp.so.1: cannot open; run `make clean setup`" in finding.text
    finding = doctor.decode_check(Path("m"), False, run=prints('{"error": "no context can be made"}\n', "", 3))
    assert finding == Finding("decode", False, "no context can be made")

    def hangs(command: list, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 1)

    assert doctor.decode_check(Path("m"), False, run=hangs).ok is False


def test_a_file_that_does_not_load_is_reported_by_the_child(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"\0" * 100)
    finding = doctor.decode_check(path, False)
    assert finding.ok is False
    assert "the model does not load" in finding.text


@pytest.mark.parametrize("value", ["nan", "inf", "1"])
def test_logits_that_are_no_numbers_fail(value: str) -> None:
    """In a child of its own, because the check takes over llama.cpp's log of the process."""
    code = (
        "import sys; from llama_cpp import llama_cpp as lib; from bench.setup import decode_once\n"
        f"lib.llama_get_logits_ith = lambda *_: [float('{value}')] * 49152\n"
        "sys.exit(decode_once.main(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(doctor.default_model())]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 3, done.stderr
    assert "this build computes wrongly" in done.stdout


def test_failures_of_the_main_job_make_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = Finding("ncu", None, "not here")
    monkeypatch.setattr(doctor, "findings", lambda: iter([Finding("machine", True, "x"), absent]))
    assert doctor.main([]) == 0
    monkeypatch.setattr(doctor, "findings", lambda: iter([Finding("model", False, "gone"), absent]))
    assert doctor.main([]) == 1
    assert "FAIL  model" in capsys.readouterr().out


def test_without_the_packages_it_says_make_setup() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from bench.setup import doctor; sys.exit(doctor.main([]))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "lacks numpy, psutil, llama_cpp; run `make setup`" in done.stdout


def test_missing_model_and_unwritable_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert doctor._model_line("model", None).ok is False
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"<html>")
    assert doctor._model_line("model", bad).ok is False
    assert doctor._model_line("model found", bad).ok is None
    assert doctor._writable(tmp_path / "results").ok is True
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert doctor._writable(tmp_path / "results").ok is False


def test_model_larger_than_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.host.memory.usable_memory", lambda: 1_000_000)
    finding = doctor._model_line("model", doctor.default_model())
    assert finding.ok is False
    assert "larger than the memory" in finding.text


def test_a_gpu_that_the_build_cannot_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    card = {"name": "NVIDIA H200", "vendor": "nvidia", "memory_bytes": 150 << 30}
    monkeypatch.setattr(provenance, "gpus", lambda: [card])
    texts = [finding.text for finding in doctor._engine()]
    assert any("built without CUDA" in text and "make setup BACKEND=cuda" in text for text in texts)
    assert any("no MI50 here" in finding.text for finding in doctor._limits())
    monkeypatch.setattr(
        provenance, "gpus", lambda: [{**card, "name": "AMD GPU 66a1", "vendor": "amd", "pci_id": "66a1"}]
    )
    assert not any("no MI50 here" in finding.text for finding in doctor._limits())


def test_tools_are_found_where_their_installers_put_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    tool = tmp_path / "ncu"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert doctor.find_tool("ncu", str(tmp_path)) == str(tool)
    assert doctor.find_tool("nsys", str(tmp_path)) is None


def test_other_models_lists_first_parts_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    folder = tmp_path / "llama.cpp"
    folder.mkdir()
    for name in ("a.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf", "c.bin"):
        (folder / name).write_text("")
    own = tmp_path / "models" / "small"
    own.mkdir(parents=True)
    for name in ("d.gguf", "d.lora.F16.gguf"):
        (own / name).write_text("")
    assert [path.name for path in doctor.other_models()] == ["d.gguf", "a.gguf", "b-00001-of-00002.gguf"]


@pytest.mark.parametrize("own", ["absent", "broken", "too large", "sound"])
def test_the_default_model_is_missed_only_where_no_other_is_here(
    own: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tiny = ROOT / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"<html>")
    whole = doctor.default_model()
    found = {"absent": None, "broken": bad, "too large": whole, "sound": whole}[own]
    if own == "too large":
        monkeypatch.setattr("bench.host.memory.usable_memory", lambda: 50_000_000)
    decoded: list[Path] = []
    monkeypatch.setattr(doctor, "default_model", lambda: found)
    well = Finding("decode", True, "")
    monkeypatch.setattr(doctor, "decode_check", lambda model, native: decoded.append(model) or well)
    for nothing in ("_engine", "_tools", "_limits"):
        monkeypatch.setattr(doctor, nothing, lambda: iter(()))
    monkeypatch.setattr(doctor, "other_models", lambda: [bad, tiny])
    assert doctor.main([]) == 0
    said = capsys.readouterr().out
    assert decoded == [whole if own == "sound" else tiny]
    assert ("another model than the default one can run here" in said) == (own != "sound")
    assert (f"model=gguf model.path={tiny}" in said) == (own != "sound")
    monkeypatch.setattr(doctor, "other_models", lambda: [bad])
    assert doctor.main([]) == (0 if own == "sound" else 1)
    assert ("FAIL  model " in capsys.readouterr().out) == (own != "sound")


def test_builds_that_have_a_name_are_tried_and_none_of_them_is_needed(tmp_path, monkeypatch):
    from bench.errors import UserError
    from bench.host import builds

    def facts(name):
        if name == "old":
            raise UserError("engine.build=old: its libllama lacks what the binding calls (llama_x)")
        return {"build": f"0.3.36-0c1e57098-cpu+{name}", "compiler": "GCC: (x) 12.2.0"}

    monkeypatch.setattr(builds, "listed", lambda: {name: tmp_path / name for name in ("good", "kills", "old")})
    monkeypatch.setattr(builds, "facts", facts)
    seen = []

    def run(command, **more):
        seen.append(more["env"]["LLAMA_CPP_LIB_PATH"])
        fails = seen[-1].endswith("kills")
        return subprocess.CompletedProcess(command, -4 if fails else 0, '{"load_s": 0.1, "decode_s": 0.01}\n', "")

    monkeypatch.setattr(doctor.subprocess, "run", run)
    check = doctor.decode_check
    monkeypatch.setattr(doctor, "decode_check", lambda *more, **named: check(*more, run=run, **named))
    good, kills, old = doctor._builds(tmp_path / "model.gguf")
    assert good.ok and "+good, GCC" in good.text and "engine.build=stock,good puts it on trial" in good.text
    assert kills.ok is None and "SIGILL" in kills.text
    assert old.ok is None and "lacks what the binding calls" in old.text
    assert seen == [str(tmp_path / "good"), str(tmp_path / "kills")]
