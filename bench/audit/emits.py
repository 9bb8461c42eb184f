"""Emitted tokens of one run, as columns, and what can be counted from them. Text is never tokenised again.

A token is a (stream, position); emitting it again does not make it two. It knows no file format and no rates.
Columns are arrays of machine numbers, so that a ledger of fourteen million rows stays below half a gigabyte.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

LARGEST_TOKEN = 2**31 - 1
FAR = 1 << 20
"""Positions that leap ahead of the tokens so far are kept one by one, up to this many."""
SORTED_ROWS = 4_000_000
"""Rows above this are taken in file order even where their times do not rise."""
MISSING = -(2**31)


class Emits:
    """Rows in file order. `prefill` marks tokens that the prefill's logits produced."""

    def __init__(self, clocked: bool, placed: bool = True) -> None:
        self.clocked = clocked
        """Whether the times are clock readings; else every row's time is 0."""
        self.placed = placed
        """Whether the record states positions; else each token is taken as the next one."""
        self.stream = array("i")
        self.position = array("i")
        self.token = array("i")
        self.round = array("i")
        self.t_ns = array("q")
        self.prefill = bytearray()
        self.unverified = 0
        self.counts: Counts | None = None
        """What `count` found, so that nobody counts a long record twice."""

    def __len__(self) -> int:
        return len(self.token)

    def add(self, stream: int, position: int, token: int, round_: int, t_ns: int, prefill: bool, sure: bool) -> None:
        """One emit call. OverflowError for a number that is no id, position or time."""
        self.stream.append(stream)
        self.position.append(position)
        self.token.append(token)
        self.round.append(round_)
        self.t_ns.append(t_ns)
        self.prefill.append(prefill)
        self.unverified += not sure

    @property
    def columns(self) -> tuple[Callable[[int], None], ...]:
        """What appends to stream, position, token, round and time, for whoever adds millions of rows.

        `prefill` and `unverified` are added beside them; all columns must stay of one length.
        """
        return self.stream.append, self.position.append, self.token.append, self.round.append, self.t_ns.append

    @property
    def rising(self) -> bool:
        """Whether no time is below the one before."""
        before = None
        for now in self.t_ns:
            if before is not None and now < before:
                return False
            before = now
        return True

    def mark_first(self) -> None:
        """Give a known beginning: where no row is the prefill's, those of the earliest moment are.

        A clock that is read at emission cannot time what came first. That does not hold for durations, which cover
        their own tokens.
        """
        if not self.clocked or 1 in self.prefill or not len(self):
            return
        start = min(self.t_ns)
        for row, moment in enumerate(self.t_ns):
            if moment == start:
                self.prefill[row] = 1

    def in_time(self) -> Iterator[int]:
        """Row numbers in the order of their times."""
        if len(self) > SORTED_ROWS or self.rising:
            return iter(range(len(self)))
        return iter(sorted(range(len(self)), key=self.t_ns.__getitem__))


@dataclass
class Answer:
    """The tokens of one stream by position, as they were emitted last."""

    tokens: array[int] = field(default_factory=lambda: array("i"))
    far: dict[int, int] = field(default_factory=dict)
    size: int = 0
    low: int = 0
    high: int = -1
    begin_ns: int = 0
    end_ns: int = 0
    end_row: int = 0

    def get(self, position: int) -> int:
        """The token at a position, MISSING where none was emitted."""
        if position < len(self.tokens):
            return self.tokens[position]
        return self.far.get(position, MISSING)

    def put(self, position: int, token: int) -> None:
        """Note the first emission of a position. OverflowError where positions leap over more than memory is for."""
        self.low = position if not self.size else min(self.low, position)
        self.high = max(self.high, position)
        self.size += 1
        if position < 2 * len(self.tokens) + 4096:
            if position >= len(self.tokens):
                self.tokens.extend(
                    [MISSING] * (max(position + 1, min(2 * len(self.tokens), position + 4096)) - len(self.tokens))
                )
            self.tokens[position] = token
        elif len(self.far) < FAR:
            self.far[position] = token
        else:
            raise OverflowError(f"position {position} in an answer of {self.size} tokens")

    def change(self, position: int, token: int) -> None:
        """Put another token where one was: what the reader sees last is the answer."""
        if position < len(self.tokens):
            self.tokens[position] = token
        else:
            self.far[position] = token

    def listed(self) -> list[int]:
        """Tokens from the first position on, up to the first that is missing."""
        found = []
        for position in range(self.low, self.high + 1):
            token = self.get(position)
            if token == MISSING:
                break
            found.append(token)
        return found


