"""llama-bench and llama-batched-bench as outside denominators: run on the same model and build, beside our own loop.

It knows their options and the fields they print; what the ratios mean is the judge's business.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.host import builds, device_lock
from bench.host.process_group import dies_with_parent
from bench.plan.settings import Config, EngineConfig
from bench.run.specs import context_spec
from pti_loop.engine import Model, prefill

_MARGIN = 16
"""Tokens of a context beside those generated: the prompt, and a warm-up."""
_TRIES = 4
_MEND = "build it with `make peers`"
AUTO = "auto"
"""The program that came with the build, where it brought one."""
_FLASH = {"auto": "auto", "on": "1", "off": "0"}
_FLASH_BATCHED = {"auto": "auto", "on": "on", "off": "off"}


def check_peers(config: Config) -> None:
    """Find the programs that were asked for, and put down where they are, since a cell runs in another folder.

    Raises `UserError` when one is not there, cannot be run, or is of another llama.cpp than the engine.
    """
    for key in ("llama_bench", "llama_batched_bench"):
        path = getattr(config.peers, key)
        if path == AUTO:
            path = _beside(config.engine.build, key.replace("_", "-"))
            setattr(config.peers, key, path)
        if not path:
            continue
        found = shutil.which(Path(path).expanduser().absolute()) or shutil.which(path)
        if not found:
            raise UserError(f"peers.{key}={path} is not a program that can be run; {_MEND}")
        setattr(config.peers, key, str(found))
        theirs, ours = _commit(str(found)), engine_commit()
        if not (theirs.startswith(ours) or ours.startswith(theirs)):
            raise UserError(
                f"peers.{key}={path} is of llama.cpp {theirs} and the engine of {ours}, so that a difference would say "
                f"nothing about the loop; {_MEND}"
            )


def _beside(build: str, name: str) -> str | None:
    """A program in the folder of a build's libraries; of the usual build, where `make peers` leaves it, too."""
    folder = builds.folder_of(build)
    if folder is None:
        from pti_loop.llama.library import library_path

        places = [library_path().parent, Path(sys.prefix) / "peers"]
    else:
        places = [folder]
    return next((str(place / name) for place in places if shutil.which(place / name)), None)


def engine_commit() -> str:
    """llama.cpp's commit, as the engine's own libraries tell it."""
    from pti_loop.llama import model as llama

    return llama.build()["llama_cpp_commit"]


@lru_cache
def _commit(program: str) -> str:
    """Abbreviated commit that a program of llama.cpp prints."""
    done = _start([program, "--version"])
    said = re.search(r"\bcommit (\w+)", done.stdout + done.stderr)
    if not said:
        raise UserError(f"`{program} --version` names no commit of llama.cpp; {_MEND}")
    return said[1]


def compare_with_peers(model: Model, model_path: Path, config: Config,
                       progress: Callable[[float, str], None]) -> list[dict[str, Any]]:
    """Interleaved pairs: one run of ours, one of theirs, the first alternating. One row for each pair and width."""
    rows: list[dict[str, Any]] = []
    for number in range(config.peers.pairs):
        if config.peers.llama_bench:
            rows.append(_pair(number, 1, "llama-bench", model, config, lambda: _llama_bench(config, model_path)))
        if config.peers.llama_batched_bench:
            for width in config.peers.widths:
                rows.append(_pair(number, width, "llama-batched-bench", model, config,
                                  partial(_batched_bench, config, model_path, width)))
        progress(0.8 + 0.2 * (number + 1) / config.peers.pairs, f"peers, pair {number + 1}")
    return rows


def _pair(number: int, width: int, tool: str, model: Model, config: Config,
          theirs: Callable[[], float]) -> dict[str, Any]:  # fmt: skip
    if number % 2:
        their_rate, (our_rate, decodes) = theirs(), _ours(model, config, width)
    else:
        (our_rate, decodes), their_rate = _ours(model, config, width), theirs()
    return {"tool": tool, "pair": number, "width": width, "n_gen": config.peers.n_gen, "tok_s": their_rate,
            "ours_tok_s": our_rate, "ours_decode_tok_s": decodes, "ratio": our_rate / their_rate}  # fmt: skip


def _ours(model: Model, config: Config, width: int) -> tuple[float, float]:
    """Tokens per second of a plain loop of `width` streams from an almost empty context.

    With the choice of every token, and by the decodes alone: the programs choose none, they decode random ones.
    """
    # Their context holds what they generate and little more; a longer one would have a wider attention than theirs.
    spec = replace(context_spec(config, width, width), n_ctx=config.peers.n_gen + _MARGIN)
    ctx = model.context(spec)
    try:
        for sequence in range(width):
            prefill(ctx, [1], sequence)
        tokens = ctx.greedy() * width
        ctx.decode(tokens, [1] * width, range(width), None)  # their warm-up, ours too
        tokens = ctx.greedy()
        began, decoding = ctx.clock(), 0
        for past in range(2, 2 + config.peers.n_gen):
            before = ctx.clock()
            ctx.decode(tokens, [past] * width, range(width), None)
            decoding += ctx.clock() - before
            tokens = ctx.greedy()
        made = width * config.peers.n_gen * 1e9
        return made / (ctx.clock() - began), made / decoding
    finally:
        ctx.close()


