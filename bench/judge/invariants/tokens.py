"""Tokens, rounds, guesses and draws, against each other. It looks at no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.judge.invariants.places import pairs, places
from bench.judge.measure.lossless import POSITIONS, Said
from bench.records.arms import PLAIN, PLANTED

if TYPE_CHECKING:
    from bench.judge.measure.case import Case
    from bench.judge.measure.runs import RunTable


def tokens_are_draws(case: Case) -> str | None:
    """Emits of each round against the answers that it serves, its accepted guesses and the rows of its decode.

    Copies of one answer may keep an accepted token for a later round; every other method says each at once.
    """
    table = case.runs
    turns, row = table.turns, case.once(places).of_emit
    size = len(turns["run"])
    told = table.emits["round"] >= 0
    emits = np.bincount(row[told], minlength=size)
    several = int(table.tokens.streams.max()) > 1
    answers = (emits > 0).astype(np.int64)
    if several:
        answers = np.bincount(np.unique(row[told] * _SPAN + table.emits["stream"][told]) // _SPAN, minlength=size)
    most = answers + turns["accepted"]
    steady, copies = turns["phase"] == "steady", case.arm.answers == "copies"
    treated = ~table.any_of(PLAIN)[turns["owner"]]
    wrong = (emits > most) | (emits != most) & ~(treated & copies) | (emits == 0) & steady
    wrong |= turns["width"] < answers + turns["drafted"]
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"round {turns['round'][at]} of run {turns['run'][at]} ({table.arm[turns['owner'][at]]}) says {emits[at]} "
            f"tokens of {answers[at]} answers, decoded {turns['width'][at]} rows, drafted {turns['drafted'][at]} and "
            f"accepted {turns['accepted'][at]}; {int(wrong.sum())} rounds in all")  # fmt: skip


def draws_are_there(case: Case) -> str | None:
    """Draws of each round against its counters, and against the tokens that came out of it."""
    table = case.runs
    turns, draws = table.turns, table.draws
    place, size = case.once(places), len(turns["run"])
    stray = draws["round"] >= table.rounds[draws["owner"]]
    if stray.any():
        at = int(np.flatnonzero(stray)[0])
        return f"run {draws['run'][at]} has draws of round {draws['round'][at]}, and no such round"
    row = (place.begins[draws["owner"]] + draws["round"]).astype(np.int64)
    deep = draws["depth"] > turns["drafted"][row]
    if deep.any():
        at = int(np.flatnonzero(deep)[0])
        return (f"run {draws['run'][at]} compares guess {draws['depth'][at]} of round {draws['round'][at]}, which made "
                f"{turns['drafted'][row[at]]}")  # fmt: skip
    hit = draws["guess"] == draws["drawn"]
    counted = np.bincount(row, minlength=size), np.bincount(row[hit], minlength=size)
    wrong = (counted[0] != turns["verified"]) | (counted[1] != turns["accepted"])
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        return (f"round {turns['round'][at]} of run {turns['run'][at]} counts {turns['verified'][at]} verified and "
                f"{turns['accepted'][at]} accepted guesses, and {counted[0][at]} draws with {counted[1][at]} hits are "
                f"stored")  # fmt: skip
    return _drawn_tokens(table, place.of_emit, row)


def guesses_are_dropped_behind_a_wrong_one(case: Case) -> str | None:
    """A guess of one answer is left uncompared behind a wrong one, or where the answer ends; and as many rows go beside
    the guesses of the treatment as beside those of its controls, where all of theirs have one number of them.
    """
    table = case.runs
    turns = table.turns
    owner = turns["owner"]
    alone = (table.tokens.streams == 1)[owner] & (np.r_[owner[1:] == owner[:-1], False])
    wrong = alone & (turns["accepted"] < turns["drafted"]) & (turns["verified"] <= turns["accepted"])
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        return (f"round {turns['round'][at]} of run {turns['run'][at]} ({table.arm[owner[at]]}) drafts "
                f"{turns['drafted'][at]} guesses and keeps {turns['accepted'][at]}, and compares no wrong one; "
                f"{int(wrong.sum())} rounds in all")  # fmt: skip
    beside = turns["width"] - turns["drafted"]
    planted = np.unique(beside[table.any_of(PLANTED)[owner]])
    if len(planted) != 1 or int(table.tokens.streams.max()) > 1:
        return None
    odd = np.flatnonzero((beside != planted[0]) & table.of("treatment")[owner])
    if not len(odd):
        return None
    return (f"round {turns['round'][odd[0]]} of run {turns['run'][odd[0]]} decodes {beside[odd[0]]:.0f} rows beside "
            f"its guesses, and its controls {planted[0]:.0f} in every round; {len(odd)} rounds in all")  # fmt: skip


def _drawn_tokens(table: RunTable, of_emit: np.ndarray, row: np.ndarray) -> str | None:
    """What was drawn at a position of a round is what that round says there, where it has one answer."""
    emits, draws = table.emits, table.draws
    alone = table.tokens.streams == 1
    told = (emits["round"] >= 0) & alone[emits["owner"]]
    mine = alone[draws["owner"]]
    said_at = of_emit[told] * _SPAN + emits["position"][told].astype(np.int64)
    drawn_at = row[mine] * _SPAN + draws["position"][mine].astype(np.int64)
    if not len(said_at) or not len(drawn_at):
        return None
    order = np.argsort(said_at, kind="stable")
    where = order[np.minimum(np.searchsorted(said_at, drawn_at, sorter=order), len(said_at) - 1)]
    wrong = (said_at[where] == drawn_at) & (emits["token"][told][where] != draws["drawn"][mine])
    if not wrong.any():
        return None
    at = np.flatnonzero(told)[where[np.flatnonzero(wrong)[0]]]
    return (f"run {emits['run'][at]} says token {emits['token'][at]} at position {emits['position'][at]}, and the draw "
            f"of that round is another; {int(wrong.sum())} tokens in all")  # fmt: skip


def answers_as_asked(case: Case) -> str | None:
    """Answers against prompts, and the length of each. A method that ends by rounds has as many of them."""
    table = case.runs
    asked = np.array([prompt.count("+") + 1 for prompt in table.prompt.tolist()])
    asked[table.of("solo")] = np.minimum(asked, np.maximum(table.tokens.streams, 1))[table.of("solo")]
    wrong = table.tokens.streams != asked
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        return (f"run {table.run[at]} ({table.arm[at]}) says {table.tokens.streams[at]} answers to {asked[at]} "
                f"prompts; {int(wrong.sum())} runs in all")  # fmt: skip
    if table.ends:
        return _ended(table, asked)
    full = table.n_predict * asked
    made = table.tokens.distinct + table.tokens.unverified + table.tokens.first
    by_rounds = case.arm.by_rounds & ~table.any_of(PLAIN)
    steady = table.rounds - table.startup_rounds
    wrong = np.where(by_rounds, steady != table.n_predict - 1, made != full) | (table.tokens.first != asked)
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {table.run[at]} ({table.arm[at]}) says {made[at]} tokens, and {full[at]} were asked for; "
            f"{int(wrong.sum())} runs in all")  # fmt: skip


def _ended(table: RunTable, asked: np.ndarray) -> str | None:
    """Where answers may end by themselves: each has the length that was asked for, or an end as its last token."""
    emits, told = table.emits, table.confirmed
    place = emits["owner"][told] * int(asked.max()) + emits["stream"][told].astype(np.int64)
    position, ends = emits["position"][told].astype(np.int64), np.isin(emits["token"][told], list(table.ends))
    last = np.full(len(table.run) * int(asked.max()), -1)
    np.maximum.at(last, place, position)
    early = ends & (position < last[place])
    if early.any():
        at = int(emits["owner"][told][np.flatnonzero(early)[0]])
        return f"run {table.run[at]} ({table.arm[at]}) says more behind an end of its answer"
    over = np.zeros(len(last), dtype=bool)
    over[place[ends]] = True
    count = np.repeat(table.n_predict, int(asked.max()))
    wrong = (last >= 0) & ((last + 1 > count) | (last + 1 < count) & ~over)
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    run = at // int(asked.max())
    return (f"run {table.run[run]} ({table.arm[run]}) says {last[at] + 1} tokens in an answer without an end, and "
            f"{count[at]} were asked for; {int(wrong.sum())} answers in all")  # fmt: skip


def verified(case: Case) -> str | None:
    """Only a method that says tokens again may say one before it is confirmed, and it confirms all but its last ones.

    These last ones are as many as it has copies but one.
    """
    table = case.runs
    loose = np.bincount(table.emits["owner"][~table.confirmed], minlength=len(table.run))
    never = table.tokens.unverified
    may = case.arm.repeats & ~table.any_of(PLAIN)
    tail = max(int(case.cell.config.get("streams") or 1) - 1, 0)
    wrong = np.where(may, never > tail, loose > 0)
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"run {table.run[at]} ({table.arm[at]}) says {never[at]} tokens that nothing ever confirmed, and they are "
            f"no part of an answer; {int(wrong.sum())} runs in all")  # fmt: skip


def compared(case: Case) -> str | None:
    """Every confirmed position of an arm has a token of the baseline's replicate to be compared with."""
    table, (mine, token, there) = case.runs, case.once(pairs)
    if table.ends:
        there = there | _behind_an_end(mine, token, there, table.ends)
    if there.all():
        return None
    at = int(np.flatnonzero(~there)[0])
    stream, position = mine.place(at)
    run = mine.owner[at]
    return (f"run {table.run[run]} ({table.arm[run]}) says position {position} of stream {stream}, and no run of the "
            f"baseline does; {int((~there).sum())} tokens in all")  # fmt: skip


