"""Set-up: pins agree everywhere, a second call does nothing, what is missing is a sentence. Nothing is downloaded."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from collections import namedtuple
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.host import pins
from bench.setup import engine_wheel, peer_build, setup, steps, toolchain

DOCUMENT = tomllib.loads((pins.ROOT / "pyproject.toml").read_text())
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def loaded() -> pins.Pins:
    return pins.load()


def test_pip_uv_and_project_agree(loaded: pins.Pins) -> None:
    project = DOCUMENT["project"]
    extras = project["optional-dependencies"]
    assert pins.requirements(loaded).split() == project["dependencies"] + extras["test"] + extras["nvidia"]
    assert set(extras) == {"test", "nvidia", "train", "hf", "launch"}
    assert all(any("torch" in line for line in extras[name]) for name in ("train", "hf")), "left out"
    assert all("==" in line for line in pins.requirements(loaded).split()), "a version is not exact"
    line = pins.engine_requirement(loaded, pins.build_settings(loaded, "cpu", native=False))
    requirement, *options = shlex.split(line)
    assert requirement in project["dependencies"]
    assert all(option.startswith("--config-settings=") for option in options)
    asked = dict(option.removeprefix("--config-settings=").split("=", 1) for option in options)
    assert asked == DOCUMENT["tool"]["uv"]["config-settings-package"]["llama-cpp-python"]
    assert asked["cmake.define.GGML_NATIVE"] == "OFF"


def test_uv_gets_the_model_without_its_dependencies(loaded: pins.Pins) -> None:
    (entry,) = DOCUMENT["tool"]["uv"]["dependency-metadata"]
    assert loaded.model_packages == (f"{entry['name']}=={entry['version']}",)
    assert entry["requires-dist"] == []
    assert not any(pins.name_of(line) == entry["name"] for line in loaded.dependencies)


def test_pip_reads_the_engine_line(loaded: pins.Pins, tmp_path: Path) -> None:
    """pip's own parser: a semicolon in a value must not start an environment marker."""
    from pip._internal.network.session import PipSession
    from pip._internal.req.req_file import parse_requirements

    settings = pins.build_settings(loaded, "hip", native=True, architectures="gfx90a;gfx906")
    file = tmp_path / "engine.txt"
    file.write_text(pins.engine_requirement(loaded, settings) + "\n")
    (parsed,) = parse_requirements(str(file), session=PipSession())
    assert parsed.requirement == loaded.engine
    assert parsed.options["config_settings"] == settings


def test_models_on_request_have_a_config_and_are_left_out_of_the_plain_setup(loaded: pins.Pins) -> None:
    for name, lines in pins.model_groups().items():
        assert (pins.ROOT / "configs" / "model" / f"{name}.yaml").exists()
        assert all("==" in line for line in lines)
        assert not set(lines) & {*loaded.dependencies, *loaded.model_packages}
    assert "gemma3-270m" in pins.model_groups()
    assert DOCUMENT["tool"]["uv"]["default-groups"] == ["model"]


def test_installed_versions_are_the_pinned_ones(loaded: pins.Pins) -> None:
    import importlib.metadata

    for requirement in (*loaded.dependencies, *loaded.model_packages):
        assert importlib.metadata.version(pins.name_of(requirement)) == requirement.partition("==")[2]


def test_backends_and_native_change_the_build(loaded: pins.Pins) -> None:
    cuda = pins.build_settings(loaded, "cuda", native=False, architectures="90")
    assert cuda["cmake.define.GGML_CUDA"] == "ON"
    assert cuda["cmake.define.CMAKE_CUDA_ARCHITECTURES"] == "90"
    hip = pins.build_settings(loaded, "hip", native=True, architectures="gfx90a;gfx906")
    assert hip["cmake.define.GGML_HIP"] == "ON"
    assert hip["cmake.define.GPU_TARGETS"] == hip["cmake.define.AMDGPU_TARGETS"] == "gfx906;gfx90a"
    assert hip["cmake.define.GGML_NATIVE"] == "ON"
    assert "gfx906" in pins.build_settings(loaded, "hip", native=False)["cmake.define.GPU_TARGETS"]
    with pytest.raises(UserError, match="did you mean 'cuda'"):
        pins.build_settings(loaded, "cudda", native=False)