def _devices(config: Config, *value: str) -> list[object]:
    """Options for how the model lies on GPUs, where that is not the usual way; `value` is what a switch is given."""
    engine, usual = config.engine, EngineConfig()
    options = {"split_mode": "-sm", "main_gpu": "-mg", "tensor_split": "-ts"}
    switches = {"offload_kqv": "-nkvo", "op_offload": "-nopo" if value else "--no-op-offload"}
    found: list[object] = []
    for key, option in options.items():
        found += [option, getattr(engine, key)] if getattr(engine, key) != getattr(usual, key) else []
    for key, option in switches.items():
        found += [option, *value] if getattr(engine, key) != getattr(usual, key) else []
    return found


def _llama_bench(config: Config, model_path: Path) -> float:
    engine, peers = config.engine, config.peers
    printed = _run([
        peers.llama_bench, "-m", model_path, "-p", 0, "-n", peers.n_gen, "-r", 1, "-o", "json", "-t", engine.threads,
        "-ngl", engine.n_gpu_layers, "-b", engine.n_batch, "-ub", engine.n_ubatch, "-ctk", engine.type_k,
        "-ctv", engine.type_v, "-fa", _FLASH[engine.flash_attn], *_devices(config, "1"),
    ])  # fmt: skip
    program = str(peers.llama_bench)
    with _reading(program, printed):
        rows = [row for row in json.loads(printed[printed.index("[") :]) if row["n_gen"] == peers.n_gen]
        model, rate = Path(rows[0]["model_filename"]).name, float(rows[0]["avg_ts"])
    if model != model_path.name:
        raise UserError(f"{program} was given {model_path.name} but measured {model}; {_MEND}")
    return _checked(program, rate)


def _batched_bench(config: Config, model_path: Path, width: int) -> float:
    engine, peers = config.engine, config.peers
    printed = _told([
        peers.llama_batched_bench, "-m", model_path, "-c", (peers.n_gen + _MARGIN) * width, "-npp", 1,
        "-ntg", peers.n_gen, "-npl", width, "-t", engine.threads, "-tb", engine.threads,
        "-ngl", engine.n_gpu_layers, "-b", engine.n_batch, "-ub", engine.n_ubatch, "-ctk", engine.type_k,
        "-ctv", engine.type_v, "-fa", _FLASH_BATCHED[engine.flash_attn], *_devices(config),
        "--output-format", "jsonl",
    ])  # fmt: skip
    program = str(peers.llama_batched_bench)
    with _reading(program, printed):
        rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        rate = float(next(row["speed_tg"] for row in rows if (row["pl"], row["tg"]) == (width, peers.n_gen)))
    return _checked(program, rate)


@contextmanager
def _reading(program: str, printed: str) -> Iterator[None]:
    """Whatever goes wrong in reading what a program printed is one sentence that shows how it begins."""
    try:
        yield
    except (ValueError, LookupError, TypeError, StopIteration) as error:
        head = " ".join(printed.split())[:80] or "nothing"
        raise UserError(f"{program} printed no result of this run ({head}); {_MEND}") from error


def _checked(program: str, rate: float) -> float:
    if not 0 < rate < math.inf:
        raise UserError(f"{program} printed a rate of {rate} tok/s; {_MEND}")
    return rate


def _told(words: Sequence[object]) -> str:
    """What the batched program printed. Its log has a thread of its own, which a quick end may cut off: then again."""
    for _ in range(_TRIES - 1):
        if (printed := _run(words)).strip():
            return printed
    return _run(words)


def _run(words: Sequence[object]) -> str:
    """What a program printed. Raises `UserError` with its own last words when it fails."""
    command = [str(word) for word in words]
    done = _start(command)
    if done.returncode:
        why = _last_words(done.stderr or done.stdout)
        raise UserError(f"{Path(command[0]).name} ended with {done.returncode}: {why}; try `{shlex.join(command)}`")
    return done.stdout


def _start(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              pass_fds=device_lock.held(), preexec_fn=dies_with_parent())  # fmt: skip
    except OSError as error:
        raise UserError(f"{command[0]} does not start ({error.strerror}); {_MEND}") from error


def _last_words(text: str) -> str:
    """The line that tells why: an assertion's, else the last error's; a backtrace may follow it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "GGML_ASSERT" in line] or [line for line in lines if "error" in line.lower()]
    return (telling or lines or ["it printed nothing"])[-1]
