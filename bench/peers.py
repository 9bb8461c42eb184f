"""llama-bench and llama-batched-bench as outside denominators: run on the same model and build, beside our own loop.

It knows their options and the fields they print; what the ratios mean is the judge's business.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.arms import context_spec
from bench.config import Config
from bench.errors import UserError
from pti_loop.engine import Model, prefill

_MARGIN = 16
"""Tokens of a context beside those generated: the prompt, and a warm-up."""
_FLASH = {"auto": "auto", "on": "1", "off": "0"}
_FLASH_BATCHED = {"auto": "auto", "on": "on", "off": "off"}


def check_peers(config: Config) -> None:
    """Raise `UserError` when a program that was asked for is not there or cannot be run."""
    for key in ("llama_bench", "llama_batched_bench"):
        path = getattr(config.peers, key)
        if path and not os.access(path, os.X_OK):
            raise UserError(f"peers.{key}={path} is not a program that can be run; build it with `make peers`")


def compare_with_peers(model: Model, model_path: Path, config: Config,
                       progress: Callable[[float, str], None]) -> list[dict]:
    """Interleaved pairs: one run of ours, one of theirs, the first alternating. One row for each pair and width."""
    rows: list[dict] = []
    for number in range(config.peers.pairs):
        if config.peers.llama_bench:
            rows.append(_pair(number, 1, "llama-bench", model, config, lambda: _llama_bench(config, model_path)))
        if config.peers.llama_batched_bench:
            for width in (1, 2, 4):
                rows.append(_pair(number, width, "llama-batched-bench", model, config,
                                  lambda width=width: _batched_bench(config, model_path, width)))
        progress(0.8 + 0.2 * (number + 1) / config.peers.pairs, f"peers, pair {number + 1}")
    return rows


def _pair(number: int, width: int, tool: str, model: Model, config: Config, theirs: Callable[[], float]) -> dict:
    if number % 2:
        their_rate, our_rate = theirs(), _ours(model, config, width)
    else:
        our_rate, their_rate = _ours(model, config, width), theirs()
    return {"tool": tool, "pair": number, "width": width, "n_gen": config.peers.n_gen, "tok_s": their_rate,
            "ours_tok_s": our_rate, "ratio": our_rate / their_rate}  # fmt: skip


def _ours(model: Model, config: Config, width: int) -> float:
    """Tokens per second of a plain loop of `width` streams from an almost empty context, choice of token included."""
    # Their context holds what they generate and little more; a longer one would have a wider attention than theirs.
    spec = replace(context_spec(config, width, width), n_ctx=config.peers.n_gen + _MARGIN)
    ctx = model.context(spec)
    try:
        for sequence in range(width):
            prefill(ctx, [1], sequence)
        tokens = ctx.greedy() * width
        ctx.decode(tokens, [1] * width, range(width), None)  # their warm-up, ours too
        tokens = ctx.greedy()
        began = ctx.clock()
        for past in range(2, 2 + config.peers.n_gen):
            ctx.decode(tokens, [past] * width, range(width), None)
            tokens = ctx.greedy()
        return width * config.peers.n_gen / (ctx.clock() - began) * 1e9
    finally:
        ctx.close()


def _llama_bench(config: Config, model_path: Path) -> float:
    engine, peers = config.engine, config.peers
    printed = _run([
        peers.llama_bench, "-m", model_path, "-p", 0, "-n", peers.n_gen, "-r", 1, "-o", "json", "-t", engine.threads,
        "-ngl", engine.n_gpu_layers, "-b", engine.n_batch, "-ub", engine.n_ubatch, "-ctk", engine.type_k,
        "-ctv", engine.type_v, "-fa", _FLASH[engine.flash_attn],
    ])  # fmt: skip
    rows = [row for row in json.loads(printed[printed.index("[") :]) if row["n_gen"] and not row["n_prompt"]]
    return float(rows[0]["avg_ts"])


def _batched_bench(config: Config, model_path: Path, width: int) -> float:
    engine, peers = config.engine, config.peers
    printed = _run([
        peers.llama_batched_bench, "-m", model_path, "-c", (peers.n_gen + _MARGIN) * width, "-npp", 1,
        "-ntg", peers.n_gen, "-npl", width, "-t", engine.threads, "-tb", engine.threads,
        "-ngl", engine.n_gpu_layers, "-b", engine.n_batch, "-ub", engine.n_ubatch, "-ctk", engine.type_k,
        "-ctv", engine.type_v, "-fa", _FLASH_BATCHED[engine.flash_attn], "--output-format", "jsonl",
    ])  # fmt: skip
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return float(rows[-1]["speed_tg"])


def _run(words: Sequence[object]) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no output"]
        raise UserError(f"{Path(command[0]).name} ended with {done.returncode}: {last[0]}; try `{' '.join(command)}`")
    return done.stdout
