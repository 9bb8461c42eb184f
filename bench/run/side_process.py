"""One side of a contrast in a process of its own: a build of the engine, a loaded model, the contexts of its arms.

It does what `bench.run.sides` tells it over a connection, one call at a time, and waits asleep in between. It knows
nothing about blocks, and not what the other side is.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from bench.run.side_words import END, FAULT, ROW, VALUE, About, Opened
from pti_loop.load_first import load_first

if TYPE_CHECKING:
    from bench.plan.settings import Config
    from bench.records.rows import Piece, Run
    from bench.run.arms import Arms, Prompt, Task
    from bench.run.run_rows import Around
    from bench.run.turns import Started
    from pti_loop.engine import Model
    from pti_loop.ledger import Trace


class Server:
    """The calls that a side answers, by name."""

    def __init__(self, load: Callable[[dict[str, Any]], tuple[Model, Config, dict[str, Any], list[Prompt]]]) -> None:
        self._load = load
        self._arms: Arms | None = None
        self._memory: dict[str, dict[str, int]] = {}
        self._started: dict[str, Started] = {}
        self._read: tuple[float, ...] | None = None

    def load(self, job: dict[str, Any]) -> About:
        """Load the model of a job, with the engine's settings of this side. Raises `EngineError`."""
        from bench.run.engines import engine
        from bench.run.worker import readers

        self._model, self._config, sizes, prompts = self._load(job)
        self._around, self._gauge, note = readers(self._model)
        return About(self._model.facts(), sizes, prompts, note, engine(self._config.model.engine).build()["build"])

    def open(self, text: Sequence[int], held: Sequence[str]) -> Opened:
        """Make the contexts of the arms that this side has. Raises `EngineError`, `Unsupported`."""
        from bench.run.arms import Arms
        from bench.run.held import held as look

        if self._arms is not None:
            self._arms.close()
        around: Around = self._around
        first = look if not self._memory else None
        self._arms = Arms(self._model, self._config, text, around, self._gauge, held, first)
        self._memory = self._memory or self._arms.memory
        begins = self._arms.beginnings
        return Opened(self._arms.settings, self._arms.rollback, self._arms.controls(), begins.get("reason", ""))

    def measure(self, *arguments: Any) -> tuple[Run, Trace]:
        """One run with its record. What is read behind it is about it alone: the other side ran before."""
        self._around()
        return self.arms.measure(*arguments)

    def begin(self, arm: str, task: Task, seed: int, number: int, n_predict: int) -> None:
        """Open a run that takes turns with others, up to its first token."""
        if not self._started:
            gc.collect()
            gc.disable()  # garbage would be collected within a turn
            self._around()
            self._read = None
        self._started[arm] = self.arms.start(arm, task, seed, number, n_predict=n_predict)
        self._started[arm].prefill()

    def turn(self, arm: str, turn: int, tokens: int) -> bool:
        """Go on until `tokens` of each answer are out. Returns whether the run is over."""
        run = self._started[arm]
        run.take_turn(turn, tokens)
        return run.over

    def end(self, arm: str, task: Task, order: int, seed: int, n_predict: int) -> tuple[Run, Trace, list[Piece]]:
        """The record of a run that took turns and is over."""
        gc.enable()
        read = self._read = self._read or self._around()  # one reading for all: they ran at once
        return self.arms.ended(self._started.pop(arm), arm, task, order, seed, n_predict, lambda: read)

    def speed(self, step_bytes: int, repeats: int) -> dict[str, Any]:
        """Read bandwidth of the memory that holds the weights."""
        from bench.run.worker import read_speed

        return read_speed(self._model, self._config, step_bytes, repeats)

    def rows(self, arm: str, prompt: Sequence[int], tokens: Sequence[int], shape: Any) -> Iterator[bytes]:
        """A replay's logits, row by row as bytes of float32."""
        for row in self.arms.replay(arm, prompt, tokens, shape):
            yield row.tobytes()

    def told(self) -> dict[str, Any]:
        """What the engine made of the contexts, what the drafter says, the process's memory, and the engine's log."""
        from bench.host.memory import process_memory
        from bench.run.worker import engine_log

        used = process_memory()
        return {"engine": self.arms.facts(), "drafter": self.arms.guessing, "log": engine_log(),
                "memory": self._memory, "beginning": self.arms.beginnings,
                "process": {"peak_rss_bytes": used.peak_rss, "anonymous_bytes": used.anonymous}}  # fmt: skip

    @property
    def arms(self) -> Arms:
        """The arms, once they are open."""
        assert self._arms is not None, "the arms are opened first"
        return self._arms

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Answer one call; those that this class has not are the arms' own."""
        return getattr(self if hasattr(self, name) else self.arms, name)(*arguments)


def serve(connection: Connection, server: Server) -> None:
    """Answer calls until the other end closes. An error ends a call, not the side."""
    while True:
        try:
            name, arguments = connection.recv()
        except EOFError:
            return
        try:
            found = server.call(name, arguments)
            if isinstance(found, Iterator):
                for row in found:
                    connection.send((ROW, row))
                connection.send((END, None))
            else:
                connection.send((VALUE, found))
        except Exception as error:  # whoever called decides what it means
            connection.send((FAULT, _sendable(error)))


def _sendable(error: Exception) -> Exception:
    """The error itself, or what it says where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def main() -> int:
    """Returns the exit code of the process; the connection's file descriptor is its one argument."""
    load_first()
    from bench.run.worker import load_side

    serve(Connection(int(sys.argv[1])), Server(load_side))
    return 0


if __name__ == "__main__":
    sys.exit(main())
