"""One side of a contrast of servers: where it answers, what it is asked, and that it stays what it was.

A side that is started here has a fresh server for each run, unless it is told to keep one. It knows no block and no
arm but its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any, TypeVar

from bench.plan import served
from bench.run.arms import Prompt
from bench.run.served import answers
from bench.run.served.answers import NATIVE, OPENAI, Answer
from bench.run.served.client import Client, ServerFault
from bench.run.served.draws import GREEDY, Draws
from bench.run.served.process import Server
from bench.run.served.program import names_at
from pti_loop.engine import EngineError

TOP, PAIR = 10, 2
"""Most likely tokens whose probabilities are asked for; and the least rows of a decode that rounds otherwise."""
Rows = list[dict[int, float]]
"""Of each position log probabilities by token."""
T = TypeVar("T")


@dataclass(frozen=True)
class Wanted:
    """What all requests of a cell have, and what its servers must be."""

    cache_prompt: bool
    kept: bool
    model: str
    """Name that addresses have for the model."""
    file: str
    """Name of the model's file, and the next its vocabulary and parameters; empty and 0 where no file is read here."""
    n_vocab: int
    n_params: int
    patience: float
    load_s: float
    draws: Draws = GREEDY


class Side:
    """The server of one side. Every fault of it is an `EngineError` that names the side."""

    def __init__(self, name: str, command: str, wanted: Wanted, log: Path, keep: Sequence[int] = ()) -> None:
        """`keep` are file descriptors that its process is to hold, too."""
        self.name, self.wanted = name, wanted
        self.way, self.facts = NATIVE, dict[str, Any]()
        self._client: Client | None = None
        self._server: Server | None = None
        self._model, self._hold = "", wanted.kept
        if served.is_address(command):
            self._client = Client(command, wanted.patience)
        else:
            port = served.port_of(command)
            self._server = Server(shlex.split(command), log, wanted.load_s, wanted.patience, port, keep)

    @property
    def is_here(self) -> bool:
        """Whether it is started here."""
        return self._server is not None

    @property
    def has_logits(self) -> bool:
        """Whether it tells how likely tokens are."""
        return self.way == NATIVE

    @contextmanager
    def _named(self) -> Iterator[None]:
        """A fault inside is this side's; where its process has ended, that is what there is to say."""
        try:
            try:
                yield
            except ServerFault:
                if self._server is not None and self._server.is_up and self._server.ends_soon():
                    self._server.check("while it was asked")
                raise
        except ServerFault as fault:
            raise EngineError(f"the {self.name}'s server {fault}") from fault

    def open(self) -> None:
        """See that it answers, and that it has the model. Raises `EngineError`."""
        with self._named():
            self._identify(self._ready())

    def _ready(self, fresh: bool = False) -> Client:
        """Its address, behind a server that is up; a fresh one where that is asked for and it is started here."""
        if self._server is None:
            assert self._client is not None, "a side is a command or an address"
            return self._client
        if fresh and not self._hold:
            self._server.stop()
        if not self._server.is_up:
            self._client = self._server.start()
        assert self._client is not None, "the server that was started has an address"
        return self._client

    def _identify(self, client: Client) -> None:
        """Which way it is asked, and whether it has the model that it should have. Raises `ServerFault`."""
        try:
            props = client.json("/props")
            self.way = NATIVE if isinstance(props, dict) and "total_slots" in props else OPENAI
        except ServerFault:
            props, self.way = {}, OPENAI
        listed = client.json("/v1/models")
        names = names_at(client)
        wanted = self.wanted
        if self._server is None and wanted.model not in names:
            raise ServerFault(f"has the models {', '.join(names) or 'none'}, and {wanted.model} was asked for")
        meta: dict[str, Any] = next((one["meta"] for one in listed["data"] if isinstance(one.get("meta"), dict)), {})
        for key, own in (("n_vocab", wanted.n_vocab), ("n_params", wanted.n_params)):
            if own and meta.get(key) and int(meta[key]) != own:
                raise ServerFault(f"has loaded a model with {key} {meta[key]}, and {wanted.file} has {own}")
        file = Path(str(props.get("model_path") or "")).name
        if self.is_here and wanted.file and file and file != wanted.file:
            raise ServerFault(f"has loaded {file}, and {wanted.file} was asked for")
        settings = props.get("default_generation_settings") or {}
        self.facts = {key: value for key, value in {
            "server": props.get("build_info"), "way": self.way, "n_ctx": settings.get("n_ctx"),
            "n_seq_max": props.get("total_slots"), "n_vocab": meta.get("n_vocab"), "n_params": meta.get("n_params"),
        }.items() if value is not None}  # fmt: skip

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Ids of a prompt; the letters of one for a server that takes text alone. Raises `EngineError`."""
        if self.way != NATIVE:
            return tuple(map(ord, text))
        with self._named():
            told = self._ready().json("/tokenize", {"content": text, "add_special": True})
            try:
                return tuple(int(one) for one in told["tokens"])
            except (TypeError, ValueError, LookupError) as error:
                raise ServerFault("gives no tokens for a text") from error

    def _body(self, prompt: Sequence[int], n_predict: int, seed: int, draws: Draws) -> dict[str, Any]:
        given = prompt if self.way == NATIVE else "".join(map(chr, prompt))
        return answers.request(self.way, given, n_predict, seed, self.wanted.cache_prompt, self.wanted.model, draws)

    def ask(self, prompts: Sequence[Prompt], n_predict: int, seed: int) -> list[Answer]:
        """The answers to some prompts at once. Raises `EngineError`."""
        with self._named():
            client = self._ready(fresh=True)
            bodies = [self._body(prompt.tokens, n_predict, seed, self.wanted.draws) for prompt in prompts]
            found = at_once_of([partial(answers.ask, client, self.way, body) for body in bodies])
            for answer in found:
                self._same_model(answer)
            for answer, body in zip(found, bodies, strict=True):
                if answer.lacks:
                    answers.fill(answer, *answers.ask_whole(self._ready(fresh=True), body))
            return found

    def _same_model(self, answer: Answer) -> None:
        wanted = self._model or (self.wanted.model if self.way == OPENAI and not self.is_here else answer.model)
        if answer.model and answer.model != wanted:
            raise ServerFault(f"answers as the model {answer.model}, and {wanted} was asked for")
        self._model = wanted

    def likely(self, prompt: Sequence[int], count: int = 1, at_once: int = 1) -> list[Rows]:
        """Log probabilities of the most likely tokens behind a prefix and behind each of its next greedy tokens.

        The same is asked `at_once` times at once, and there is an answer to each.
        """
        with self._named():
            client, body = self._ready(), {**self._body(prompt, count, 0, GREEDY), "stream": False, "n_probs": TOP,
                                           "cache_prompt": False}  # fmt: skip
            return at_once_of([lambda: _rows(client.json("/completion", body), count)] * at_once)

    @contextmanager
    def paired(self) -> Iterator[bool]:
        """A server of the same command that answers two requests at once; False where there is none such."""
        if self._server is None:
            yield int(self.facts.get("n_seq_max") or 1) >= PAIR
            return
        before = self._server
        before.stop()
        self._server = before.with_options(["-np", str(PAIR), "-c", str(PAIR * int(self.facts.get("n_ctx") or 0))])
        try:
            with self.held():
                yield True
        finally:
            self._server.stop()
            self._server = before

    @contextmanager
    def held(self) -> Iterator[None]:
        """A fresh server, that answers all that is asked inside."""
        before, self._hold = self._hold, False
        try:
            with self._named():
                self._ready(fresh=True)
            self._hold = True
            yield
        finally:
            self._hold = before

    @property
    def starts(self) -> int:
        """How often its server was started; -1 for an address."""
        return self._server.started if self._server else -1

    def cpu_seconds(self) -> float:
        """CPU time of its processes; nan where none is here."""
        return self._server.cpu_seconds() if self._server and self._server.is_up else float("nan")

    def rest(self) -> None:
        """The other side has its turn: a kept server stands still, a fresh one of this side is not needed any more."""
        if self._server is not None and self._server.is_up:
            if self._hold:
                self._server.pause()
            else:
                self._server.stop()

    def wake(self) -> None:
        """It has its turn."""
        if self._server is not None and self._server.is_up:
            self._server.resume()

    def log(self) -> str:
        """What its servers printed."""
        return self._server.log() if self._server else ""

    def close(self) -> None:
        """End its server. Calling twice is allowed."""
        if self._server is not None:
            self._server.stop()


def at_once_of(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """The results of some requests that are sent together. The first fault is raised when all are over."""
    if len(tasks) == 1:
        return [tasks[0]()]
    ready = Barrier(len(tasks))

    def one(task: Callable[[], T]) -> T:
        ready.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result() for future in [pool.submit(one, task) for task in tasks]]


def _rows(told: Any, count: int) -> Rows:
    try:
        rows = [{int(one["id"]): float(one["logprob"]) for one in row["top_logprobs"]}
                for row in told["completion_probabilities"]]  # fmt: skip
    except (TypeError, ValueError, LookupError) as error:
        raise ServerFault("does not tell how likely its tokens are") from error
    if len(rows) != count or not all(rows):
        raise ServerFault(f"tells how likely {len(rows)} tokens are, and {count} were asked for")
    return rows
