"""The twin's domain: the topics of Python's own help, as token ids of the base model.

    python -m models.twin_data --base SmolLM2.gguf --out FOLDER

The text is `pydoc_data/topics.py` of CPython 3.11.7 (licence PSF-2.0). Whole topics are held out; a paragraph that a
held-out topic shares with another one is taken out of the training text. Knows nothing about training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import runpy
import sysconfig
from pathlib import Path

import numpy as np

from models import stop

SHA256 = "abaa56a64551d8eead1b19cbae3c6db443f99f0cab81df07bed3cb75c0db9346"
TOPICS = "pydoc_data/topics.py"


def topics(stdlib: Path) -> dict[str, str]:
    """Name and text of every topic. Raises `ValueError` when the file is another version's."""
    file = stdlib / TOPICS
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{file} has the hash {found[:16]}, not that of CPython 3.11.7; give its folder with --stdlib")
    found_topics: dict[str, str] = runpy.run_path(str(file))["topics"]
    return found_topics


def held_out(name: str) -> bool:
    """One topic in eight, drawn by the hash of its name."""
    return hashlib.sha256(name.encode()).digest()[0] < 256 // 8


def split(texts: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Training and held-out topics, without a paragraph in common."""
    kept = {name: text for name, text in texts.items() if held_out(name)}
    closed = {paragraph.strip() for text in kept.values() for paragraph in text.split("\n\n")}
    train = {}
    for name in sorted(set(texts) - set(kept)):
        rest = [p for p in texts[name].split("\n\n") if p.strip() not in closed]
        train[name] = "\n\n".join(rest)
    return train, kept


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    from pti_loop.llama.model import LlamaModel

    parser = argparse.ArgumentParser(prog="python -m models.twin_data", description=__doc__.split("\n")[0])
    parser.add_argument("--base", type=Path, required=True, help="GGUF file of the base model, for its tokenizer")
    parser.add_argument("--out", type=Path, required=True, help="folder to write train.npy and heldout.npy to")
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_path("stdlib")),
                        help="folder Lib of CPython 3.11.7; default: this interpreter's")  # fmt: skip
    options = parser.parse_args(argv)
    try:
        parts = dict(zip(("train", "heldout"), split(topics(options.stdlib)), strict=True))
    except ValueError as error:
        stop(str(error))
    options.out.mkdir(parents=True, exist_ok=True)
    model, facts = LlamaModel(options.base, n_gpu_layers=0, vocab_only=True), {}
    for name, part in parts.items():
        rows = [[*model.tokenize(text), model.end_tokens[0]] for text in part.values()]
        np.save(options.out / f"{name}.npy", np.concatenate([np.array(row, dtype=np.uint16) for row in rows]))
        facts[name] = {"topics": len(part), "bytes": sum(len(t) for t in part.values()), "tokens": sum(map(len, rows))}
    model.close()
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
