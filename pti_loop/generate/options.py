"""What `generate` is asked for: options, and the prompts they name. It loads no model."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pti_loop.parameters import Value, declared
from pti_loop.pti_context import MOST_STREAMS, USUAL, RequestError

HELP = """Decode a prompt with N streams of one model in one llama_decode a step, stream the text, end with the rates.
Counted are emit calls, distinct the different tokens, aggregate is the sum of all answers, per answer what one reader
waits for.

--pti N alone is PTI's published loop: N staggered copies of one answer. --method packed decodes N prompts at once.
End-of-generation tokens are masked, so an answer has exactly -n tokens. At temperature 0 the text is plain
decoding's."""
EPILOG = """examples:
  python -m pti_loop generate -m FILE.gguf -p "The key to faster LLM inference is" --pti 4
  python -m pti_loop generate -m FILE.gguf -p ONE -p TWO --pti 2 --method packed
  python -m pti_loop generate -m FILE.gguf -f TEXT --method lookup --with draft=5 --temp 0.7 --seed 3
  python -m pti_loop generate -m FILE.gguf -p PROMPT --pti 4 --plain --record OUT && python -m bench audit OUT

One pair of runs is no measurement: python -m bench sweep alternates the arms and gives intervals."""


@dataclass(frozen=True)
class Asked:
    """The options, checked as far as they can be without a model."""

    model: Path
    prompts: tuple[str, ...]
    method: str
    streams: int
    parameters: dict[str, Value]
    n_predict: int
    temperature: float
    seed: int
    n_ctx: int
    """0 is as much as the answer needs."""
    threads: int
    gpu_layers: int
    flash_attn: str
    plain: bool
    record: Path | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RequestError(f"{message}; python -m pti_loop generate --help lists what there is")


def asked(argv: Sequence[str]) -> Asked:
    """The options of a command line. Raises `RequestError`; `--help` prints and exits."""
    found = _parser().parse_args(argv)
    spec = declared().get(found.method)
    if spec is None:
        raise RequestError(f"there is no method '{found.method}'; choose from: {', '.join(declared())}")
    streams = found.pti if found.pti is not None else 1 if spec.answers == "one" else 4
    if found.record and os.path.lexists(found.record):
        raise RequestError(f"{found.record} is there already; name another folder with --record")
    return Asked(
        found.model.expanduser(), _prompts(found, streams if spec.answers == "independent" else 1), found.method,
        streams, dict(_parameter(word) for word in found.parameters), found.n_predict, found.temperature, found.seed,
        found.n_ctx, found.threads or len(os.sched_getaffinity(0)), found.gpu_layers, found.flash_attn, found.plain,
        found.record,
    )  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m pti_loop generate", description=HELP, epilog=EPILOG, allow_abbrev=False,
                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add = parser.add_argument
    add("-m", "--model", type=Path, required=True, metavar="FILE", help="a GGUF file")
    add("-p", "--prompt", action="append", default=[], metavar="TEXT", help="the prompt; several for --method packed, "
        "which takes one for all answers too")  # fmt: skip
    add("-f", "--file", action="append", default=[], metavar="FILE", help="a file with a prompt; - is standard input")
    add("--pti", type=int, metavar="N", help=f"streams: usually 4, and 1 where a method has no more; stagger takes 1 "
        f"to 8, packed 1 to {MOST_STREAMS}")  # fmt: skip
    add("--method", default=USUAL, help=f"usually {USUAL}; one of {', '.join(declared())}")
    add("--with", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the "
        "method, such as draft=5 or emission=distinct; python -m bench sweep --help method lists them")  # fmt: skip
    add("-n", "--n-predict", type=int, default=80, metavar="N", help="tokens of an answer, usually 80")
    add("--temp", dest="temperature", type=float, default=0.0, metavar="T", help="temperature, usually 0")
    add("-s", "--seed", type=int, default=1, help="of the draws above temperature 0")
    add("-c", "--ctx-size", dest="n_ctx", type=int, default=0, metavar="N",
        help="tokens that a stream holds; usually what the answer needs")  # fmt: skip
    add("-t", "--threads", type=int, default=0, help="usually all cores that this process may use")
    add("-ngl", "--n-gpu-layers", dest="gpu_layers", type=int, default=-1, metavar="N",
        help="layers on the GPU, usually all")  # fmt: skip
    add("-fa", "--flash-attn", choices=("auto", "on", "off"), default="auto")
    add("--plain", action="store_true", help="decode the same by plain decoding first, in a context of its own, and "
        "say the ratio and whether the texts are one")  # fmt: skip
    add("--record", type=Path, metavar="FOLDER", help="write every token and round; python -m bench audit reads it")
    return parser


def _prompts(found: argparse.Namespace, answers: int) -> tuple[str, ...]:
    """As many prompts as there are answers. Raises `RequestError`."""
    prompts = [*found.prompt, *map(_read, found.file)]
    if not prompts:
        raise RequestError("there is no prompt; give one with -p TEXT or -f FILE")
    for prompt in prompts:
        if not prompt.strip():
            raise RequestError("the prompt is empty; give one with -p TEXT or -f FILE")
        if any("\ud800" <= letter <= "\udfff" for letter in prompt):
            raise RequestError("the prompt is no UTF-8; give it in a file of UTF-8 with -f FILE")
    if len(prompts) == 1:
        return tuple(prompts * max(answers, 1))
    if len(prompts) != answers:
        takes = f"{answers} prompts, or one for all" if answers > 1 else "one prompt"
        raise RequestError(f"{len(prompts)} prompts were given, and {found.method} takes {takes}")
    return tuple(prompts)


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{name} cannot be read ({error.strerror}); give another prompt file") from None
    except UnicodeDecodeError:
        raise RequestError(f"{name} is no text in UTF-8; give another prompt file") from None


def _parameter(word: str) -> tuple[str, Value]:
    name, separator, text = word.partition("=")
    if not name or not separator:
        raise RequestError(f"--with {word} is no parameter; write it as --with draft=5")
    for kind in (int, float):
        try:
            return name, kind(text)
        except ValueError:
            continue
    return name, text
