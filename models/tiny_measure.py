"""What a model with a nextn head does on held-out code, in llama.cpp: perplexity, the head's agreement, a continuation.

    python -m models.tiny_measure MODEL.gguf [--stdlib LIB] [--tokens 512] [--out FIGURES.json]

Every figure is teacher-forced: the text is given, and each row is asked what comes next. Knows nothing about training.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from scipy.stats import binomtest

from models import stop
from models.nextn import NextnModel
from models.tiny_data import PYTHON, check, read_manifest, text
from pti_loop.engine import ContextSpec

PROMPT = "import unittest\n\nclass TestQueue(unittest.TestCase):\n    def test_put(self):\n"


def heldout_texts(stdlib: Path) -> dict[str, str]:
    """Held-out files of the corpus. Raises `ValueError` when `stdlib` is another version's."""
    sources = [source for source in read_manifest() if source.heldout]
    if wrong := check(sources, stdlib):
        raise ValueError(f"{wrong[0]} of {stdlib} is not that of CPython {PYTHON}; give its folder Lib with --stdlib")
    return {source.path: text(source, stdlib) for source in sources}


def share_interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `n` that were looked at."""
    found = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    return float(found.low), float(found.high)


def unigram(counts: np.ndarray) -> NDArray[np.float64]:
    """Log probabilities float64 (n_vocab,) of a unigram model with one more of each piece than `counts` (n_vocab,)."""
    smoothed: NDArray[np.float64] = counts + 1.0
    return np.log(smoothed / float(smoothed.sum()))


def agreement(model: NextnModel, rows: Iterable[list[int]]) -> dict[str, np.ndarray]:
    """Per row of every text, from row 1: loss of trunk and head on the text, and what each of them chose, all (n,).

    Row t of the head was given token t and the trunk's state of t - 1: it guesses the token two after that state.
    """
    out: dict[str, list[np.ndarray]] = {name: [] for name in ("trunk_loss", "head_loss", "trunk", "head", "token")}
    for tokens in rows:
        trunk, hidden = model.trunk(tokens)
        head = model.head(tokens, hidden)
        targets, at = np.array(tokens[2:]), np.arange(len(tokens) - 2)
        out["token"].append(targets)
        for name, scores in (("trunk", trunk[1:-1]), ("head", head[1:-1])):
            out[f"{name}_loss"].append(-log_softmax(scores.astype(np.float64), axis=1)[at, targets])
            out[name].append(scores.argmax(axis=1))
    return {name: np.concatenate(parts) for name, parts in out.items()}


def figures(found: dict[str, np.ndarray], counts: np.ndarray) -> dict[str, Any]:
    """Numbers of the card, of what `agreement` gave. `counts` (n_vocab,) are the pieces of the training text."""
    n = len(found["trunk"])
    chosen = np.bincount(found["trunk"], minlength=len(counts))
    agreed = int((found["trunk"] == found["head"]).sum())
    low, high = share_interval(agreed, n)
    return {
        "positions": n,
        "perplexity": float(np.exp(found["trunk_loss"].mean())),
        "unigram_perplexity": float(np.exp(-unigram(counts)[found["token"]].mean())),
        "head_perplexity": float(np.exp(found["head_loss"].mean())),
        "trunk_says_the_text": float((found["trunk"] == found["token"]).mean()),
        "head_says_the_text": float((found["head"] == found["token"]).mean()),
        "head_says_the_trunk": agreed / n,
        "interval": [low, high],
        "most_common_choice": float(chosen.max() / n),
        "most_common_token": int(chosen.argmax()),
    }


def continuation(model: NextnModel, prompt: str, n_predict: int = 120) -> str:
    """Greedy text after a prompt, by plain decoding in the engine."""
    tokens = model.model.tokenize(prompt)
    ctx = model.model.context(ContextSpec(n_ctx=len(tokens) + n_predict, n_seq_max=1))
    ctx.decode(tokens, range(len(tokens)), [0] * len(tokens), [len(tokens) - 1])
    said = ctx.greedy()
    while len(said) < n_predict:
        ctx.decode(said[-1:], [len(tokens) + len(said) - 1], [0], None)
        said += ctx.greedy()
    ctx.close()
    return model.model.detokenize(said)


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m models.tiny_measure", description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--tokens", type=int, default=512, help="first tokens of every held-out file that are used")
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args(argv)
    try:
        texts = heldout_texts(options.stdlib)
    except ValueError as error:
        stop(str(error))
    model = NextnModel(options.model, n_ctx=options.tokens)
    counts = np.zeros(model.model.n_vocab)
    for source in read_manifest():
        if not source.heldout:
            np.add.at(counts, model.model.tokenize(text(source, options.stdlib)), 1)
    rows = [model.model.tokenize(item)[: options.tokens] for item in texts.values()]
    found = figures(agreement(model, [row for row in rows if len(row) > 2]), counts)
    found["most_common_token"] = model.model.detokenize([found["most_common_token"]])
    print(json.dumps(found, indent=1))
    print(options.prompt + continuation(model, options.prompt))
    model.close()
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
