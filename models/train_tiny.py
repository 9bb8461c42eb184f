"""Train `pti-tiny`: a hybrid trunk and its nextn head together, on one GPU, stopped by the clock.

    python -m models.tiny_data --out data
    python -m models.train_tiny --data data --out run --minutes 9
    python -m models.tiny_convert run/pti-tiny.safetensors data/tokenizer.json pti-tiny.Q8_0.gguf

The head learns from the text and from what the trunk says at the same row: it is there to guess the trunk, so most of
its loss is the distance to the trunk's distribution. Needs PyTorch (`pip install .[train]`).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from models import stop

try:
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError as error:
    stop(f"{error}; run `pip install '.[train]'`")
from safetensors.torch import load_file, save_file

from models.tiny_model import TinyModel
from models.tiny_shape import Shape

Cast: TypeAlias = Callable[[], contextlib.AbstractContextManager[Any]]
"""What the forward pass runs in: half precision, or nothing."""


def windows(tokens: torch.Tensor, size: int, batch: int,
            generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Random windows of tokens (n,): inputs and the tokens that follow them, both (batch, size)."""
    starts = torch.randint(0, len(tokens) - size - 1, (batch, 1), generator=generator, device=tokens.device)
    rows = tokens[starts + torch.arange(size + 1, device=tokens.device)].long()
    return rows[:, :-1], rows[:, 1:]


def losses(model: TinyModel, inputs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
    """Losses in nats a token, and the share of rows where the head's choice is the trunk's, all scalars.

    Inputs and the tokens that follow them are (batch, time). Row 0 of the head has no hidden state before it and is
    left out.
    """
    hidden = model.hidden(inputs)
    trunk = model.logits(hidden).float()
    head = model.logits(model.head(hidden, inputs)).float()[:, 1:].flatten(0, 1)
    teacher = trunk.detach()[:, 1:].flatten(0, 1)
    choice = teacher.argmax(-1)
    said = F.log_softmax(head, dim=-1)
    return {
        "trunk": F.cross_entropy(trunk.flatten(0, 1), targets.flatten()),
        "head_text": F.nll_loss(said, targets[:, 1:].flatten()),
        "head_trunk": F.kl_div(said, F.log_softmax(teacher, dim=-1), reduction="batchmean", log_target=True),
        "head_choice": F.nll_loss(said, choice),
        "agree": (head.argmax(-1) == choice).float().mean(),
    }


def total(parts: dict[str, torch.Tensor], options: argparse.Namespace) -> torch.Tensor:
    """The loss that is minimised, of the parts that `losses` gives: a scalar, shape ()."""
    head = 0.2 * parts["head_text"] + 0.5 * parts["head_trunk"] + 0.3 * parts["head_choice"]
    return parts["trunk"] + options.head_weight * head


@torch.no_grad()
def evaluate(model: TinyModel, tokens: torch.Tensor, size: int, batch: int, cast: Cast) -> dict[str, float]:
    """Means of `losses` over all whole windows of held-out text, tokens (n,)."""
    model.eval()
    count = (len(tokens) - 1) // size
    sums: dict[str, float] = {}
    for start in range(0, count, batch):
        rows = torch.stack([tokens[i * size : (i + 1) * size + 1] for i in range(start, min(start + batch, count))])
        with cast():
            parts = losses(model, rows[:, :-1].long(), rows[:, 1:].long())
        for name, value in parts.items():
            sums[name] = sums.get(name, 0.0) + value.item() * len(rows)
    model.train()
    return {name: value / count for name, value in sums.items()}


def rate(progress: float, step: int, options: argparse.Namespace) -> float:
    """Learning rate: a warm-up, then half a cosine down to a fiftieth."""
    warm = min(1.0, (step + 1) / 100)
    highest: float = options.lr
    return highest * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0))))


