"""`generate` from its command line to its last line; Ctrl-C ends it behind a round, with the rates so far."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from pti_loop.engine import ContextSpec, EngineError, Unsupported
from pti_loop.generate import printed, record
from pti_loop.generate.options import Asked, asked
from pti_loop.gguf.file import read
from pti_loop.gguf.header import ModelFileError
from pti_loop.methods import METHODS
from pti_loop.parameters import ParameterError, resolve
from pti_loop.pti_context import PtiContext, RequestError, check_streams, room
from pti_loop.settings import Settings

if TYPE_CHECKING:
    from pti_loop.llama.model import LlamaModel

PLAIN = "autoregressive"


class _Stop:
    """What Ctrl-C asks for: the end behind the round that is under way. A second one ends at once."""

    def __init__(self) -> None:
        self.asked = self.decoding = False

    def __enter__(self) -> _Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked or not self.decoding:
            raise KeyboardInterrupt
        self.asked = True


@dataclass
class Loaded:
    """A model with prompts in its tokens, and how contexts of it are made."""

    model: LlamaModel
    prompts: list[list[int]]
    spec: ContextSpec


def main(argv: Sequence[str]) -> int:
    """Returns the exit code: 0 well, 2 something to mend, 130 interrupted, 141 nobody reads on."""
    try:
        with _Stop() as stop:
            return _generate(asked(argv), stop)
    except ParameterError as error:
        return _refuse(f"{error}; choose from: {', '.join(error.valid)}" if error.valid else str(error))
    except (RequestError, EngineError, Unsupported, ModelFileError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("\nstopped before a token was decoded", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _refuse(sentence: str) -> int:
    print(f"error: {printed.harmless(' '.join(sentence.split()))}", file=sys.stderr)
    return 2


def _generate(want: Asked, stop: _Stop) -> int:
    _check(want)
    file = read(want.model)
    settings = Settings(want.streams, want.n_predict, "rewind", resolve(want.method, want.parameters, "--with "))
    with ExitStack() as open_:
        print(f"loading {want.model.name}", file=sys.stderr, flush=True)
        loaded = _load(want, settings, file.n_ctx_train)
        open_.callback(loaded.model.close)
        arms = []
        if want.plain:
            plain = open_.enter_context(PtiContext(loaded.model, 1, PLAIN, n_ctx=loaded.spec.n_ctx, spec=loaded.spec,
                                                   temperature=want.temperature, seed=want.seed))  # fmt: skip
            print("plain decoding comes first", file=sys.stderr, flush=True)
            _decode(plain, loaded, want, stop, shown=False)
            arms.append(record.Arm("baseline", plain, plain.facts()))
        if not stop.asked:
            pti = open_.enter_context(PtiContext(
                loaded.model, want.streams, want.method, n_ctx=loaded.spec.n_ctx, spec=loaded.spec,
                temperature=want.temperature, seed=want.seed, **want.parameters))  # fmt: skip
            print(f"{pti.label}; prompt of {max(map(len, loaded.prompts))} tokens, {want.n_predict} to predict, "
                  f"temperature {want.temperature:g}\n", file=sys.stderr, flush=True)  # fmt: skip
            _decode(pti, loaded, want, stop, shown=True)
            arms.append(record.Arm("treatment", pti, pti.facts()))
        return _end(want, arms, stop)


def _check(want: Asked) -> None:
    """What no model is needed for. Raises `RequestError` and `ParameterError`."""
    resolve(want.method, want.parameters, "--with ")
    check_streams(METHODS[want.method], want.streams)
    if not want.temperature >= 0 or math.isinf(want.temperature):
        raise RequestError(f"--temp {want.temperature:g} is no temperature; give a number from 0 up")
    for name, value, least in (("-n", want.n_predict, 2), ("-c", want.n_ctx, 0), ("-t", want.threads, 1),
                               ("-ngl", want.gpu_layers, -1)):  # fmt: skip
        if value < least:
            raise RequestError(f"{name} {value} is below {least}; give a larger number")
    if not want.model.exists():
        raise RequestError(f"{want.model}: no such file; give a GGUF model with -m FILE")


def _load(want: Asked, settings: Settings, n_ctx_train: int) -> Loaded:
    """The model and a context's size that holds the answer. Raises `RequestError` where it does not fit."""
    from pti_loop.llama.model import LlamaModel

    method = METHODS[want.method]
    model = LlamaModel(want.model, want.gpu_layers, load_mtp=method.uses_head(settings))
    try:
        prompts = [model.tokenize(prompt) for prompt in want.prompts]
        longest = max(map(len, prompts))
        need = room(method, settings, longest)
        n_ctx = want.n_ctx or max(need, 64)
        if need > n_ctx or (not want.n_ctx and n_ctx_train and need > n_ctx_train):
            raise RequestError(
                f"the prompt has {longest} tokens and with -n {want.n_predict} needs {need} of context, and "
                + (f"-c holds {n_ctx}" if want.n_ctx else f"the model was trained for {n_ctx_train}")
                + "; shorten the prompt, lower -n, or give a larger -c"
            )
    except BaseException:
        model.close()
        raise
    batch = min(512, n_ctx)  # more than its context holds no arm could have
    spec = ContextSpec(n_ctx, 1, batch, batch, threads=want.threads, flash_attn=want.flash_attn)
    return Loaded(model, prompts, spec)