@dataclass
class Counts:
    """What the rows come to. `first` tokens came before any decode window can start."""

    counted: int = 0
    distinct: int = 0
    first: int = 0
    first_calls: int = 0
    startup_counted: int = 0
    startup_distinct: int = 0
    duplicates: int = 0
    most: int = 1
    """How often the (stream, position) that was emitted most often was."""
    conflicts: int = 0
    rounds: int = 0
    """Different rounds, the prefill's left out."""
    late: int = 0
    """Tokens that came out after a later position of their answer."""
    answers: dict[int, Answer] = field(default_factory=dict)

    @property
    def gaps(self) -> int:
        """Positions left out between the first and the last of an answer."""
        return sum(answer.high - answer.low + 1 - answer.size for answer in self.answers.values())

    @property
    def longest(self) -> int:
        """Emit calls are not in it: positions of the longest answer."""
        return max((answer.size for answer in self.answers.values()), default=0)


def count(emits: Emits, startup: Collection[int] = ()) -> Counts:
    """Count the rows of one run. `startup` holds the rounds that fill a pipeline before the method's first full one."""
    found = Counts()
    again: dict[tuple[int, int], int] = {}
    early = frozenset(startup)
    streams, positions, tokens, prefills = emits.stream, emits.position, emits.token, emits.prefill
    current, answer = -1, Answer()
    seen: array[int] = answer.tokens
    for row in emits.in_time():  # millions of rows: names are local, and a stream is looked up when it changes
        stream, position, token, prefill = streams[row], positions[row], tokens[row], prefills[row]
        begun = bool(early) and emits.round[row] in early and not prefill
        if prefill:
            found.first_calls += 1
        if begun:
            found.startup_counted += 1
        if stream != current:
            current = stream
            answer = found.answers.setdefault(stream, Answer())
            seen = answer.tokens
            if not answer.size:
                answer.begin_ns = emits.t_ns[row]
        before = seen[position] if position < len(seen) else answer.get(position)
        answer.end_row = row
        if before != MISSING:
            found.duplicates += 1
            if before != token:
                found.conflicts += 1
                answer.change(position, token)
            if len(again) < FAR:
                again[stream, position] = again.get((stream, position), 1) + 1
            continue
        if position < answer.high:
            found.late += 1
        answer.put(position, token)
        found.first += prefill
        if begun:
            found.startup_distinct += 1
    for one in found.answers.values():
        one.end_ns = emits.t_ns[one.end_row]
    found.rounds = _distinct_rounds(emits)
    found.counted = len(emits) - found.first_calls
    found.distinct = len(emits) - found.duplicates - found.first
    found.most = max(again.values(), default=1)
    emits.counts = found
    return found


def _distinct_rounds(emits: Emits) -> int:
    """How many rounds there are: rounds that rise need no memory, the rest of them a set."""
    high, rounds = -1, 0
    back: set[int] = set()
    starts: set[int] = set()
    for one in emits.round:
        if one > high:
            rounds += 1
            if len(starts) < FAR:
                starts.add(one)
            high = one
        elif 0 <= one < high and one not in starts and len(back) < FAR:
            back.add(one)
    return rounds + len(back - starts)


def window_seconds(emits: Emits) -> float:
    """Time that clocked rows took, prefill outside: the gaps between emissions that end in a decoded token.

    A gap that ends in a prefill token is the prefill of the next answer, so answers that were decoded one after the
    other do not charge each other's prompts. nan without rows.
    """
    if not len(emits):
        return float("nan")
    total = 0
    before = moment = None
    decoded = False
    for row in emits.in_time():
        now = emits.t_ns[row]
        if now != moment:
            if before is not None and moment is not None and decoded:
                total += moment - before
            before, moment, decoded = moment, now, False
        decoded |= not emits.prefill[row]
    if before is not None and moment is not None and decoded:
        total += moment - before
    return total / 1e9


def together(answers: Collection[Answer]) -> int:
    """Largest number of answers that were under way at one moment."""
    # An answer that ends where the next begins does not overlap it.
    edges = sorted([(one.begin_ns, 1) for one in answers] + [(one.end_ns, -1) for one in answers])
    most = level = 0
    for _, change in sorted(edges, key=lambda edge: (edge[0], edge[1])):
        level += change
        most = max(most, level)
    return max(most, 1)
