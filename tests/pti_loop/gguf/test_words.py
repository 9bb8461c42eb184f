"""What tokens say, against llama.cpp's own words for the same file."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf import GGUFWriter

from pti_loop.gguf.header import ModelFileError
from pti_loop.gguf.words import byte_alphabet, token_words


def test_they_are_llama_cpp_s_own(model, smollm2):
    ids = [*range(0, 600), *range(1000, 49000, 97)]
    said = token_words(smollm2, ids)
    assert sorted(said) == ids
    for token in ids:
        assert model.detokenize([token]) == said[token].decode("utf-8", "replace"), token


def test_ids_beyond_the_vocabulary_are_left_out(smollm2):
    assert token_words(smollm2, [-1, 10**9, 81]) == {81: token_words(smollm2, [81])[81]}


def test_the_alphabet_is_a_letter_a_byte():
    assert len(set(byte_alphabet())) == 256 and byte_alphabet()[ord("a")] == "a"


def pieces(path: Path) -> Path:
    writer = GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(["<s>", "<0x0A>", "\u2581one", "\u00e9", "<0xE2>"])
    writer.add_token_types([3, 6, 1, 1, 6])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_pieces_have_spaces_and_bytes(tmp_path):
    said = token_words(pieces(tmp_path / "pieces.gguf"), range(5))
    assert said == {0: b"<s>", 1: b"\n", 2: b" one", 3: "\u00e9".encode(), 4: b"\xe2"}


def test_a_file_that_is_no_model_is_told(tmp_path):
    (tmp_path / "no.gguf").write_text("no")
    with pytest.raises(ModelFileError):
        token_words(tmp_path / "no.gguf", [1])
