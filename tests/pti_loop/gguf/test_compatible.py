"""Pairs of files that go together and pairs that do not: real models, and copies of them with one thing changed.

A copy has the header's bytes and a hole where the weights would be, so it costs a few megabytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from pti_loop.gguf import compatible
from pti_loop.gguf import file as gguf_file
from pti_loop.gguf.header import read_header
from pti_loop.llama.library import library, log

ROOT = Path(__file__).resolve().parents[3]
TINY = ROOT / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"
ADAPTER = ROOT / "models" / "smollm2-135m-pydoc" / "smollm2-135m-pydoc.lora.F16.gguf"


def altered(source: Path, target: Path, change: Callable[[bytes], bytes]) -> Path:
    """A copy whose header went through `change`, which must keep its length."""
    header = read_header(source)
    with source.open("rb") as file:
        before = file.read(header.data_start)
    after = change(before)
    assert len(after) == len(before)
    assert after != before
    target.write_bytes(after)
    os.truncate(target, header.file_bytes)
    return target


def swap(old: bytes, new: bytes, nth: int = 0) -> Callable[[bytes], bytes]:
    """Replace the nth occurrence of some bytes."""

    def change(data: bytes) -> bytes:
        at = -1
        for _ in range(nth + 1):
            at = data.index(old, at + 1)
        return data[:at] + new + data[at + len(old) :]

    return change


def word(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def number(key: str, value: int, kind: int = 4) -> bytes:
    """A metadata entry of one 32-bit number."""
    return word(key) + struct.pack("<Ii", kind, value)


def test_a_model_fits_itself(smollm2):
    assert compatible.draft_fits(smollm2, smollm2) is None
    assert compatible.draft_fits(TINY, TINY) is None


def test_another_family_is_named_by_its_tokenizer(smollm2):
    found = compatible.draft_fits(smollm2, TINY)
    assert found.startswith(f"{TINY} cannot draft for {smollm2}: tokenizer.ggml.pre is 'qwen35', the target's 'smollm'")
    assert "choose one of the same family" in found


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (swap(word("smollm"), word("smolln")), "tokenizer.ggml.pre is 'smolln', the target's 'smollm'"),
        (swap(word("\u0120the"), word("\u0120thx")), "is '\u0120thx', the target's '\u0120the'"),
        (swap(number("tokenizer.ggml.eos_token_id", 2), number("tokenizer.ggml.eos_token_id", 0)),
         "tokenizer.ggml.eos_token_id is 0, the target's 2"),
        (swap(word("tokenizer.ggml.bos_token_id"), word("tokenizer.ggml.bax_token_id")),
         "tokenizer.ggml.bos_token_id is not given, the target's 1"),
    ],
)  # fmt: skip
def test_the_first_difference_of_a_vocabulary_is_named(smollm2, tmp_path, change, sentence):
    copy = altered(smollm2, tmp_path / "copy.gguf", change)
    assert sentence in compatible.draft_fits(smollm2, copy)
    assert compatible.draft_fits(copy, copy) is None


@pytest.mark.parametrize("place", [17, 49_151])
def test_one_type_among_all_tokens_is_found(smollm2, tmp_path, place):
    """The array of types is overwritten at one place; the gguf package says where it lies and what the token is."""
    key = word("tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, 49_152)

    def change(data: bytes) -> bytes:
        at = data.index(key) + len(key) + 4 * place
        return data[:at] + struct.pack("<i", 6) + data[at + 4 :]

    found = compatible.draft_fits(smollm2, altered(smollm2, tmp_path / "copy.gguf", change))
    assert f"token {place} (" in found
    assert "is byte, the target's " in found


def written(path: Path, tokens: list[str], **extra: int) -> Path:
    """A small file of the gguf package's own writer."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(32)
    writer.add_context_length(64)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    for name, value in extra.items():
        writer.add_uint32(f"tokenizer.ggml.{name}", value)
    writer.add_tensor("token_embd.weight", np.zeros((len(tokens), 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_size_and_special_tokens(tmp_path):
    words = ["a", "b", "\N{SNOWMAN}"]
    base = written(tmp_path / "base.gguf", words, eot_token_id=2)
    more = written(tmp_path / "more.gguf", [*words, "d"], eot_token_id=2)
    assert "it has 4 tokens, the target 3" in compatible.draft_fits(base, more)
    assert "it has 3 tokens, the target 4" in compatible.draft_fits(more, base)
    other = written(tmp_path / "other.gguf", words, eot_token_id=1)
    assert "eot_token_id is 1, the target's 2" in compatible.draft_fits(base, other)
    # llama.cpp finds an end of turn that no key names by its text, and padding is in no answer.
    for quiet in (written(tmp_path / "none.gguf", words), written(tmp_path / "pad.gguf", words, padding_token_id=1)):
        assert compatible.draft_fits(base, quiet) is None
    changed = written(tmp_path / "words.gguf", ["a", "b", "\N{SUN}"])
    assert "token 2 is '\N{SUN}', the target's '\N{SNOWMAN}'" in compatible.draft_fits(base, changed)


def test_an_adapter_fits_its_base_and_no_other(smollm2):
    assert compatible.adapter_fits(smollm2, ADAPTER) is None
    found = compatible.adapter_fits(TINY, ADAPTER)
    assert found.endswith("it is made for the architecture 'llama', the base is 'qwen35'")
    assert "general.type is model, a LoRA adapter has 'adapter'" in compatible.adapter_fits(smollm2, smollm2)


def shape(name: str, *sizes: int) -> bytes:
    return word(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (swap(shape("blk.3.attn_v.weight.lora_b", 4, 192), shape("blk.3.attn_v.weight.lora_b", 4, 64)),
         "blk.3.attn_v.weight is 576 x 192 in the base and 576 x 64 in the adapter"),
        (swap(shape("blk.3.attn_v.weight.lora_a", 576, 4), shape("blk.3.attn_v.weight.lora_a", 576, 2)),
         "blk.3.attn_v.weight has lora_a of rank 2 and lora_b of rank 4"),
        (swap(word("blk.3.attn_v.weight.lora_a"), word("blk.3.attn_x.weight.lora_a")),
         "blk.3.attn_x.weight has no lora_b"),
        (swap(word("blk.3.attn_v.weight.lora_b"), word("blk.3.attn_v.weight.lora_c")), "is neither a lora_a nor"),
        (swap(word("lora"), word("aora")), "adapter.type is aora, a LoRA adapter has 'lora'"),
    ],
)  # fmt: skip
def test_the_first_misfit_of_an_adapter_is_named_and_llama_cpp_refuses_it_too(model, smollm2, tmp_path, change,
                                                                               sentence):  # fmt: skip
    copy = altered(ADAPTER, tmp_path / "copy.gguf", change)
    assert sentence in compatible.adapter_fits(smollm2, copy)
    mark = log().mark()
    assert not library().llama_adapter_lora_init(model.loaded.handle, str(copy).encode())
    assert log().since(mark)


def test_an_adapter_for_layers_that_the_base_lacks(model, smollm2, tmp_path):
    def change(data: bytes) -> bytes:
        return data.replace(b"blk.29.attn_q.weight.lora_", b"blk.31.attn_q.weight.lora_")

    copy = altered(ADAPTER, tmp_path / "copy.gguf", change)
    assert "the base has no tensor blk.31.attn_q.weight" in compatible.adapter_fits(smollm2, copy)
    assert not library().llama_adapter_lora_init(model.loaded.handle, str(copy).encode())


def test_nextn_layers_are_those_that_the_file_holds(smollm2, tmp_path):
    assert compatible.nextn_layers(TINY) == 1
    assert compatible.nextn_missing(TINY) is None
    assert "has 1 nextn layers and 2 are asked for" in compatible.nextn_missing(TINY, 2)
    assert compatible.nextn_layers(smollm2) == 0
    assert f"{smollm2} has no nextn layer, so it predicts" in compatible.nextn_missing(smollm2)
    stripped = altered(TINY, tmp_path / "copy.gguf", lambda data: data.replace(b".nextn.", b".other."))
    assert gguf_file.read(stripped).n_nextn == 1
    assert "says that it has 1 nextn layers and holds the tensors of 0" in compatible.nextn_missing(stripped)


def test_files_that_are_none_are_told_and_not_raised(smollm2, tmp_path):
    page = tmp_path / "page.gguf"
    page.write_text("<html>")
    for found in (
        compatible.draft_fits(smollm2, page), compatible.draft_fits(page, smollm2), compatible.nextn_missing(page),
        compatible.adapter_fits(smollm2, page), compatible.adapter_fits(page, ADAPTER),
    ):  # fmt: skip
        assert "is a web page" in found
    assert "needs a base model" in compatible.draft_fits(smollm2, ADAPTER)
