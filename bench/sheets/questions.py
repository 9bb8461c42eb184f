"""Questions on a terminal about an entry of a claim sheet; each answer is checked before the next question.

It knows which questions there are, from the words that a sheet may have, and asks until the entry can be judged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from bench.errors import UserError, nearest
from bench.judge.claims.columns import TABLE_OF
from bench.judge.claims.mechanism import MATTERS
from bench.judge.claims.scope import OF_METHODS, PER
from bench.judge.claims.sheet import EVIDENCE, METRICS, STATES
from bench.sheets.entry import Entry, checked, completed, put, tests_of, usual_rule, usual_unit
from pti_loop.parameters import declared


class Question(NamedTuple):
    """One question. An empty answer takes `usual`, or leaves the key out where there is none and it is no must."""

    key: str
    words: str
    choices: tuple[str, ...] = ()
    usual: str = ""
    must: bool = True


Ask = Callable[[str], str]


def answered(given: Entry, known: Collection[str] = (), ask: Ask | None = None) -> Entry:
    """The entry, asked for. `known` are ids that are taken. Raises EOFError where the answers end."""
    ask, entry = ask or _from_terminal, given
    say("An empty answer takes what stands in brackets. Ctrl-C leaves, and nothing is written.")
    for question in _questions(entry):
        _put_answer(entry, question, ask)
    while True:
        made = completed(entry)
        try:
            checked(made, known)
            return made
        except UserError as error:
            say(f"{error}")
            _mend(entry, ask)


def _questions(entry: Entry) -> Iterator[Question]:
    """One after the other, since what comes depends on what was said. What was given is not asked for."""
    for question in _all_questions(entry):
        head, _, inner = question.key.partition(".")
        value = entry.get(head)
        if (value.get(inner) if inner and isinstance(value, dict) else value if not inner else None) in (None, ""):
            yield question


def _all_questions(entry: Entry) -> Iterator[Question]:
    yield Question("id", "a name for the claim, with dots: whose, about what")
    yield Question("says", "the claim as one sentence, in your words")
    yield Question("source.document", "where it was published")
    yield Question("source.date", "on which day, as 2026-11-30")
    yield Question("metric", "what kind of quantity it is", METRICS, "speedup")
    metric = str(entry["metric"])
    table = TABLE_OF.get(metric, "")
    if table in OF_METHODS:
        yield Question("scope.method", "which way of decoding it is about", tuple(declared()))
        spec = declared().get(str((entry.get("scope") or {}).get("method")))
        if spec is not None and spec.answers != "one":
            yield Question("scope.streams", "how many streams, or any", must=False)
        yield Question("scope.temperature", "at which temperature, or any", usual="0")
        if metric in ("speedup", "rate", "aggregate"):
            yield Question("scope.per", "whose speed it is", PER, "aggregate" if metric == "aggregate" else "answer")
    yield Question("published", "the number exactly as it was printed, or [low, high]")
    yield Question("unit", "its unit", usual=usual_unit(metric, entry))
    for key in MATTERS.get(table, ()):
        yield Question(f"conditions.{key}", f"on which {key} it was measured, where that is known", must=False)
    if metric == "speedup" and str(entry.get("unit")) == "tok/s":
        yield Question("conditions.baseline_tok_s", "the rate of plain decoding that it is compared with", must=False)
    yield Question("evidence", "how its author came to it", EVIDENCE, "measured")
    yield Question("author_status.state", "what its author made of it later", STATES, "standing")
    if tests := tests_of(metric, str(entry.get("unit", "")), entry):
        usual = str(usual_rule(metric, str(entry.get("unit", "")), entry).get("test", tests[0]))
        yield Question("rule.test", "which test judges it (docs/claims.md)", tuple(tests), usual)


def _put_answer(entry: Entry, question: Question, ask: Ask) -> None:
    told = f" ({', '.join(question.choices)})" if question.choices else ""
    while True:
        answer = ask(f"{question.key}: {question.words}{told}{f' [{question.usual}]' if question.usual else ''}: ")
        answer = answer.strip() or question.usual
        if not answer and not question.must:
            return
        if not answer:
            say(f"{question.key} is needed.")
        elif question.choices and answer not in question.choices:
            say(f"'{answer}' is none of them; {nearest(answer, question.choices)}")
        else:
            try:
                put(entry, question.key, answer)
                return
            except UserError as error:
                say(str(error))


def _mend(entry: Entry, ask: Ask) -> None:
    """One key set again, or taken out."""
    key, _, value = ask("mend it with KEY=VALUE (KEY= takes a key out): ").strip().partition("=")
    try:
        head, dot, inner = key.partition(".")
        if value.strip():
            put(entry, key, value.strip())
        elif dot and isinstance(entry.get(head), dict):
            entry[head].pop(inner, None)
        elif head in entry:
            del entry[head]
    except UserError as error:
        say(str(error))


def _from_terminal(prompt: str) -> str:
    """A line from the keyboard; the prompt goes where the entry does not."""
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line


def say(sentence: str) -> None:
    """Beside the entry, which may go into a file."""
    print(sentence, file=sys.stderr, flush=True)