def optimizer(model: TinyModel, options: argparse.Namespace) -> torch.optim.AdamW:
    """AdamW; matrices decay, vectors do not."""
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "conv1d" not in n]
    rest = [p for n, p in model.named_parameters() if p.dim() != 2 or "conv1d" in n]
    groups = [{"params": matrices, "weight_decay": options.decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.95), fused=options.device == "cuda")


def save(model: TinyModel, options: argparse.Namespace, facts: Mapping[str, Any]) -> Path:
    """The weights with what a conversion needs to know."""
    target: Path = options.out / "pti-tiny.safetensors"
    weights = {name: value.detach().float().cpu().contiguous() for name, value in model.named_parameters()}
    metadata = {
        "shape": json.dumps(model.shape.as_dict()),
        "license": "PSF-2.0",
        "description": f"trained {facts['date']} on the standard library of CPython 3.11.7, {facts['tokens']} tokens "
        f"seen; held-out loss {facts['trunk']:.3f} nats a token",
    }
    save_file(weights, target, metadata)
    return target


def train(model: TinyModel, data: dict[str, torch.Tensor], options: argparse.Namespace) -> None:
    """The loop over `data`, token ids (n,) by part.

    Writes a line of JSON to log.jsonl, and the weights, at every look at the held-out text.
    """
    generator = torch.Generator(device=options.device).manual_seed(options.seed)
    tuned = optimizer(model, options)
    cast: Cast = contextlib.nullcontext
    if options.device == "cuda":
        cast = partial(torch.autocast, "cuda", torch.bfloat16)
    begun, step, progress, shown = time.monotonic(), 0, 0.0, -options.look
    log = (options.out / "log.jsonl").open("a", encoding="utf-8")
    while True:
        elapsed = time.monotonic() - begun
        progress = max(step / options.steps, elapsed / (60 * options.minutes))
        if step - shown >= options.look or progress >= 1:
            shown = step
            facts = {"step": step, "tokens": step * options.batch * options.window, "seconds": round(elapsed, 1),
                     "date": datetime.date.today().isoformat(),
                     **evaluate(model, data["heldout"], options.window, options.batch, cast)}  # fmt: skip
            for line in (sys.stdout, log):
                print(json.dumps(facts), file=line, flush=True)
            save(model, options, facts)
            if progress >= 1:
                return
        for group in tuned.param_groups:
            group["lr"] = rate(progress, step, options)
        with cast():
            parts = losses(model, *windows(data["train"], options.window, options.batch, generator))
            loss = total(parts, options)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        tuned.step()
        tuned.zero_grad(set_to_none=True)
        step += 1


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m models.train_tiny", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that models.tiny_data wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for log.jsonl and pti-tiny.safetensors")
    parser.add_argument("--minutes", type=float, default=9.0, help="stop after so many, the learning rate run down")
    parser.add_argument("--steps", type=int, default=100000, help="stop after so many, if the clock does not before")
    parser.add_argument("--batch", type=int, default=32, help="windows a step")
    parser.add_argument("--window", type=int, default=1024, help="tokens a window, a multiple of 64")
    parser.add_argument("--lr", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--decay", type=float, default=0.1, help="weight decay of matrices")
    parser.add_argument("--dropout", type=float, default=0.1, help="share of a layer's output that is left out")
    parser.add_argument("--head-weight", type=float, default=1.0, help="weight of the head's loss")
    parser.add_argument("--look", type=int, default=500, help="steps between looks at the held-out text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--init", type=Path, help="weights to start from")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    model = TinyModel(replace(Shape(), n_ctx=options.window), options.dropout).to(options.device)
    if options.init:
        model.load_state_dict(load_file(options.init))
    data = {name: torch.from_numpy(np.load(options.data / f"{name}.npy").astype(np.int32)).to(options.device)
            for name in ("train", "heldout")}  # fmt: skip
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} million parameters on {options.device}", flush=True)
    train(model, data, options)


if __name__ == "__main__":
    main()
