"""The ledger (one row per emitted token), the rounds table and the draws table of a run.

It knows nothing about rates, files or what a method is: a loop writes what it did, and whoever reads the rows counts.
A row that contradicts itself cannot be built: the constructors raise `RecordError`.
Times are nanoseconds of the context's own clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pti_loop.tally import Tally

SOURCES = ("prefill", "verified", "unverified")
PHASES = ("startup", "steady")


_RoundRow: TypeAlias = tuple[int, str, int, int, int, int, int, int, int, int, int, int]
_EmitRow: TypeAlias = tuple[int, int, int, int, str, int]
_DrawRow: TypeAlias = tuple[int, int, int, int, int, float]
"""Fields of the three kinds of row behind the run, in their order."""


class RecordError(ValueError):
    """A record that contradicts itself."""


def require(condition: bool, sentence: str) -> None:
    """Raise `RecordError(sentence)` unless the condition holds."""
    if not condition:
        raise RecordError(sentence)


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of a decode loop: propose, `llama_decode`, sample, accept."""

    run: int
    round: int
    phase: str
    """`startup` before the method's first full round (each start-up decode is a row), else `steady`."""
    width: int
    """Tokens in the verifying `llama_decode` call."""
    draft_ns: int
    """Making the guesses; for a stagger that is rebuilt, its sequential decodes are in here."""
    decode_ns: int
    sample_ns: int
    rollback_ns: int
    total_ns: int
    """Wall time of the round; what exceeds the four parts is the loop's own host time."""
    drafted: int
    verified: int
    """Guesses that were compared with the model's own draw: all before the first miss, and the miss."""
    accepted: int
    redecoded: int = 0
    """Decodes of this round beside the verifying one: those that make a stagger's guesses, one token each, and one that
    gives a sequence its confirmed tokens again."""

    def __post_init__(self) -> None:
        require(self.phase in PHASES, f"round {self.round}: unknown phase '{self.phase}'")
        require(self.width >= 1, f"round {self.round}: width {self.width} is below 1")
        require(
            0 <= self.accepted <= self.verified <= self.drafted,
            f"round {self.round} of run {self.run}: accepted {self.accepted} <= verified {self.verified} "
            f"<= drafted {self.drafted} does not hold",
        )


@dataclass(frozen=True, slots=True)
class Emit:
    """One row per emit call. Two rows with one (run, stream, position) are a token counted twice."""

    run: int
    stream: int
    """The answer that the token belongs to, from 0; a twin that helps with answer 0 emits under stream 0."""
    position: int
    """Position in the answer: 0 is the first generated token."""
    token: int
    round: int
    """Round that emitted it; -1 for the token of the prefill."""
    source: str
    """`prefill`, `verified` (the model's own draw after a prefix known to be right) or `unverified`."""
    t_ns: int

    def __post_init__(self) -> None:
        require(self.source in SOURCES, f"emit of run {self.run}: unknown source '{self.source}'")
        require(self.position >= 0, f"emit of run {self.run}: position {self.position} is below 0")


@dataclass(frozen=True, slots=True)
class Draw:
    """One guess that was compared with the model's own draw."""

    run: int
    round: int
    depth: int
    """1 for the first guess after the confirmed token."""
    position: int
    guess: int
    drawn: int
    collision: float
    """Sum of p(x)^2 of the distribution that `drawn` came from; nan at temperature 0."""

    @property
    def accepted(self) -> bool:
        """Whether the guess was right."""
        return self.guess == self.drawn


