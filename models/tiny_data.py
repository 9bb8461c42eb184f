"""The text of `pti-tiny`: which files of Python's standard library, which are held out, their hashes, the tokenizer.

    python -m models.tiny_data --out FOLDER [--stdlib LIB]

writes tokenizer.json, train.npy and heldout.npy (uint16 token ids). Knows nothing about the model.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models import stop
from models.tiny_convert import END
from models.tiny_shape import Shape

PYTHON = "3.11.7"
MANIFEST = Path(__file__).resolve().parent / "pti-tiny" / "data.csv"
# Tables of character codes and of build settings are not text; the documentation's topics are the twin's domain.
EXCLUDED = ("site-packages/", "encodings/", "pydoc_data/", "test/cjkencodings", "_sysconfigdata", "lib-dynload/",
            "config-", "__pycache__/", "test/test_unicodedata", "test/test_codec")  # fmt: skip
# The pre-tokenizer that llama.cpp calls qwen35, as its original tokenizer.json has it.
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")  # fmt: skip


@dataclass(frozen=True)
class Source:
    """One file of the corpus, its path relative to the standard library."""

    path: str
    bytes: int
    sha256: str
    heldout: bool


def held_out(path: str) -> bool:
    """One file in 24, drawn by the hash of its path, so that nobody chose it."""
    return hashlib.sha256(path.encode()).digest()[0] < 256 // 24


def scan(stdlib: Path) -> list[Source]:
    """Every Python file of the library that is UTF-8 and not excluded, sorted by path."""
    found = []
    for file in sorted(stdlib.rglob("*.py")):
        path = file.relative_to(stdlib).as_posix()
        if any(path.startswith(prefix) or f"/{prefix}" in path for prefix in EXCLUDED):
            continue
        raw = file.read_bytes()
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if raw.strip():
            found.append(Source(path, len(raw), hashlib.sha256(raw).hexdigest(), held_out(path)))
    return found


def write_manifest(sources: list[Source], target: Path) -> None:
    """The committed list of files."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["path", "bytes", "sha256", "heldout"])
        writer.writerows([s.path, s.bytes, s.sha256, int(s.heldout)] for s in sources)


def read_manifest(source: Path = MANIFEST) -> list[Source]:
    """Files that the shipped model was trained and measured on."""
    with source.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return [Source(r["path"], int(r["bytes"]), r["sha256"], r["heldout"] == "1") for r in rows]


def check(sources: list[Source], stdlib: Path) -> list[str]:
    """Paths that are missing in `stdlib` or differ from the manifest."""
    wrong = []
    for source in sources:
        file = stdlib / source.path
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != source.sha256:
            wrong.append(source.path)
    return wrong


def text(source: Source, stdlib: Path) -> str:
    """A file's text with the newlines of Unix."""
    return (stdlib / source.path).read_text(encoding="utf-8").replace("\r\n", "\n")


def train_tokenizer(texts: list[str], n_vocab: int) -> Any:
    """Byte-level BPE over `texts`, the end token being id 0: a tokenizer of the library `tokenizers`."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=n_vocab, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Any, texts: list[str]) -> NDArray[np.uint16]:
    """Token ids of all texts, each followed by the end token, uint16 (tokens,)."""
    end = tokenizer.token_to_id(END)
    rows = [np.array([*item.ids, end], dtype=np.uint16) for item in tokenizer.encode_batch(texts)]
    return np.concatenate(rows)


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m models.tiny_data", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write tokenizer and tokens to")
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_path("stdlib")),
                        help=f"folder Lib of CPython {PYTHON} with tests; default: this interpreter's")  # fmt: skip
    parser.add_argument("--new-manifest", action="store_true", help="list another Python's files instead of checking")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.new_manifest:
        sources = scan(options.stdlib)
        write_manifest(sources, options.out / "data.csv")
    else:
        sources = read_manifest()
        if wrong := check(sources, options.stdlib):
            stop(f"{len(wrong)} files of {options.stdlib} are missing or not those of CPython {PYTHON}, "
                     f"{wrong[0]} first; give that version's folder with --stdlib")  # fmt: skip
    train = [text(s, options.stdlib) for s in sources if not s.heldout]
    heldout = [text(s, options.stdlib) for s in sources if s.heldout]
    tokenizer = train_tokenizer(train, Shape().n_vocab)
    tokenizer.save(str(options.out / "tokenizer.json"), pretty=False)
    facts = {}
    for name, texts in (("train", train), ("heldout", heldout)):
        tokens = encode(tokenizer, texts)
        np.save(options.out / f"{name}.npy", tokens)
        size = sum(len(t.encode()) for t in texts)
        facts[name] = {"files": len(texts), "bytes": size, "tokens": len(tokens)}
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