def test_minimum_python_is_written_once_more_and_the_same(loaded: pins.Pins) -> None:
    assert loaded.python == setup.MINIMUM_PYTHON


def test_what_is_missing_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"Python 3\.11 or newer is needed, .* is 3\.9\.2"):
        toolchain.check_python((3, 11), (3, 9, 2))
    with pytest.raises(UserError, match=r"no C\+\+ compiler.*apt-get install g\+\+"):
        toolchain.compiler({"PATH": str(tmp_path)})
    with pytest.raises(UserError, match="CXX names, 'nope'"):
        toolchain.compiler({"PATH": os.environ["PATH"], "CXX": "nope"})
    with pytest.raises(UserError, match="needs nvcc"):
        toolchain.check_gpu_compiler("cuda", {"PATH": str(tmp_path)})
    with pytest.raises(UserError, match=r"'ensurepip'.*python3-venv"):
        toolchain.check_venv_module(find=lambda name: None if name == "ensurepip" else name)
    with pytest.raises(UserError, match=r"needs 2 GiB free in .*0\.5 GiB are"):
        toolchain.check_disk(tmp_path / "a" / "b", "cpu", usage=lambda _: Usage(0, 0, toolchain.GIB // 2))
    toolchain.check_disk(tmp_path / "a" / "b", "cpu", usage=lambda _: Usage(0, 0, 3 * toolchain.GIB))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert setup.main(["--venv", str(tmp_path / "v")]) == 2
    assert not (tmp_path / "v").exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert setup.main(["--venv", str(tmp_path)]) == 2
    assert "is no virtual environment" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


class Recorder(steps.Steps):
    """Stands in for the commands: makes what they would leave, and can fail or be interrupted at one of them."""

    def __init__(self, total: int, log: Path) -> None:
        super().__init__(total, log, out=open(os.devnull, "w"))  # noqa: SIM115
        self.labels: list[str] = []
        type(self).last = self

    def run(self, label: str, command: list, env: dict | None = None) -> None:
        self.done += 1
        self.labels.append(label)
        if self.trouble and self.trouble[0] in label:
            raise self.trouble[1]
        words = [str(word) for word in command]
        if "venv" in words:
            venv = Path(words[-1])
            (venv / "lib/python3.11/site-packages").mkdir(parents=True)
            (venv / "bin").mkdir()
            (venv / "bin/python").symlink_to(sys.executable)
            (venv / "pyvenv.cfg").write_text("")
        if "wheel" in words:
            folder = Path(words[words.index("-w") + 1])
            folder.mkdir()
            (folder / "llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl").write_text("")


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Recorder]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(steps, "Steps", Recorder)
    monkeypatch.setattr(toolchain, "check_disk", lambda *_: None)
    monkeypatch.setattr(setup, "_keep_headers", lambda *_: None)
    Recorder.trouble = None
    return Recorder


def test_second_call_does_nothing_and_other_options_do(tmp_path: Path, recorded: type[Recorder]) -> None:
    venv = tmp_path / "v"
    assert setup.main(["--venv", str(venv)]) == 0
    first = recorded.last
    assert first.done == first.total, "the number of steps that is shown is wrong"
    assert (venv / "lib/python3.11/site-packages/pti-bench.pth").read_text().strip() == str(pins.ROOT)
    assert setup.main(["--venv", str(venv)]) == 0
    assert recorded.last is first
    assert setup.main(["--venv", str(venv), "--native"]) == 0
    assert "building the engine (llama-cpp-python==0.3.36)" in recorded.last.labels
    native = recorded.last
    assert setup.main(["--venv", str(venv)]) == 0, "without options, what is installed is kept"
    assert recorded.last is native
    assert json.loads((venv / setup.STAMP).read_text())["native"] is True
    assert setup.main(["--venv", str(venv), "--portable"]) == 0
    assert not any("building" in label for label in recorded.last.labels), "the portable build was kept"


def test_a_model_on_request_is_installed_beside(
    tmp_path: Path, recorded: type[Recorder], capsys: pytest.CaptureFixture[str]
) -> None:
    venv = tmp_path / "v"
    assert setup.main(["--venv", str(venv)]) == 0
    assert setup.main(["--venv", str(venv), "--model", "gemma3-270m"]) == 0
    assert recorded.last.labels == ["installing gemma3-270m"]
    assert setup.main(["--venv", str(venv), "--model", "gemma-270m"]) == 2
    assert "did you mean 'gemma3-270m'?" in capsys.readouterr().err


def test_an_extra_on_request_is_installed_with_what_it_needs(
    tmp_path: Path, recorded: type[Recorder], capsys: pytest.CaptureFixture[str]
) -> None:
    venv = tmp_path / "v"
    assert setup.main(["--venv", str(venv)]) == 0
    assert setup.main(["--venv", str(venv), "--extra", "hf"]) == 0
    assert recorded.last.labels == ["installing the extra hf"]
    assert setup.main(["--venv", str(venv), "--extra", "hff"]) == 2
    assert "did you mean 'hf'?" in capsys.readouterr().err
    assert not set(pins.extras()["hf"]) & set(pins.load().dependencies)


def test_a_requirement_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin with a package's name"):
        pins.name_of("==1.0")


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), UserError("no network")])
@pytest.mark.parametrize("where", ["environment", "building", "packages", "loading"])
def test_half_made_environment_is_not_stamped_and_resumes(
    tmp_path: Path, recorded: type[Recorder], trouble: BaseException, where: str
) -> None:
    venv = tmp_path / "v"
    recorded.trouble = (where, trouble)
    assert setup.main(["--venv", str(venv)]) == (130 if isinstance(trouble, KeyboardInterrupt) else 2)
    assert not (venv / setup.STAMP).exists()
    recorded.trouble = None
    assert setup.main(["--venv", str(venv)]) == 0
    kept = where in ("packages", "loading")
    assert kept == (not any("building" in label for label in recorded.last.labels))
    assert setup.read_stamp(venv)["backend"] == "cpu"


