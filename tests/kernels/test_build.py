"""Compile commands, and real compilers where they are on the PATH (the whole table is `python -m kernels.static`)."""

import shutil
import subprocess

import pytest

from kernels import build
from kernels.errors import KernelError


@pytest.mark.parametrize("arch", build.ARCHITECTURES)
def test_commands_name_every_source(arch, tmp_path):
    command = build.compile_command(arch, tmp_path / "lib.so")
    assert command[0] == ("hipcc" if arch.startswith("gfx") else "nvcc")
    assert {str(path) for path in build.SOURCES} <= set(command)
    assert all(path.exists() for path in build.SOURCES)
    assert set(build.SOURCE_DIR.glob("*.cu")) == set(build.SOURCES)


def test_unknown_architecture():
    with pytest.raises(KernelError, match="'sm_20' is not one of sm_80, sm_90"):
        build.flags("sm_20")


def test_hipcc_is_told_its_platform():
    assert build.environment("gfx906")["HIP_PLATFORM"] == "amd"


def test_no_compiler_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PTI_KERNELS_BUILD", str(tmp_path / "build"))
    with pytest.raises(KernelError, match=r"nvcc is not on the PATH.*bring .*libkernels.so"):
        build.build("sm_90")


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(monkeypatch, tmp_path):
    fake = tmp_path / "nvcc"
    fake.write_text("#!/bin/sh\necho 'a.cu(3): error: no such thing' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("PTI_KERNELS_BUILD", str(tmp_path / "build"))
    with pytest.raises(KernelError, match=r"could not compile the kernels for sm_90: a.cu.3.: error: no such thing"):
        build.build("sm_90")
    assert not list((tmp_path / "build").rglob("lib*"))


@pytest.mark.parametrize("arch,source", [("sm_90", "quantise.cu"), ("gfx906", "ssq.cu")])
def test_a_real_compiler_takes_a_source(arch, source, tmp_path):
    command = build.flags(arch)
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not on the PATH")
    out = tmp_path / "object.o"
    done = subprocess.run(
        [*command, "-c", "-o", str(out), str(build.SOURCE_DIR / source)],
        env=build.environment(arch),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert out.stat().st_size > 0
