"""How often the base accepts what its fine-tuned twin drafts, on the twin's domain and off it, in llama.cpp.

    python -m models.twin_measure --base SmolLM2.gguf --adapter TWIN.gguf [--out FIGURES.json]

The base continues every text greedily. The twin, given the same tokens, is asked for each next one: what agrees would
have been accepted, as in a draft-verify loop with one guess a round. At temperature 1 the expected acceptance of a
guess is the sum of min(p, q). Knows nothing about speed: drafting with the same weights saves no time by itself.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.special import log_softmax, softmax

from models import stop
from models.tiny_measure import heldout_texts, share_interval
from models.twin_data import split, topics
from pti_loop.engine import ContextSpec
from pti_loop.llama.model import LlamaContext, LlamaModel

PROMPT, N_PREDICT, TEXTS = 32, 32, 8


def scores(ctx: LlamaContext, tokens: list[int]) -> np.ndarray:
    """Scores (n, n_vocab) for the token after each of `tokens`; end tokens are -inf."""
    ctx.clear()
    ctx.decode(tokens, range(len(tokens)), [0] * len(tokens), None)
    return ctx.logits().copy()


def greedy(ctx: LlamaContext, prompt: list[int], n_predict: int) -> list[int]:
    """Plain greedy continuation."""
    said = [int(scores(ctx, prompt)[-1].argmax())]
    while len(said) < n_predict:
        ctx.decode(said[-1:], [len(prompt) + len(said) - 1], [0], None)
        said += ctx.greedy()
    return said


def domain(base: LlamaContext, twin: LlamaContext, texts: list[list[int]]) -> dict[str, Any]:
    """Acceptance and losses over texts of token ids, each longer than the prompt."""
    accepted: list[bool] = []
    expected: list[float] = []
    changed, losses = 0, dict[str, list[float]](base=[], twin=[])
    for text in texts:
        prompt = text[:PROMPT]
        answer = greedy(base, prompt, N_PREDICT)
        rows = slice(len(prompt) - 1, len(prompt) + N_PREDICT - 1)
        p, q = (scores(ctx, prompt + answer)[rows] for ctx in (base, twin))
        agreed = q.argmax(axis=1) == np.array(answer)
        accepted += agreed.tolist()
        changed += not agreed.all()  # up to its first disagreement the twin's own text is the base's
        expected += np.minimum(softmax(p, axis=1), softmax(q, axis=1)).sum(axis=1).tolist()
        known = text[: PROMPT + N_PREDICT]
        for name, ctx in (("base", base), ("twin", twin)):
            said = log_softmax(scores(ctx, known)[:-1], axis=1)
            losses[name] += (-said[np.arange(len(known) - 1), known[1:]]).tolist()
    n, hits = len(accepted), sum(accepted)
    low, high = share_interval(hits, n)
    return {
        "texts": len(texts), "drafted": n, "accepted": hits, "rate": hits / n, "interval": [low, high],
        "expected_at_temperature_1": float(np.mean(expected)), "answers_changed": changed,
        "loss_base": float(np.mean(losses["base"])), "loss_twin": float(np.mean(losses["twin"])),
    }  # fmt: skip


def domains(stdlib: Path) -> dict[str, list[str]]:
    """Texts on the twin's domain (held out) and off it: code, and this project's prompts of other kinds."""
    prompts = Path(__file__).resolve().parent.parent / "configs" / "prompts" / "default.yaml"
    items = yaml.safe_load(prompts.read_text(encoding="utf-8"))["items"]
    return {
        "python help, held out": list(split(topics(stdlib))[1].values()),
        "python code, held out": list(heldout_texts(stdlib).values()),
        "prose and questions": [item["text"] for item in items if item["class"] in ("prose", "question")],
    }


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m models.twin_measure", description=__doc__.split("\n")[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--stdlib", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    options = parser.parse_args(argv)
    try:
        named = domains(options.stdlib)
    except ValueError as error:
        stop(str(error))
    model = LlamaModel(options.base, n_gpu_layers=0)
    size = PROMPT + N_PREDICT
    base, twin = (model.context(ContextSpec(n_ctx=size, n_seq_max=1, n_outputs=size)) for _ in range(2))
    twin.attach(model.adapter(options.adapter))
    found = {}
    for name, texts in named.items():
        rows = [tokens for tokens in map(model.tokenize, texts) if len(tokens) >= PROMPT // 2][:TEXTS]
        found[name] = domain(base, twin, rows)
        print(name, json.dumps(found[name]), flush=True)
        if options.out:
            options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        for who, ctx in (("base", base), ("twin", twin)):
            print(f"--- {who}: {model.detokenize(greedy(ctx, rows[0][:PROMPT], N_PREDICT))}")
    for ctx in (base, twin):
        ctx.close()
    model.close()


if __name__ == "__main__":
    main()