def _behind_an_end(mine: Said, token: np.ndarray, there: np.ndarray, ends: frozenset[int]) -> np.ndarray:
    """Which tokens lie behind the end of the baseline's answer: there an arm that left it before goes on alone."""
    answer = mine.key // POSITIONS
    over = np.unique(answer[there & np.isin(token, list(ends))])
    return np.isin(answer, over)


def plain_decodes_plainly(case: Case) -> str | None:
    """One row a round, one token each, no guess; no guess either of a method that says it makes none."""
    table = case.runs
    turns = table.turns
    if not case.arm.guesses:
        hidden = np.flatnonzero(turns["drafted"] > 0)
        if len(hidden):
            at = int(hidden[0])
            return (f"round {turns['round'][at]} of run {turns['run'][at]} drafts {turns['drafted'][at]} guesses, and "
                    f"its method says that it makes none; {len(hidden)} rounds in all")  # fmt: skip
    plain = table.any_of(PLAIN)[turns["owner"]]
    busy = turns["drafted"] + turns["verified"] + turns["redecoded"] + (turns["width"] - 1) + turns["draft_ns"]
    wrong = plain & (busy > 0)
    if not wrong.any():
        return None
    at = int(np.flatnonzero(wrong)[0])
    return (f"round {turns['round'][at]} of run {turns['run'][at]} ({table.arm[turns['owner'][at]]}) drafts "
            f"{turns['drafted'][at]} guesses in a decode of {turns['width'][at]} rows, and plain decoding drafts none; "
            f"{int(wrong.sum())} rounds in all")  # fmt: skip


_SPAN = 2**24
"""More than any run has positions or answers."""