def test_environment_of_another_python_is_made_again(tmp_path: Path, recorded: type[Recorder]) -> None:
    venv = tmp_path / "v"
    setup.main(["--venv", str(venv)])
    (venv / "bin/python").unlink()
    assert setup.read_stamp(venv) == {}
    assert setup.main(["--venv", str(venv)]) == 0
    assert "making the environment" in recorded.last.labels


def test_options_keep_what_is_installed() -> None:
    assert setup.choose(None, None, {}) == ("cpu", False)
    assert setup.choose(None, None, {"backend": "cuda", "native": True}) == ("cuda", True)
    assert setup.choose("hip", None, {"backend": "cuda", "native": True}) == ("hip", False)
    assert setup.choose(None, False, {"backend": "cuda", "native": True}) == ("cuda", False)


def test_wheel_key_follows_settings_compiler_and_cpu(loaded: pins.Pins, monkeypatch: pytest.MonkeyPatch) -> None:
    portable = pins.build_settings(loaded, "cpu", native=False)
    base = engine_wheel.wheel_key(loaded, portable, False, "cpu", dict(os.environ))
    assert base == engine_wheel.wheel_key(loaded, portable, False, "cpu", dict(os.environ))
    native = pins.build_settings(loaded, "cpu", native=True)
    here = engine_wheel.wheel_key(loaded, native, True, "cpu", dict(os.environ))
    monkeypatch.setattr(engine_wheel, "_cpu_flags", lambda: "flags : another cpu")
    assert len({base, here, engine_wheel.wheel_key(loaded, native, True, "cpu", dict(os.environ))}) == 3
    assert engine_wheel.wheel_key(loaded, portable, False, "cpu", dict(os.environ)) == base
    assert engine_wheel.wheel_key(loaded, portable, False, "cpu", {**os.environ, "CXXFLAGS": "-O0"}) != base


def test_build_environment_drops_what_would_change_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    env = setup.build_environment({"CMAKE_ARGS": "-DGGML_NATIVE=ON", "SKBUILD_X": "1", "PIP_USER": "1", "PATH": "/bin"})
    assert set(env) & {"CMAKE_ARGS", "SKBUILD_X", "PIP_USER"} == set()
    assert int(env["CMAKE_BUILD_PARALLEL_LEVEL"]) >= 1
    assert "CMAKE_ARGS and SKBUILD_* are ignored" in capsys.readouterr().out