class Trace:
    """What one run did. Appending costs a tuple; typed rows are built when the run is over, and get its number then.

    `clock` is the context's clock, in nanoseconds; it stands still while the run is paused for another one's turn, and
    while the gauge is read, which takes a driver milliseconds.
    `tally` counts what the contexts decode, inside and outside the window. A token can be said in an open window only:
    `emit` raises `RecordError` elsewhere, and so do a window that is opened twice and one that is closed without being
    open.
    """

    def __init__(self, run: int, clock: Callable[[], int], tally: Tally | None = None,
                 gauge: Callable[[], float] | None = None) -> None:  # fmt: skip
        """`gauge` is read as each window opens and closes; `gauged` is what it rose by within."""
        self.run = run
        self.clock = clock
        self._gauge, self._before = gauge, 0.0
        self.gauged = 0.0
        self.tally = tally or Tally()
        self.window_ns = 0
        self.prefill_ns = 0
        self.draft_prefill_ns = 0
        """What drafters took to take in the prompt and the first token, outside every timed window."""
        self.n_prompt_evaluated = 0
        self.n_prompt_restored, self.restore_ns = 0, 0
        """Prompt tokens whose state was kept from before and restored, and what that took: no part of the prefill."""
        self.begin_ns = 0
        """When the run began, before the prefill, and when it was over: by the clock of whoever runs the method."""
        self.finish_ns = 0
        self.start_ns: int | None = None
        self.end_ns = 0
        self._open, self._n_first = False, 0
        self._machine_clock, self._away, self._left = clock, 0, 0
        self.spans: list[tuple[int, int, int]] = []
        """Of the window, each stretch without a break: when it began and ended, by the machine's clock, and the number
        of its first round."""
        self._rounds: list[_RoundRow] = []
        self._emits: list[_EmitRow] = []
        self._draws: list[_DrawRow] = []
        self._opened = self._since = self._first = 0

    def open_window(self) -> None:
        """The first token is out: timing begins. A baseline of several prompts opens one window for each."""
        require(not self._open, f"run {self.run}: the timed window was opened twice")
        self._open = True
        self.tally.open()
        self._before = self._read()
        self._opened = self._since = self.clock()
        self._first = len(self._rounds)
        if self.start_ns is None:
            self.start_ns = self._opened

    def close_window(self) -> None:
        """The last token is out."""
        self.end_ns = self.clock()
        self.tally.close()
        require(self._open, f"run {self.run}: the timed window was closed without being open")
        self._open = False
        self.window_ns += self.end_ns - self._opened
        self._end_span(self.end_ns)
        self._note_gauge()

    def _read(self) -> float:
        """The gauge, outside the run's time."""
        if self._gauge is None:
            return 0.0
        since = self.clock()
        value = self._gauge()
        self._go_on(since)
        return value

    def _go_on(self, since: int) -> None:
        """The run's own clock goes on from `since`."""
        clock = self._machine_clock
        away = self._away = clock() - since
        self.clock = lambda: clock() - away

    def _note_gauge(self) -> None:
        self.gauged += self._read() - self._before

    def _end_span(self, now: int) -> None:
        self.spans.append((self._since + self._away, now + self._away, self._first))

    def pause(self) -> None:
        """Another run has its turn: this one's clock stands still until `resume`. Only between rounds."""
        self._left = self.clock()
        if self._open:
            self.tally.close()
            self._end_span(self._left)
            self._note_gauge()

    def resume(self) -> None:
        """It goes on. Emits, windows and the end are told by its own clock, `spans` by the machine's."""
        if self._open:
            self._before = self._read()
        self._go_on(self._left)
        if self._open:
            self.tally.open()
            self._since, self._first = self._left, len(self._rounds)

    def __getstate__(self) -> dict[str, Any]:
        """A trace that is over may go to another process, without its clock and what counted for it."""
        own = ("clock", "tally", "_gauge", "_machine_clock")
        return {name: value for name, value in vars(self).items() if name not in own}

    def finish(self) -> None:
        """The run is over. Raises `RecordError` when its window is still open, or never was."""
        # Not by the clock that the method was given: whoever puts another in its place shortens the window alone.
        self.finish_ns = self._machine_clock() - self._away
        require(self.start_ns is not None, f"run {self.run}: no timed window was opened")
        require(not self._open, f"run {self.run}: the timed window was not closed")

    @property
    def is_open(self) -> bool:
        """Whether the timed window is."""
        return self._open

    @property
    def n_emits(self) -> int:
        """Emit calls so far."""
        return len(self._emits)

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return len(self._rounds)

    @property
    def n_said(self) -> int:
        """Tokens said so far after the first ones, those said again among them."""
        return len(self._emits) - self._n_first

    @property
    def n_distinct(self) -> int:
        """Different (stream, position) pairs that were said after the first tokens."""
        return len({row[:2] for row in self._emits if row[3] >= 0})

    def round_ns(self) -> list[int]:
        """What each round took, in nanoseconds."""
        return [row[7] for row in self._rounds]

    def round(self, phase: str, width: int, times: tuple[int, int, int, int, int], counts: tuple[int, int, int],
              redecoded: int = 0) -> None:
        """Add a round: times are (draft, decode, sample, rollback, total) ns, counts (drafted, verified, accepted)."""
        self._rounds.append((len(self._rounds), phase, width, *times, *counts, redecoded))

    def emit(self, stream: int, position: int, token: int, source: str) -> None:
        """Add an emitted token. It belongs to the round that is under way; the prefill's belongs to none.

        Raises `RecordError` for a token outside the timed window that is not the prefill's, which is at position 0.
        """
        if self._open and source != "prefill":
            number = len(self._rounds)
        elif source == "prefill" and position == 0 and not self._open:
            number = -1
            self._n_first += 1
        else:
            place = "inside" if self._open else "outside"
            raise RecordError(f"run {self.run}: position {position} was emitted {place} the timed window as {source}")
        self._emits.append((stream, position, token, number, source, self.clock()))

    def draw(self, depth: int, position: int, guess: int, drawn: int, collision: float) -> None:
        """Add a comparison of a guess with the model's own draw."""
        self._draws.append((len(self._rounds), depth, position, guess, drawn, collision))

    def rounds(self) -> list[Round]:
        """The rounds, checked. Raises `RecordError` for one that contradicts itself."""
        return [Round(self.run, *row) for row in self._rounds]

    def emits(self, first: int = 0) -> list[Emit]:
        """The ledger from its row `first` on, checked. Raises `RecordError` for a row that contradicts itself."""
        return [Emit(self.run, *row) for row in self._emits[first:]]

    def draws(self) -> list[Draw]:
        """The comparisons."""
        return [Draw(self.run, *row) for row in self._draws]

    def text(self, stream: int = 0, verified_only: bool = False) -> list[int]:
        """Token ids of an answer by position, up to the first gap; a later emit of a position replaces an earlier one.

        `verified_only` leaves out what nothing confirmed.
        """
        return _until_gap({
            row[1]: row[2] for row in self._emits if row[0] == stream and not (verified_only and row[4] == "unverified")
        })  # fmt: skip

    def said(self, stream: int = 0) -> list[int]:
        """Token ids as a reader was given them: the first emit of each position, as far as the method verified.

        A distinct token counts from its first emit, so this is the text that its speed belongs to. A loop that takes a
        token back later has said something else than it verified.
        """
        first: dict[int, int] = {}
        for row in self._emits:
            if row[0] == stream:
                first.setdefault(row[1], row[2])
        return _until_gap(first)[: len(self.text(stream, verified_only=True))]


def _until_gap(by_position: dict[int, int]) -> list[int]:
    """Tokens from position 0 up to the first that is missing."""
    tokens: list[int] = []
    while len(tokens) in by_position:
        tokens.append(by_position[len(tokens)])
    return tokens
