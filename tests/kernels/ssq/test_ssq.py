"""SSQ files: what goes in comes out, and every way in which a file can be wrong has its sentence."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from kernels.errors import KernelError
from kernels.ssq import block, open_container, pack, quantize, unpack
from kernels.ssq.__main__ import main
from kernels.ssq.table import PIECE
from tests.conftest import REPOSITORY
from tests.kernels.ssq.small_models import matrix, write_gguf, write_safetensors

TINY = REPOSITORY / "models/pti-tiny/pti-tiny.Q8_0.gguf"


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    return write_gguf(folder / "base.gguf", {
        "a.weight": (matrix(1), "Q8_0"), "b.weight": (matrix(2), "Q4_0"), "norm": (matrix(3)[0], "F32"),
        "odd.weight": (matrix(4, 4, 20), "F32"), "router.weight": (matrix(5), "F32"),
    })  # fmt: skip


@pytest.fixture(scope="module")
def tuned(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    return write_gguf(folder / "tuned.gguf", {
        "a.weight": (matrix(11), "F16"), "b.weight": (matrix(12), "Q8_0"), "norm": (matrix(13)[0], "F32"),
        "odd.weight": (matrix(14, 4, 20), "F32"), "router.weight": (matrix(15), "F32"),
    })  # fmt: skip


def test_a_q8_0_file_comes_back_bit_by_bit(tmp_path) -> None:
    pack(tmp_path / "tiny.ssq", TINY)
    unpack(tmp_path / "tiny.ssq", [tmp_path / "a.gguf", tmp_path / "b.gguf"])
    assert (tmp_path / "a.gguf").read_bytes() == TINY.read_bytes()
    assert (tmp_path / "b.gguf").read_bytes() == TINY.read_bytes()
    assert not open_container(tmp_path / "tiny.ssq").damage()


def test_different_twins_keep_each_its_own_weights(tmp_path, base, tuned) -> None:
    done = pack(tmp_path / "twin.ssq", base, tuned)
    held = open_container(tmp_path / "twin.ssq")
    assert not held.identical
    assert (done.tensors, done.raw_tensors) == (5, 3)
    assert done.output_bytes == (tmp_path / "twin.ssq").stat().st_size
    for which, path in enumerate((base, tuned)):
        for entry in gguf.GGUFReader(path).tensors:
            kind = entry.tensor_type
            if held.tensors[entry.name].kind == "raw":
                assert held.raw(entry.name, which)[1].tobytes() == entry.data.tobytes()
                continue
            values = entry.data if kind == Type.F16 else gguf.quants.dequantize(entry.data, kind)
            expected = block.values(quantize.rounded(values.astype(np.float32).reshape(-1)))
            if kind == Type.Q8_0:  # a Q8_0 source is not rounded again
                expected = values
            np.testing.assert_array_equal(held.weights(entry.name, which).reshape(expected.shape), expected)


def test_what_is_unpacked_is_a_model_with_its_metadata(tmp_path, base, tuned) -> None:
    pack(tmp_path / "twin.ssq", base, tuned)
    unpack(tmp_path / "twin.ssq", [tmp_path / "a.gguf", tmp_path / "b.gguf"])
    held = open_container(tmp_path / "twin.ssq")
    for which, name in enumerate(("a.gguf", "b.gguf")):
        read = gguf.GGUFReader(tmp_path / name)
        assert read.fields["general.file_type"].contents() == gguf.LlamaFileType.MOSTLY_Q8_0
        assert read.fields["tokenizer.ggml.tokens"].contents() == ["a", "bc", "\u00fc"]
        tensors = {entry.name: entry for entry in read.tensors}
        assert tensors["a.weight"].tensor_type == Type.Q8_0
        values = gguf.quants.dequantize(tensors["a.weight"].data, Type.Q8_0)
        np.testing.assert_array_equal(values, held.weights("a.weight", which))
        assert tensors["router.weight"].tensor_type == Type.F32


def test_safetensors_are_packed_beside_a_gguf(tmp_path, base) -> None:
    other = {name: matrix(20, 4, 20) if name == "odd.weight" else matrix(21) for name in ("a.weight", "odd.weight")}
    other |= {"b.weight": matrix(22).astype(np.float16), "norm": matrix(23)[0], "router.weight": matrix(24)}
    twin = write_safetensors(tmp_path / "tuned.safetensors", other)
    pack(tmp_path / "twin.ssq", base, twin)
    held = open_container(tmp_path / "twin.ssq")
    off = np.abs(held.weights("b.weight", 1) - other["b.weight"].astype(np.float32))
    assert off.max() < np.abs(other["b.weight"]).max() / 127
    assert held.raw("norm", 1)[1].tobytes() == other["norm"].tobytes()
    unpack(tmp_path / "twin.ssq", [tmp_path / "a.gguf", tmp_path / "b.gguf"])
    assert len(gguf.GGUFReader(tmp_path / "b.gguf").tensors) == 5


def test_a_lone_safetensors_file_in_f32_is_packed(tmp_path) -> None:
    file = write_safetensors(tmp_path / "m.safetensors", {"w": matrix(1)})
    assert pack(tmp_path / "m.ssq", file).raw_tensors == 0


def changed(path: Path, out: Path, **tensors) -> Path:
    """A copy of a GGUF of these tests with some tensors replaced, and those that are None left out."""
    kept = {entry.name: entry for entry in gguf.GGUFReader(path).tensors}
    whole = {name: (np.array(entry.data), entry.tensor_type.name) for name, entry in kept.items()} | tensors
    return write_gguf(out, {name: data for name, data in whole.items() if data is not None})


def test_twins_of_other_shapes_are_named(tmp_path, base) -> None:
    other = changed(base, tmp_path / "o.gguf", **{"b.weight": (matrix(1, 7), "Q4_0")})
    with pytest.raises(KernelError, match=r"tensor b\.weight is 6 x 256 .* 7 x 256"):
        pack(tmp_path / "x.ssq", base, other)


@pytest.mark.parametrize("swap", [False, True])
def test_a_tensor_that_one_twin_lacks_is_named(tmp_path, base, swap: bool) -> None:
    files = [base, changed(base, tmp_path / "o.gguf", **{"norm": None})]
    with pytest.raises(KernelError, match=r"tensor norm is in \S*base\.gguf and not in \S*o\.gguf"):
        pack(tmp_path / "x.ssq", *(files[::-1] if swap else files))


def test_values_that_are_no_numbers_are_named(tmp_path) -> None:
    bad = matrix(1)
    bad[3, 5] = np.nan
    file = write_gguf(tmp_path / "bad.gguf", {"good": (matrix(2), "F16"), "bad": (bad, "F16")})
    with pytest.raises(KernelError, match="tensor bad has values that are not finite"):
        pack(tmp_path / "x.ssq", file)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.gguf"]


def test_a_truncated_source_names_the_tensor(tmp_path, base) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(base.read_bytes()[:-3000])
    with pytest.raises(KernelError, match=r"truncated: tensor (odd|router)\.weight ends at byte"):
        pack(tmp_path / "x.ssq", cut)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<!DOCTYPE html>", "neither GGUF nor safetensors"),
        (b"", "neither GGUF nor safetensors"),
        (b"GGUF\x03", "damaged"),
        (b"GGUF" + bytes([99, 0, 0, 0]) + bytes(16), "version 99"),
        (b"GGUF" + bytes([3, 0, 0, 0]) + b"\xff" * 16, "damaged"),
        (b"\xff" * 7 + b"\x7f{}", "truncated"),
        (b"\x04" + bytes(7) + b'{"a"', "damaged"),
        (b"\x0c" + bytes(7) + b'{"a":{"b":1}', "damaged"),
    ],
)
def test_other_files_are_refused(tmp_path, content: bytes, words: str) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(KernelError, match=words):
        pack(tmp_path / "x.ssq", tmp_path / "m")


def test_a_type_that_ggml_has_not_is_named(tmp_path) -> None:
    file = write_safetensors(tmp_path / "m.safetensors", {"mask": np.zeros((2, 32), np.uint8)})
    with pytest.raises(KernelError, match="tensor mask is of the type U8"):
        pack(tmp_path / "x.ssq", file)


@pytest.fixture
def packed(tmp_path, base, tuned) -> Path:
    pack(tmp_path / "twin.ssq", base, tuned)
    return tmp_path / "twin.ssq"


def test_every_damaged_byte_of_data_is_found_and_its_tensor_named(packed) -> None:
    whole = packed.read_bytes()
    for tensor in open_container(packed).tensors.values():
        for part in tensor.parts:
            for at in (part.offset, part.offset + part.bytes - 1):
                packed.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
                (sentence,) = open_container(packed).damage()
                assert f"tensor {tensor.name} " in sentence


def test_damage_is_located_in_a_large_tensor(tmp_path) -> None:
    rows = 2 * PIECE // 68 // 8 + 3
    file = write_gguf(tmp_path / "m.gguf", {"large": (np.zeros((rows, 8 * 34), np.uint8), "Q8_0")})
    pack(tmp_path / "m.ssq", file)
    part = open_container(tmp_path / "m.ssq").tensors["large"].parts[0]
    assert len(part.crc32) == 3
    with (tmp_path / "m.ssq").open("r+b") as target:
        target.seek(part.offset + PIECE)
        target.write(b"\1")
    (sentence,) = open_container(tmp_path / "m.ssq").damage()
    assert f"bytes {PIECE} to {2 * PIECE}" in sentence


@pytest.mark.parametrize(
    ("at", "words"), [(0, "no SSQ file"), (9, "checksum of its header"), (20, "checksum of its header"), (-5, "table")]
)
def test_a_damaged_frame_is_told_apart(packed, at: int, words: str) -> None:
    data = bytearray(packed.read_bytes())
    data[at] ^= 1
    packed.write_bytes(data)
    with pytest.raises(KernelError, match=words):
        open_container(packed)


@pytest.mark.parametrize(("keep", "words"), [(0, "no SSQ file"), (20, "inside its header"), (-1, "table ends at byte")])
def test_a_truncated_file_is_told(packed, keep: int, words: str) -> None:
    packed.write_bytes(packed.read_bytes()[:keep])
    with pytest.raises(KernelError, match=words):
        open_container(packed)


def test_unpack_checks_before_it_writes(packed, tmp_path) -> None:
    part = open_container(packed).tensors["a.weight"].parts[0]
    data = bytearray(packed.read_bytes())
    data[part.offset] ^= 1
    packed.write_bytes(data)
    with pytest.raises(KernelError, match=r"checksum of tensor a\.weight"):
        unpack(packed, [tmp_path / "a.gguf"])
    assert not (tmp_path / "a.gguf").exists()


def test_a_tensor_of_another_kind_is_refused_by_name(packed) -> None:
    held = open_container(packed)
    with pytest.raises(KernelError, match="tensor norm is of the kind raw"):
        held.blocks("norm")
    with pytest.raises(KernelError, match="no tensor nrom"):
        held.raw("nrom", 0)


@pytest.mark.parametrize("verb", ["pack", "unpack"])
def test_a_full_disk_leaves_nothing(tmp_path, packed, base, verb: str) -> None:
    """A limit on the size of files stands in for the disk: the system refuses the same write."""
    out = tmp_path / "full" / "out"
    out.parent.mkdir()
    command = [sys.executable, "-m", "kernels.ssq", verb, str(base if verb == "pack" else packed), str(out)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    ended = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, cwd=REPOSITORY)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith(f"error: {out} needs 0.00 GB") and ended.stderr.count("\n") == 1
    assert not list(out.parent.iterdir())


def test_memory_does_not_grow_with_a_tensor(tmp_path) -> None:
    file = write_gguf(tmp_path / "m.gguf", {"large": (np.zeros((16384, 1024), np.float16), "F16")})
    quantize.decoder("F16"), quantize.quantizer()
    tracemalloc.start()
    try:
        pack(tmp_path / "m.ssq", file, threads=2)
        assert tracemalloc.get_traced_memory()[1] < file.stat().st_size
    finally:
        tracemalloc.stop()


def test_commands(tmp_path, base, capsys) -> None:
    out = tmp_path / "m.ssq"
    assert main(["pack", str(base), str(out)]) == 0
    assert "MB/s of input" in capsys.readouterr().out
    assert main(["pack", str(base), str(out)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["pack", "--force", str(base), str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    assert main(["info", "--tensors", str(out)]) == 0
    told = capsys.readouterr().out
    assert "identical twins of base.gguf" in told and "2.1250 for a weight of both" in told and "Q4_0" in told
    assert main(["unpack", str(out), str(tmp_path / "a.gguf")]) == 0
    assert main(["pack", str(base)]) == 2
    assert main(["verify", str(tmp_path / "none.ssq")]) == 2
    data = bytearray(out.read_bytes())
    data[300] ^= 1
    out.write_bytes(data)
    assert main(["verify", str(out)]) == 1
    assert "checksum" in capsys.readouterr().err
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
