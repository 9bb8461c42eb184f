"""The packed kernels go into the pinned release's own sources, and into no others."""

import subprocess
import sys

import pytest

from bench.errors import UserError
from bench.host import pins
from bench.host.pins import ENGINE
from bench.setup import engine_source, packed_source, setup


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """llama.cpp's tree of the pinned release, as pip fetches it for a build."""
    folder = tmp_path_factory.mktemp("release")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ENGINE, "-d", str(folder)]
    subprocess.run([*command, pins.load().engine], check=True)
    return engine_source.unpack(folder)


def test_it_fits_the_pinned_release_and_says_so_where_it_does_not(release):
    before = (release / "src/models/qwen35.cpp").read_text()
    packed_source.add_kernels(release, "the release")
    hooked = (release / "ggml/src/ggml-cuda/ggml-cuda.cu").read_text()
    assert "ggml_cuda_mul_mat_packed(ctx, src0, src1, dst" in hooked
    assert before != (release / "src/models/qwen35.cpp").read_text()
    for source, place in packed_source.sources():
        assert (release / place).read_bytes() == source.read_bytes()
    with pytest.raises(UserError, match=r"do not fit the sources of other-release.*pins"):
        packed_source.add_kernels(release, "other-release")  # patched already: another source than the pinned one


def test_every_header_that_is_included_comes_along():
    there = {place.name for _, place in packed_source.sources()}
    for source, _ in packed_source.sources():
        for line in source.read_text().splitlines():
            if line.startswith('#include "packed'):
                assert line.split('"')[1].rpartition("/")[2] in there, (source.name, line)
    shared = [source for source, place in packed_source.sources() if place.parent.name == "packed-src"]
    for source in shared:
        for line in source.read_text().splitlines():
            if line.startswith('#include "'):
                assert line.split('"')[1] in there, (source.name, line)


def test_a_changed_kernel_is_another_build(tmp_path, monkeypatch):
    before = packed_source.kernels_digest()
    assert before == packed_source.kernels_digest()
    changed = tmp_path / "walk.h"
    changed.write_text("// another\n")
    files = [(changed, place) if place.name == "walk.h" else (source, place) for source, place in
             packed_source.sources()]  # fmt: skip
    monkeypatch.setattr(packed_source, "sources", lambda: iter(files))
    assert packed_source.kernels_digest() != before
    loaded = pins.load()
    assert setup.setup_key(loaded, "cuda", False, "packed") != setup.setup_key(loaded, "cuda", False)


def test_kernels_are_kept_until_another_choice_is_made():
    installed = {"backend": "cuda", "kernels": "packed"}
    assert setup.choose_kernels(None, "cuda", installed) == "packed"
    assert setup.choose_kernels("stock", "cuda", installed) == ""
    assert setup.choose_kernels(None, "cpu", installed) == ""
    assert setup.choose_kernels(None, "cpu", {}) == ""
    with pytest.raises(UserError, match="BACKEND=cuda, not cpu"):
        setup.choose_kernels("packed", "cpu", {})
    with pytest.raises(UserError, match=r"'pakced'.*packed"):
        setup.choose_kernels("pakced", "cuda", {})