def test_step_failure_shows_the_log(tmp_path: Path) -> None:
    out = (tmp_path / "out").open("w+")
    run = steps.Steps(2, tmp_path / "log", out)
    with pytest.raises(UserError, match=r"breaking failed with code 3; .*\n.*the reason"):
        run.run("breaking", ["sh", "-c", "echo '[7/9] compiling'; echo the reason; exit 3"])
    assert run._compiled(0) == "7/9 files"


def test_setup_runs_on_a_bare_python_and_the_second_time_is_quick(tmp_path: Path) -> None:
    """No third-party import, and well under a second when the stamp matches."""
    venv = tmp_path / "v"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(sys.executable)
    key = setup.setup_key(pins.load(), "cpu", False)
    (venv / setup.STAMP).write_text(json.dumps({"key": key, "backend": "cpu", "native": False}))
    code = (
        f"import sys; sys.path.insert(0, {str(pins.ROOT)!r}); from bench.setup import setup\n"
        "code = setup.main(sys.argv[1:]); print(sorted(sys.modules)); sys.exit(code)"
    )
    kept = tmp_path / "pti-bench" / "llama.cpp" / pins.load().engine_commit / "common"
    kept.mkdir(parents=True)
    (kept / "speculative.h").write_text("")
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, "--venv", venv], capture_output=True, text=True,
                          env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert time.perf_counter() - start < 2
    assert "numpy" not in done.stdout
    assert "hydra" not in done.stdout


def test_two_setups_wait_for_each_other(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from bench.setup import setup\n"
        "with setup._locked(Path(sys.argv[1])): print('in', flush=True); time.sleep(float(sys.argv[2])); print('out')"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    first = subprocess.Popen([*command, "0.6"], stdout=subprocess.PIPE, text=True, cwd=pins.ROOT)
    assert first.stdout.readline() == "in\n"
    start = time.perf_counter()
    second = subprocess.run([*command, "0"], capture_output=True, text=True, cwd=pins.ROOT)
    assert second.stdout.splitlines()[0] == "another set-up of this environment is running; waiting for it"
    assert time.perf_counter() - start > 0.3
    first.wait()


def test_makefile_targets_are_one_line_each() -> None:
    lines = (pins.ROOT / "Makefile").read_text().splitlines()
    targets = [line.split(":")[0] for line in lines if ";" in line and not line.startswith("\t")]
    assert set(targets) >= {"bench", "setup", "test", "report", "doctor", "peers"}
    assert len(targets) <= 13
    assert not any(line.startswith("\t") for line in lines)
    assert (pins.ROOT / "Makefile").read_text().partition(".PHONY:")[2].split("\n")[0].split() == targets


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "--venv .venv"),
        (["BACKEND=cuda", "NATIVE=1"], "--venv .venv --backend cuda --native"),
        (["NATIVE=0", "VENV=e"], "--venv e --portable"),
        (["MODEL=gemma3-270m"], "--venv .venv --model gemma3-270m"),
        (["EXTRA=hf"], "--venv .venv --extra hf"),
    ],
)
def test_make_passes_options_on(words: list[str], expected: str) -> None:
    done = subprocess.run(
        ["make", "-n", "-C", pins.ROOT, "setup", "PYTHON=py", *words], capture_output=True, text=True, check=True
    )
    command = next(line for line in done.stdout.splitlines() if line.startswith("py"))
    assert command.split() == ["py", "-m", "bench", "setup", *expected.split()]


def test_peers_link_the_libraries_that_python_loads(tmp_path: Path) -> None:
    site = tmp_path / "v/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    command = peer_build.compile_command(
        tmp_path / "src", "llama-bench", tmp_path / "v/peers/llama-bench", tmp_path / "v"
    )
    paths = [word for word in command if word.startswith("-Wl,-rpath,")]
    assert paths[0] == "-Wl,-rpath,$ORIGIN/../lib/python3.11/site-packages/llama_cpp/lib"
    assert f"-L{site / 'llama_cpp/lib'}" in command
    assert peer_build.built(tmp_path / "v") == {}


def test_parser_refuses_both_kinds_of_build() -> None:
    with pytest.raises(SystemExit) as caught:
        setup._parser().parse_args(["--native", "--portable"])
    assert caught.value.code == 2
    assert isinstance(setup._parser().parse_args([]), argparse.Namespace)
