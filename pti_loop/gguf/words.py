"""What a model's tokens say, from the vocabulary in its file. Loads no model, and knows no tokenizer.

A token may be a part of a character: what it says are bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from pti_loop.gguf.header import read_header

TOKENS, KIND, TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.model", "tokenizer.ggml.token_type"
_BYTES = 256
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "\u2581"
"""A space, as SentencePiece writes it."""
_NORMAL, _CONTROL = 1, 3
"""Types of tokens: text is made of the first; the second are written as they are called."""


def byte_alphabet() -> list[str]:
    """One character for each byte, as in GPT-2's vocabulary: itself where it is printable, else one from 256 up."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(_BYTES, 2 * _BYTES))
    return [chr(byte if byte in printable else next(others)) for byte in range(_BYTES)]


def token_words(path: Path, ids: Iterable[int]) -> dict[int, bytes]:
    """What some tokens say; ids beyond the vocabulary are left out. Raises `ModelFileError`."""
    header = read_header(path, keep=(TOKENS, TYPES))
    words, types = header.metadata.get(TOKENS, ()), header.metadata.get(TYPES, ())
    if not isinstance(words, tuple):
        return {}
    said = _by_bytes if header.metadata.get(KIND) == "gpt2" else _by_pieces
    normal = types if isinstance(types, tuple) and len(types) == len(words) else (_NORMAL,) * len(words)
    return {token: _word(words[token], normal[token], said) for token in ids if 0 <= token < len(words)}


def _word(word: object, kind: object, said: Callable[[str], bytes]) -> bytes:
    raw = word if isinstance(word, bytes) else str(word).encode()
    return raw if kind == _CONTROL else said(raw.decode("utf-8", "replace"))


@cache
def _byte_of() -> dict[str, int]:
    return {letter: byte for byte, letter in enumerate(byte_alphabet())}


def _by_bytes(word: str) -> bytes:
    """Of a byte-level vocabulary; a letter that stands for no byte is itself."""
    known = _byte_of()
    return b"".join(bytes([known[letter]]) if letter in known else letter.encode() for letter in word)


def _by_pieces(word: str) -> bytes:
    byte = _BYTE.fullmatch(word)
    return bytes([int(byte[1], 16)]) if byte else word.replace(_SPACE, " ").encode()
