"""Edits of what a cell stores of servers: who they are, what they say of their answers, and how these were compared."""

from __future__ import annotations

from tests.faults.records import fault
from tests.faults.stored import Record

SERVED = "eb7a40c68de3"
"""llama-server against itself with ngram-mod, one request at a time, each run by a fresh one."""


@fault("another server is on trial than the one that env.json describes", SERVED, "servers")
def _(record: Record) -> None:
    record.env["treatment"]["server"] = "llama-server --spec-default"


@fault("a library of the server on trial is another", SERVED, "servers")
def _(record: Record) -> None:
    record.env["treatment"]["libraries"]["libllama.so.0"] = "a" * 64


@fault("an answer is told of twice", SERVED, "requests")
def _(record: Record) -> None:
    rows = record.tables["served"]
    rows.loc[len(rows)] = rows.iloc[0]


@fault("a server counts a token that is not in the ledger", SERVED, "requests")
def _(record: Record) -> None:
    record.tables["served"].loc[0, "told"] += 1


@fault("first tokens came later than the window opened", SERVED, "requests")
def _(record: Record) -> None:
    record.tables["served"].loc[record.mask("served", "treatment"), "first_ns"] += 10**6


@fault("servers tell longer times than their clients waited", SERVED, "own_times")
def _(record: Record) -> None:
    record.tables["served"].loc[record.mask("served", "treatment"), "answer_ms"] *= 10


@fault("answers with equal ids have other texts", SERVED, "said")
def _(record: Record) -> None:
    record.tables["served"].loc[record.mask("served", "treatment", "carry", "kept"), "text"] = "0123456789abcdef"


@fault("texts are said to differ that are equal", SERVED, "said")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        row["same_text"] = False


@fault("a fresh server says another text the second time", SERVED, "same_again")
def _(record: Record) -> None:
    runs, rows = record.tables["runs"], record.tables["served"]
    last = runs["run"][runs["arm"] == "carry"].iloc[-1]
    rows.loc[rows["run"] == last, "text"] = "0123456789abcdef"


@fault("answers are said to be compared by their text, and have ids", SERVED, "by")
def _(record: Record) -> None:
    for row in record.facts["lossless"]:
        row["by"] = "text"


@fault("a prompt was taken from a cache that nobody asked for", SERVED, "prefill")
def _(record: Record) -> None:
    runs = record.tables["runs"]
    runs.loc[record.mask("runs", "treatment"), "n_prompt_evaluated"] = 1


@fault("servers that were kept are judged as fresh ones by nobody", SERVED, "memory")
def _(record: Record) -> None:
    record.facts["sides"] = "kept"


@fault("the server on trial has a larger model", SERVED, "engine")
def _(record: Record) -> None:
    record.facts["engine"]["treatment"]["n_params"] = 2 * 134515008


@fault("the treatment's windows of a server are halved", SERVED, "windows")
def _(record: Record) -> None:
    record.scale("runs", ("decode_window_ns",), 0.5, "treatment")


@fault("a server's answer to a prompt is left out of the ledger", SERVED, "answers")
def _(record: Record) -> None:
    rows = record.tables["ledger"]
    record.tables["ledger"] = rows[~(record.mask("ledger", "treatment") & (rows["position"] == 9))]
