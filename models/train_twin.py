"""Train the twin: a low-rank adapter for SmolLM2 on the topics of Python's help, on one GPU, in a few minutes.

    python -m models.twin_data --base SmolLM2.gguf --out data
    python -m models.train_twin --base SmolLM2.gguf --data data --out twin.gguf

Keeps the adapter with the lowest held-out loss. Needs PyTorch (`pip install .[train]`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from models import stop

try:
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError as error:
    stop(f"{error}; run `pip install '.[train]'`")

from models.twin_model import TwinModel


def loss_of(model: TwinModel, rows: torch.Tensor) -> torch.Tensor:
    """Nats a token over rows (batch, time + 1), a scalar."""
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


@torch.no_grad()
def evaluate(model: TwinModel, tokens: torch.Tensor, size: int, batch: int) -> float:
    """Nats a token over the whole windows of `tokens` (n,)."""
    rows = tokens[: (len(tokens) - 1) // size * size + 1].unfold(0, size + 1, size)
    parts = [loss_of(model, part) * len(part) for part in rows.split(batch)]
    return float(sum(parts) / len(rows))


def train(model: TwinModel, data: dict[str, torch.Tensor], options: argparse.Namespace) -> None:
    """The loop over `data`, token ids (n,) by part; prints a line of JSON at each look at the held-out topics."""
    generator = torch.Generator(device=options.device).manual_seed(options.seed)
    tuned = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=options.decay)
    at, begun = torch.arange(options.window + 1, device=options.device), time.monotonic()
    best = math.inf
    for step in range(options.steps + 1):
        if step % options.look == 0 or step == options.steps:
            facts = {"step": step, "seconds": round(time.monotonic() - begun, 1),
                     "heldout": evaluate(model, data["heldout"], options.window, options.batch)}  # fmt: skip
            print(json.dumps(facts), flush=True)
            if step and facts["heldout"] < best:
                best = facts["heldout"]
                keep(model, options, facts)
            if time.monotonic() - begun > 60 * options.minutes:
                return
        warm, progress = min(1.0, (step + 1) / 20), step / options.steps
        for group in tuned.param_groups:
            group["lr"] = options.lr * warm * 0.5 * (1 + math.cos(math.pi * progress))
        starts = torch.randint(0, len(data["train"]) - options.window - 1, (options.batch, 1), generator=generator,
                               device=options.device)  # fmt: skip
        loss = loss_of(model, data["train"][starts + at])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        tuned.step()
        tuned.zero_grad(set_to_none=True)


def keep(model: TwinModel, options: argparse.Namespace, facts: Mapping[str, Any]) -> None:
    """Write the adapter as it is."""
    about = f"trained {datetime.date.today()} on pydoc_data/topics.py of CPython 3.11.7, {facts['step']} steps; "
    about += f"held-out loss {facts['heldout']:.3f} nats a token"
    model.write(options.out, {"name": "smollm2-135m-pydoc", "license": "PSF-2.0", "description": about})


def main(argv: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m models.train_twin", description=__doc__.split("\n")[0])
    parser.add_argument("--base", type=Path, required=True, help="GGUF file of the base model")
    parser.add_argument("--data", type=Path, required=True, help="folder that models.twin_data wrote")
    parser.add_argument("--out", type=Path, required=True, help="adapter to write (GGUF)")
    parser.add_argument("--minutes", type=float, default=5.0, help="stop at the first look after so many")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=8, help="windows a step")
    parser.add_argument("--window", type=int, default=512, help="tokens a window")
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--alpha", type=float, default=8.0)
    parser.add_argument("--lr", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--decay", type=float, default=0.05, help="weight decay")
    parser.add_argument("--look", type=int, default=40, help="steps between looks at the held-out topics")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    options = parser.parse_args(argv)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    model = TwinModel(options.base, options.rank, options.alpha).to(options.device)
    data = {name: torch.from_numpy(np.load(options.data / f"{name}.npy").astype(np.int64)).to(options.device)
            for name in ("train", "heldout")}  # fmt: skip
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} million trained on {options.device}", flush=True)
    train(model, data, options)


if __name__ == "__main__":
    main()