def _decode(pti: PtiContext, loaded: Loaded, want: Asked, stop: _Stop, shown: bool) -> None:
    """Decode the prompts; a Ctrl-C ends it behind a round."""
    text = printed.Printed(loaded.model.piece, len(loaded.prompts), sys.stdout) if shown else None
    said = pti.prefill(loaded.prompts, want.n_predict)
    stop.decoding = True
    while True:
        if text:
            text.add(said, want.n_predict)
        if pti.done or stop.asked:
            break
        said = pti.step()
    pti.stop()
    if text:
        text.end()


def _end(want: Asked, arms: Sequence[record.Arm], stop: _Stop) -> int:
    """The rates, the record, and what they say beside plain decoding. Returns the exit code."""
    print()
    if stop.asked:
        done = min(len(arms[-1].pti.tokens(answer)) for answer in range(len(arms[-1].pti.prompts)))
        print(f"stopped after {done} of {want.n_predict} tokens; the rates are those so far")
    pti = arms[-1].pti
    rates = pti.rates()
    for line in (*printed.rates_table(rates, len(pti.prompts)), printed.about_rounds(pti, rates)):
        print(line)
    if len(arms) == 2:
        print(_beside(arms[0].pti, pti))
    if want.record:
        settings = {"temperature": want.temperature, "seed": want.seed, "streams": want.streams,
                    "n_predict": want.n_predict, "model": {"file": want.model.name},
                    "method": {"name": want.method, "parameters": dict(pti.settings.parameters)}}  # fmt: skip
        try:
            record.write(want.record, arms, settings)
        except OSError as error:
            raise RequestError(f"{want.record} cannot be written ({error.strerror}); name another folder") from error
        print(f"every token and round is in {want.record}: python -m bench audit {want.record}")
    sys.stdout.flush()
    return 130 if stop.asked else 0


def _beside(plain: PtiContext, pti: PtiContext) -> str:
    """One run against one of plain decoding: rates, and whether the texts are one."""
    base, own = plain.rates(), pti.rates()
    texts = [(plain.tokens(answer), pti.tokens(answer)) for answer in range(len(pti.prompts))]
    apart = [next((place for place, pair in enumerate(zip(*pair_, strict=False)) if pair[0] != pair[1]), None)
             for pair_ in texts]  # fmt: skip
    same = "the texts are one" if all(place is None for place in apart) else "; ".join(
        f"answer {answer + 1} differs from token {place}" for answer, place in enumerate(apart) if place is not None)
    return (f"plain decoding: {base.answer_tok_s:.2f} tok/s; one answer {own.answer_tok_s / base.answer_tok_s:.2f}x, "
            f"in sum {own.aggregate_tok_s / base.answer_tok_s:.2f}x, by one run of each; {same}")  # fmt: skip
